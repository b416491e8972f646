//! A number on which all ranks count.

use super::Window;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::op::Op;

/// A number on rank 0 that any thread of any rank reads and adds to: see [`Communicator::shared_counter`]. All together
/// they get each number once, for example the numbers of pieces of work.
///
/// If not all ranks are on one host, rank 0 answers in any call that waits or polls, like every rank that has a [`Window`].
/// Dropping the counter does not wait.
///
/// ```
/// mpj::local::run(3, |world| {
///     let (counter, mut sum) = (world.shared_counter().unwrap(), 0);
///     loop {
///         let piece = counter.next().unwrap();
///         if piece >= 100 {
///             break;
///         }
///         sum += piece;
///     }
///     world.all_reduce(&mut sum, mpj::Op::Sum).unwrap();
///     assert_eq!(sum, 4950);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub struct SharedCounter(Window<u64>);

/// # Counters
impl Communicator {
    /// Makes a counter that begins at 0. Collective.
    ///
    /// # Errors
    /// As [`Communicator::allocate_window`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let counter = world.shared_counter().unwrap();
    ///     assert!(counter.next().unwrap() < 2);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn shared_counter(&self) -> Result<SharedCounter, Error> {
        let window = self.allocate_window::<u64>(usize::from(self.rank() == 0))?;
        // No rank has a lock that excludes others, so nobody has to ask for one.
        window.enter(|core| core.lock_all(false))?;
        Ok(SharedCounter(window))
    }
}

impl SharedCounter {
    /// Adds 1, and returns the number before.
    ///
    /// # Errors
    /// A rank is lost; the device has failed.
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let counter = world.shared_counter().unwrap();
    ///     assert_eq!([counter.next().unwrap(), counter.next().unwrap()], [0, 1]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn next(&self) -> Result<u64, Error> {
        self.add(1)
    }

    /// Adds a number, and returns the one before. The sum wraps.
    ///
    /// # Errors
    /// As [`SharedCounter::next`].
    ///
    /// ```
    /// mpj::local::run(1, |world| {
    ///     let counter = world.shared_counter().unwrap();
    ///     assert_eq!([counter.add(5).unwrap(), counter.add(0).unwrap()], [0, 5]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn add(&self, number: u64) -> Result<u64, Error> {
        self.0.epoch().fetch_and_op(number, 0, 0, Op::Sum)
    }
}
