//! Attributes: values that users attach to objects under keys of their own (MPI-4.1 section 7.7). Callbacks of the keys
//! run when values are copied and deleted.
//!
//! An object can be of any type `O`: a communicator, a datatype or a window of a layer above.
//!
//! - AT1: callbacks run while no lock of this crate is held. They may call MPI, even on the same object, and may attach
//!   and delete attributes.
//! - AT2: a value is taken out before its delete callback runs, so each value is deleted once, even if several threads
//!   delete it at the same time. If the callback fails in a call that can return the error, the value is put back.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use crate::error::Error;

/// The value of an attribute.
pub type Value = Arc<dyn Any + Send + Sync>;

/// The error of a callback: of an attribute or of a generalized request.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Runs when an object with a value is duplicated; returns the duplicate's value.
type CopyCallback<O> = dyn Fn(&O, &Value) -> Result<Option<Value>, Cause> + Send + Sync;
/// Runs before a value is deleted.
type DeleteCallback<O> = dyn Fn(&O, &Value) -> Result<(), Cause> + Send + Sync;

/// A key for attributes of objects of type `O`: MPI_Comm_create_keyval, MPI_Type_create_keyval and so on. A clone is
/// the same key. Attributes keep their key, so the caller may drop it (MPI_Comm_free_keyval) while an object has such
/// an attribute.
pub struct Key<O>(Arc<Callbacks<O>>);

struct Callbacks<O> {
    copy: Box<CopyCallback<O>>,
    delete: Box<DeleteCallback<O>>,
}

impl<O> Key<O> {
    /// Makes a key with its callbacks, which run while no lock is held and may call MPI.
    ///
    /// `copy` is called for each value of an object that is duplicated, and returns the value for the duplicate: `None`
    /// for none (MPI_COMM_NULL_COPY_FN), or the same value to share it (MPI_COMM_DUP_FN). `delete` is called for a
    /// value that is replaced or deleted, and when the object is gone.
    ///
    /// ```
    /// use mpicore::{Communicator, Key};
    /// let shared = Key::<Communicator>::new(|_, value| Ok(Some(value.clone())), |_, _| Ok(()));
    /// assert!(shared != Key::new(|_, _| Ok(None), |_, _| Ok(())), "each key is its own");
    /// ```
    pub fn new(
        copy: impl Fn(&O, &Value) -> Result<Option<Value>, Cause> + Send + Sync + 'static,
        delete: impl Fn(&O, &Value) -> Result<(), Cause> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Callbacks { copy: Box::new(copy), delete: Box::new(delete) }))
    }

    /// Returns the key in a form that does not keep it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use mpicore::{Attributes, Key};
    /// let (attributes, key) = (Attributes::default(), Key::new(|_, _| Ok(None), |_, _| Ok(())));
    /// let known = key.downgrade();
    /// attributes.set(&"window", &key, Arc::new(7))?;
    /// drop(key);
    /// let kept = known.upgrade().expect("the attribute has the key");
    /// attributes.delete(&"window", &kept)?;
    /// drop(kept);
    /// assert!(known.upgrade().is_none());
    /// # Ok::<(), mpicore::Error>(())
    /// ```
    pub fn downgrade(&self) -> WeakKey<O> {
        WeakKey(Arc::downgrade(&self.0))
    }
}

/// A key that exists only as long as an attribute has it, or a caller its [`Key`]: for layers that find keys by number,
/// in which MPI_Comm_free_keyval takes effect when the last attribute is gone.
pub struct WeakKey<O>(Weak<Callbacks<O>>);

impl<O> WeakKey<O> {
    /// Returns the key, if it exists. It does while the delete callback of its last attribute runs.
    pub fn upgrade(&self) -> Option<Key<O>> {
        self.0.upgrade().map(Key)
    }
}

impl<O> Clone for Key<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O> PartialEq for Key<O> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<O> Eq for Key<O> {}

impl<O> fmt::Debug for Key<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&Arc::as_ptr(&self.0).cast::<()>()).finish()
    }
}

/// A key and its value on an object.
struct Attribute<O> {
    key: Key<O>,
    value: Value,
}

impl<O> Clone for Attribute<O> {
    fn clone(&self) -> Self {
        Self { key: self.key.clone(), value: self.value.clone() }
    }
}

impl<O> Attribute<O> {
    /// Calls the delete callback.
    fn delete(&self, on: &O) -> Result<(), Error> {
        let deleted = (self.key.0.delete)(on, &self.value);
        let callback = "delete callback of an attribute";
        deleted.map_err(|cause| Error::Callback { callback, cause: cause.into() })
    }
}

/// The attributes of an object, in the order in which they were attached. The object's owner keeps them, and passes the
/// object to the calls that run callbacks.
///
/// ```
/// use std::sync::Arc;
/// use mpicore::{Attributes, Key};
/// let (attributes, key) = (Attributes::default(), Key::new(|_, _| Ok(None), |_, _| Ok(())));
/// attributes.set(&"datatype", &key, Arc::new(7))?;
/// assert_eq!(attributes.get(&key).unwrap().downcast_ref(), Some(&7));
/// let (of_twin, failure) = attributes.copy(&"datatype");
/// assert!(of_twin.get(&key).is_none() && failure.is_none(), "this key copies nothing");
/// # Ok::<(), mpicore::Error>(())
/// ```
pub struct Attributes<O>(Mutex<Vec<Attribute<O>>>);

impl<O> Default for Attributes<O> {
    fn default() -> Self {
        Self(Mutex::new(Vec::new()))
    }
}

impl<O> Attributes<O> {
    fn lock(&self) -> MutexGuard<'_, Vec<Attribute<O>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no values are attached.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the value that is attached under a key: MPI_Comm_get_attr.
    pub fn get(&self, key: &Key<O>) -> Option<Value> {
        let attributes = self.lock();
        let found = attributes.iter().find(|attribute| attribute.key == *key);
        found.map(|attribute| attribute.value.clone())
    }

    /// Attaches a value under a key: MPI_Comm_set_attr. Deletes the present value first, if there is one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback of the present value fails; that value then stays.
    pub fn set(&self, on: &O, key: &Key<O>, value: Value) -> Result<(), Error> {
        loop {
            let mut attributes = self.lock();
            if attributes.iter().all(|attribute| attribute.key != *key) {
                attributes.push(Attribute { key: key.clone(), value });
                return Ok(());
            }
            drop(attributes);
            self.delete(on, key)?;
        }
    }

    /// Deletes the value that is attached under a key: MPI_Comm_delete_attr. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Callback`] if the delete callback fails; the value then stays.
    pub fn delete(&self, on: &O, key: &Key<O>) -> Result<bool, Error> {
        let mut attributes = self.lock();
        let place = attributes.iter().position(|attribute| attribute.key == *key);
        let Some(place) = place else { return Ok(false) };
        let taken = attributes.remove(place);
        drop(attributes);
        self.delete_or_put_back(on, taken, place).map(|()| true)
    }

    /// Deletes all attributes, starting with the one that was attached last, as the call does that frees the object.
    ///
    /// # Errors
    /// [`Error::Callback`] if a delete callback fails; its value and those attached before it then stay.
    pub fn delete_all(&self, on: &O) -> Result<(), Error> {
        loop {
            let mut attributes = self.lock();
            let Some(taken) = attributes.pop() else { return Ok(()) };
            let place = attributes.len();
            drop(attributes);
            self.delete_or_put_back(on, taken, place)?;
        }
    }

    /// Deletes an attribute that was taken from a place (AT2).
    fn delete_or_put_back(&self, on: &O, taken: Attribute<O>, place: usize) -> Result<(), Error> {
        taken.delete(on).inspect_err(|_| {
            let mut attributes = self.lock();
            // If the callback has attached another value under the key, that value counts.
            if attributes.iter().all(|attribute| attribute.key != taken.key) {
                let place = place.min(attributes.len());
                attributes.insert(place, taken.clone());
            }
        })
    }

    /// Copies the attributes for a duplicate of `on`, by the copy callbacks in the order of attachment. Returns the
    /// copies, and the error of the callback that failed, if one did; then those after it were not copied.
    pub fn copy(&self, on: &O) -> (Self, Option<Error>) {
        let mut copied = Vec::new();
        let attributes = self.lock().clone();
        for Attribute { key, value } in attributes {
            match (key.0.copy)(on, &value) {
                Ok(Some(value)) => copied.push(Attribute { key, value }),
                Ok(None) => {}
                Err(cause) => {
                    let callback = "copy callback of an attribute";
                    let failure = Error::Callback { callback, cause: cause.into() };
                    return (Self(Mutex::new(copied)), Some(failure));
                }
            }
        }
        (Self(Mutex::new(copied)), None)
    }

    /// Deletes all attributes, starting with the one that was attached last, where no call can return an error: `tell`
    /// gets the errors. All are deleted even if a callback panics; the panic continues afterwards.
    pub fn end(&self, on: &O, tell: impl Fn(&Error)) {
        let mut panicked = None;
        loop {
            let Some(attribute) = self.lock().pop() else { break };
            let deleted = catch_unwind(AssertUnwindSafe(|| {
                if let Err(error) = attribute.delete(on) {
                    tell(&error);
                }
            }));
            panicked = panicked.or(deleted.err());
        }
        // A second panic would end the process.
        if let Some(panic) = panicked.filter(|_| !thread::panicking()) {
            resume_unwind(panic);
        }
    }
}
