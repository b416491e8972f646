//! Attributes: values that libraries attach to a communicator under typed keys (MPI-4.1 section 7.7).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use mpicore::{Cause, Value};

use super::Communicator;
use crate::error::Error;

/// A key for attributes of type `T` (MPI_Comm_create_keyval). A clone is the same key. An attribute keeps its key, so
/// the program may drop its last clone while a communicator still has the attribute.
///
/// ```
/// use mpj::{Communicator, AttributeKey};
///
/// /// A library's place for what it knows of a communicator.
/// struct Plan {
///     neighbours: [usize; 2],
/// }
///
/// mpj::local::run(3, |world| {
///     let key = AttributeKey::<Plan>::new();
///     let (rank, size) = (world.rank(), world.size());
///     let plan = Plan { neighbours: [(rank + 1) % size, (rank + size - 1) % size] };
///     world.set_attribute(&key, plan).unwrap();
///     assert!(world.attribute(&key).unwrap().neighbours[0] < size);
///     assert!(world.dup().unwrap().attribute(&key).is_none(), "this key copies nothing");
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Comm_create_keyval")]
pub struct AttributeKey<T> {
    core: mpicore::Key<mpicore::Communicator>,
    values: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> AttributeKey<T> {
    /// Makes a key whose values are not copied to duplicates of the communicator (MPI_COMM_NULL_COPY_FN). The `Drop` of
    /// a value can do what has to be done when it is deleted.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let key = mpj::AttributeKey::new();
    ///     world.set_attribute(&key, [1.5, 2.5]).unwrap();
    ///     assert_eq!(world.attribute(&key).unwrap()[1], 2.5);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_COMM_NULL_COPY_FN")]
    pub fn new() -> Self {
        Self::with(|_, _| Ok(None), |_, _| Ok(()))
    }

    /// Makes a key whose values are shared with duplicates of the communicator (MPI_COMM_DUP_FN).
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let key = mpj::AttributeKey::shared();
    ///     world.set_attribute(&key, "a text").unwrap();
    ///     assert_eq!(*world.dup().unwrap().attribute(&key).unwrap(), "a text");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_COMM_DUP_FN")]
    pub fn shared() -> Self {
        Self::with(|_, value| Ok(Some(value.clone())), |_, _| Ok(()))
    }

    /// Makes a key with callbacks for copying and deleting. They may communicate, and may use the attributes of the
    /// communicator that they get.
    ///
    /// `copy` runs when a communicator is duplicated, for its values in the order in which they were attached, and
    /// returns the value for the duplicate, if any. If it fails, the duplication fails on this rank only. The other
    /// ranks then have a duplicate without this rank, and the program must inform them. `delete` runs before a value is
    /// replaced or deleted, and when the last clone of the communicator is dropped, for the values in the opposite
    /// order. If it fails, the value stays; if the communicator is gone, the error handler gets the error.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use mpj::AttributeKey;
    /// mpj::local::run(2, |world| {
    ///     // How many duplications lie between the communicator and the one that was given a value.
    ///     let depth = AttributeKey::with(|_, depth| Ok(Some(Arc::new(**depth + 1))), |_, _| Ok(()));
    ///     world.set_attribute(&depth, 0).unwrap();
    ///     let twin = world.dup().unwrap();
    ///     assert_eq!(*twin.dup().unwrap().attribute(&depth).unwrap(), 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn with(
        copy: impl Fn(&Communicator, &Arc<T>) -> Result<Option<Arc<T>>, Cause> + Send + Sync + 'static,
        delete: impl Fn(&Communicator, &Arc<T>) -> Result<(), Cause> + Send + Sync + 'static,
    ) -> Self {
        let copy = move |on: &mpicore::Communicator, value: &Value| {
            let copied = copy(&Communicator::of_core(on), &typed(value))?;
            Ok(copied.map(|value| value as Value))
        };
        let delete = move |on: &mpicore::Communicator, value: &Value| {
            delete(&Communicator::of_core(on), &typed(value))
        };
        Self { core: mpicore::Key::new(copy, delete), values: PhantomData }
    }
}

/// Returns the value of a key in its type.
fn typed<T: Send + Sync + 'static>(value: &Value) -> Arc<T> {
    value.clone().downcast().expect("values are attached by keys of their type")
}

/// # Attributes
impl Communicator {
    /// Attaches a value under a key, on this rank (MPI_Comm_set_attr). Deletes the present value first, if there is
    /// one.
    ///
    /// # Errors
    /// The delete callback of the present value has failed; that value then stays.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let key = mpj::AttributeKey::new();
    ///     world.set_attribute(&key, "first").unwrap();
    ///     world.set_attribute(&key, "second").unwrap();
    ///     assert_eq!(*world.attribute(&key).unwrap(), "second");
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_set_attr")]
    pub fn set_attribute<T: Send + Sync + 'static>(
        &self,
        key: &AttributeKey<T>,
        value: T,
    ) -> Result<(), Error> {
        self.answer(self.core.set_attribute(&key.core, Arc::new(value)))
    }

    /// Returns the value that is attached under a key (MPI_Comm_get_attr).
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let key = mpj::AttributeKey::<u32>::new();
    ///     assert!(world.attribute(&key).is_none());
    ///     world.set_attribute(&key, 5).unwrap();
    ///     assert_eq!(*world.attribute(&key).unwrap(), 5);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_get_attr")]
    pub fn attribute<T: Send + Sync + 'static>(&self, key: &AttributeKey<T>) -> Option<Arc<T>> {
        self.core.attribute(&key.core).as_ref().map(typed)
    }

    /// Deletes the value that is attached under a key (MPI_Comm_delete_attr). Returns whether there was one.
    ///
    /// # Errors
    /// The delete callback has failed; the value then stays.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let key = mpj::AttributeKey::new();
    ///     world.set_attribute(&key, 5).unwrap();
    ///     assert!(world.delete_attribute(&key).unwrap());
    ///     assert_eq!(world.attribute(&key), None);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_delete_attr")]
    pub fn delete_attribute<T: Send + Sync + 'static>(
        &self,
        key: &AttributeKey<T>,
    ) -> Result<bool, Error> {
        self.answer(self.core.delete_attribute(&key.core))
    }
}

impl<T: Send + Sync + 'static> Default for AttributeKey<T> {
    /// Returns [`AttributeKey::new`].
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for AttributeKey<T> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), values: PhantomData }
    }
}

impl<T> PartialEq for AttributeKey<T> {
    /// Returns whether both are the same key.
    fn eq(&self, other: &Self) -> bool {
        self.core == other.core
    }
}

impl<T> Eq for AttributeKey<T> {}

impl<T> fmt::Debug for AttributeKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.core.fmt(f)
    }
}
