//! The end of a job, ordered or not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mpjdev::{Adapter, Error, ErrorClass};

use super::job::{Platform, Setup};
use super::rank::{Pending, Rank, check, payload};

/// What every call says.
fn errors_of<A: Adapter>(rank: &Rank<A>) -> Vec<Error> {
    vec![
        rank.send(&[1], 0, 0).unwrap_err(),
        rank.ssend(&[1], 0, 0).unwrap_err(),
        rank.isend(vec![1], 0, 0).unwrap_err(),
        rank.recv(&mut [0], 0, 0).unwrap_err(),
        rank.irecv(1, 0, 0).unwrap_err(),
        rank.probe(0, 0).unwrap_err(),
        rank.iprobe(0, 0).unwrap_err(),
        rank.mprobe(0, 0).unwrap_err(),
        rank.improbe(0, 0).unwrap_err(),
        rank.progress().unwrap_err(),
        rank.stats().unwrap_err(),
        rank.dump().unwrap_err(),
        rank.finish().unwrap_err(),
    ]
}

/// A device that was finished, or given up, says so from then on.
pub fn nothing_goes_after_the_end<P: Platform>(setup: &Setup<P>) {
    setup.run_open(2, |rank| {
        rank.finish().unwrap();
        for error in errors_of(rank) {
            assert!(matches!(error, Error::Finished), "{error}");
            assert_eq!(error.class(), ErrorClass::Other);
        }
    });
    setup.run_open(1, |rank| {
        let mut open = vec![rank.irecv(8, 0, 0).unwrap()];
        rank.give_up();
        for error in errors_of(rank) {
            assert!(matches!(error, Error::Finished), "{error}");
        }
        assert!(matches!(rank.wait_any(&mut open), Err(Error::Finished)));
        assert!(matches!(rank.wait_all(&mut open), Err(Error::Finished)));
        assert!(matches!(rank.test(&mut open[0]), Err(Error::Finished)));
        assert!(matches!(rank.cancel(&open[0]), Err(Error::Finished)));
    });
}

/// The collective end returns on no rank before every rank has come.
pub fn the_end_waits_for_all<P: Platform>(setup: &Setup<P>) {
    let come = AtomicUsize::new(0);
    setup.run_open(5, move |rank| {
        thread::sleep(Duration::from_millis(7 * u64::from(rank.rank())));
        come.fetch_add(1, Ordering::SeqCst);
        rank.finish().unwrap();
        assert_eq!(come.load(Ordering::SeqCst), 5);
    });
}

/// What was sent before, and not waited for, arrives all the same: more than the rings hold.
pub fn sends_before_the_end_arrive<P: Platform>(setup: &Setup<P>) {
    const MESSAGES: u64 = 700;
    let len = |seed: u64| if seed % 100 == 7 { 200_000 } else { 300 };
    setup.run(2, move |rank| {
        for seed in 0..MESSAGES {
            if rank.me() == 0 {
                rank.detach(rank.isend(payload(seed, len(seed)), 1, 0).unwrap());
            } else {
                let mut buffer = vec![0; len(seed)];
                rank.recv(&mut buffer, 0, 0).unwrap();
                check(&buffer, seed);
            }
        }
    });
}

#[track_caller]
fn expect_lost(error: &Error, lost: usize) {
    assert_eq!(error.class(), ErrorClass::ProcFailed, "{error}");
    assert!(error.to_string().contains(&format!("rank {lost} is gone")), "{error}");
}

/// One rank of three goes away without a word while the others do `blocked`.
fn lose_the_last<P: Platform>(
    setup: &Setup<P>,
    blocked: impl Fn(&Rank<P::Adapter>) -> Error + Send + Sync + 'static,
) {
    lose_the_last_by(setup, |rank| rank.abort(), blocked);
}

/// The same, with another way of going.
fn lose_the_last_by<P: Platform>(
    setup: &Setup<P>,
    go: impl Fn(&Rank<P::Adapter>) + Send + Sync + 'static,
    blocked: impl Fn(&Rank<P::Adapter>) -> Error + Send + Sync + 'static,
) {
    setup.run_open(3, move |rank| {
        if rank.me() == 2 {
            // Long enough for the others to be blocked, and asleep.
            thread::sleep(Duration::from_millis(30));
            return go(rank);
        }
        expect_lost(&blocked(rank), 2);
        // The device keeps to its first error.
        for error in errors_of(rank) {
            expect_lost(&error, 2);
        }
    });
}

/// Receives from the lost rank, from any, and from a rank that is alive but fails itself.
pub fn a_lost_rank_fails_blocked_receives<P: Platform>(setup: &Setup<P>) {
    lose_the_last(setup, |rank| {
        let source = [Some(2), None][rank.me()];
        rank.recv(&mut [0; 8], source, 0).unwrap_err()
    });
    lose_the_last(setup, |rank| rank.recv(&mut [0; 8], 1 - rank.me(), None).unwrap_err());
}

/// Sends that wait for a match, and sends that wait for room.
pub fn a_lost_rank_fails_blocked_sends<P: Platform>(setup: &Setup<P>) {
    lose_the_last(setup, |rank| rank.ssend(&[1; 100], 2, 0).unwrap_err());
    lose_the_last(setup, |rank| {
        let send = rank.isend(payload(0, 4 << 20), 2, 0).unwrap();
        rank.wait(send).0.unwrap_err()
    });
}

/// Every other call that waits.
pub fn a_lost_rank_fails_probes_and_lists<P: Platform>(setup: &Setup<P>) {
    lose_the_last(setup, |rank| match rank.me() {
        0 => rank.probe(None, None).unwrap_err(),
        _ => rank.mprobe(2, 0).unwrap_err(),
    });
    let list = |rank: &Rank<P::Adapter>| -> Vec<Pending> {
        (0..3).map(|tag| rank.irecv(100, 2, tag).unwrap()).collect()
    };
    lose_the_last(setup, move |rank| match rank.me() {
        0 => rank.wait_any(&mut list(rank)).unwrap_err(),
        _ => rank.wait_some(&mut list(rank)).unwrap_err(),
    });
    lose_the_last(setup, move |rank| rank.wait_all(&mut list(rank)).unwrap_err());
}

/// Calls until there is an error.
fn poll(mut call: impl FnMut() -> Result<bool, Error>) -> Error {
    let start = Instant::now();
    loop {
        match call() {
            Err(error) => return error,
            Ok(done) => assert!(!done, "nobody has sent anything"),
        }
        assert!(start.elapsed() < Duration::from_secs(2), "the loss goes unnoticed");
        thread::yield_now();
    }
}

/// A rank that never blocks finds out too: its requests would not end.
pub fn a_lost_rank_fails_polling<P: Platform>(setup: &Setup<P>) {
    lose_the_last(setup, |rank| match rank.me() {
        0 => {
            let mut receive = rank.irecv(8, 2, 0).unwrap();
            poll(|| rank.test(&mut receive).map(|status| status.is_some()))
        }
        _ => poll(|| rank.iprobe(2, 0).map(|status| status.is_some())),
    });
}

/// The collective end cannot wait for a rank that is gone.
pub fn a_lost_rank_fails_the_end<P: Platform>(setup: &Setup<P>) {
    lose_the_last(setup, |rank| rank.finish().unwrap_err());
}

/// A rank that gave its device up is gone as well, though it lives.
pub fn a_rank_that_gives_up_is_lost<P: Platform>(setup: &Setup<P>) {
    let blocked = |rank: &Rank<P::Adapter>| match rank.me() {
        0 => rank.recv(&mut [0; 8], 2, 0).unwrap_err(),
        _ => rank.finish().unwrap_err(),
    };
    lose_the_last_by(setup, |rank| rank.give_up(), blocked);
}
