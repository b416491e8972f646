//! Models of the lock: the owner against threads that take its bias back.
//!
//! The value is an atomic that is read and written without any ordering. Only the lock makes one thread's work visible
//! to the next, so two threads inside together lose an update.

use std::sync::Arc;

use loom::sync::atomic::AtomicU32;
use loom::thread;

use super::{Guard, Lock};
use crate::platform::sync::Ordering;

type Tally = Lock<AtomicU32>;

fn add(tally: &Guard<'_, AtomicU32>) {
    let before = tally.load(Ordering::Relaxed);
    tally.store(before + 1, Ordering::Relaxed);
}

fn lock_and_add(tally: &Tally) {
    add(&tally.lock().expect("the thread is outside"));
}

/// Makes a lock that is biased to this thread.
fn mine() -> Arc<Tally> {
    let tally = Arc::new(Lock::new(AtomicU32::new(0)));
    let guard = tally.lock().expect("nobody else knows it");
    assert!(guard.gate.is_none(), "the first thread of a model gets the bias");
    drop(guard);
    tally
}

fn spawn(tally: &Arc<Tally>, body: fn(&Tally)) -> thread::JoinHandle<()> {
    let tally = Arc::clone(tally);
    thread::spawn(move || body(&tally))
}

/// Runs `owner` beside threads that run `others`, and compares the count with `total`.
fn model<const OTHERS: usize>(owner: fn(&Tally), others: [fn(&Tally); OTHERS], total: u32) {
    loom::model(move || {
        let tally = mine();
        let others = others.map(|other| spawn(&tally, other));
        owner(&tally);
        for other in others {
            other.join().expect("no thread of the model panics");
        }
        let sum = tally.lock().expect("all others have left").load(Ordering::Relaxed);
        assert_eq!(sum, total, "an update was lost");
    });
}

#[test]
fn loom_owner_and_revoker_lose_nothing() {
    let twice = |tally: &Tally| {
        lock_and_add(tally);
        lock_and_add(tally);
    };
    model(twice, [lock_and_add], 3);
}

#[test]
fn loom_who_does_not_wait_enters_only_alone() {
    loom::model(|| {
        let tally = mine();
        let other = {
            let tally = Arc::clone(&tally);
            thread::spawn(move || {
                let entered = tally.try_lock().expect("the thread is outside");
                entered.iter().for_each(add);
                u32::from(entered.is_some())
            })
        };
        lock_and_add(&tally);
        lock_and_add(&tally);
        let entered = other.join().expect("no thread of the model panics");
        let sum = tally.lock().expect("all others have left").load(Ordering::Relaxed);
        assert_eq!(sum, 2 + entered, "an update was lost");
    });
}

#[test]
fn loom_two_revokers_lose_nothing() {
    model(lock_and_add, [lock_and_add, lock_and_add], 3);
}

#[test]
fn loom_owner_gives_way_to_a_revoker() {
    let bump = |tally: &Tally| {
        let mut guard = tally.lock().expect("the owner is outside");
        add(&guard);
        guard.bump();
        add(&guard);
        guard.bump();
        add(&guard);
    };
    model(bump, [lock_and_add], 4);
}

/// Like a thread that waits for a message from another one: it must let that thread in.
#[test]
fn loom_owner_waits_for_a_revoker() {
    let wait = |tally: &Tally| {
        let mut guard = tally.lock().expect("the owner is outside");
        while guard.load(Ordering::Relaxed) == 0 {
            guard.bump();
            thread::yield_now();
        }
        add(&guard);
    };
    model(wait, [lock_and_add], 2);
}

#[test]
fn loom_owner_pauses_while_a_revoker_comes() {
    let pause = |tally: &Tally| {
        let mut guard = tally.lock().expect("the owner is outside");
        add(&guard);
        guard.unlocked(|| {});
        add(&guard);
    };
    model(pause, [lock_and_add], 3);
}

/// The second thread that takes the gate gives way there, and takes it again.
#[test]
fn loom_revokers_pause() {
    let bump = |tally: &Tally| {
        let mut guard = tally.lock().expect("the thread is outside");
        add(&guard);
        guard.bump();
        add(&guard);
    };
    model(lock_and_add, [bump, lock_and_add], 4);
}

/// The owner calls from inside while another thread waits for it to leave.
#[test]
fn loom_owner_is_told_that_it_is_inside() {
    let nest = |tally: &Tally| {
        let guard = tally.lock().expect("the owner is outside");
        assert!(tally.lock().is_err(), "the owner is inside");
        add(&guard);
    };
    model(nest, [lock_and_add], 2);
}

/// No thread has the bias yet, and two threads come at the same time.
#[test]
fn loom_two_threads_want_the_bias() {
    loom::model(|| {
        let tally = Arc::new(Lock::new(AtomicU32::new(0)));
        let twice = |tally: &Tally| {
            lock_and_add(tally);
            lock_and_add(tally);
        };
        let other = spawn(&tally, twice);
        twice(&tally);
        other.join().expect("no thread of the model panics");
        assert_eq!(tally.lock().expect("the other one has left").load(Ordering::Relaxed), 4);
    });
}
