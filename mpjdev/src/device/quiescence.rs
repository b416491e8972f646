//! Checks whether a context is still in use, before its id is used again.

use crate::device::Device;
use crate::error::Error;
use crate::request::{self, Operation};
use crate::state::State;

impl Device {
    /// Returns whether this rank has no operation of `context` under way and no unexpected message of it, not even one
    /// that a matched probe has taken. Messages that have not arrived are not seen, so the ranks must first agree that
    /// none sends in the context any more. The time grows with the number of operations and unexpected messages of the
    /// device.
    ///
    /// # Errors
    /// [`Error::Finished`]; what made the device unusable.
    pub fn is_idle(&self, context: u32) -> Result<bool, Error> {
        let session = self.session()?;
        let state = &session.state;
        let mut operations = state.requests.iter();
        let is_in_use = operations
            .any(|(key, operation)| context_of(state, key, operation) == Some(context))
            || state.unexpected.iter().any(|(_, unexpected)| unexpected.context == context);
        Ok(!is_in_use)
    }
}

/// Returns the context of an operation under way.
pub(crate) fn context_of(state: &State, key: u64, operation: &Operation) -> Option<u32> {
    match operation {
        Operation::Send(sending) => Some(sending.context),
        Operation::Posted(_) => {
            let pattern = state.matcher.pattern_of(request::number(key));
            pattern.map(|pattern| pattern.context)
        }
        Operation::Receiving(receiving) => Some(receiving.matched.context),
        Operation::Client { context, .. } => Some(*context),
        Operation::Done { .. } | Operation::Cancelled | Operation::Failed(_) => None,
    }
}
