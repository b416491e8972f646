//! Several threads of one rank on one device.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use mpj_harness::Sleepers;
use mpjdev::Error;

use super::job::Setup;
use super::rank::{Rank, check};
use crate::conformance::payload;

const THREADS: i32 = 4;

/// Lengths of the messages of a ping-pong.
const LENGTHS: [usize; 4] = [8, 1_000, 20_000, 150_000];

/// One thread's part of a ping-pong with the thread of the other rank that has the same tag.
fn ping_pong(rank: &Rank, tag: i32, rounds: u64) {
    for round in 0..rounds {
        let (seed, len) = (round * 100 + tag as u64, LENGTHS[round as usize % LENGTHS.len()]);
        let mut buffer = vec![0; len];
        if rank.me() == 0 {
            rank.send(&payload(seed, len), 1, tag).unwrap();
            assert_eq!(rank.recv(&mut buffer, 1, tag).unwrap().bytes, len);
        } else {
            assert_eq!(rank.recv(&mut buffer, 0, tag).unwrap().bytes, len);
            rank.send(&buffer, 0, tag).unwrap();
        }
        check(&buffer, seed);
    }
}

/// Each thread has a partner; all run at the same time.
pub fn threads_with_their_own_tags(setup: &Setup) {
    setup.run(2, |rank| {
        thread::scope(|scope| {
            for tag in 0..THREADS {
                scope.spawn(move || ping_pong(rank, tag, 40));
            }
        });
    });
}

/// Threads with equal receives share the messages: each message is received once.
pub fn threads_that_share_one_tag(setup: &Setup) {
    const EACH: usize = 50;
    setup.run(2, |rank| {
        let seen: [AtomicUsize; THREADS as usize * EACH] = std::array::from_fn(|_| 0.into());
        thread::scope(|scope| {
            for number in 0..THREADS as usize {
                let (rank, seen) = (&rank, &seen);
                scope.spawn(move || {
                    for message in number * EACH..(number + 1) * EACH {
                        let len = 8 + (message % 3) * 9_000;
                        if rank.me() == 0 {
                            let mut data = payload(message as u64, len);
                            data[..8].copy_from_slice(&message.to_le_bytes());
                            rank.send(&data, 1, 0).unwrap();
                        } else {
                            let mut buffer = vec![0; 8 + 2 * 9_000];
                            rank.recv(&mut buffer, None, None).unwrap();
                            let (head, _) = buffer.split_first_chunk().unwrap();
                            seen[usize::from_le_bytes(*head)].fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let times = if rank.me() == 0 { 0 } else { 1 };
        assert!(seen.iter().all(|count| count.load(Ordering::Relaxed) == times));
    });
}

/// With matched probes, threads learn lengths and receive without taking each other's messages.
pub fn matched_probes_of_several_threads(setup: &Setup) {
    const MESSAGES: usize = 150;
    setup.run(2, |rank| {
        if rank.me() == 0 {
            for number in 0..MESSAGES {
                let len = (number * 977) % 15_000;
                rank.send(&payload(number as u64, len), 1, number as i32).unwrap();
            }
            return;
        }
        let (left, seen) = (AtomicUsize::new(MESSAGES), Mutex::new(vec![0; MESSAGES]));
        let take = |count: usize| count.checked_sub(1);
        let relaxed = Ordering::Relaxed;
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while left.fetch_update(relaxed, relaxed, take).is_ok() {
                        let message = rank.mprobe(None, None).unwrap();
                        let (len, number) = (message.status().bytes, message.status().tag as usize);
                        let (outcome, bytes) = rank.wait(rank.imrecv(message, len).unwrap());
                        assert_eq!(outcome.unwrap().bytes, (number * 977) % 15_000);
                        check(&bytes, number as u64);
                        seen.lock().unwrap()[number] += 1;
                    }
                });
            }
        });
        assert_eq!(*seen.lock().unwrap(), [1; MESSAGES]);
    });
}

/// A thread that is blocked is woken by what another thread of the same rank does.
pub fn one_thread_receives_what_another_one_sends(setup: &Setup) {
    setup.run(1, |rank| {
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..60 {
                    let mut buffer = [0; 5_000];
                    rank.recv(&mut buffer, 0, 1).unwrap();
                    check(&buffer, number);
                    rank.send(&buffer[..8], 0, 2).unwrap();
                }
            });
            for number in 0..60 {
                rank.send(&payload(number, 5_000), 0, 1).unwrap();
                let mut answer = [0; 8];
                rank.recv(&mut answer, 0, 2).unwrap();
                check(&answer, number);
            }
        });
    });
}

/// A thread is blocked, and asleep, when another thread of its rank ends the device.
fn blocked_while(rank: &Rank, end: impl FnOnce()) {
    let (ending, sleepers) = (AtomicBool::new(false), Sleepers::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            sleepers.join();
            let outcome = rank.recv(&mut [0; 8], 0, 1);
            assert!(matches!(outcome, Err(Error::Finished)), "{outcome:?}");
            assert!(ending.load(Ordering::SeqCst));
        });
        sleepers.wait_until_asleep(1);
        ending.store(true, Ordering::SeqCst);
        end();
    });
    assert!(matches!(rank.send(&[], 0, 0), Err(Error::Finished)));
}

/// A device that one thread gives up fails for the other threads too, also for one that sleeps.
pub fn giving_up_wakes_a_blocked_thread(setup: &Setup) {
    setup.run_open(1, |rank| blocked_while(rank, || rank.give_up()));
}

/// Nothing can come after the end, so nobody goes on waiting for it.
pub fn finishing_wakes_a_blocked_thread(setup: &Setup) {
    setup.run_open(2, |rank| blocked_while(rank, || rank.finish().unwrap()));
}
