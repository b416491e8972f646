//! The members of a context: all ranks that its operations need.
//!
//! A client registers the members of a context in which it runs collective operations, and removes them when the
//! context is no longer used. A context without members is for messages between two ranks: an operation there needs
//! only its peer. A call that only some ranks make has members of its own, whom the messages with its tag need
//! ([`Device::call_members`]). `backend/loss.rs` says what the loss of a member ends. The launcher gets the members of
//! contexts for its reports.

use std::sync::Arc;

use crate::device::Device;
use crate::error::Error;
use crate::state::Members;

impl Device {
    /// Sets the members of `context`. From now on its operations fail when a member is lost, and do not fail when
    /// another rank is (LO1 of `backend/loss.rs`). Every member calls this before the first operation in the context.
    /// It does not communicate.
    ///
    /// # Errors
    /// [`Error::Finished`], what made the device unusable.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use mpjdev::{Device, Error, Members};
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
    /// fn begin(device: &Device, context: u32) -> Result<(), Error> {
    ///     device.set_members(context, Arc::new(Row(device.rank() / 4)))
    /// }
    /// ```
    pub fn set_members(&self, context: u32, members: Arc<dyn Members>) -> Result<(), Error> {
        let mut session = self.session()?;
        let before = session.state.losses.members.set(context, Some(members));
        drop(session);
        // Drop the former members without the lock: their `Drop` may call the device.
        drop(before);
        Ok(())
    }

    /// Removes the members of `context`, in which there must be no further communication. Does nothing if the device
    /// has failed, which keeps them until it is dropped.
    pub fn clear_members(&self, context: u32) {
        let Ok(mut session) = self.session() else { return };
        let before = session.state.losses.members.set(context, None);
        drop(session);
        drop(before);
    }

    /// Sets the members of a call: those that the messages of `context` with `tag` need, instead of the members of the
    /// context, until the result is dropped. It does not communicate.
    ///
    /// # Errors
    /// As [`Device::set_members`].
    pub fn call_members(
        &self,
        context: u32,
        tag: i32,
        members: Arc<dyn Members>,
    ) -> Result<CallMembers<'_>, Error> {
        let calls = &mut self.session()?.state.losses.members.calls;
        calls.push((context, tag, members.clone()));
        Ok(CallMembers { device: self, members })
    }
}

/// The members of a call, until this is dropped; the result of [`Device::call_members`].
pub struct CallMembers<'d> {
    device: &'d Device,
    members: Arc<dyn Members>,
}

impl Drop for CallMembers<'_> {
    fn drop(&mut self) {
        // The members of a device that has failed go with it.
        let Ok(mut session) = self.device.session() else { return };
        let calls = &mut session.state.losses.members.calls;
        let at = calls.iter().position(|(_, _, members)| Arc::ptr_eq(members, &self.members));
        // `self` keeps the members until the lock is free: their `Drop` may call the device.
        at.into_iter().for_each(|at| drop(calls.swap_remove(at)));
    }
}
