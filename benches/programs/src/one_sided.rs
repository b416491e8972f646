//! The interface to libraries of one-sided communication. One call makes an operation and completes it, so that its
//! buffers are borrowed for as long as the library uses them.

use crate::runtime::{Failure, Runtime};

/// How the memory of a window comes to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The library allocates it (MPI_Win_allocate).
    Allocated,
    /// The program has it (MPI_Win_create).
    Created,
}

/// An operation. Elements are `u64`, and what is combined is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// MPI_Put.
    Put,
    /// MPI_Get.
    Get,
    /// MPI_Accumulate.
    Accumulate,
    /// MPI_Get_accumulate.
    GetAccumulate,
    /// MPI_Fetch_and_op, on one element.
    FetchAndOp,
    /// MPI_Compare_and_swap, on one element. Behind the new value, the data has the one to be compared.
    CompareAndSwap,
}

/// What completes an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Epoch {
    /// MPI_Win_flush, while all windows are locked.
    Flush,
    /// MPI_Win_lock, shared, and MPI_Win_unlock.
    Lock,
    /// MPI_Win_fence before and after.
    Fence,
    /// MPI_Win_start and MPI_Win_complete; MPI_Win_post and MPI_Win_wait at the target.
    Pscw,
}

/// A library whose ranks access the memory of each other. Rank 0 is the origin, rank 1 the target.
///
/// As MPI demands, programs order accesses to the same memory by what completes them.
pub trait Windows: Runtime {
    /// Memory of ranks 0 and 1.
    type Window;

    /// Makes a window with `len` bytes on each rank, which are zeros. Collective.
    ///
    /// # Errors
    /// The error of the library, as a text. The same holds for all other calls.
    fn window(&self, len: usize, memory: Memory) -> Result<Self::Window, Failure>;

    /// Ends a window. Collective.
    ///
    /// # Errors
    /// As [`Windows::window`].
    fn free(&self, window: Self::Window) -> Result<(), Failure>;

    /// Calls `body` with the memory of this rank, which no other one accesses meanwhile.
    fn local<R>(&self, window: &mut Self::Window, body: impl FnOnce(&mut [u8]) -> R) -> R;

    /// Locks the windows of all ranks (MPI_Win_lock_all).
    ///
    /// # Errors
    /// As [`Windows::window`].
    fn lock_all(&self, window: &Self::Window) -> Result<(), Failure>;

    /// Ends what [`Windows::lock_all`] began (MPI_Win_unlock_all).
    ///
    /// # Errors
    /// As [`Windows::window`].
    fn unlock_all(&self, window: &Self::Window) -> Result<(), Failure>;

    /// On rank 0, runs an operation on the beginning of rank 1's window to its end. It uses as many elements of `data` and
    /// `result` as they have.
    ///
    /// # Errors
    /// As [`Windows::window`].
    fn access(
        &self,
        window: &Self::Window,
        epoch: Epoch,
        operation: Operation,
        data: &[u8],
        result: &mut [u8],
    ) -> Result<(), Failure>;

    /// On rank 1, takes part in an epoch in which rank 0 accesses its window. Does nothing in passive epochs.
    ///
    /// # Errors
    /// As [`Windows::window`].
    fn expose(&self, window: &Self::Window, epoch: Epoch) -> Result<(), Failure>;
}

impl Operation {
    /// Returns whether it changes the target's memory.
    pub fn writes(self) -> bool {
        self != Self::Get
    }

    /// Returns whether it has a result.
    pub fn reads(self) -> bool {
        !matches!(self, Self::Put | Self::Accumulate)
    }
}

impl Epoch {
    /// Returns whether the target takes part.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Fence | Self::Pscw)
    }
}
