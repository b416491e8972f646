//! Sends that are withdrawn from a living receiver: both ends agree, and no byte is wrong.

use std::sync::Barrier;

use mpjdev::{Error, Status};
use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;

use super::job::Setup;
use super::rank::{Pending, Rank, check};
use crate::conformance::payload;

/// Short and long, on both sides of what goes eagerly, in one piece, and is shared.
const SIZES: [usize; 5] = [0, 8, 9_000, 200_000, 1_500_000];

/// The rank whose loss is given as the reason; no job has it.
const LOST: u32 = 99;

/// The reason why sends are withdrawn.
fn because() -> Error {
    LapiError::from(AdapterError::PeerLost { task: LOST }).into()
}

/// Whether a withdrawn send has failed for the given reason; overwrites its buffer.
#[track_caller]
fn has_failed(rank: &Rank, send: Pending) -> bool {
    let (outcome, mut buffer) = rank.wait(send);
    buffer.fill(0xEE);
    match outcome {
        Ok(_) => false,
        Err(error) if error.lost_rank() == Some(LOST) => true,
        Err(error) => panic!("neither well nor for the reason: {error}"),
    }
}

/// Asserts that a receive has got message `tag` of `len` bytes from rank 0.
#[track_caller]
fn check_message(outcome: Result<Status, Error>, bytes: &[u8], tag: i32, len: usize) {
    let status = outcome.unwrap();
    assert_eq!((status.source, status.tag, status.bytes), (0, tag, len));
    check(bytes, tag as u64);
}

/// Whether message `tag` from rank 0, which was sent some messages ago, is not there; receives it if it is.
#[track_caller]
fn was_withdrawn(rank: &Rank, tag: i32, len: usize) -> bool {
    let is_there = rank.iprobe(0, tag).unwrap().is_some();
    if is_there {
        let mut buffer = vec![0; len];
        let outcome = rank.recv(&mut buffer, 0, tag);
        check_message(outcome, &buffer, tag, len);
    }
    !is_there
}

/// Waits until the other of two ranks has come here.
fn meet(rank: &Rank) {
    let other = 1 - rank.me();
    let ready = rank.isend(Vec::new(), other, 1000).unwrap();
    rank.recv(&mut [], other, 1000).unwrap();
    rank.wait(ready).0.unwrap();
}

/// Messages of both protocols that have met no receive: the send fails, nothing is left of the message, and a later
/// receive meets the next one.
pub fn messages_that_nobody_takes(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.send(&[], 1, 1000).unwrap();
                rank.withdraw(&send, because()).unwrap();
                rank.withdraw(&send, Error::Finished).unwrap();
                assert!(has_failed(rank, send), "{len} bytes");
                rank.send(&[], 1, 1001).unwrap();
                rank.recv(&mut [], 1, 1002).unwrap();
                rank.send(&payload(tag as u64, len), 1, tag).unwrap();
                continue;
            }
            rank.recv(&mut [], 0, 1000).unwrap();
            rank.recv(&mut [], 0, 1001).unwrap();
            assert_eq!(rank.iprobe(None, None).unwrap(), None);
            assert_eq!(rank.stats().unwrap().unexpected_bytes, 0, "its memory is given back");
            rank.send(&[], 0, 1002).unwrap();
            let mut buffer = vec![0; len];
            let outcome = rank.recv(&mut buffer, 0, tag);
            check_message(outcome, &buffer, tag, len);
        }
    });
}

/// More messages than the rings hold, all withdrawn before the receiver has taken in any.
pub fn messages_that_wait_for_room(setup: &Setup) {
    const MESSAGES: i32 = 600;
    let len = |tag: i32| [8, 700, 20_000][tag as usize % 3];
    let withdrawn = Barrier::new(2);
    setup.run(2, move |rank| {
        if rank.me() == 1 {
            withdrawn.wait();
            // It comes after the messages and their withdrawals.
            rank.recv(&mut [], 0, 1000).unwrap();
            assert_eq!(rank.iprobe(None, None).unwrap(), None);
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

/// Messages of standard mode, some without credit, the others sent at once: what has failed at one end has failed at
/// the other.
pub fn messages_without_credit(setup: &Setup) {
    const MESSAGES: i32 = 60;
    let withdrawn = Barrier::new(2);
    setup.with_early_limit(16 << 10).run(2, move |rank| {
        if rank.me() == 1 {
            withdrawn.wait();
            rank.recv(&mut [], 0, 1000).unwrap();
            let failed = (0..MESSAGES).map(|tag| u8::from(was_withdrawn(rank, tag, 900)));
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

/// A message that a matched probe has taken, and that nobody receives yet, cannot be withdrawn.
pub fn messages_that_a_probe_has_taken(setup: &Setup) {
    setup.run(2, |rank| {
        for (tag, len) in (0..).zip(SIZES) {
            if rank.me() == 0 {
                let send = rank.issend(payload(tag as u64, len), 1, tag).unwrap();
                rank.recv(&mut [], 1, 1000).unwrap();
                rank.withdraw(&send, because()).unwrap();
                rank.send(&[], 1, 1000).unwrap();
                assert!(!has_failed(rank, send));
                continue;
            }
            let message = rank.mprobe(0, tag).unwrap();
            rank.send(&[], 0, 1000).unwrap();
            rank.recv(&mut [], 0, 1000).unwrap();
            let (outcome, bytes) = rank.wait(rank.imrecv(message, len).unwrap());
            check_message(outcome, &bytes, tag, len);
        }
    });
}

/// A receive is posted before the message comes: it takes the message, and both ends end well.
pub fn messages_that_have_met_their_receive(setup: &Setup) {
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
            check_message(outcome, &bytes, tag, len);
        }
    });
}

/// The receive and the withdrawal are under way at the same time: whichever comes first, both ends agree, and an
/// overwritten buffer is not received. An empty message comes in place of a withdrawn one.
pub fn messages_that_are_taken_meanwhile(setup: &Setup) {
    const ROUNDS: i32 = 60;
    let len = |tag: i32| [8, 30_000, 600_000][tag as usize % 3];
    setup.run(2, move |rank| {
        let mut withdrawn = Vec::new();
        for tag in 0..ROUNDS {
            if rank.me() == 1 {
                (0..tag % 7).for_each(|_| rank.progress().unwrap());
                let mut buffer = vec![0; len(tag)];
                let outcome = rank.recv(&mut buffer, 0, tag);
                let is_empty = matches!(outcome, Ok(Status { bytes: 0, .. }));
                if !is_empty {
                    check_message(outcome, &buffer, tag, len(tag));
                }
                withdrawn.push(u8::from(is_empty));
                continue;
            }
            let send = rank.issend(payload(tag as u64, len(tag)), 1, tag).unwrap();
            (0..tag % 5).for_each(|_| rank.progress().unwrap());
            rank.withdraw(&send, because()).unwrap();
            let has_failed = has_failed(rank, send);
            if has_failed {
                rank.send(&[], 1, tag).unwrap();
            }
            withdrawn.push(u8::from(has_failed));
        }
        if rank.me() == 1 {
            return rank.send(&withdrawn, 0, 1000).unwrap();
        }
        let mut there = [0; ROUNDS as usize];
        rank.recv(&mut there, 1, 1000).unwrap();
        assert_eq!(withdrawn, there);
    });
}

/// A receive without a message is cancelled. A request that has ended stays as it is, and one of another device is
/// refused.
pub fn receives_are_cancelled(setup: &Setup) {
    setup.run(1, |rank| {
        let receive = rank.irecv(8, 0, 0).unwrap();
        rank.withdraw(&receive, because()).unwrap();
        assert!(rank.wait(receive).0.unwrap().cancelled);
        let receive = rank.irecv(8, 0, 0).unwrap();
        let send = rank.isend(payload(0, 8), 0, 0).unwrap();
        let (outcome, bytes) = rank.wait(receive);
        check_message(outcome, &bytes, 0, 8);
        rank.withdraw(&send, because()).unwrap();
        assert!(!has_failed(rank, send));
    });
    let devices = setup.devices(2);
    let (request, _ending) = devices[0].begin(mpjdev::Call::Other, 0, 0).unwrap();
    assert!(matches!(devices[1].withdraw(&request, because()), Err(Error::Request)));
}

/// The receiver leaves instead of answering: the send fails for the reason that was given first.
pub fn the_receiver_is_lost_meanwhile(setup: &Setup) {
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

/// A context is idle when nothing of it is under way, and nothing unexpected waits, whatever other contexts do.
pub fn contexts_are_idle_again(setup: &Setup) {
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
        // A withdrawn message is not found.
        meet(rank);
        rank.withdraw(&send, because()).unwrap();
        assert!(has_failed(rank, send));
        // The other rank has withdrawn its message too.
        meet(rank);
        assert!(idle(4));
    });
}
