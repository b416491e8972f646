//! Attributes of communicators (MPI-4.1 section 7.7). `attribute.rs` of the crate keeps them and runs their callbacks.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::workspace::Workspace;
use super::{Communicator, Inner};
use crate::attribute::{Attributes, Key, Value};
use crate::error::Error;

impl Communicator {
    /// Returns the value that is attached under a key: MPI_Comm_get_attr.
    pub fn attribute(&self, key: &Key<Self>) -> Option<Value> {
        self.0.attributes.get(key)
    }

    /// Attaches a value under a key, on this rank: MPI_Comm_set_attr. Deletes the present value first, if there is one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback of the present value fails; that value then stays.
    pub fn set_attribute(&self, key: &Key<Self>, value: Value) -> Result<(), Error> {
        self.0.attributes.set(self, key, value)
    }

    /// Deletes the value that is attached under a key: MPI_Comm_delete_attr. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback fails; the value then stays.
    pub fn delete_attribute(&self, key: &Key<Self>) -> Result<bool, Error> {
        self.0.attributes.delete(self, key)
    }

    /// Deletes all attributes, starting with the one that was attached last, as MPI_Comm_free does, and MPI_Finalize
    /// for MPI_COMM_SELF. This happens automatically when the last handle of a communicator is dropped; then its error
    /// handler gets the errors.
    ///
    /// # Errors
    /// [`Error::Callback`] if a delete callback fails; its value and those attached before it then stay.
    pub fn delete_attributes(&self) -> Result<(), Error> {
        self.0.attributes.delete_all(self)
    }

    /// Copies the attributes for a duplicate. It is called when the duplication begins, since the duplicate does not
    /// get later changes.
    pub(crate) fn copy_attributes(&self) -> Copied {
        let (attributes, failure) = self.0.attributes.copy(self);
        Copied { parent: self.clone(), attributes, failure }
    }
}

/// The attributes for a duplicate. If the duplicate is never made, they are deleted on the communicator that they were
/// copied from.
pub(crate) struct Copied {
    parent: Communicator,
    attributes: Attributes<Communicator>,
    failure: Option<Error>,
}

impl Copied {
    /// Takes the copied attributes, and the error of the callback that failed, if one did.
    pub fn take(mut self) -> (Attributes<Communicator>, Option<Error>) {
        (std::mem::take(&mut self.attributes), self.failure.take())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.attributes.end(&self.parent, |error| drop(self.parent.handle(error)));
    }
}

impl Inner {
    /// Deletes the attributes of a communicator whose last handle is gone. The callbacks get a handle of another
    /// `Inner`, which takes over the id. Returns whether it has taken over the id. A fork of the rank deletes nothing:
    /// the attributes belong to its parent.
    pub(super) fn delete_attributes_at_end(&mut self) -> bool {
        if self.attributes.is_empty() || self.process.device().is_fork() {
            return false;
        }
        let again = Communicator(Arc::new(Self {
            process: self.process.clone(),
            id: self.id,
            group: self.group.clone(),
            rank: self.rank,
            remote: self.remote.take(),
            topology: self.topology.take(),
            elsewhere: std::mem::take(&mut self.elsewhere),
            hosts: self.hosts.take(),
            calls: AtomicU32::new(*self.calls.get_mut()),
            persistent: AtomicU32::new(*self.persistent.get_mut()),
            name: self.name.clone(),
            attributes: std::mem::take(&mut self.attributes),
            handler: std::mem::take(&mut self.handler),
            workspace: Workspace::default(),
            copies: std::mem::take(&mut self.copies),
            session: std::mem::take(&mut self.session),
            partition_tags: std::mem::take(&mut self.partition_tags),
            number_in_records: std::mem::take(&mut self.number_in_records),
        }));
        again.0.attributes.end(&again, |error| drop(again.handle(error)));
        true
    }
}
