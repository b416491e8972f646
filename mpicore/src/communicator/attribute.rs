//! Attributes: values that users attach to communicators under keys of their own (MPI-4.1 section 7.7). Callbacks of
//! the keys run when values are copied and deleted.
//!
//! - AT1: callbacks run while no lock of this crate is held. They may call MPI, even on the same communicator, and may
//!   attach and delete attributes.
//! - AT2: a value is taken out before its delete callback runs, so each value is deleted once, even if several threads
//!   delete it at the same time. If the callback fails in a call that can return the error, the value is put back.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::workspace::Workspace;
use super::{Communicator, Inner};
use crate::error::Error;

/// The value of an attribute.
pub type Value = Arc<dyn Any + Send + Sync>;

/// The error of an attribute's callback.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Runs when a communicator with a value is duplicated; returns the duplicate's value.
type CopyCallback = dyn Fn(&Communicator, &Value) -> Result<Option<Value>, Cause> + Send + Sync;
/// Runs before a value is deleted.
type DeleteCallback = dyn Fn(&Communicator, &Value) -> Result<(), Cause> + Send + Sync;

/// A key for attributes: MPI_Comm_create_keyval. A clone is the same key. Attributes keep their key, so the caller may
/// drop it (MPI_Comm_free_keyval) while a communicator has such an attribute.
#[derive(Clone)]
pub struct Key(Arc<Callbacks>);

struct Callbacks {
    copy: Box<CopyCallback>,
    delete: Box<DeleteCallback>,
}

impl Key {
    /// Makes a key with its callbacks, which run while no lock is held and may call MPI.
    ///
    /// `copy` is called for each value of a communicator that is duplicated, and returns the value for the duplicate:
    /// `None` for none (MPI_COMM_NULL_COPY_FN), or the same value to share it (MPI_COMM_DUP_FN). `delete` is called for
    /// a value that is replaced or deleted, and when the communicator is gone.
    ///
    /// ```
    /// use mpicore::Key;
    /// let shared = Key::new(|_, value| Ok(Some(value.clone())), |_, _| Ok(()));
    /// assert!(shared != Key::new(|_, _| Ok(None), |_, _| Ok(())), "each key is its own");
    /// ```
    pub fn new(
        copy: impl Fn(&Communicator, &Value) -> Result<Option<Value>, Cause> + Send + Sync + 'static,
        delete: impl Fn(&Communicator, &Value) -> Result<(), Cause> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Callbacks { copy: Box::new(copy), delete: Box::new(delete) }))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&Arc::as_ptr(&self.0).cast::<()>()).finish()
    }
}

/// A key and its value on a communicator.
#[derive(Clone)]
pub(super) struct Attribute {
    key: Key,
    value: Value,
}

impl Attribute {
    /// Calls the delete callback.
    fn delete(&self, on: &Communicator) -> Result<(), Error> {
        let deleted = (self.key.0.delete)(on, &self.value);
        let callback = "delete callback of an attribute";
        deleted.map_err(|cause| Error::Callback { callback, cause: cause.into() })
    }
}

/// The attributes of a communicator, in the order in which they were attached.
#[derive(Default)]
pub(super) struct Attributes(Mutex<Vec<Attribute>>);

impl Attributes {
    pub(super) fn new(attributes: Vec<Attribute>) -> Self {
        Self(Mutex::new(attributes))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Attribute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }
}

impl Communicator {
    /// Returns the value that is attached under a key: MPI_Comm_get_attr.
    pub fn attribute(&self, key: &Key) -> Option<Value> {
        let attributes = self.0.attributes.lock();
        let found = attributes.iter().find(|attribute| attribute.key == *key);
        found.map(|attribute| attribute.value.clone())
    }

    /// Attaches a value under a key, on this rank: MPI_Comm_set_attr. Deletes the present value first, if there is one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback of the present value fails; that value then stays.
    pub fn set_attribute(&self, key: &Key, value: Value) -> Result<(), Error> {
        loop {
            let mut attributes = self.0.attributes.lock();
            if attributes.iter().all(|attribute| attribute.key != *key) {
                attributes.push(Attribute { key: key.clone(), value });
                return Ok(());
            }
            drop(attributes);
            self.delete_attribute(key)?;
        }
    }

    /// Deletes the value that is attached under a key: MPI_Comm_delete_attr. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback fails; the value then stays.
    pub fn delete_attribute(&self, key: &Key) -> Result<bool, Error> {
        let mut attributes = self.0.attributes.lock();
        let place = attributes.iter().position(|attribute| attribute.key == *key);
        let Some(place) = place else { return Ok(false) };
        let taken = attributes.remove(place);
        drop(attributes);
        self.delete_or_put_back(taken, place).map(|()| true)
    }

    /// Deletes all attributes, starting with the one that was attached last, as MPI_Comm_free does, and MPI_Finalize
    /// for MPI_COMM_SELF. This happens automatically when the last handle of a communicator is dropped; then its error
    /// handler gets the errors.
    ///
    /// # Errors
    /// [`Error::Callback`] if a delete callback fails; its value and those attached before it then stay.
    pub fn delete_attributes(&self) -> Result<(), Error> {
        loop {
            let mut attributes = self.0.attributes.lock();
            let Some(taken) = attributes.pop() else { return Ok(()) };
            let place = attributes.len();
            drop(attributes);
            self.delete_or_put_back(taken, place)?;
        }
    }

    /// Deletes an attribute that was taken from a place (AT2).
    fn delete_or_put_back(&self, taken: Attribute, place: usize) -> Result<(), Error> {
        taken.delete(self).inspect_err(|_| {
            let mut attributes = self.0.attributes.lock();
            // If the callback has attached another value under the key, that value counts.
            if attributes.iter().all(|attribute| attribute.key != taken.key) {
                let place = place.min(attributes.len());
                attributes.insert(place, taken.clone());
            }
        })
    }

    /// Copies the attributes for a duplicate, by the copy callbacks in the order of attachment. It is called when the
    /// duplication begins, since the duplicate does not get later changes.
    pub(super) fn copy_attributes(&self) -> Copied {
        let mut copied = Copied { parent: self.clone(), attributes: Vec::new(), failure: None };
        let attributes = self.0.attributes.lock().clone();
        for Attribute { key, value } in attributes {
            match (key.0.copy)(self, &value) {
                Ok(Some(value)) => copied.attributes.push(Attribute { key, value }),
                Ok(None) => {}
                Err(cause) => {
                    let callback = "copy callback of an attribute";
                    copied.failure = Some(Error::Callback { callback, cause: cause.into() });
                    break;
                }
            }
        }
        copied
    }
}

/// The attributes for a duplicate. If the duplicate is never made, they are deleted on the communicator that they were
/// copied from.
pub(super) struct Copied {
    parent: Communicator,
    attributes: Vec<Attribute>,
    failure: Option<Error>,
}

impl Copied {
    /// Takes the copied attributes, and the error of the callback that failed, if one did.
    pub(super) fn take(mut self) -> (Vec<Attribute>, Option<Error>) {
        (std::mem::take(&mut self.attributes), self.failure.take())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        delete_last_first(&self.parent, || self.attributes.pop());
    }
}

/// Deletes attributes where no call can return an error, so the error handler gets it. All are deleted even if a
/// callback panics; the panic continues afterwards.
fn delete_last_first(on: &Communicator, mut next: impl FnMut() -> Option<Attribute>) {
    let mut panicked = None;
    while let Some(attribute) = next() {
        let deleted = catch_unwind(AssertUnwindSafe(|| {
            if let Err(error) = attribute.delete(on) {
                on.handle(&error);
            }
        }));
        panicked = panicked.or(deleted.err());
    }
    // A second panic would end the process.
    if let Some(panic) = panicked.filter(|_| !thread::panicking()) {
        resume_unwind(panic);
    }
}

impl Inner {
    /// Deletes the attributes of a communicator whose last handle is gone. The callbacks get a handle of another
    /// `Inner`, which takes over the id. Returns whether it has taken over the id. A fork of the rank deletes nothing:
    /// the attributes belong to its parent.
    pub(super) fn delete_attributes_at_end(&mut self) -> bool {
        if self.attributes.is_empty() || (*self.host).as_ref().device().is_fork() {
            return false;
        }
        let again = Communicator(Arc::new(Self {
            host: self.host.clone(),
            id: self.id,
            group: self.group.clone(),
            rank: self.rank,
            remote: self.remote.take(),
            grid: self.grid.take(),
            calls: AtomicU32::new(*self.calls.get_mut()),
            name: self.name.clone(),
            attributes: std::mem::take(&mut self.attributes),
            handler: std::mem::take(&mut self.handler),
            workspace: Workspace::default(),
            copies: std::mem::take(&mut self.copies),
        }));
        delete_last_first(&again, || again.0.attributes.lock().pop());
        true
    }
}
