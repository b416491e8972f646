//! The table of objects: what handles that are no predefined constants mean. All chapters use it. `kind.rs` lists the
//! kinds of objects.
//!
//! A handle is a number of 31 bits, above all constants: the index of a slot, and the generation of the object in it.
//! Nothing reads memory at it. Freeing an object ends its generation, so a freed, wrong or invented handle, or one of
//! another kind, is found. A call *holds* an object that it only reads, and *takes* one that it changes. Neither locks.
//! A program that frees an object while another thread uses it is wrong, but nothing breaks if it has asked for
//! a level of thread support above MPI_THREAD_SINGLE:
//!
//! - HT1: slots are never freed and never move, so the state of a slot can be read at any time.
//! - HT2: a slot's state has one of four phases. LIVE: the object may be read by those who are counted as holders.
//!   TAKEN: one thread has the object for itself. DYING: it was freed while holders were counted; nobody can become one.
//!   FREE: there is no object. Holders are counted, and phases change, by compare-and-swap from LIVE only, with the
//!   generation that the handle names. A holder may count one more, since the object stays while it is counted itself.
//! - HT3: so in the phases TAKEN and FREE, and in DYING once the count of holders is 0, exactly one thread may touch the
//!   object and the state: the one that took it, the one that got the slot from the free slots, or the one that counted
//!   the last holder down. Free slots are in a list behind a lock, or belong to one thread.
//! - HT4: the state says the kind of the object, and the kind whether its objects are held or taken.
//! - HT5: an object that is taken has a word, which any thread may read meanwhile, in the phases LIVE and TAKEN: what the
//!   object said of itself when it was put into the slot or back.
//! - HT6: in a program that has promised to have one thread, by MPI_THREAD_SINGLE, and has no progress thread, states
//!   change by plain loads and stores, which cost a tenth. Kinds whose functions any thread may call at any time, whatever
//!   the level, are excepted.

use std::cell::{Cell, UnsafeCell};
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use crate::call::{Fault, Outcome};

pub(crate) mod kind;
#[cfg(test)]
pub(crate) mod tests;

use kind::{Kind, Object};

/// Bits of a handle that are the index of its slot.
const INDEX_BITS: u32 = 20;
/// Free slots that rest before one of them is used again, the one that was freed first. So a handle that was freed stays
/// wrong for long, also in a program that has few objects.
const RESTING: usize = 32;
/// Most free slots that a thread keeps for itself.
const MOST_OWN: usize = 4 * RESTING;
/// Slots in a chunk.
const CHUNK: usize = 1 << 10;
/// Chunks in a table.
const CHUNKS: usize = (1 << INDEX_BITS) / CHUNK;
/// The highest generation; the one after it is 1. No generation is 0, so no handle is as low as a constant.
const LAST_GENERATION: u64 = (1 << (31 - INDEX_BITS)) - 1;

/// The low bits of a state count holders.
const HOLDERS: u64 = (1 << 32) - 1;
/// The phases.
const FREE: u64 = 0 << 32;
const LIVE: u64 = 1 << 32;
const TAKEN: u64 = 2 << 32;
const DYING: u64 = 3 << 32;
const PHASE: u64 = 3 << 32;
/// Where the number of the kind begins in a state (HT4).
const KIND_AT: u32 = 34;
/// Where the generation begins in a state.
const GENERATION_AT: u32 = 40;

/// The objects of the process.
pub(crate) static OBJECTS: Objects = Objects::new();

thread_local! {
    /// Free slots of [`OBJECTS`] that this thread keeps for itself, so that most calls that make and free objects need no
    /// lock.
    static OWN: OwnSlots = const { OwnSlots::new() };
}

/// Free slots of a thread, in a ring; the one that was freed first is first. They go to the list when the thread ends.
struct OwnSlots {
    ring: [Cell<u32>; MOST_OWN],
    first: Cell<usize>,
    len: Cell<usize>,
}

/// A table of objects. What each call reads lies together.
#[repr(C)]
pub(crate) struct Objects {
    /// Whether the program has one thread (HT6).
    is_single: AtomicBool,
    chunks: [OnceLock<Box<[Slot; CHUNK]>>; CHUNKS],
    free: Mutex<FreeSlots>,
}

struct FreeSlots {
    /// Slots that had an object before; the one that was freed first is first.
    used: VecDeque<usize>,
    /// The first slot that never had one.
    next: usize,
}

/// A slot fills a line, since most programs have many requests at once and nothing else.
#[repr(align(64))]
struct Slot {
    state: AtomicU64,
    /// See HT5.
    word: AtomicU64,
    object: UnsafeCell<Option<Object>>,
}

const _: () = assert!(size_of::<Slot>() == 64, "large objects are boxed, see `kind.rs`");

// SAFETY: HT2, HT3: an object is read only while its reader is counted in phase LIVE, and changed only by the one thread
// that has it for itself. Objects may be shared among threads and sent to others.
unsafe impl Sync for Slot {}

/// A slot for an object that does not exist yet. An operation gets its slot before it starts, so that a full table
/// refuses the call and leaves nothing under way. A slot that gets no object is free again.
pub(crate) struct Reserved<'t> {
    objects: &'t Objects,
    slot: &'t Slot,
    index: usize,
}

/// An object that the holder may read: a call, or a request. It lives at least as long as this, even if another thread
/// frees its handle.
pub(crate) struct Held<'t, T: Kind> {
    object: &'t T,
    /// Where the holder is counted; `None` for objects that are never freed.
    objects: Option<&'t Objects>,
    /// The slot there. It is no part of the option, so that all of this is written word by word, and no wide copy of it
    /// waits for these stores.
    index: usize,
}

/// An object that the holder has for itself. It goes back to its slot at the end, unless it is removed.
pub(crate) struct Taken<'t, T: Kind> {
    objects: &'t Objects,
    handle: usize,
    slot: &'t Slot,
    object: &'t mut T,
}

impl Objects {
    const fn new() -> Self {
        let free = FreeSlots { used: VecDeque::new(), next: 0 };
        let chunks = [const { OnceLock::new() }; CHUNKS];
        Self { is_single: AtomicBool::new(false), chunks, free: Mutex::new(free) }
    }

    /// Says whether the program has one thread from now on (HT6), which is the one that says it.
    pub fn set_single(&self, is_single: bool) {
        self.is_single.store(is_single, Ordering::Relaxed);
    }

    /// Whether this thread is the only one that may change states of this kind (HT6).
    #[inline(always)]
    fn is_alone<T: Kind>(&self) -> bool {
        !T::IS_FREE_THREADED && self.is_single.load(Ordering::Relaxed)
    }

    /// Adds an object, and returns its handle.
    ///
    /// # Errors
    /// As [`Objects::reserve`].
    pub fn insert<T: Kind>(&self, object: T) -> Outcome<usize> {
        Ok(self.reserve()?.fill(object))
    }

    /// Gets a slot for an object that is made later.
    ///
    /// # Errors
    /// MPI_ERR_OTHER when there are 2^20 objects, counting the free slots that other threads keep.
    #[inline]
    pub fn reserve(&self) -> Outcome<Reserved<'_>> {
        match self.take_own(RESTING).and_then(|index| Some((index, self.slot(index)?))) {
            Some((index, slot)) => Ok(Reserved { objects: self, slot, index }),
            None => self.reserve_of_list(),
        }
    }

    #[inline(never)]
    fn reserve_of_list(&self) -> Outcome<Reserved<'_>> {
        let index = self.take_free_slot().or_else(|| self.take_own(0)).ok_or_else(too_many)?;
        let slot = &self.chunks[index / CHUNK].get_or_init(new_chunk)[index % CHUNK];
        Ok(Reserved { objects: self, slot, index })
    }

    /// Holds the object of a handle, whose kind is never taken.
    ///
    /// # Errors
    /// The class of the kind, if the handle names no such object.
    #[inline]
    pub fn hold<T: Kind>(&self, handle: usize) -> Outcome<Held<'_, T>> {
        const { assert!(!T::IS_TAKEN, "HT4") };
        let slot = self.change::<T>(handle, |state| state + 1).ok_or_else(T::invalid)?;
        // SAFETY: HT2: this thread is counted as a holder, so nobody changes the object.
        let object = unsafe { &*slot.object.get() }.as_ref();
        let object = object.and_then(T::peek).expect(OF_ITS_KIND);
        Ok(Held { object, objects: Some(self), index: index_of(handle) })
    }

    /// Takes the object of a handle, whose kind is never held.
    ///
    /// # Errors
    /// The class of the kind, if the handle names no such object, or another thread has it.
    #[inline]
    pub fn take<T: Kind>(&self, handle: usize) -> Outcome<Taken<'_, T>> {
        self.try_take(handle).ok_or_else(T::invalid)
    }

    /// Like [`Objects::take`], but waits while another thread has the object. For objects that threads have for short
    /// only: one that has it for long, or this thread itself, would make this wait as long.
    ///
    /// # Errors
    /// As [`Objects::hold`].
    #[inline(always)]
    pub fn take_in_turn<T: Kind>(&self, handle: usize) -> Outcome<Taken<'_, T>> {
        match self.try_take(handle) {
            Some(taken) => Ok(taken),
            None => self.take_later(handle),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_later<T: Kind>(&self, handle: usize) -> Outcome<Taken<'_, T>> {
        while self.word::<T>(handle).is_some() {
            thread::yield_now();
            if let Some(taken) = self.try_take(handle) {
                return Ok(taken);
            }
        }
        Err(T::invalid())
    }

    #[inline(always)]
    fn try_take<T: Kind>(&self, handle: usize) -> Option<Taken<'_, T>> {
        const { assert!(T::IS_TAKEN, "HT4") };
        let slot = self.change::<T>(handle, |state| state - LIVE + TAKEN)?;
        // SAFETY: HT3, HT4: this thread has taken the object.
        let object = unsafe { &mut *slot.object.get() }.as_mut();
        let object = object.and_then(T::peek_mut).expect(OF_ITS_KIND);
        Some(Taken { objects: self, handle, slot, object })
    }

    /// Returns the word of an object whose kind is taken, also while a thread has it (HT5).
    #[inline]
    pub fn word<T: Kind>(&self, handle: usize) -> Option<u64> {
        let (slot, generation) = self.named(handle)?;
        let state = slot.state.load(Ordering::Acquire); // SYNC: object
        let due = generation << GENERATION_AT | of_kind::<T>();
        let is_there = [LIVE, TAKEN].map(|phase| due | phase).contains(&state);
        is_there.then(|| slot.word.load(Ordering::Relaxed))
    }

    /// Frees a handle, whose kind is never taken. The object goes when nobody holds it.
    ///
    /// # Errors
    /// As [`Objects::hold`].
    pub fn free<T: Kind>(&self, handle: usize) -> Outcome {
        let held = self.hold::<T>(handle)?;
        let freed = self.change::<T>(handle, |state| state - LIVE + DYING);
        drop(held);
        // Another thread may have freed it meanwhile.
        freed.map(drop).ok_or_else(T::invalid)
    }

    /// Changes the state of the slot of a handle if the object is live, of this kind, and of the handle's generation.
    #[inline(always)]
    fn change<T: Kind>(&self, handle: usize, change: impl Fn(u64) -> u64) -> Option<&Slot> {
        let (slot, generation) = self.named(handle)?;
        let due = generation << GENERATION_AT | LIVE | of_kind::<T>();
        let mut state = slot.state.load(Ordering::Relaxed);
        if self.is_alone::<T>() {
            let is_due = state & !HOLDERS == due;
            return is_due.then(|| {
                slot.state.store(change(state), Ordering::Relaxed);
                slot
            });
        }
        while state & !HOLDERS == due {
            let (to, order) = (change(state), Ordering::AcqRel); // SYNC: object
            match slot.state.compare_exchange_weak(state, to, order, Ordering::Relaxed) {
                Ok(_) => return Some(slot),
                Err(other) => state = other,
            }
        }
        None
    }

    /// Returns the slot of a handle, and the generation that its object must have.
    #[inline]
    fn named(&self, handle: usize) -> Option<(&Slot, u64)> {
        let generation = (handle >> INDEX_BITS) as u64;
        if generation == 0 || generation > LAST_GENERATION {
            return None;
        }
        Some((self.slot(index_of(handle))?, generation))
    }

    /// Counts one more holder of an object, for one that is counted already (HT2).
    fn hold_again<T: Kind>(&self, index: usize) {
        let Some(slot) = self.slot(index) else { return };
        if self.is_alone::<T>() {
            slot.state.store(slot.state.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            slot.state.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a holder down. The last one of a freed object drops it. Not inlined, so that what every call on a predefined
    /// communicator passes stays small.
    #[inline(never)]
    fn let_go<T: Kind>(&self, index: usize) {
        let Some(slot) = self.slot(index) else { return };
        let before = if self.is_alone::<T>() {
            let state = slot.state.load(Ordering::Relaxed);
            slot.state.store(state - 1, Ordering::Relaxed);
            state
        } else {
            slot.state.fetch_sub(1, Ordering::AcqRel) // SYNC: object
        };
        if before & (PHASE | HOLDERS) == DYING | 1 {
            // SAFETY: HT3: this thread has counted the last holder down.
            drop(unsafe { (*slot.object.get()).take() });
            self.release(slot, index, before >> GENERATION_AT);
        }
    }

    /// Ends a slot's object, which is gone. It had this generation.
    #[inline(always)]
    fn release(&self, slot: &Slot, index: usize, generation: u64) {
        slot.state.store(generation << GENERATION_AT | FREE, Ordering::Relaxed);
        self.give(index);
    }

    /// Adds a slot to this thread's own free ones, or to the list if it has many.
    #[inline]
    fn give(&self, index: usize) {
        if !self.with_own(|own| own.give(index)).unwrap_or(false) {
            self.list().used.push_back(index);
        }
    }

    /// Takes one of this thread's own free slots, if it has more than `rest`.
    #[inline]
    fn take_own(&self, rest: usize) -> Option<usize> {
        self.with_own(|own| own.take(rest)).flatten()
    }

    /// Passes this thread's own free slots to a function. There are none while the thread ends, nor for tables of tests.
    #[inline(always)]
    fn with_own<R>(&self, act: impl FnOnce(&OwnSlots) -> R) -> Option<R> {
        if ptr::eq(self, &OBJECTS) { OWN.try_with(act).ok() } else { None }
    }

    fn list(&self) -> MutexGuard<'_, FreeSlots> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> Option<&Slot> {
        Some(&self.chunks.get(index / CHUNK)?.get()?[index % CHUNK])
    }

    fn take_free_slot(&self) -> Option<usize> {
        let mut free = self.list();
        let is_new = free.used.len() <= RESTING && free.next < CHUNKS * CHUNK;
        if !is_new {
            return free.used.pop_front();
        }
        free.next += 1;
        Some(free.next - 1)
    }
}

/// Returns the index of a handle's slot.
#[inline]
const fn index_of(handle: usize) -> usize {
    handle & ((1 << INDEX_BITS) - 1)
}

/// Returns the part of a state that says the kind (HT4).
const fn of_kind<T: Kind>() -> u64 {
    (T::NUMBER as u64) << KIND_AT
}

/// Why an object is of the kind that its state says.
const OF_ITS_KIND: &str = "HT4: the state says the kind of the object";

fn new_chunk() -> Box<[Slot; CHUNK]> {
    let slot = || Slot {
        state: AtomicU64::new(FREE),
        word: AtomicU64::new(0),
        object: UnsafeCell::new(None),
    };
    let slots: Box<[Slot]> = std::iter::repeat_with(slot).take(CHUNK).collect();
    slots.try_into().unwrap_or_else(|_| unreachable!("a chunk has `CHUNK` slots"))
}

#[cold]
fn too_many() -> Fault {
    Fault::other(format!(
        "there are {} objects; free requests, communicators and datatypes that are not needed",
        CHUNKS * CHUNK
    ))
}

impl Reserved<'_> {
    /// Puts an object into the slot, and returns its handle.
    #[inline(always)]
    pub fn fill<T: Kind>(self, object: T) -> usize {
        // Nothing here can panic, so that an object which is made for this call is made in the slot.
        let (slot, index) = (self.slot, self.index);
        std::mem::forget(self);
        let before = slot.state.load(Ordering::Relaxed) >> GENERATION_AT;
        let generation = if before == LAST_GENERATION { 1 } else { before + 1 };
        slot.word.store(object.word(), Ordering::Relaxed);
        // SAFETY: HT3: the slot came from the free slots, so it is this thread's, and has no object.
        unsafe { slot.object.get().write(Some(object.wrap())) };
        let live = generation << GENERATION_AT | LIVE | of_kind::<T>();
        slot.state.store(live, Ordering::Release); // SYNC: object
        (generation << INDEX_BITS) as usize | index
    }
}

impl OwnSlots {
    const fn new() -> Self {
        let ring = [const { Cell::new(0) }; MOST_OWN];
        Self { ring, first: Cell::new(0), len: Cell::new(0) }
    }

    /// Takes the first slot, if there are more than `rest`.
    #[inline(always)]
    fn take(&self, rest: usize) -> Option<usize> {
        let (first, len) = (self.first.get(), self.len.get());
        if len <= rest {
            return None;
        }
        self.first.set(first + 1);
        self.len.set(len - 1);
        Some(self.ring[first % MOST_OWN].get() as usize)
    }

    /// Adds a slot behind the others, and returns whether there was room for it.
    #[inline(always)]
    fn give(&self, index: usize) -> bool {
        let len = self.len.get();
        let has_room = len < MOST_OWN;
        if has_room {
            self.ring[(self.first.get() + len) % MOST_OWN].set(index as u32);
            self.len.set(len + 1);
        }
        has_room
    }
}

impl Drop for OwnSlots {
    fn drop(&mut self) {
        OBJECTS.list().used.extend(std::iter::from_fn(|| self.take(0)));
    }
}

impl Drop for Reserved<'_> {
    #[inline]
    fn drop(&mut self) {
        self.objects.give(self.index);
    }
}

impl<T: Kind> Held<'_, T> {
    /// Holds an object that is never freed.
    #[inline(always)]
    pub fn forever(object: &'static T) -> Held<'static, T> {
        Held { object, objects: None, index: 0 }
    }
}

impl<T: Kind> Clone for Held<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        if let Some(objects) = self.objects {
            objects.hold_again::<T>(self.index);
        }
        Self { ..*self }
    }
}

impl<T: Kind> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.object
    }
}

impl<T: Kind> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(objects) = self.objects {
            objects.let_go::<T>(self.index);
        }
    }
}

impl<T: Kind> Taken<'_, T> {
    /// Frees the handle and returns the object.
    #[inline(always)]
    pub fn remove(self) -> T {
        let taken = ManuallyDrop::new(self);
        // SAFETY: HT3: this thread has the object, which is overwritten below without being dropped.
        let object = unsafe { ptr::read(&raw const *taken.object) };
        // SAFETY: as above. The reference to the object is not used any more.
        unsafe { taken.slot.object.get().write(None) };
        let (index, generation) = (index_of(taken.handle), taken.handle >> INDEX_BITS);
        taken.objects.release(taken.slot, index, generation as u64);
        object
    }
}

impl<T: Kind> Deref for Taken<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.object
    }
}

impl<T: Kind> DerefMut for Taken<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        self.object
    }
}

impl<T: Kind> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        self.slot.word.store(self.object.word(), Ordering::Relaxed);
        // HT3: nobody else changes the state while the object is taken.
        let state = self.slot.state.load(Ordering::Relaxed);
        self.slot.state.store(state - TAKEN + LIVE, Ordering::Release); // SYNC: object
    }
}
