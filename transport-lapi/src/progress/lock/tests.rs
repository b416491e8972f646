//! The lock with real threads: which thread gets the bias, which loses it, and that no thread waits for itself.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use mpj_harness::watch;

use super::*;

/// Makes a lock that is biased to this thread if the kernel supports that; otherwise one without a bias.
fn mine<T>(value: T) -> Lock<T> {
    let lock = Lock::new(value);
    for _ in 0..TURNS {
        lock.lock().expect("nobody else knows it");
    }
    lock
}

fn bias<T>(lock: &Lock<T>) -> usize {
    lock.bias.load(Ordering::Relaxed)
}

fn can_be_biased() -> bool {
    BiasWord::new().is_wiped() && FENCES.register().is_ok()
}

fn is_told<T>(lock: &Lock<T>) -> bool {
    matches!(lock.lock(), Err(Refusal::Inside))
}

#[test]
fn a_thread_alone_gets_the_bias_after_its_turns() {
    if !can_be_biased() {
        return;
    }
    let lock = Lock::new(0);
    for turn in 1..TURNS {
        assert!(lock.lock().unwrap().gate.is_some(), "turn {turn}");
        assert_eq!(bias(&lock), NOBODY);
    }
    let guard = lock.lock().unwrap();
    assert!(guard.gate.is_none());
    assert_eq!(bias(&lock), thread_mark());
    drop(guard);
    assert!(!lock.is_held());
    assert!(lock.lock().unwrap().gate.is_none());
}

#[test]
fn who_does_not_wait_is_refused_while_another_thread_is_inside() {
    let lock = mine(0);
    for times in 1..=2 {
        let before = bias(&lock);
        let guard = lock.try_lock().unwrap().expect("nobody else is inside");
        assert!(matches!(lock.try_lock(), Err(Refusal::Inside)));
        let other = || lock.try_lock().unwrap().map(|mut guard| *guard += 1);
        thread::scope(|scope| {
            assert_eq!(scope.spawn(other).join().unwrap(), None);
            assert_eq!(bias(&lock), before, "who is refused takes no bias back");
            drop(guard);
            assert_eq!(scope.spawn(other).join().unwrap(), Some(()));
        });
        assert_eq!(*lock.lock().unwrap(), times, "by bias, then by the gate");
    }
}

#[test]
fn who_sets_up_for_another_thread_does_not_get_the_bias() {
    if !can_be_biased() {
        return;
    }
    let lock = Lock::new(0);
    for _ in 1..TURNS {
        lock.lock().unwrap();
    }
    let other = || {
        for _ in 0..TURNS {
            lock.lock().unwrap();
        }
        assert_eq!(bias(&lock), thread_mark());
    };
    thread::scope(|scope| scope.spawn(other).join()).expect("the other thread got the bias");
}

/// A thread that gave way returns without checking the bias, so no thread may get it meanwhile (X6).
#[test]
fn nobody_gets_the_bias_while_a_thread_pauses_inside_the_gate() {
    let lock = Lock::new(0);
    let mut guard = lock.lock().unwrap();
    let use_alone = || {
        for _ in 0..2 * TURNS {
            *lock.lock().unwrap() += 1;
        }
    };
    guard.unlocked(|| thread::scope(|scope| scope.spawn(use_alone).join()).unwrap());
    assert_ne!(bias(&lock) & !REVOKED, thread_mark());
    assert!(matches!(bias(&lock), NOBODY | REVOKED));
    assert_eq!(*guard, 2 * TURNS);
}

#[test]
fn a_thread_that_is_inside_is_told() {
    watch(|| {
        for lock in [Lock::new(0), Lock::with_bias(0, REVOKED), mine(0)] {
            let mut guard = lock.lock().unwrap();
            assert!(is_told(&lock));
            guard.bump();
            assert!(is_told(&lock), "after giving way");
            guard.unlocked(|| {});
            assert!(is_told(&lock), "after a pause");
            *guard = 1;
            drop(guard);
            assert_eq!(*lock.lock().unwrap(), 1);
        }
    });
}

/// After the revocation and before it leaves, the owner must not queue behind the thread that waits for it (X5).
#[test]
fn the_owner_is_told_while_a_revoker_waits_for_it() {
    watch(|| {
        let lock = mine(0);
        let guard = lock.lock().unwrap();
        thread::scope(|scope| {
            let other = scope.spawn(|| *lock.lock().unwrap() += 1);
            while can_be_biased() && !is_revoked(bias(&lock)) {
                thread::yield_now();
            }
            assert!(is_told(&lock));
            assert_eq!(*guard, 0, "the other one is still outside");
            drop(guard);
            other.join().unwrap();
        });
        let guard = lock.lock().unwrap();
        assert!(guard.gate.is_some(), "the bias is gone for ever");
        assert!(is_told(&lock));
        assert_eq!(*guard, 1);
    });
}

#[test]
fn an_owner_that_gives_way_lets_another_thread_in() {
    watch(|| {
        let lock = mine(false);
        thread::scope(|scope| {
            let mut guard = lock.lock().unwrap();
            scope.spawn(|| *lock.lock().unwrap() = true);
            while !*guard {
                guard.bump();
            }
        });
    });
}

#[test]
fn an_owner_that_pauses_lets_another_thread_in() {
    watch(|| {
        let lock = mine(0);
        let mut guard = lock.lock().unwrap();
        let enter = || *lock.lock().unwrap() += 1;
        guard.unlocked(|| thread::scope(|scope| scope.spawn(enter).join()).unwrap());
        assert_eq!(*guard, 1);
        assert!(guard.gate.is_some(), "the bias was taken back during the pause");
        assert!(is_told(&lock));
    });
}

/// X4.
#[test]
fn a_failed_fence_takes_time_and_nothing_else() {
    if !can_be_biased() {
        return;
    }
    watch(|| {
        let lock = mine(0);
        let mark = thread_mark();
        let mut guard = lock.lock().unwrap();
        let revoke = || {
            let _gate = lock.gate.lock();
            lock.revoke(mark, || Err(io::ErrorKind::OutOfMemory.into()));
            assert!(!lock.is_held(), "the owner is outside");
        };
        guard.unlocked(|| thread::scope(|scope| scope.spawn(revoke).join()).unwrap());
        assert_eq!(bias(&lock), mark | REVOKED);
        assert!(guard.gate.is_some(), "the owner came back through the gate");
    });
}

/// A bias outlives its thread; the next thread takes it back.
#[test]
fn an_owner_that_has_ended_keeps_nobody_out() {
    watch(|| {
        let lock = thread::spawn(|| mine(7)).join().unwrap();
        assert_eq!(*lock.lock().unwrap(), 7);
    });
}

/// Non-atomic updates by an owner and by threads that come later, with all ways to let others in.
#[test]
fn many_threads_lose_no_update() {
    const ROUNDS: usize = 3_000;
    let add = |lock: &Lock<usize>| {
        for round in 0..ROUNDS {
            let mut guard = lock.lock().unwrap();
            *guard += 1;
            match round % 16 {
                0 => guard.bump(),
                8 => guard.unlocked(thread::yield_now),
                _ => {}
            }
            *guard += 1;
        }
    };
    watch(move || {
        for threads in 1..5 {
            let lock = mine(0);
            thread::scope(|scope| {
                for _ in 1..threads {
                    scope.spawn(|| add(&lock));
                }
                add(&lock);
            });
            assert_eq!(*lock.lock().unwrap(), 2 * ROUNDS * threads);
        }
    });
}

/// The revocation hits the owner at many different places.
#[test]
fn many_revocations_lose_no_update() {
    const LOCKS: usize = 100;
    watch(|| {
        let locks: Vec<_> = (0..LOCKS).map(|_| mine(0_usize)).collect();
        let (reached, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                for (number, lock) in locks.iter().enumerate() {
                    while reached.load(Ordering::Relaxed) < number {
                        thread::yield_now();
                    }
                    *lock.lock().unwrap() += 1;
                }
                ended.store(true, Ordering::Relaxed);
            });
            let mut added = 0;
            for (number, lock) in locks.iter().enumerate() {
                reached.store(number, Ordering::Relaxed);
                let mut mine = 0;
                while !is_revoked(bias(lock)) || mine < 10 {
                    *lock.lock().unwrap() += 1;
                    mine += 1;
                    if mine % 1_000 == 0 {
                        thread::yield_now();
                    }
                }
                added += mine;
            }
            while !ended.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            let sum: usize = locks.iter().map(|lock| *lock.lock().unwrap()).sum();
            assert_eq!(sum, added + LOCKS);
        });
    });
}

#[test]
fn who_waits_for_another_thread_is_counted_and_nobody_else() {
    watch(|| {
        let lock = mine(0);
        assert_eq!(lock.contended(), 0, "one thread alone");
        for expected in [1, 2] {
            // Taken by bias at first, if the lock has one, and later through the gate.
            let guard = lock.lock().unwrap();
            thread::scope(|scope| {
                scope.spawn(|| *lock.lock().unwrap() += 1);
                while lock.contended() < expected {
                    thread::yield_now();
                }
                drop(guard);
            });
        }
        let taken = thread::scope(|scope| scope.spawn(|| *lock.lock().unwrap()).join().unwrap());
        assert_eq!((taken, lock.contended()), (2, 2), "nobody holds it");
    });
}
