//! Non-blocking calls that own their buffer.

use std::thread;

use mpj::tuning::{BackendChoice, Options, WaitMode};
use mpj::{
    ANY_SOURCE, ANY_TAG, AnyRequest, Error, ErrorClass, Op, Request, collective, test_all,
    test_any, test_some, wait_all, wait_any, wait_some,
};
use mpj_harness::Sleepers;

use super::unchecked;
use crate::job::{job, job_with, try_job};

#[test]
fn the_buffer_comes_back() {
    job(2, |world| {
        let other = 1 - world.rank();
        for len in [0usize, 3, 4_000, 500_000] {
            let (data, room) = (vec![world.rank() as u32; len], vec![9u32; len + 2]);
            let places = (data.as_ptr(), room.as_ptr());
            let receive = world.irecv(room, other, 5).unwrap();
            let send = world.isend(data, other, 5).unwrap();
            let (data, sent) = send.wait().unwrap();
            let (room, received) = receive.wait().unwrap();
            assert_eq!((data.as_ptr(), room.as_ptr()), places, "the same memory");
            assert_eq!((sent.source, sent.tag, sent.bytes), (other, 5, 4 * len));
            assert_eq!((received.source, received.tag, received.bytes), (other, 5, 4 * len));
            assert_eq!(data, vec![world.rank() as u32; len]);
            assert_eq!(room[..len], vec![other as u32; len]);
            assert_eq!(room[len..], [9, 9], "behind the message");
        }
    });
}

#[test]
fn a_request_is_waited_for_by_another_thread() {
    job(2, |world| {
        let other = 1 - world.rank();
        let receive = world.irecv(vec![0u8; 70_000], other, 0).unwrap();
        let waiting = thread::spawn(move || receive.wait().unwrap().0);
        let (_, _) = world.isend(vec![6u8; 70_000], other, 0).unwrap().wait().unwrap();
        assert_eq!(waiting.join().unwrap(), vec![6u8; 70_000]);
    });
}

#[test]
fn testing_gives_the_request_or_the_buffer() {
    job(2, |world| {
        if world.rank() == 1 {
            world.recv(&mut [0u8; 0], 0, 1).unwrap();
            world.send(&[4u16; 30], 0, 0).unwrap();
            return;
        }
        let mut receive = world.irecv(vec![0u16; 30], 1, 0).unwrap();
        for _ in 0..20 {
            assert!(receive.test().unwrap().is_none() && !receive.is_done().unwrap());
        }
        world.send(&[0u8; 0], 1, 1).unwrap();
        let (data, status) = loop {
            if let Some(complete) = receive.test().unwrap() {
                break complete;
            }
            thread::yield_now();
        };
        assert_eq!((data, status.bytes), (vec![4; 30], 60));
        assert_eq!(receive.wait().unwrap_err().class(), ErrorClass::Request, "it is empty");
    });
}

#[test]
fn a_cancelled_receive() {
    job(2, |world| {
        if world.rank() == 0 {
            world.recv(&mut [0u8; 0], 1, 1).unwrap();
            world.send(&[8u8], 1, 0).unwrap();
            return;
        }
        let receive = world.irecv(vec![3u8], 0, 0).unwrap();
        assert!(receive.cancel().unwrap());
        let (buffer, status) = receive.wait().unwrap();
        assert!(status.cancelled);
        assert_eq!(buffer, [3]);
        world.send(&[0u8; 0], 0, 1).unwrap();
        let (eight, status) = world.irecv(vec![0u8], 0, 0).unwrap().wait().unwrap();
        assert_eq!((eight[0], status.cancelled), (8, false));
    });
}

/// A receive that was dropped takes no message, a send that was dropped arrives, and neither keeps
/// its rank from ending.
#[test]
fn requests_that_nobody_waits_for() {
    job(2, |world| {
        let other = 1 - world.rank();
        for len in [1, 3_000, 600_000] {
            drop(world.irecv(vec![0u8; len], other, 0).unwrap());
            drop(world.irecv(vec![0u8; len], ANY_SOURCE, ANY_TAG).unwrap());
            world.barrier().unwrap();
            drop(world.isend(vec![world.rank() as u8; len], other, 0).unwrap());
            drop(world.issend(vec![world.rank() as u8; len], other, 0).unwrap());
            for _ in 0..2 {
                let (data, _) = world.recv_vec::<u8>(other, 0).unwrap();
                assert_eq!(data, vec![other as u8; len]);
            }
            world.barrier().unwrap();
        }
        drop(world.irecv(vec![0u8; 10], other, 99).unwrap());
    });
}

/// A receive that is dropped while its message comes in takes that message with it.
#[test]
fn a_receive_dropped_on_its_way() {
    const LEN: usize = 3 << 20;
    job_with(&unchecked(), 2, |world| {
        if world.rank() == 0 {
            world.send(&vec![1u8; LEN], 1, 0).unwrap();
            world.send(&[2u8; 100], 1, 0).unwrap();
            return;
        }
        world.probe(0, 0).unwrap();
        drop(world.irecv(vec![0u8; LEN], 0, 0).unwrap());
        let (second, _) = world.recv_vec::<u8>(0, 0).unwrap();
        assert_eq!(second, [2; 100]);
    });
}

#[test]
fn the_first_that_is_complete() {
    const ORDER: [usize; 5] = [2, 4, 0, 3, 1];
    job(2, |world| {
        if world.rank() == 0 {
            for tag in ORDER {
                world.recv(&mut [0u8; 0], 1, 100).unwrap();
                world.send(&[tag as u64; 50], 1, tag as i32).unwrap();
            }
            return;
        }
        let receive = |tag| world.irecv(vec![0u64; 50], 0, tag).unwrap();
        let mut open: Vec<Request<u64>> = (0..5).map(receive).collect();
        let mut tags: Vec<usize> = (0..5).collect();
        for tag in ORDER {
            world.send(&[0u8; 0], 0, 100).unwrap();
            let place = wait_any(&mut open).unwrap().expect("some are open");
            let (data, status) = open.remove(place).wait().unwrap();
            assert_eq!((tags.remove(place), status.tag), (tag, tag as i32));
            assert_eq!(data, [tag as u64; 50]);
            assert_eq!(open.len(), tags.len());
        }
        assert!(wait_any(&mut open).unwrap().is_none());
    });
}

#[test]
fn all_of_them() {
    job(3, |world| {
        let others = || (0..3).filter(|&rank| rank != world.rank());
        let send = |rank| world.isend(vec![world.rank() as i16; 9_000], rank, 0).unwrap();
        let receive = |rank| world.irecv(vec![0i16; 9_000], rank, 0).unwrap();
        let mut requests: Vec<_> = others().map(receive).chain(others().map(send)).collect();
        wait_all(&mut requests).unwrap();
        let complete: Vec<_> = requests.into_iter().map(|one| one.wait().unwrap()).collect();
        for (rank, (data, status)) in others().zip(&complete) {
            assert_eq!((status.source, &data[..]), (rank, &[rank as i16; 9_000][..]));
        }
        assert_eq!(complete.len(), 4);
        wait_all::<Request<u8>>([]).unwrap();
    });
}

/// The call returns the error of the request that fails, and the others complete all the same.
#[test]
fn one_of_all_fails() {
    job(2, |world| {
        if world.rank() == 0 {
            for tag in 0..3 {
                world.send(&[tag as u8; 20], 1, tag).unwrap();
            }
            return;
        }
        let rooms = [20, 5, 20];
        let receive = |(tag, room)| world.irecv(vec![0u8; room], 0, tag).unwrap();
        let mut requests: Vec<_> = (0..).zip(rooms).map(receive).collect();
        let error = wait_all(&mut requests).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Truncate);
        let own: Vec<_> = requests.into_iter().map(|one| one.wait().is_ok()).collect();
        assert_eq!(own, [true, false, true]);
        assert!(world.dump().unwrap().ends_with("open requests: 0\n"));
        assert_eq!(world.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
    });
}

/// The call says which request has failed, and its own wait says why. The others stay.
#[test]
fn one_of_any_fails() {
    job(1, |world| {
        let receive = |tag| world.irecv(vec![0u8; 4], 0, tag).unwrap();
        let mut open = vec![receive(0), receive(1)];
        world.send(&[1u8; 8], 0, 1).unwrap();
        assert_eq!(wait_any(&mut open).unwrap(), Some(1));
        assert_eq!(open[1].status().unwrap_err().class(), ErrorClass::Truncate);
        let error = open.remove(1).wait().unwrap_err();
        assert_eq!(error.class(), ErrorClass::Truncate);
        world.send(&[7u8; 4], 0, 0).unwrap();
        assert_eq!(wait_any(&mut open).unwrap(), Some(0));
        assert_eq!(open.remove(0).wait().unwrap().0, [7; 4]);
    });
}

/// One list has requests of messages and of collective calls, of different elements, that own or borrow their buffers.
#[test]
fn requests_of_all_kinds_in_one_list() {
    job(2, |world| {
        let other = 1 - world.rank();
        let (mut lent, mut total) = ([0u16; 3], [world.rank() as i64]);
        world
            .scope(|scope| {
                let mut owned = world.irecv(vec![0u8; 5], other, 1)?;
                let mut kept = world.recv_init(vec![0f32; 2], other, 2)?;
                let mut idle = world.recv_init(vec![0u8], other, 9)?;
                kept.start()?;
                let mut lent = scope.irecv(&mut lent, other, 3)?;
                let mut sum = world.start(collective::all_reduce(vec![0.5f64], Op::Sum))?;
                let mut total = scope.start(collective::all_reduce(&mut total, Op::Sum))?;
                let mut twin = world.idup()?;
                let mut sent = scope.isend(&[7u8], other, 4)?;
                let mut list: [&mut dyn AnyRequest; 8] = [
                    &mut owned, &mut kept, &mut idle, &mut lent, &mut sum, &mut total, &mut twin,
                    &mut sent,
                ];
                assert!(!test_all(&mut list)?);
                // Until here, the other rank has sent nothing that would complete the list.
                world.barrier()?;
                world.send(&[4u8; 5], other, 1)?;
                world.send(&[1.5f32; 2], other, 2)?;
                world.send(&[6u16; 3], other, 3)?;
                world.recv(&mut [0u8], other, 4)?;
                let mut seen: Vec<_> = wait_any(&mut list)?.into_iter().collect();
                seen.extend(wait_some(&mut list)?);
                seen.extend(test_any(&mut list)?);
                seen.extend(test_some(&mut list)?);
                while let Some(place) = wait_any(&mut list)? {
                    seen.push(place);
                }
                seen.sort_unstable();
                // The one that was not started is never reported, each other one once.
                assert_eq!(seen, [0, 1, 3, 4, 5, 6, 7]);
                assert!(test_all(&mut list)? && test_some(&mut list)?.is_empty());
                wait_all(&mut list)?;
                let is_done = owned.is_done()? && kept.is_done()? && lent.is_done()?;
                assert!(is_done && sum.is_done()? && total.is_done()? && twin.is_done()?);
                assert_eq!(owned.wait()?.0, [4; 5]);
                assert_eq!(kept.buffer()?, [1.5; 2]);
                let seen = kept.status();
                assert!(seen.is_some() && kept.wait()? == seen && kept.wait()?.is_none());
                assert_eq!((idle.wait()?, lent.wait()?.0), (None, &mut [6; 3][..]));
                assert_eq!(
                    (sum.test()?.map(|sum| sum.0), total.wait()?.0),
                    (Some(vec![1.0]), &mut [1][..])
                );
                sent.wait()?;
                twin.wait()?.barrier()
            })
            .unwrap();
    });
}

/// A scope waits for what a list has left open, and an error of a request in a list is that of its own wait.
#[test]
fn scoped_requests_in_lists_that_end_early() {
    job(1, |world| {
        let (mut short, mut long) = ([0u8; 2], [0u8; 2]);
        let outcome = world.scope(|scope| {
            let mut open = [scope.irecv(&mut short, 0, 0)?, scope.irecv(&mut long, 0, 1)?];
            world.send(&[5u8; 8], 0, 1)?;
            assert_eq!(wait_any(&mut open)?, Some(1));
            world.send(&[6u8; 2], 0, 0)?;
            let [_, long] = open;
            long.wait()
        });
        assert_eq!(outcome.unwrap_err().class(), ErrorClass::Truncate);
        assert_eq!(short, [6; 2]);
    });
}

/// Requests of two jobs in one list are refused, and stay as they are.
#[test]
fn requests_of_two_jobs() {
    job(1, |here| {
        mpj::local::run(1, |there| {
            let mut open = vec![
                here.irecv(vec![0u8; 4], 0, 0).unwrap(),
                there.irecv(vec![0u8; 4], 0, 0).unwrap(),
            ];
            assert!(matches!(wait_any(&mut open), Err(Error::Mixed)));
            assert_eq!(open.len(), 2);
            here.send(&[1u8; 4], 0, 0).unwrap();
            there.send(&[2u8; 4], 0, 0).unwrap();
            wait_all(&mut open).unwrap();
            let got: Vec<_> = open.into_iter().map(|one| one.wait().unwrap().0[0]).collect();
            assert_eq!(got, [1, 2]);
        })
        .unwrap();
    });
}

/// A request may outlive the world: it cannot complete then, and its buffer is safe.
#[test]
fn a_request_after_the_end() {
    let world_ended = try_job(&Options::default(), 2, |world| {
        let receive = world.irecv(vec![1u8; 100], 1 - world.rank(), 0).unwrap();
        world.finish().unwrap();
        receive.wait().err().map(|error| error.class())
    });
    assert_eq!(world_ended.unwrap(), [Some(ErrorClass::Other); 2]);
}

/// One thread sleeps, and another one starts what only progress can carry out.
#[test]
fn a_receive_of_an_early_message_wakes_whoever_sleeps() {
    let options =
        Options { wait: WaitMode::Block, ..Options::with_backend(BackendChoice::Rendezvous) };
    job_with(&options, 2, |world| {
        if world.rank() == 0 {
            world.send(&[1u8; 1000], 1, 1).unwrap();
            world.send(&[2u8], 1, 2).unwrap();
            return;
        }
        let sleepers = Sleepers::default();
        thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                sleepers.join();
                world.recv(&mut [0u8], 0, 2).unwrap()
            });
            world.probe(0, 1).unwrap();
            sleepers.wait_until_asleep(1);
            let early = world.irecv(vec![0u8; 1000], 0, 1).unwrap();
            sleeper.join().unwrap();
            assert_eq!(early.wait().unwrap().0, [1u8; 1000]);
        });
    });
}
