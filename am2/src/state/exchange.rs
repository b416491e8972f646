//! What a task keeps of exchanges of words; `exchange.rs` of the crate has the calls.

use std::collections::VecDeque;
use std::ops::Range;

use transport_lapi::{PerTask, TaskId, Tasks};

/// The words that have arrived and belong to exchanges that this task has not ended.
#[derive(Debug)]
pub(crate) struct Exchange {
    words: PerTask<VecDeque<u64>>,
    /// Whether a bundle of this task is in an exchange.
    pub busy: bool,
    /// Whether this task has sent its word for an exchange that it has not ended.
    pub begun: bool,
}

impl Exchange {
    pub fn new(tasks: &Tasks) -> Self {
        let words = PerTask::new(tasks, VecDeque::new(), Clone::clone);
        Self { words, busy: false, begun: false }
    }

    /// Keeps the word of a task. Returns whether that task may have sent it already.
    pub fn arrived(&mut self, origin: TaskId, word: u64) -> bool {
        let words = &mut self.words[origin];
        let is_right = words.len() < 2;
        if is_right {
            words.push_back(word);
        }
        is_right
    }

    pub fn is_complete(&self) -> bool {
        self.tasks().all(|task| !self.words[task].is_empty())
    }

    /// Takes the words of the earliest exchange, if all have arrived.
    pub fn take(&mut self) -> Option<Vec<u64>> {
        if !self.is_complete() {
            return None;
        }
        self.begun = false;
        self.tasks().map(|task| self.words[task].pop_front()).collect()
    }

    fn tasks(&self) -> Range<TaskId> {
        0..self.words.num_tasks() as TaskId
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_needs_a_word_of_each_task() {
        let mut exchange = Exchange::new(&Tasks::all_near(2));
        assert!(exchange.arrived(1, 10) && exchange.arrived(1, 11));
        assert!(!exchange.arrived(1, 12), "task 1 cannot have ended the first exchange");
        assert_eq!(exchange.take(), None);
        assert!(exchange.arrived(0, 20));
        assert_eq!(exchange.take(), Some(vec![20, 10]));
        assert_eq!(exchange.take(), None);
        assert!(exchange.arrived(1, 12));
    }
}
