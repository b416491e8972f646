//! Who the members of a context are: the ranks that its operations need, all of them.
//!
//! A client registers the members of a context in which it runs collective operations, and takes them back when the
//! context is not used any more. A context without members is one of messages between two ranks: its operations need
//! their other end alone. What the loss of a member ends is in `loss.rs`; the launcher is told who the members are, for
//! its reports.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;
use transport_lapi::adapter::Adapter;

use crate::device::Device;
use crate::error::Error;

/// The ranks that operations in a context need, all of them: those of a communicator, of an intercommunicator those of
/// both sides. The device asks under its lock, so no method may call the device.
pub trait Members: Send + Sync {
    /// Whether `rank` of the job is one of them.
    fn contains(&self, rank: u32) -> bool;

    /// All of them, as ranks of the job, in any order. Asked for reports.
    fn ranks(&self) -> Vec<u32>;

    /// What the program calls them (MPI_Comm_get_name, MPI-4.1 section 7.8); empty if it does not. Asked for reports,
    /// which cut what is longer than 64 bytes.
    fn name(&self) -> String;
}

/// The members of contexts.
#[derive(Default)]
pub(crate) struct Registry {
    contexts: HashMap<u32, Arc<dyn Members>, FxBuildHasher>,
}

impl Registry {
    /// Gives a context members, or takes them; returns those that it had.
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

    /// Those of this context, if it has any.
    pub fn of(&self, context: u32) -> Option<&dyn Members> {
        self.contexts.get(&context).map(|members| &**members)
    }

    /// Whether the operations of this context need `rank`, whatever their other end is.
    pub fn need(&self, context: u32, rank: u32) -> bool {
        self.of(context).is_some_and(|members| members.contains(rank))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.contexts.keys()).finish()
    }
}

impl<A: Adapter> Device<A> {
    /// Says who the members of `context` are, in place of what was said before. From now on its operations fail when
    /// one of the members is lost, and do not when others are (LO1 of `loss.rs`). To be called before the first
    /// operation in the context; every member calls it. Takes no part in the communication itself.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use mpjdev::{Adapter, Device, Error, Members};
    /// /// A row of a grid that is four ranks wide.
    /// struct Row(u32);
    ///
    /// impl Members for Row {
    ///     fn contains(&self, rank: u32) -> bool {
    ///         rank / 4 == self.0
    ///     }
    ///     fn ranks(&self) -> Vec<u32> {
    ///         (4 * self.0..4 * self.0 + 4).collect()
    ///     }
    ///     fn name(&self) -> String {
    ///         "rows".to_owned()
    ///     }
    /// }
    ///
    /// fn begin<A: Adapter>(device: &Device<A>, context: u32) -> Result<(), Error> {
    ///     device.set_members(context, Arc::new(Row(device.rank() / 4)))
    /// }
    /// ```
    pub fn set_members(&self, context: u32, members: Arc<dyn Members>) -> Result<(), Error> {
        let mut session = self.session()?;
        let before = session.state.losses.members.set(context, Some(members));
        drop(session);
        // What it owns may be dropped with it, and may call the device.
        drop(before);
        Ok(())
    }

    /// The context has no members any more: nobody communicates in it. A device that has failed has forgotten them.
    pub fn clear_members(&self, context: u32) {
        let Ok(mut session) = self.session() else { return };
        let before = session.state.losses.members.set(context, None);
        drop(session);
        drop(before);
    }
}
