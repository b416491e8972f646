//! Requests as futures, in executors that know nothing of the library.

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::task::{Context, Poll, Wake, Waker};

use mpj::tuning::Options;
use mpj::{ErrorClass, Op, UserOp, collective};
use pollster::block_on;

use crate::job::{job, try_job};

#[test]
fn requests_of_all_kinds_are_awaited() {
    job(2, |world| {
        let (other, mut lent) = (1 - world.rank(), [0u16; 3]);
        block_on(async {
            let mut kept = world.recv_init(vec![0f32; 2], other, 2)?;
            assert_eq!((&mut kept).await?, None, "it was not started");
            kept.start()?;
            let owned = world.irecv(vec![0u8; 5], other, 1)?;
            let sum = world.start(collective::all_reduce(vec![0.5f64; 100_000], Op::Sum))?;
            let twin = world.idup()?;
            world.isend(vec![4u8; 5], other, 1)?.await?;
            world.isend(vec![1.5f32; 2], other, 2)?.await?;
            assert_eq!((owned.await?.0, sum.await?.0), (vec![4; 5], vec![1.0; 100_000]));
            assert_eq!((&mut kept).await?.map(|status| status.tag), Some(2));
            assert_eq!(kept.buffer()?, [1.5; 2]);
            twin.await?.barrier()
        })
        .unwrap();
        world
            .scope(|scope| {
                let receive = scope.irecv(&mut lent, other, 3)?;
                scope.isend(&[6u16; 3], other, 3)?;
                assert_eq!(block_on(receive)?.0, &[6; 3]);
                Ok(())
            })
            .unwrap();
    });
}

/// Tasks on several threads, each of which waits for messages that the others' tasks cause.
#[test]
fn tasks_of_a_runtime_with_several_threads() {
    const TASKS: i32 = 40;
    job(2, |world| {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
        let other = 1 - world.rank();
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let comm = mpj::Communicator::clone(world);
                runtime.spawn(async move {
                    for turn in 0..10 {
                        let receive = comm.irecv(vec![0; 2], other, task)?;
                        comm.isend(vec![task, turn], other, task)?.await?;
                        assert_eq!(receive.await?.0, [task, turn]);
                    }
                    Ok::<_, mpj::Error>(())
                })
            })
            .collect();
        for task in tasks {
            runtime.block_on(task).unwrap().unwrap();
        }
    });
}

/// Counts how often it wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The last waker counts; an earlier one is forgotten.
#[test]
fn a_future_that_moves_to_another_task() {
    job(1, |world| {
        let [first, second] = [(); 2].map(|()| Arc::<Count>::default());
        let mut receive = pin!(world.irecv(vec![0u8; 2], 0, 0).unwrap().into_future());
        for count in [&first, &second] {
            let waker = Waker::from(count.clone());
            assert!(receive.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        world.send(&[1u8, 2], 0, 0).unwrap();
        while second.0.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        assert_eq!((first.0.load(Ordering::Relaxed), second.0.load(Ordering::Relaxed)), (0, 1));
        let Poll::Ready(got) = receive.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("it has come");
        };
        assert_eq!(got.unwrap().0, [1, 2]);
    });
}

/// A future that was dropped takes no message, and one that is left at the end fails.
#[test]
fn futures_that_nobody_finishes() {
    let ended = try_job(&Options::default(), 2, |world| {
        let other = 1 - world.rank();
        let mut dropped = Box::pin(world.irecv(vec![0u8], other, 0).unwrap().into_future());
        assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(dropped);
        world.barrier().unwrap();
        world.send(&[7u8], other, 0).unwrap();
        assert_eq!(block_on(world.irecv(vec![0u8], other, 0).unwrap()).unwrap().0, [7]);
        let left = world.irecv(vec![0u8], other, 1).unwrap();
        let waiting = std::thread::spawn(move || block_on(left));
        world.finish().unwrap();
        waiting.join().unwrap().err().map(|error| error.class())
    });
    assert_eq!(ended.unwrap(), [Some(ErrorClass::Other); 2]);
}

/// A collective call goes from round to round while the program's threads make no call.
#[test]
fn a_progress_thread_carries_out_what_was_started() {
    let meeting = Barrier::new(4);
    job(4, move |world| {
        world.progress_thread().unwrap();
        world.progress_thread().unwrap();
        let (told, tells) = mpsc::channel();
        let op = UserOp::ordered(move |a: &u64, b: &u64| {
            told.send(()).expect("the program waits for it");
            10 * a + b
        });
        let digits =
            world.start(collective::all_reduce(vec![world.rank() as u64 + 1], &op)).unwrap();
        // The first rank of its host combines the operands of another rank, and then those of others.
        if world.rank() == 0 {
            tells.recv().unwrap();
            tells.recv().unwrap();
        }
        meeting.wait();
        assert!(digits.wait().is_ok());
    });
}
