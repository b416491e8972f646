//! The posted receives while all of them want the same: a row, without links or look-ups.
//!
//! Most programs post receives of one pattern at a time, or one receive. Called by [`super::Matcher`],
//! whose invariant M5 it serves.

use std::collections::VecDeque;

use super::index::Key;

/// Receives of one pattern, in the order in which they were posted.
#[derive(Debug)]
pub(super) struct Row {
    class: usize,
    key: Key,
    numbers: VecDeque<u32>,
}

impl Row {
    pub fn new() -> Self {
        Self { class: 0, key: Key::new(0, 0, 0), numbers: VecDeque::new() }
    }

    /// Puts a receive at the end, if it wants what the others want.
    #[inline(always)]
    pub fn push(&mut self, class: usize, key: Key, number: u32) -> bool {
        if self.numbers.is_empty() {
            (self.class, self.key) = (class, key);
        }
        let fits = self.class == class && self.key == key;
        if fits {
            self.numbers.push_back(number);
        }
        fits
    }

    /// The class of what they want.
    #[inline(always)]
    pub fn class(&self) -> usize {
        self.class
    }

    /// What they want, as the class has it.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Takes the first one out, if a message with this key, which is of the row's class, is what it
    /// wants.
    #[inline(always)]
    pub fn take(&mut self, key: Key) -> Option<u32> {
        if self.key == key { self.numbers.pop_front() } else { None }
    }

    /// Takes the first one out.
    pub fn pop(&mut self) -> Option<u32> {
        self.numbers.pop_front()
    }

    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// All of them, first to last.
    pub fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied()
    }
}
