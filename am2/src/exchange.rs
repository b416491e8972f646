//! Exchanges of one word between all tasks of the job, and the barrier made of them. Tasks use them to begin: to tell
//! each other the names of endpoints, and to wait until everybody has set handlers, tags and segments.
//!
//! Every task sends its word to every other task, and waits until it has a word of each. A task can be one exchange
//! ahead of another one, since that one has sent its word and not yet taken those of the others; it cannot be two
//! ahead. So at most two words of a task wait here.

use std::sync::Arc;

use crate::bundle::Bundle;
use crate::error::Error;
use crate::name::{Endpoint, EndpointName, Tag};
use crate::packet::{Header, Kind};
use crate::task::{Core, send};
use transport_lapi::TaskId;

/// Ends the part of a bundle in an exchange, also if a handler panics meanwhile.
struct Part(Arc<Core>);

impl Drop for Part {
    fn drop(&mut self) {
        if let Ok(mut session) = self.0.session_even_then() {
            session.state.exchange.busy = false;
        }
    }
}

impl Bundle {
    /// Gives every task the words of all tasks, in the order of the tasks. Every task calls it; it handles messages of
    /// this bundle while it waits. It is an extension of AM-2, like the following calls.
    ///
    /// If it fails, or a handler panics in it, the next call of this task continues the same exchange, with the word
    /// that was sent already.
    ///
    /// # Errors
    /// [`Error::ExchangeInUse`] while another bundle of this task is in an exchange; [`Error::NotSent`] if a task is
    /// lost; those of [`Bundle::poll`].
    pub fn exchange(&mut self, word: u64) -> Result<Vec<u64>, Error> {
        let mut session = self.core.session()?;
        if std::mem::replace(&mut session.state.exchange.busy, true) {
            return Err(Error::ExchangeInUse { task: self.core.task() });
        }
        let has_begun = session.state.exchange.begun;
        drop(session);
        let _part = Part(Arc::clone(&self.core));
        if !has_begun {
            self.send_word(word)?;
        }
        loop {
            let handled = self.poll()?;
            if let Some(words) = self.core.session()?.state.exchange.take() {
                return Ok(words);
            }
            if handled == 0 {
                self.wait_until(|state| state.exchange.is_complete())?;
            }
        }
    }

    /// Sends the word of this task to all tasks.
    fn send_word(&self, word: u64) -> Result<(), Error> {
        let header = Header { kind: Kind::Exchange, tag: Tag(word), ..Header::EMPTY };
        for task in (0..self.core.num_tasks()).filter(|task| *task != self.core.task()) {
            let mut session = self.core.session()?;
            let name = EndpointName { task, number: 0 };
            send(&mut session, task, &header, &[], &[])
                .map_err(|cause| Error::NotSent { name, cause })?;
        }
        let exchange = &mut self.core.session()?.state.exchange;
        exchange.begun = true;
        exchange.arrived(self.core.task(), word);
        Ok(())
    }

    /// Waits until every task has called it, and handles messages of this bundle meanwhile. Call it after handlers,
    /// tags, segments and translations have been set, and before the first request; and once more before the task
    /// frees what others may still send to.
    ///
    /// # Errors
    /// Those of [`Bundle::exchange`].
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.exchange(0).map(drop)
    }

    /// Returns the name of one endpoint of each task, in the order of the tasks. Every task calls it with its own.
    ///
    /// # Errors
    /// [`Error::UnknownEndpoint`]; those of [`Bundle::exchange`].
    pub fn exchange_names(&mut self, endpoint: Endpoint) -> Result<Vec<EndpointName>, Error> {
        let own = self.name(endpoint)?;
        let words = self.exchange(own.to_bits())?;
        // The task is known anyway; of a peer's word only the number counts.
        let name =
            |(task, word): (usize, u64)| EndpointName { task: task as TaskId, number: word as u16 };
        Ok(words.into_iter().enumerate().map(name).collect())
    }

    /// Leaves the job: waits until every task has called it, and until the handlers of all messages of this bundle have
    /// run, here and at their receivers. Call it last; then the task may end, or terminate AM-2. If it fails, or a
    /// handler panics in it, the next call continues.
    ///
    /// # Errors
    /// Those of [`Bundle::exchange`]; [`Error::Transport`].
    pub fn leave(&mut self) -> Result<(), Error> {
        self.core.begin_to_leave();
        // Packets of one task arrive in the order of sending. So after the first barrier all requests are here, after
        // the second one all answers to them, and after the third one all answers that were returned.
        loop {
            self.drain()?;
            if self.barriers_to_leave == 0 {
                return self.core.leave();
            }
            self.barrier()?;
            self.barriers_to_leave -= 1;
        }
    }

    /// Handles messages until none waits, complete or not.
    fn drain(&mut self) -> Result<(), Error> {
        let numbers = self.numbers();
        loop {
            let handled = self.poll()?;
            if self.core.session()?.state.is_drained(&numbers) {
                return Ok(());
            }
            if handled == 0 {
                self.wait_until(|_| false)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Am, BundleKind, Code};

    #[test]
    fn a_task_takes_part_in_one_exchange_at_a_time() {
        let am = Am::in_process(1).unwrap().remove(0);
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        bundle.core.session().unwrap().state.exchange.busy = true;
        let busy = bundle.barrier().unwrap_err();
        assert!(matches!(busy, Error::ExchangeInUse { task: 0 }));
        assert_eq!(busy.code(), Code::InUse);
        bundle.core.session().unwrap().state.exchange.busy = false;
        bundle.barrier().unwrap();
    }
}
