//! The end of a job, ordered or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mpj_harness::Sleepers;
use mpjdev::{Error, ErrorClass, Members};

use super::job::Setup;
use super::rank::{Pending, Rank, check};
use crate::conformance::payload;

/// The answers of all calls that name `other`.
fn errors_towards(rank: &Rank, other: usize) -> Vec<Error> {
    vec![
        rank.send(&[1], other, 0).unwrap_err(),
        rank.ssend(&[1], other, 0).unwrap_err(),
        rank.isend(vec![1], other, 0).unwrap_err(),
        rank.isend(payload(0, 4 << 20), other, 0).unwrap_err(),
        rank.recv(&mut [0], other, 0).unwrap_err(),
        rank.irecv(1, other, 0).unwrap_err(),
        rank.probe(other, 0).unwrap_err(),
        rank.iprobe(other, 0).unwrap_err(),
        rank.mprobe(other, 0).unwrap_err(),
        rank.improbe(other, 0).unwrap_err(),
    ]
}

/// The answers of all calls.
fn errors_of(rank: &Rank) -> Vec<Error> {
    let others = [
        rank.progress().unwrap_err(),
        rank.stats().unwrap_err(),
        rank.dump().unwrap_err(),
        rank.finish().unwrap_err(),
    ];
    errors_towards(rank, 0).into_iter().chain(others).collect()
}

/// A device that was finished, or given up, says so from then on.
pub fn nothing_goes_after_the_end(setup: &Setup) {
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
pub fn the_end_waits_for_all(setup: &Setup) {
    let come = AtomicUsize::new(0);
    setup.run_open(5, move |rank| {
        thread::sleep(Duration::from_millis(7 * u64::from(rank.rank())));
        come.fetch_add(1, Ordering::SeqCst);
        rank.finish().unwrap();
        assert_eq!(come.load(Ordering::SeqCst), 5);
    });
}

/// Messages that were sent before and not waited for still arrive, also more than the rings hold.
pub fn sends_before_the_end_arrive(setup: &Setup) {
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

/// One rank of three goes away without a word while the others do `blocked`; they go on without it.
fn lose_the_last(setup: &Setup, blocked: impl Fn(&Rank) -> Error + Send + Sync + 'static) {
    lose_the_last_by(
        setup,
        |rank| rank.abort(),
        move |rank| is_without_the_last(rank, &blocked(rank)),
    );
}

/// The error says that the last rank is lost, and the rank goes on.
fn is_without_the_last(rank: &Rank, error: &Error) {
    expect_lost(error, 2);
    // A send fails as soon as the transport knows; a wait notices, and ends receives from any source.
    expect_lost(&rank.recv(&mut [0; 8], 2, 6).unwrap_err(), 2);
    go_on_without_the_last(rank);
}

/// One rank of three goes away in this way while the others do `blocked`, and sleep.
fn lose_the_last_by(
    setup: &Setup,
    go: impl Fn(&Rank) + Send + Sync + 'static,
    blocked: impl Fn(&Rank) + Send + Sync + 'static,
) {
    let sleepers = Sleepers::default();
    setup.run_open(3, move |rank| {
        if rank.me() == 2 {
            sleepers.wait_until_asleep(2);
            return go(rank);
        }
        sleepers.join();
        blocked(rank);
    });
}

/// The ranks that are left reach each other, every call that names the lost one says so, and the end, which needs
/// it, fails.
fn go_on_without_the_last(rank: &Rank) {
    let other = 1 - rank.me();
    for (seed, len) in (0..).zip([1, 3_000, 2 << 20]) {
        let send = rank.isend(payload(seed, len), other, 77).unwrap();
        let mut got = vec![0; len];
        // Receives from any source: the loss was reported once.
        let status = rank.recv(&mut got, None, 77).unwrap();
        assert_eq!((status.source, status.bytes), (other as u32, len));
        check(&got, seed);
        rank.wait(send).0.unwrap();
    }
    errors_towards(rank, 2).iter().for_each(|error| expect_lost(error, 2));
    rank.progress().unwrap();
    let left = rank.dump().unwrap();
    assert!(left.contains("open requests: 0"), "nothing is left of what has failed: {left}");
    // Both have done all this before the first one ends.
    let done = rank.isend(vec![0], other, 78).unwrap();
    rank.recv(&mut [1], other, 78).unwrap();
    // The other one may end before its answer is on its way.
    if let Err(error) = rank.wait(done).0 {
        expect_lost(&error, other);
    }
    expect_lost(&rank.finish().unwrap_err(), 2);
    for error in errors_of(rank) {
        expect_lost(&error, 2);
    }
}

/// Receives from the lost rank, and from any.
pub fn a_lost_rank_fails_blocked_receives(setup: &Setup) {
    lose_the_last(setup, |rank| {
        let source = [Some(2), None][rank.me()];
        rank.recv(&mut [0; 8], source, 0).unwrap_err()
    });
}

/// Operations that do not need the lost rank go on, receives from any source fail once, and what the lost rank has sent
/// before still counts.
pub fn a_lost_rank_fails_no_other_operation(setup: &Setup) {
    setup.run_open(3, |rank| {
        if rank.me() == 2 {
            for to in [0, 1] {
                rank.detach(rank.isend(payload(9, 500), to, 9).unwrap());
            }
            for from in [0, 1] {
                rank.recv(&mut [0], from, 9).unwrap();
            }
            return rank.abort();
        }
        let other = 1 - rank.me();
        let from_other = rank.irecv(300_000, other, 1).unwrap();
        let from_any = rank.irecv(8, None, 2).unwrap();
        let from_lost = rank.irecv(8, 2, 3).unwrap();
        rank.probe(2, 9).unwrap();
        rank.detach(rank.isend(vec![0], 2, 9).unwrap());
        expect_lost(&rank.wait(from_any).0.unwrap_err(), 2);
        expect_lost(&rank.wait(from_lost).0.unwrap_err(), 2);
        let mut unexpected = vec![0; 500];
        match rank.recv(&mut unexpected, 2, 9) {
            Ok(_) => check(&unexpected, 9),
            // By rendezvous, the data are lost with their sender.
            Err(error) => expect_lost(&error, 2),
        }
        let send = rank.isend(payload(1, 300_000), other, 1).unwrap();
        let (status, got) = rank.wait(from_other);
        status.unwrap();
        check(&got, 1);
        rank.wait(send).0.unwrap();
        go_on_without_the_last(rank);
    });
}

/// The members of a context, by their numbers.
struct These(&'static [u32]);

impl Members for These {
    fn contains(&self, rank: u32) -> bool {
        self.0.contains(&rank)
    }

    fn ranks(&self) -> Vec<u32> {
        self.0.to_vec()
    }

    fn name(&self) -> String {
        "these".to_owned()
    }
}

/// Rank 2 of three goes when both others have told it to, in context 0.
fn go_when_told(rank: &Rank) {
    for from in [0, 1] {
        rank.recv(&mut [0], from, 9).unwrap();
    }
    rank.abort();
}

fn tell_the_last_to_go(rank: &Rank) {
    rank.detach(rank.isend(vec![0], 2, 9).unwrap());
}

/// A context whose members are all there goes on, with messages of every kind; also what was posted before the loss.
pub fn a_lost_rank_ends_no_collective_of_others(setup: &Setup) {
    setup.run_open(3, |rank| {
        if rank.me() == 2 {
            return go_when_told(rank);
        }
        let (other, inside) = (1 - rank.me(), rank.within(5));
        rank.set_members(5, Arc::new(These(&[0, 1]))).unwrap();
        let from_any = inside.irecv(100, None, 4).unwrap();
        let from_other = inside.irecv(300_000, other, 3).unwrap();
        tell_the_last_to_go(rank);
        expect_lost(&rank.recv(&mut [0; 8], 2, 6).unwrap_err(), 2);
        assert!(inside.iprobe(None, None).unwrap().is_none(), "the loss is none of its business");
        let long = inside.isend(payload(3, 300_000), other, 3).unwrap();
        let synchronous = inside.issend(payload(4, 100), other, 4).unwrap();
        for (receive, seed) in [(from_any, 4), (from_other, 3)] {
            let (status, got) = rank.wait(receive);
            status.unwrap();
            check(&got, seed);
        }
        rank.wait(long).0.unwrap();
        rank.wait(synchronous).0.unwrap();
        go_on_without_the_last(rank);
    });
}

/// In a context that needs the lost rank, everything that waits fails once, even if it waits for a living rank that
/// never does its part, and so does what is begun later. In other contexts the device goes on.
pub fn a_lost_member_fails_what_its_collectives_wait_for(setup: &Setup) {
    setup.run_open(3, |rank| {
        if rank.me() == 2 {
            return go_when_told(rank);
        }
        let (other, inside) = (1 - rank.me(), rank.within(3));
        rank.set_members(3, Arc::new(These(&[2, 1, 0]))).unwrap();
        rank.detach(inside.isend(payload(7, 100), other, 7).unwrap());
        inside.probe(other, 7).unwrap();
        // Sends without receives, and receives without messages.
        let open = [
            inside.issend(payload(1, 10), other, 1).unwrap(),
            inside.issend(payload(2, 300_000), other, 2).unwrap(),
            inside.irecv(8, other, 3).unwrap(),
            inside.irecv(8, None, 4).unwrap(),
        ];
        tell_the_last_to_go(rank);
        for operation in open {
            expect_lost(&rank.wait(operation).0.unwrap_err(), 2);
        }
        expect_lost(&inside.recv(&mut [0; 100], other, 7).unwrap_err(), 2);
        expect_lost(&inside.recv(&mut [0; 100], None, None).unwrap_err(), 2);
        expect_lost(&inside.probe(None, 8).unwrap_err(), 2);
        expect_lost(&inside.send(&[1], other, 8).unwrap_err(), 2);
        expect_lost(&inside.ssend(&[1; 100], other, 8).unwrap_err(), 2);
        go_on_without_the_last(rank);
    });
}

/// A member is lost while two others exchange long messages: what they get is whole, also if the sender is told of the
/// loss first and uses the buffer again.
pub fn a_lost_member_spoils_no_message_of_others(setup: &Setup) {
    const LEN: usize = 1 << 20;
    for rounds in [0, 1, 3, 20] {
        setup.run_open(3, move |rank| {
            if rank.me() == 2 {
                return go_when_told(rank);
            }
            let (other, inside) = (1 - rank.me(), rank.within(3));
            rank.set_members(3, Arc::new(These(&[0, 1, 2]))).unwrap();
            tell_the_last_to_go(rank);
            let mut sent = None;
            match inside.isend(payload(5, LEN), other, 5) {
                Ok(send) if rank.me() == 0 => {
                    let (outcome, mut buffer) = rank.wait(send);
                    outcome.err().iter().for_each(|error| expect_lost(error, 2));
                    buffer.fill(9);
                    sent = Some(buffer);
                }
                Ok(send) => rank.detach(send),
                Err(error) => expect_lost(&error, 2),
            }
            (0..rounds).for_each(|_| rank.progress().unwrap());
            let received = inside.irecv(LEN, other, 5).map(|receive| rank.wait(receive));
            match received {
                Ok((Ok(_), got)) => check(&got, 5),
                Ok((Err(error), _)) | Err(error) => expect_lost(&error, 2),
            }
            drop(sent);
            expect_lost(&rank.recv(&mut [0; 8], 2, 6).unwrap_err(), 2);
            go_on_without_the_last(rank);
        });
    }
}

/// A rank goes while long messages from it and to it are under way, by either protocol: what the others still get is
/// whole, and what they do not get fails.
pub fn a_rank_is_lost_in_the_middle_of_long_messages(setup: &Setup) {
    const LEN: usize = 1 << 20;
    for rounds in [0, 1, 3, 20] {
        setup.run_open(3, move |rank| {
            if rank.me() == 2 {
                for to in [0, 1] {
                    rank.detach(rank.isend(payload(4, LEN), to, 4).unwrap());
                    rank.detach(rank.irecv(LEN, to, 5).unwrap());
                }
                (0..rounds).for_each(|_| rank.progress().unwrap());
                return rank.give_up();
            }
            let receive = rank.irecv(LEN, 2, 4).unwrap();
            let (outcome, got) = match rank.isend(payload(5, LEN), 2, 5) {
                Ok(send) => {
                    let received = rank.wait(receive);
                    if let Err(error) = rank.wait(send).0 {
                        expect_lost(&error, 2);
                    }
                    received
                }
                Err(error) => {
                    expect_lost(&error, 2);
                    rank.wait(receive)
                }
            };
            match outcome {
                Ok(_) => check(&got, 4),
                Err(error) => expect_lost(&error, 2),
            }
            // If both ended well, the loss was not noticed yet.
            expect_lost(&rank.recv(&mut [0; 8], 2, 6).unwrap_err(), 2);
            go_on_without_the_last(rank);
        });
    }
}

/// Sends that wait for a match, and sends that wait for room.
pub fn a_lost_rank_fails_blocked_sends(setup: &Setup) {
    lose_the_last(setup, |rank| rank.ssend(&[1; 100], 2, 0).unwrap_err());
    lose_the_last(setup, |rank| match rank.isend(payload(0, 4 << 20), 2, 0) {
        Ok(send) => rank.wait(send).0.unwrap_err(),
        Err(error) => error,
    });
}

/// Every other call that waits.
pub fn a_lost_rank_fails_probes_and_lists(setup: &Setup) {
    lose_the_last(setup, |rank| match rank.me() {
        0 => rank.probe(None, 0).unwrap_err(),
        _ => rank.mprobe(2, 0).unwrap_err(),
    });
    let list = |rank: &Rank| -> Vec<Pending> {
        (0..3).map(|tag| rank.irecv(100, 2, tag).unwrap()).collect()
    };
    lose_the_last(setup, move |rank| {
        let mut list = list(rank);
        let (_, first) = rank.wait_any(&mut list).unwrap().unwrap();
        expect_lost(&first.unwrap_err(), 2);
        let others = rank.wait_some(&mut list).unwrap();
        assert_eq!(others.len(), 2, "each of them fails");
        others.into_iter().map(|(_, outcome)| outcome.unwrap_err()).next().unwrap()
    });
    lose_the_last(setup, move |rank| {
        let outcomes = rank.wait_all(&mut list(rank)).unwrap();
        outcomes.iter().for_each(|outcome| expect_lost(outcome.as_ref().unwrap_err(), 2));
        outcomes.into_iter().next().unwrap().unwrap_err()
    });
}

/// Calls until there is an error.
fn poll(mut call: impl FnMut() -> Result<bool, Error>) -> Error {
    let start = Instant::now();
    loop {
        match call() {
            Err(error) => return error,
            Ok(done) => assert!(!done, "nobody has sent anything"),
        }
        assert!(start.elapsed() < Duration::from_secs(60), "the loss goes unnoticed");
        thread::yield_now();
    }
}

/// A rank that never blocks learns of the loss too: its requests fail.
pub fn a_lost_rank_fails_polling(setup: &Setup) {
    let pollers = Sleepers::default();
    setup.run_open(3, move |rank| {
        if rank.me() == 2 {
            pollers.wait_for(2);
            return rank.abort();
        }
        let mut receive = (rank.me() == 0).then(|| rank.irecv(8, 2, 0).unwrap());
        let error = poll(|| {
            pollers.join();
            let status = match &mut receive {
                Some(receive) => rank.test(receive),
                None => rank.iprobe(2, 0),
            };
            status.map(|status| status.is_some())
        });
        is_without_the_last(rank, &error);
    });
}

/// The collective end cannot wait for a rank that is gone.
pub fn a_lost_rank_fails_the_end(setup: &Setup) {
    let blocked = |rank: &Rank| {
        // The first of the others to fail is then lost for the other one.
        assert_eq!(rank.finish().unwrap_err().class(), ErrorClass::ProcFailed);
    };
    lose_the_last_by(setup, |rank| rank.abort(), blocked);
}

/// A living rank that has given up its device counts as gone too.
pub fn a_rank_that_gives_up_is_lost(setup: &Setup) {
    let blocked = |rank: &Rank| {
        expect_lost(&rank.recv(&mut [0; 8], 2, 0).unwrap_err(), 2);
        go_on_without_the_last(rank);
    };
    lose_the_last_by(setup, |rank| rank.give_up(), blocked);
}
