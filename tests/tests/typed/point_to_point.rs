//! Blocking calls.

use std::thread;
use std::time::Duration;

use crate::job::{job, job_with};
use mpj::tuning::{BackendChoice, Options};
use mpj::{ANY_SOURCE, ANY_TAG, Communicator, Error, ErrorClass, Source, Tag};

/// Every call that names a rank and a tag.
fn errors_of(world: &Communicator, rank: usize, tag: i32) -> Vec<Error> {
    let mut place = [0u8];
    let mut other = [0u8];
    vec![
        world.send(&[1u8], rank, tag).unwrap_err(),
        world.ssend(&[1u8], rank, tag).unwrap_err(),
        world.isend(vec![1u8], rank, tag).err().unwrap(),
        world.issend(vec![1u8], rank, tag).err().unwrap(),
        world.irecv(vec![1u8], rank, tag).err().unwrap(),
        world.recv(&mut place, rank, tag).unwrap_err(),
        world.recv_vec::<u8>(rank, tag).unwrap_err(),
        world.probe(rank, tag).unwrap_err(),
        world.iprobe(rank, tag).unwrap_err(),
        world.sendrecv(&[1u8], rank, tag, &mut other, 0, 0).unwrap_err(),
        world.sendrecv(&[1u8], 0, 0, &mut other, rank, tag).unwrap_err(),
        world.scope(|scope| scope.isend(&[1u8], rank, tag).map(drop)).unwrap_err(),
        world.scope(|scope| scope.issend(&[1u8], rank, tag).map(drop)).unwrap_err(),
        world.scope(|scope| scope.irecv(&mut place, rank, tag).map(drop)).unwrap_err(),
    ]
}

#[test]
fn wrong_ranks_and_tags_change_nothing() {
    job(1, |world| {
        for (rank, tag, class) in [(1, 0, ErrorClass::Rank), (0, -1, ErrorClass::Tag)] {
            for error in errors_of(world, rank, tag) {
                assert_eq!(error.class(), class, "{error}");
            }
        }
        let idle = "rank 0 of 1\nposted receives without a message: 0\n\
                    unexpected messages without a receive: 0\nopen requests: 0\n";
        assert_eq!(world.dump().unwrap(), idle);
    });
}

#[test]
fn a_message_that_does_not_fit() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send(&[1u32, 2, 3, 4], 1, 0).unwrap();
            world.send(&[5u32], 1, 0).unwrap();
            return;
        }
        let mut buffer = [0u32; 2];
        let error = world.recv(&mut buffer, 0, 0).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Truncate);
        assert!(
            error.to_string().contains("message of 16 bytes from rank 0 with tag 0"),
            "{error}"
        );
        assert_eq!(buffer, [1, 2]);
        world.recv(&mut buffer, 0, 0).unwrap();
        assert_eq!(buffer, [5, 2]);
    });
}

#[test]
fn exchanges_in_pairs_and_with_oneself() {
    job(4, |world| {
        let (me, other) = (world.rank(), world.rank() ^ 1);
        for len in [0, 10, 5_000, 300_000] {
            let mut theirs = vec![0; len];
            let sent = vec![me as u64; len];
            let status = world.sendrecv(&sent, other, 1, &mut theirs, other, 1).unwrap();
            assert_eq!((status.source, status.bytes), (other, 8 * len));
            assert_eq!(theirs, vec![other as u64; len]);
            world.sendrecv(&sent, me, 2, &mut theirs, ANY_SOURCE, 2).unwrap();
            assert_eq!(theirs, sent);
        }
    });
}

/// Different types, lengths, tags and partners in the two directions.
#[test]
fn an_exchange_of_unlike_halves() {
    job(3, |world| {
        let (right, left) = ((world.rank() + 1) % 3, (world.rank() + 2) % 3);
        let tag = |rank: usize| rank as i32 * 10;
        let sent = vec![world.rank() as f32; 100 + world.rank()];
        let mut bytes = [0u8; 500];
        let me = world.rank();
        let status = world.sendrecv(&sent, right, tag(me), &mut bytes, left, tag(left)).unwrap();
        assert_eq!((status.source, status.count::<f32>().unwrap()), (left, 100 + left));
        assert_eq!(bytes[..4], (left as f32).to_ne_bytes());
    });
}

#[test]
fn probes() {
    job(2, |world| {
        if world.rank() == 0 {
            world.send(&[1i64, 2, 3], 1, 8).unwrap();
            return;
        }
        let status = world.probe(ANY_SOURCE, ANY_TAG).unwrap();
        assert_eq!((status.source, status.tag, status.count::<i64>().unwrap()), (0, 8, 3));
        assert_eq!(world.iprobe(0, 8).unwrap(), Some(status));
        assert_eq!(world.iprobe(0, 7).unwrap(), None);
        let mut buffer = vec![0i64; status.count::<i64>().unwrap()];
        world.recv(&mut buffer, status.source, status.tag).unwrap();
        assert_eq!(buffer, [1, 2, 3]);
        assert_eq!(world.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
    });
}

#[test]
fn selectors_by_value() {
    assert_eq!((Source::from(3), Tag::from(4)), (Source::Rank(3), Tag::Is(4)));
    assert_eq!((ANY_SOURCE, ANY_TAG), (Source::Any, Tag::Any));
}

/// A synchronous send does not end before its receive begins.
#[test]
fn a_synchronous_send_is_over_after_the_receive_has_begun() {
    job(2, |world| {
        if world.rank() == 0 {
            world.ssend(&[3u8; 40], 1, 0).unwrap();
            world.send(&[4u8], 1, 1).unwrap();
            return;
        }
        world.probe(0, 0).unwrap();
        for _ in 0..20 {
            thread::sleep(Duration::from_millis(1));
            assert_eq!(world.iprobe(0, 1).unwrap(), None, "the send is not over");
        }
        world.recv(&mut [0u8; 40], 0, 0).unwrap();
        world.recv(&mut [0u8], 0, 1).unwrap();
    });
}

/// Four threads of each rank, each with a partner, on one communicator.
#[test]
fn threads_of_one_rank() {
    job(2, |world| {
        let other = 1 - world.rank();
        thread::scope(|threads| {
            for tag in 0..4 {
                let world: &Communicator = world;
                threads.spawn(move || {
                    for round in 0..30u64 {
                        let sent = vec![round * 10 + tag as u64; 1 + 400 * round as usize];
                        let mut got = vec![0; sent.len()];
                        world.sendrecv(&sent, other, tag, &mut got, other, tag).unwrap();
                        assert_eq!(got, sent);
                    }
                });
            }
        });
    });
}

#[test]
fn every_backend_by_options() {
    let choices = [BackendChoice::Auto, BackendChoice::Eager, BackendChoice::Rendezvous];
    for choice in choices {
        job_with(&Options::with_backend(choice), 2, move |world| {
            let (other, mut got) = (1 - world.rank(), [0u32; 1_000]);
            let before = world.stats().unwrap();
            world.sendrecv(&[7_u32; 1_000], other, 0, &mut got, other, 0).unwrap();
            assert_eq!(got, [7; 1_000]);
            let after = world.stats().unwrap();
            let eager = after.eager.messages - before.eager.messages;
            let rendezvous = after.rendezvous.messages - before.rendezvous.messages;
            let expected = if choice == BackendChoice::Rendezvous { (0, 1) } else { (1, 0) };
            assert_eq!((eager, rendezvous), expected, "{choice:?}");
            assert_eq!(after.received - before.received, 1);
        });
    }
}

#[test]
fn time_goes_forward() {
    let mut last = mpj::wtime();
    assert!(last >= 0.0);
    for _ in 0..1_000 {
        let now = mpj::wtime();
        assert!(now >= last);
        last = now;
    }
    // In seconds, by comparison with another clock.
    let around = std::time::Instant::now();
    let begin = mpj::wtime();
    thread::sleep(Duration::from_millis(20));
    let slept = mpj::wtime() - begin;
    let longest = around.elapsed().as_secs_f64();
    assert!(0.02 <= slept && slept <= longest, "{slept} s of {longest} s");
}
