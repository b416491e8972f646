//! The registry of members: all ranks that the operations of a context, or of one call in it, need. `device/members.rs`
//! has the calls that fill it, `backend/loss.rs` what the loss of a member ends.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

/// All ranks that the operations in a context need: those of a communicator, or of both sides of an intercommunicator.
/// The device calls the methods under its lock, so they must not call the device.
pub trait Members: Send + Sync {
    /// Returns whether `rank` of the job is a member.
    fn contains(&self, rank: u32) -> bool;

    /// Returns all members, as ranks of the job, in any order. Reports use it.
    fn ranks(&self) -> Vec<u32>;

    /// Returns the name that the program gave the communicator (MPI_Comm_get_name, MPI-4.1 section 7.8), or an empty
    /// one. Reports use its first 64 bytes.
    fn name(&self) -> String;
}

/// The members of all contexts that have some, and of calls that have their own.
#[derive(Default)]
pub(crate) struct Registry {
    contexts: HashMap<u32, Arc<dyn Members>, FxBuildHasher>,
    /// Context, tag and members of each such call. There are few at a time.
    pub calls: Vec<(u32, i32, Arc<dyn Members>)>,
}

impl Registry {
    /// Sets or removes the members of a context. Returns its former members.
    pub fn set(
        &mut self,
        context: u32,
        members: Option<Arc<dyn Members>>,
    ) -> Option<Arc<dyn Members>> {
        match members {
            Some(members) => self.contexts.insert(context, members),
            None => self.contexts.remove(&context),
        }
    }

    /// Returns the members of this context, if it has any.
    pub fn of(&self, context: u32) -> Option<&dyn Members> {
        self.contexts.get(&context).map(|members| &**members)
    }

    /// Returns the members that the messages of this context with this tag need.
    pub fn of_messages(&self, context: u32, tag: Option<i32>) -> Option<&dyn Members> {
        let mut calls = self.calls.iter();
        let call = calls.find(|(of, with, _)| (*of, Some(*with)) == (context, tag));
        call.map(|(_, _, members)| &**members).or_else(|| self.of(context))
    }

    /// Returns whether the messages of this context with this tag need `rank`, whatever their peer is.
    pub fn need(&self, context: u32, tag: Option<i32>, rank: u32) -> bool {
        self.of_messages(context, tag).is_some_and(|members| members.contains(rank))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.contexts.keys()).finish()
    }
}
