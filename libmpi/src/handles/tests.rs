//! The table of objects against a model, and under threads that free what others use.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::abi::{MPI_ERR_INFO, MPI_ERR_WIN};

/// An object that is held: it counts those that exist, and notices a second drop.
pub(crate) struct Read {
    number: usize,
    alive: Arc<AtomicUsize>,
    is_alive: AtomicBool,
}

/// An object that is taken.
pub(crate) struct Changed(usize);

impl Changed {
    /// Returns its number, for the word of its slot.
    pub(crate) fn number(&self) -> u64 {
        self.0 as u64
    }
}

impl Read {
    fn new(number: usize, alive: &Arc<AtomicUsize>) -> Self {
        alive.fetch_add(1, Ordering::Relaxed);
        Self { number, alive: alive.clone(), is_alive: AtomicBool::new(true) }
    }
}

impl Drop for Read {
    fn drop(&mut self) {
        assert!(self.is_alive.swap(false, Ordering::Relaxed), "dropped twice");
        self.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone)]
enum Step {
    InsertRead,
    InsertChanged,
    Hold(usize),
    Take(usize),
    Free(usize),
    Remove(usize),
    Invented(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::InsertRead),
        Just(Step::InsertChanged),
        (0..20_usize).prop_map(Step::Hold),
        (0..20_usize).prop_map(Step::Take),
        (0..20_usize).prop_map(Step::Free),
        (0..20_usize).prop_map(Step::Remove),
        any::<usize>().prop_map(Step::Invented),
    ]
}

/// What the model knows about a handle that exists.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Model {
    Read(usize),
    Changed(usize),
}

proptest! {
    /// Handles of all ages are used in all ways; the model knows which of them exist.
    #[test]
    fn only_objects_that_exist_are_found(steps in proptest::collection::vec(step(), 0..80), is_single in any::<bool>()) {
        let (objects, alive) = (Box::new(Objects::new()), Arc::new(AtomicUsize::new(0)));
        objects.set_single(is_single);
        let (mut model, mut handles) = (HashMap::new(), Vec::new());
        for (number, step) in steps.into_iter().enumerate() {
            let handle = |at: usize| handles.get(at).copied().unwrap_or(0x101);
            match step {
                Step::InsertRead => {
                    let handle = objects.insert(Read::new(number, &alive)).unwrap();
                    prop_assert!(handle > 4095 && handle <= i32::MAX as usize);
                    prop_assert_eq!(model.insert(handle, Model::Read(number)), None);
                    handles.push(handle);
                }
                Step::InsertChanged => {
                    let handle = objects.insert(Changed(number)).unwrap();
                    prop_assert_eq!(model.insert(handle, Model::Changed(number)), None);
                    handles.push(handle);
                }
                Step::Hold(at) => match (objects.hold::<Read>(handle(at)), model.get(&handle(at))) {
                    (Ok(held), Some(Model::Read(number))) => prop_assert_eq!(held.number, *number),
                    (Err(fault), None | Some(Model::Changed(_))) => prop_assert_eq!(fault.code(), MPI_ERR_INFO),
                    (_, known) => prop_assert!(false, "{:?}", known),
                },
                Step::Take(at) => match (objects.take::<Changed>(handle(at)), model.get_mut(&handle(at))) {
                    (Ok(mut taken), Some(Model::Changed(number))) => {
                        prop_assert_eq!(taken.0, *number);
                        prop_assert!(objects.take::<Changed>(handle(at)).is_err(), "it is taken");
                        taken.0 += 1;
                        prop_assert_eq!(objects.word::<Changed>(handle(at)), Some(*number as u64));
                        *number += 1;
                        drop(taken);
                        prop_assert_eq!(objects.word::<Changed>(handle(at)), Some(*number as u64));
                    }
                    (Err(fault), None | Some(Model::Read(_))) => {
                        prop_assert_eq!(fault.code(), MPI_ERR_WIN);
                        prop_assert!(objects.take_in_turn::<Changed>(handle(at)).is_err());
                        prop_assert_eq!(objects.word::<Changed>(handle(at)), None);
                    }
                    (_, known) => prop_assert!(false, "{:?}", known),
                },
                Step::Free(at) => {
                    let is_known = matches!(model.get(&handle(at)), Some(Model::Read(_)));
                    let held = objects.hold::<Read>(handle(at));
                    prop_assert_eq!(objects.free::<Read>(handle(at)).is_ok(), is_known);
                    if is_known {
                        model.remove(&handle(at));
                        prop_assert!(held.unwrap().is_alive.load(Ordering::Relaxed), "it is held");
                    }
                }
                Step::Remove(at) => {
                    let is_known = matches!(model.get(&handle(at)), Some(Model::Changed(_)));
                    let removed = objects.take::<Changed>(handle(at)).map(Taken::remove);
                    prop_assert_eq!(removed.is_ok(), is_known);
                    if is_known {
                        model.remove(&handle(at));
                    }
                }
                Step::Invented(handle) => {
                    let is_known = matches!(model.get(&handle), Some(Model::Read(_)));
                    prop_assert_eq!(objects.hold::<Read>(handle).is_ok(), is_known);
                }
            }
            let reads = model.values().filter(|known| matches!(known, Model::Read(_)));
            prop_assert_eq!(alive.load(Ordering::Relaxed), reads.count());
        }
    }
}

/// Threads hold objects while others free them and make new ones in the same slots: nobody sees an object that is gone,
/// and every object goes once.
#[test]
fn threads_may_free_what_others_use() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };
    let (objects, alive) = (Box::new(Objects::new()), Arc::new(AtomicUsize::new(0)));
    let places: Vec<_> = (0..2).map(|_| AtomicUsize::new(0)).collect();
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (objects, alive, places, barrier) = (&objects, &alive, &places, &barrier);
            scope.spawn(move || {
                barrier.wait();
                for round in 0..ROUNDS {
                    let place = &places[(round + thread) % places.len()];
                    let handle = place.load(Ordering::Relaxed);
                    if let Ok(held) = objects.hold::<Read>(handle) {
                        let again = held.clone();
                        assert!(held.is_alive.load(Ordering::Relaxed), "a held object is alive");
                        drop(held);
                        assert!(again.is_alive.load(Ordering::Relaxed), "it is held twice");
                    }
                    if round % 3 == 0 {
                        let _ = objects.free::<Read>(handle);
                        let made = objects.insert(Read::new(round, alive)).unwrap();
                        let before = place.swap(made, Ordering::Relaxed);
                        let _ = objects.free::<Read>(before);
                    }
                }
            });
        }
    });
    for place in &places {
        objects.free::<Read>(place.load(Ordering::Relaxed)).unwrap();
    }
    assert_eq!(alive.load(Ordering::Relaxed), 0, "all are gone");
}

/// Slots are used again and again, and their generations wrap around without becoming constants. A handle that was freed
/// stays wrong until then, which is long also for one object after another.
#[test]
#[cfg_attr(miri, ignore = "so many objects take minutes")]
fn generations_wrap_around() {
    let objects = Box::new(Objects::new());
    let first = objects.insert(Changed(0)).unwrap();
    objects.take::<Changed>(first).unwrap().remove();
    for round in 1..(RESTING + 1) * LAST_GENERATION as usize {
        let handle = objects.insert(Changed(round)).unwrap();
        assert!(handle != first && handle > 4095);
        assert!(objects.take::<Changed>(first).is_err());
        objects.take::<Changed>(handle).unwrap().remove();
    }
    assert_eq!(objects.insert(Changed(0)).unwrap(), first);
}

/// Threads that take an object in turn wait for each other, and find the word that the last one left.
#[test]
fn threads_take_an_object_in_turn() {
    const THREADS: usize = 4;
    const ROUNDS: usize = if cfg!(miri) { 50 } else { 20_000 };
    let objects = Box::new(Objects::new());
    let handle = objects.insert(Changed(0)).unwrap();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let before = objects.word::<Changed>(handle).unwrap();
                    let mut taken = objects.take_in_turn::<Changed>(handle).unwrap();
                    assert!(before <= taken.number());
                    taken.0 += 1;
                }
            });
        }
    });
    let taken = objects.take::<Changed>(handle).unwrap();
    assert_eq!(taken.remove().0, THREADS * ROUNDS);
    assert!(objects.take_in_turn::<Changed>(handle).is_err());
}

/// A thread uses the slots that it has freed again, in order, and others get them when it has ended.
#[test]
fn a_thread_keeps_its_free_slots_until_it_ends() {
    let freed = thread::spawn(move || {
        let made = |number| OBJECTS.insert(Changed(number)).unwrap();
        let handles: Vec<_> = (0..2 * RESTING).map(made).collect();
        for &handle in &handles {
            OBJECTS.take::<Changed>(handle).unwrap().remove();
        }
        let freed: Vec<_> = handles.into_iter().map(index_of).collect();
        assert!(freed.iter().all(|index| !OBJECTS.list().used.contains(index)));
        let again: Vec<_> = (0..RESTING).map(|_| OBJECTS.reserve().unwrap()).collect();
        let again: Vec<_> = again.iter().map(|slot| slot.index).collect();
        assert_eq!(again, freed[..RESTING]);
        freed
    });
    let freed = freed.join().unwrap();
    assert!(freed.iter().all(|index| OBJECTS.list().used.contains(index)));
}

/// A thread keeps a limited number of slots.
#[test]
fn a_thread_keeps_few_free_slots() {
    let own = OwnSlots::new();
    let given = (0..).take_while(|&index| own.give(index)).count();
    assert_eq!(given, MOST_OWN);
    assert_eq!((own.take(0), own.take(MOST_OWN - 1)), (Some(0), None));
    assert!(own.give(7) && !own.give(8));
    let rest: Vec<_> = std::iter::from_fn(|| own.take(0)).collect();
    assert_eq!(rest, (1..MOST_OWN).chain([7]).collect::<Vec<_>>());
}
