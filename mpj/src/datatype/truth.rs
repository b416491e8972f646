//! Truth values as elements. A peer may send any byte, and not every byte is a `bool`.

use std::fmt;
use std::hash::{Hash, Hasher};

/// A truth value that any byte is: 0 is false, every other byte is true. It is what `bool` is sent as, and what it is
/// received into; received bytes of a `bool` would have to be checked before anybody looks at them.
///
/// Logical operations combine it: [`Op::LogicalAnd`](crate::Op::LogicalAnd) and the like. For one value,
/// [`Communicator::all`](crate::Communicator::all) and [`Communicator::any`](crate::Communicator::any) do so on `bool`.
///
/// ```
/// use mpj::{Bool, Op};
/// mpj::local::run(3, |world| {
///     let mut odd_and_last = [world.rank() % 2 == 1, world.rank() == 2].map(Bool::from);
///     world.all_reduce(&mut odd_and_last, Op::LogicalOr).unwrap();
///     assert_eq!(odd_and_last.map(Bool::get), [true, true]);
///
///     let (mine, mut all) = (world.rank() == 1, [Bool::default(); 3]);
///     world.all_gather(&mine, &mut all).unwrap();
///     assert_eq!(all, [false, true, false]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_C_BOOL")]
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Returns the value.
    ///
    /// ```
    /// assert!(mpj::Bool::from(true).get());
    /// ```
    pub fn get(self) -> bool {
        self.0 != 0
    }

    /// Borrows a `bool` as an element.
    ///
    /// ```
    /// assert_eq!(*mpj::Bool::of(&true), true);
    /// ```
    pub fn of(value: &bool) -> &Self {
        bytemuck::cast_ref(value)
    }

    /// Borrows many `bool`s as elements, to send them.
    ///
    /// ```
    /// use mpj::Bool;
    /// mpj::local::run(2, |world| {
    ///     if world.rank() == 0 {
    ///         world.send(Bool::slice_of(&[true, false]), 1, 0).unwrap();
    ///     } else {
    ///         assert_eq!(world.recv_vec::<Bool>(0, 0).unwrap().0, [true, false]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn slice_of(values: &[bool]) -> &[Self] {
        bytemuck::cast_slice(values)
    }
}

impl From<bool> for Bool {
    fn from(value: bool) -> Self {
        Self(value.into())
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> Self {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl PartialEq<bool> for Bool {
    fn eq(&self, other: &bool) -> bool {
        self.get() == *other
    }
}

impl Hash for Bool {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.get().hash(state);
    }
}

impl fmt::Debug for Bool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(formatter)
    }
}
