//! Sends that are withdrawn from a receiver that lives: both ends say the same, and no byte is wrong.

use std::sync::Barrier;

use mpjdev::{Adapter, Error, Status};
use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;

use super::job::{Platform, Setup};
use super::rank::{Pending, Rank, check, payload};

/// Short and long, on both sides of what goes eagerly, in one piece, and is shared.
const SIZES: [usize; 5] = [0, 8, 9_000, 200_000, 1_500_000];

/// The rank whose loss is given as the reason; no job has it.
const LOST: u32 = 99;

/// Why sends are withdrawn.
fn because() -> Error {
    LapiError::from(AdapterError::PeerLost { task: LOST }).into()
}

/// Whether a send that was withdrawn has failed for the reason that was given; its buffer is written again.
#[track_caller]
fn has_failed<A: Adapter>(rank: &Rank<A>, send: Pending) -> bool {
    let (outcome, mut buffer) = rank.wait(send);
    buffer.fill(0xEE);
    match outcome {
        Ok(_) => false,
        Err(error) if error.lost_rank() == Some(LOST) => true,
        Err(error) => panic!("neither well nor for the reason: {error}"),
    }
}

/// Whether a receive of message `tag` of `len` bytes from rank 0 has met one that was withdrawn; else it is right.
#[track_caller]
fn was_withdrawn(outcome: Result<Status, Error>, bytes: &[u8], tag: i32, len: usize) -> bool {
    match outcome {
        Ok(status) => {
            assert_eq!((status.source, status.tag, status.bytes), (0, tag, len));
            check(bytes, tag as u64);
            false
        }
        Err(error @ Error::Withdrawn { .. }) => {
            let start = format!("rank 0 has withdrawn the message with tag {tag} ");
            assert!(error.to_string().starts_with(&start), "{error}");
            true
        }
        Err(error) => panic!("neither well nor withdrawn: {error}"),
    }
}

/// Receives message `tag` from rank 0, and says whether it was withdrawn.
#[track_caller]
fn receive<A: Adapter>(rank: &Rank<A>, tag: i32, len: usize) -> bool {
    let mut buffer = vec![0; len];
    let outcome = rank.recv(&mut buffer, 0, tag);
    was_withdrawn(outcome, &buffer, tag, len)
}

/// Waits until the other one of two ranks has come here.
fn meet<A: Adapter>(rank: &Rank<A>) {
    let other = 1 - rank.me();
    let ready = rank.isend(Vec::new(), other, 1000).unwrap();
    rank.recv(&mut [], other, 1000).unwrap();
    rank.wait(ready).0.unwrap();
}

/// Messages of both protocols that have met no receive: the send fails, the receive that comes later does, and what
/// follows arrives.
pub fn messages_that_nobody_takes<P: Platform>(setup: &Setup<P>) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.send(&[], 1, 1000).unwrap();
                rank.withdraw(&send, because()).unwrap();
                rank.withdraw(&send, Error::Finished).unwrap();
                assert!(has_failed(rank, send), "{len} bytes");
                rank.send(&payload(tag as u64, len), 1, 100 + tag).unwrap();
                rank.recv(&mut [], 1, 1001).unwrap();
                continue;
            }
            rank.recv(&mut [], 0, 1000).unwrap();
            let mut buffer = vec![0; len];
            rank.recv(&mut buffer, 0, 100 + tag).unwrap();
            check(&buffer, tag as u64);
            assert_eq!(rank.stats().unwrap().early_bytes, 0, "its memory is given back");
            let dump = rank.dump().unwrap();
            let line = format!("tag {tag}, {len} bytes (withdrawn by its sender), context 0");
            assert!(dump.contains(&line), "{dump}");
            assert_eq!(rank.probe(0, tag).unwrap().bytes, len);
            assert!(receive(rank, tag, len));
            assert_eq!(rank.iprobe(None, None).unwrap(), None);
            rank.send(&[], 0, 1001).unwrap();
        }
    });
}

/// More messages than the rings hold, withdrawn before the receiver has taken in any: all of them.
pub fn messages_that_wait_for_room<P: Platform>(setup: &Setup<P>) {
    const MESSAGES: i32 = 600;
    let len = |tag: i32| [8, 700, 20_000][tag as usize % 3];
    let withdrawn = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 1 {
            withdrawn.wait();
            // It comes behind them and their withdrawals.
            rank.recv(&mut [], 0, 1000).unwrap();
            (0..MESSAGES).for_each(|tag| assert!(receive(rank, tag, len(tag)), "message {tag}"));
            return;
        }
        let send = |tag| rank.issend(payload(tag as u64, len(tag)), 1, tag).unwrap();
        let sends: Vec<_> = (0..MESSAGES).map(send).collect();
        sends.iter().for_each(|send| rank.withdraw(send, because()).unwrap());
        let last = rank.isend(Vec::new(), 1, 1000).unwrap();
        withdrawn.wait();
        sends.into_iter().for_each(|send| assert!(has_failed(rank, send)));
        rank.wait(last).0.unwrap();
    });
}

/// Messages of standard mode, some of which have no credit, and the others left at once: what has failed at one end
/// has failed at the other.
pub fn messages_without_credit<P: Platform>(setup: &Setup<P>) {
    const MESSAGES: i32 = 60;
    let withdrawn = Barrier::new(2);
    setup.with_early_limit(16 << 10).run(2, move |rank| {
        if rank.me() == 1 {
            withdrawn.wait();
            rank.recv(&mut [], 0, 1000).unwrap();
            let failed = (0..MESSAGES).map(|tag| u8::from(receive(rank, tag, 900)));
            return rank.send(&failed.collect::<Vec<_>>(), 0, 1001).unwrap();
        }
        let send = |tag| rank.isend(payload(tag as u64, 900), 1, tag).unwrap();
        let sends: Vec<_> = (0..MESSAGES).map(send).collect();
        sends.iter().for_each(|send| rank.withdraw(send, because()).unwrap());
        let last = rank.isend(Vec::new(), 1, 1000).unwrap();
        withdrawn.wait();
        let failed: Vec<_> =
            sends.into_iter().map(|send| u8::from(has_failed(rank, send))).collect();
        rank.wait(last).0.unwrap();
        let mut there = [0; MESSAGES as usize];
        rank.recv(&mut there, 1, 1001).unwrap();
        assert_eq!(failed, there);
        assert_eq!(failed[MESSAGES as usize - 1], 1, "there is no credit left");
    });
}

/// A message that a matched probe has taken, and that nobody receives yet, can still be withdrawn.
pub fn messages_that_a_probe_has_taken<P: Platform>(setup: &Setup<P>) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.recv(&mut [], 1, 1000).unwrap();
                rank.withdraw(&send, because()).unwrap();
                assert!(has_failed(rank, send));
                rank.send(&[], 1, 1000).unwrap();
                continue;
            }
            let message = rank.mprobe(0, tag).unwrap();
            rank.send(&[], 0, 1000).unwrap();
            rank.recv(&mut [], 0, 1000).unwrap();
            let (outcome, bytes) = rank.wait(rank.imrecv(message, len).unwrap());
            assert!(was_withdrawn(outcome, &bytes, tag, len));
        }
    });
}

/// A receive is posted before the message comes: it takes the message, and both ends end well.
pub fn messages_that_have_met_their_receive<P: Platform>(setup: &Setup<P>) {
    let posted = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                posted.wait();
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.withdraw(&send, because()).unwrap();
                assert!(!has_failed(rank, send), "{len} bytes");
                continue;
            }
            let pending = rank.irecv(len, 0, tag).unwrap();
            posted.wait();
            let (outcome, bytes) = rank.wait(pending);
            assert!(!was_withdrawn(outcome, &bytes, tag, len), "{len} bytes");
        }
    });
}

/// The receive and the withdrawal are under way at the same time: whoever comes first, both ends say the same, and a buffer that was written again is not received.
pub fn messages_that_are_taken_meanwhile<P: Platform>(setup: &Setup<P>) {
    const ROUNDS: i32 = 60;
    let len = |tag: i32| [8, 30_000, 600_000][tag as usize % 3];
    setup.run(2, move |rank| {
        let mut failed = Vec::new();
        for tag in 0..ROUNDS {
            if rank.me() == 1 {
                (0..tag % 7).for_each(|_| rank.progress().unwrap());
                failed.push(u8::from(receive(rank, tag, len(tag))));
                continue;
            }
            let send = rank.issend(payload(tag as u64, len(tag)), 1, tag).unwrap();
            (0..tag % 5).for_each(|_| rank.progress().unwrap());
            rank.withdraw(&send, because()).unwrap();
            failed.push(u8::from(has_failed(rank, send)));
        }
        if rank.me() == 1 {
            return rank.send(&failed, 0, 1000).unwrap();
        }
        let mut there = [0; ROUNDS as usize];
        rank.recv(&mut there, 1, 1000).unwrap();
        assert_eq!(failed, there);
    });
}

/// A receive without a message is cancelled; requests that have ended, and those of other devices, are told apart.
pub fn receives_are_cancelled<P: Platform>(setup: &Setup<P>) {
    setup.run(1, |rank| {
        let receive = rank.irecv(8, 0, 0).unwrap();
        rank.withdraw(&receive, because()).unwrap();
        assert!(rank.wait(receive).0.unwrap().cancelled);
        let receive = rank.irecv(8, 0, 0).unwrap();
        let send = rank.isend(payload(0, 8), 0, 0).unwrap();
        let (outcome, bytes) = rank.wait(receive);
        assert!(!was_withdrawn(outcome, &bytes, 0, 8));
        rank.withdraw(&send, because()).unwrap();
        assert!(!has_failed(rank, send));
    });
    let devices = setup.devices(2);
    let (request, _ending) = devices[0].begin(mpjdev::Call::Other, 0, 0).unwrap();
    assert!(matches!(devices[1].withdraw(&request, because()), Err(Error::Request)));
}

/// The receiver goes away instead of answering: the send fails for the reason that was given first.
pub fn the_receiver_is_lost_meanwhile<P: Platform>(setup: &Setup<P>) {
    let withdrawn = Barrier::new(2);
    setup.run_open(2, move |rank| {
        if rank.me() == 1 {
            withdrawn.wait();
            return rank.abort();
        }
        let sends = SIZES.map(|len| rank.issend(payload(0, len), 1, 0).unwrap());
        sends.iter().for_each(|send| rank.withdraw(send, because()).unwrap());
        withdrawn.wait();
        sends.into_iter().for_each(|send| assert!(has_failed(rank, send)));
    });
}

/// A context is idle when nothing of it is under way, and nothing early waits, whatever other contexts do.
pub fn contexts_are_idle_again<P: Platform>(setup: &Setup<P>) {
    setup.run(2, |rank| {
        let (other, elsewhere) = (1 - rank.me(), rank.within(4));
        let idle = |context| rank.is_idle(context).unwrap();
        assert!(idle(4));
        let receive = elsewhere.irecv(8, None, 77).unwrap();
        assert!(!idle(4) && idle(6));
        assert!(rank.cancel(&receive).unwrap());
        assert!(idle(4), "it has ended, though nobody has waited for it");
        rank.wait(receive).0.unwrap();
        for (tag, len) in (0..).zip(SIZES) {
            let send = elsewhere.issend(payload(tag as u64, len), other, tag).unwrap();
            assert!(!idle(4));
            elsewhere.probe(other, tag).unwrap();
            assert!(!idle(4));
            let mut buffer = vec![0; len];
            elsewhere.recv(&mut buffer, other, tag).unwrap();
            check(&buffer, tag as u64);
            rank.wait(send).0.unwrap();
            assert!(idle(4), "{len} bytes");
            meet(rank);
        }
        let send = elsewhere.issend(payload(0, 8), other, 50).unwrap();
        elsewhere.probe(other, 50).unwrap();
        rank.withdraw(&send, because()).unwrap();
        assert!(has_failed(rank, send));
        // The other one has withdrawn its message, too.
        meet(rank);
        assert!(!idle(4), "it is there until a receive meets it");
        let mut buffer = [0; 8];
        let outcome = elsewhere.recv(&mut buffer, other, 50);
        assert!(outcome.is_err_and(|error| matches!(error, Error::Withdrawn { .. })));
        assert!(idle(4));
    });
}
