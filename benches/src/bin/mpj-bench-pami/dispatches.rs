//! The dispatches of a context, and what they share with the program.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mpj_bench::transfers::memory::Memory;
use pami::{Arriving, Callback, Error, Hints, Message, Section};
use transport_lapi::ForeignBytes;

/// Measured messages. Their header is the place of the data in the target's memory.
pub const MESSAGE: usize = 1;
/// Messages of a few words, which go to the beginning of the memory.
pub const SHORT: usize = 2;
/// Messages that are only counted.
pub const COUNT: usize = 3;
/// Words that tasks exchange between measurements.
pub const WORD: usize = 4;

/// What the dispatches of a context share with the program. The thread that has the context uses it.
#[derive(Debug, Default)]
pub struct Shared {
    /// Messages that have arrived and not been taken.
    arrived: AtomicU64,
    /// Words that have arrived from each task and not been taken.
    words: Mutex<Vec<VecDeque<u64>>>,
}

impl Shared {
    /// Takes so many messages, if they have arrived.
    #[inline]
    pub fn take(&self, messages: u64) -> bool {
        take(&self.arrived, messages)
    }

    /// Takes the next word of a task, if one has arrived.
    pub fn next_word(&self, origin: usize) -> Option<u64> {
        let mut words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        words.get_mut(origin)?.pop_front()
    }
}

/// Operations of this task that have ended and not been taken. Callbacks that carry nothing need no memory.
pub static ENDED: AtomicU64 = AtomicU64::new(0);

/// A callback that counts the end of an operation.
pub fn ends() -> Option<Callback> {
    Some(Box::new(|_, _| count(&ENDED)))
}

/// Adds 1. One thread writes it.
#[inline]
fn count(to: &AtomicU64) {
    to.store(to.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Subtracts so many, if there are.
#[inline]
pub fn take(from: &AtomicU64, number: u64) -> bool {
    let left = from.load(Ordering::Relaxed).checked_sub(number);
    left.is_some_and(|left| {
        from.store(left, Ordering::Relaxed);
        true
    })
}

/// Sets all dispatches of a context. Data are stored in `into`; what would lie outside is discarded, which the check of
/// the payload notices.
///
/// # Errors
/// An error of PAMI.
pub fn set(section: &mut Section<'_>, shared: &Arc<Shared>, into: Memory) -> Result<(), Error> {
    let of = |_| Arc::clone(shared);
    let [message, short, counted, word] = [(); 4].map(of);
    let store = move |place: usize, bytes: &[u8]| {
        if let Some(mut landing) = into.landing(place, bytes.len()) {
            landing.store(0, ForeignBytes::from_slice(bytes));
        }
    };
    let arrive = move |_: &mut Section<'_>, Message { header, data, .. }: Message<'_>| {
        let place = header.try_into().map_or(usize::MAX, |word| u64::from_le_bytes(word) as usize);
        match data {
            Arriving::Immediate(bytes) => {
                store(place, bytes);
                count(&message.arrived);
            }
            Arriving::Asynchronous(data) => {
                let message = Arc::clone(&message);
                let on_end: Callback = Box::new(move |_, _| count(&message.arrived));
                if let Some(landing) = into.landing(place, data.len()) {
                    data.receive(landing, Some(on_end));
                }
            }
        }
    };
    section.dispatch_set(MESSAGE, arrive, Hints::default())?;
    let arrive = move |_: &mut Section<'_>, message: Message<'_>| {
        if let Arriving::Immediate(bytes) = message.data {
            store(0, bytes);
        }
        count(&short.arrived);
    };
    section.dispatch_set(SHORT, arrive, Hints::default())?;
    let arrive = move |_: &mut Section<'_>, _: Message<'_>| count(&counted.arrived);
    section.dispatch_set(COUNT, arrive, Hints::default())?;
    let arrive = move |_: &mut Section<'_>, message: Message<'_>| {
        let mut words = word.words.lock().unwrap_or_else(PoisonError::into_inner);
        let origin = message.origin.task() as usize;
        if words.len() <= origin {
            words.resize(origin + 1, VecDeque::new());
        }
        words[origin].extend(message.header.try_into().map(u64::from_le_bytes));
    };
    section.dispatch_set(WORD, arrive, Hints::default())
}
