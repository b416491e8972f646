//! Attributes: values that users attach to communicators under keys of their own (MPI-4.1 section 7.7). Callbacks of
//! the keys run when values are copied and deleted.
//!
//! - AT1: callbacks run with no lock of this crate held. They may call MPI, on the same communicator too, and
//!   attach and delete attributes.
//! - AT2: a value is taken out before its delete callback runs, so each value is deleted once, whoever deletes it at
//!   the same time. If the callback fails in a call that can say so, the value is put back.

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

/// A key for attributes: MPI_Comm_create_keyval. Copies are the same key. Attributes keep their key, so the caller
/// may drop it (MPI_Comm_free_keyval) while a communicator has such an attribute.
#[derive(Clone)]
pub struct Key(Arc<Callbacks>);

struct Callbacks {
    copy: Box<CopyCallback>,
    delete: Box<DeleteCallback>,
}

impl Key {
    /// Makes a key with its callbacks, which run without any lock held and may call MPI.
    ///
    /// `copy` is called for a value of the communicator that is duplicated, and answers the value that the new one
    /// gets: `None` if it gets none (MPI_COMM_NULL_COPY_FN), the same for a value that both have (MPI_COMM_DUP_FN).
    /// `delete` is called for a value that is replaced or deleted, and when the communicator is gone.
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

/// What a communicator has under a key.
#[derive(Clone)]
pub(super) struct Attribute {
    key: Key,
    value: Value,
}

impl Attribute {
    /// Calls the delete callback.
    fn delete(&self, on: &Communicator) -> Result<(), Error> {
        let deleted = (self.key.0.delete)(on, &self.value);
        deleted.map_err(|cause| Error::Callback { callback: "delete", cause: cause.into() })
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

    /// Attaches a value under a key, on this rank: MPI_Comm_set_attr. A value that is there already is deleted first.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback of the value that was there fails; that one stays then.
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
    /// [`Error::Callback`] if the delete callback fails; the value stays then.
    pub fn delete_attribute(&self, key: &Key) -> Result<bool, Error> {
        let mut attributes = self.0.attributes.lock();
        let place = attributes.iter().position(|attribute| attribute.key == *key);
        let Some(place) = place else { return Ok(false) };
        let taken = attributes.remove(place);
        drop(attributes);
        self.delete_or_put_back(taken, place).map(|()| true)
    }

    /// Deletes all attributes, the last one first, as MPI_Comm_free does, and MPI_Finalize for MPI_COMM_SELF. When
    /// the last handle of a communicator is dropped, this happens by itself, and its error handler gets the errors.
    ///
    /// # Errors
    /// [`Error::Callback`] if a delete callback fails; its value and those attached before it stay then.
    pub fn delete_attributes(&self) -> Result<(), Error> {
        loop {
            let mut attributes = self.0.attributes.lock();
            let Some(taken) = attributes.pop() else { return Ok(()) };
            let place = attributes.len();
            drop(attributes);
            self.delete_or_put_back(taken, place)?;
        }
    }

    /// Deletes what was taken from a place (AT2).
    fn delete_or_put_back(&self, taken: Attribute, place: usize) -> Result<(), Error> {
        taken.delete(self).inspect_err(|_| {
            let mut attributes = self.0.attributes.lock();
            // The callback may have attached another value under the key, which counts then.
            if attributes.iter().all(|attribute| attribute.key != taken.key) {
                let place = place.min(attributes.len());
                attributes.insert(place, taken.clone());
            }
        })
    }

    /// What a duplicate gets, by the copy callbacks in the order of attachment. It is called when the duplication
    /// begins, since what changes later is not the duplicate's.
    pub(super) fn copy_attributes(&self) -> Copied {
        let mut copied = Copied { parent: self.clone(), attributes: Vec::new(), failure: None };
        let attributes = self.0.attributes.lock().clone();
        for Attribute { key, value } in attributes {
            match (key.0.copy)(self, &value) {
                Ok(Some(value)) => copied.attributes.push(Attribute { key, value }),
                Ok(None) => {}
                Err(cause) => {
                    let cause = cause.into();
                    copied.failure = Some(Error::Callback { callback: "copy", cause });
                    break;
                }
            }
        }
        copied
    }
}

/// What a duplicate is to get. If there never is a duplicate, it is deleted on the communicator of which it is copied.
pub(super) struct Copied {
    parent: Communicator,
    attributes: Vec<Attribute>,
    failure: Option<Error>,
}

impl Copied {
    /// What was copied, for the duplicate, and why there is no more of it if a callback has failed.
    pub(super) fn take(mut self) -> (Vec<Attribute>, Option<Error>) {
        (std::mem::take(&mut self.attributes), self.failure.take())
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        delete_last_first(&self.parent, || self.attributes.pop());
    }
}

/// Deletes attributes where no call can return an error: the error handler gets it. All are deleted even if a
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
    /// Deletes the attributes of a communicator whose last handle is gone. The callbacks get a handle again, of
    /// another `Inner` with the same id, which is what this one has no more. Answers whether that is so. A fork of the
    /// rank deletes nothing: the attributes are its parent's.
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
        }));
        delete_last_first(&again, || again.0.attributes.lock().pop());
        true
    }
}
