//! Tests of the words by which ranks exclude each other, over threads.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;

use super::*;

const RANKS: usize = 5;

struct Memory {
    gate: Gate,
    holders: [AtomicU8; RANKS],
    queue: [AtomicU32; RANKS],
    signals: [AtomicU32; 2 * RANKS],
}

impl Memory {
    fn new() -> Self {
        // What a new mapping has.
        let zero = || AtomicU32::new(0);
        let gate = Gate {
            gate: zero(),
            exclusive: zero(),
            shared: zero(),
            first: zero(),
            waiting: zero(),
            asleep: zero(),
            serialiser: Apart(zero()),
            writes: Apart(zero()),
            is_closed: Apart(zero()),
        };
        Self {
            gate,
            holders: Default::default(),
            queue: Default::default(),
            signals: Default::default(),
        }
    }

    fn gated(&self) -> Gated<'_> {
        Gated {
            gate: &self.gate,
            holders: &self.holders,
            queue: &self.queue,
            signals: &self.signals,
        }
    }
}

fn lives(_: u32) -> Result<(), Infallible> {
    Ok(())
}

proptest! {
    /// Each step is a rank that asks, or that gives back what it has.
    #[test]
    fn locks_exclude_and_are_granted_in_order(steps in prop::collection::vec((0..RANKS as u32, any::<bool>()), 0..64)) {
        let memory = Memory::new();
        let gated = memory.gated();
        let (mut holders, mut asked) = (Vec::<(u32, bool)>::new(), VecDeque::<(u32, bool)>::new());
        for (rank, is_exclusive) in steps {
            let mut told = Vec::new();
            if let Some(at) = holders.iter().position(|(holder, _)| *holder == rank) {
                holders.remove(at);
                told = gated.give_back(rank, lives).unwrap();
            } else if asked.iter().any(|(waiting, _)| *waiting == rank) {
                prop_assert!(matches!(gated.turn_of(rank, lives).unwrap(), Turn::Behind(_)));
                if !is_exclusive {
                    continue;
                }
                // It gives up.
                asked.retain(|(waiting, _)| *waiting != rank);
                told = gated.give_back(rank, lives).unwrap();
            } else {
                let kind = if is_exclusive { LockKind::Exclusive } else { LockKind::Shared };
                asked.push_back((rank, is_exclusive));
                if gated.ask(kind, rank, lives).unwrap() == Turn::Held {
                    told.push(rank);
                }
            }
            // The oracle grants to the first ones that fit.
            while let Some((next, exclusive)) = asked.front().copied() {
                if holders.iter().any(|(_, other)| *other || exclusive) {
                    break;
                }
                prop_assert!(told.contains(&next));
                prop_assert_eq!(gated.turn_of(next, lives).unwrap(), Turn::Held);
                holders.push((next, exclusive));
                asked.pop_front();
            }
            let first = asked.front().map(|(first, _)| *first);
            let is_due = |rank: &u32| holders.iter().any(|(holder, _)| holder == rank) || first == Some(*rank);
            prop_assert!(told.iter().all(is_due));
            for (at, (rank, _)) in asked.iter().enumerate() {
                let turn = gated.turn_of(*rank, lives).unwrap();
                match at.checked_sub(1) {
                    Some(before) => prop_assert_eq!(turn, Turn::Behind(asked[before].0)),
                    None => prop_assert!(holders.iter().any(|(holder, _)| turn == Turn::Behind(*holder))),
                }
            }
        }
    }

    /// Whatever other processes write there, calls end.
    #[test]
    fn any_words_are_survived(words: [u32; 4], queue: [u32; RANKS], holders: [u8; RANKS]) {
        let memory = Memory::new();
        let Gate { exclusive, shared, first, waiting, .. } = &memory.gate;
        for (word, value) in [exclusive, shared, first, waiting].into_iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
        memory.queue.iter().zip(queue).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        memory.holders.iter().zip(holders).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        let gated = memory.gated();
        let told = gated.give_back(1, lives).unwrap();
        prop_assert!(told.iter().all(|rank| (*rank as usize) < RANKS));
        for turn in [gated.ask(LockKind::Shared, 2, lives).unwrap(), gated.turn_of(3, lives).unwrap()] {
            prop_assert!(matches!(turn, Turn::Held | Turn::Behind(0..5)));
        }
    }
}

#[test]
fn updates_of_threads_exclude_each_other() {
    const UPDATES: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let (memory, value) = (Memory::new(), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for rank in 0..4 {
            let (gated, value) = (memory.gated(), &value);
            scope.spawn(move || {
                for _ in 0..UPDATES {
                    let update = || {
                        let now = value.load(Ordering::Relaxed);
                        value.store(now + 1, Ordering::Relaxed);
                    };
                    gated.gate.serialise(rank, lives, update).unwrap();
                }
            });
        }
    });
    assert_eq!(value.into_inner(), 4 * UPDATES);
}

/// Whoever sleeps is told: a signal is seen before the sleep, or the one that gives it sees the sleep.
#[test]
fn signals_wake_sleepers() {
    const ROUNDS: u32 = if cfg!(miri) { 20 } else { 20_000 };
    let memory = Memory::new();
    let (gated, woken) = (memory.gated(), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                if gated.signal(Signal::Post, 1) {
                    woken.fetch_add(1, Ordering::SeqCst);
                }
            }
        });
        for _ in 0..ROUNDS {
            let told = woken.load(Ordering::SeqCst);
            gated.sleep(true);
            if !gated.take(Signal::Post, 1) {
                while woken.load(Ordering::SeqCst) == told {
                    std::thread::yield_now();
                }
                assert!(gated.take(Signal::Post, 1));
            }
            gated.sleep(false);
        }
    });
    assert!(!gated.has_come(Signal::Post, 1) && !gated.has_come(Signal::Complete, 1));
}

#[test]
fn the_end_of_an_owner_is_noticed() {
    let memory = Memory::new();
    memory.gate.gate.store(4, Ordering::Relaxed);
    let asked = memory.gated().ask(LockKind::Shared, 1, Err);
    assert_eq!(asked, Err(3), "rank 3 has the gate");
}

/// Threads write to a target's memory until it is closed; nothing is written after its owner has seen that nobody writes.
#[test]
fn nobody_writes_to_closed_memory() {
    let (origins, target) = ([Memory::new(), Memory::new()], Memory::new());
    let (is_free, written) = (AtomicU32::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for origin in &origins {
            scope.spawn(|| {
                while let Some(_writing) = origin.gate.begin_write(&target.gate) {
                    assert_eq!(is_free.load(Ordering::Relaxed), 0, "the memory is free");
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while written.load(Ordering::Relaxed) < 10 {
            std::thread::yield_now();
        }
        target.gate.close();
        for origin in &origins {
            while origin.gate.is_writing() {
                std::thread::yield_now();
            }
        }
        is_free.store(1, Ordering::Relaxed);
    });
    assert!(origins[0].gate.begin_write(&target.gate).is_none() && !origins[0].gate.is_writing());
    assert!(target.gate.begin_write(&origins[0].gate).is_some());
}
