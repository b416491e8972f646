//! The interface to message-passing libraries: the few calls that all of them have.

use std::{fmt, mem};

/// A job, seen from one of its ranks: what every measurement needs. Errors are texts, since they are
/// only shown to the user.
pub trait Job {
    /// Returns the largest message size (inclusive) of each protocol or algorithm, and what longer
    /// messages use; empty if the library does not report them.
    fn thresholds(&self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// Returns other facts about the library for readers of the figures.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns this rank, in `0..size`.
    fn rank(&self) -> usize;

    /// Returns the number of ranks of the job.
    fn size(&self) -> usize;

    /// Waits until all ranks have called it (MPI_Barrier).
    ///
    /// # Errors
    /// The error of the library, as a text. The same holds for all other calls.
    fn barrier(&self) -> Result<(), Failure>;

    /// Returns the words of all ranks, in rank order (MPI_Allgather).
    ///
    /// # Errors
    /// As [`Job::barrier`].
    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure>;

    /// Returns the seconds since an arbitrary moment (MPI_Wtime).
    fn wtime(&self) -> f64;

    /// Leaves the job together with the other ranks.
    ///
    /// # Errors
    /// As [`Job::barrier`].
    fn leave(self) -> Result<(), Failure>
    where
        Self: Sized,
    {
        Ok(())
    }

    /// Leaves the job without the other ranks, which may wait for this one: the process then ends with an error, which
    /// ends the job.
    fn abandon(self)
    where
        Self: Sized,
    {
        mem::forget(self);
    }
}

/// A library of messages, seen from one rank of one job.
pub trait Runtime: Job {
    /// Sends `data` (MPI_Send).
    ///
    /// # Errors
    /// The error of the library, as a text. The same holds for all other calls.
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure>;

    /// Receives into `buffer` (MPI_Recv, without a status).
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn recv(&self, buffer: &mut [u8], from: usize, tag: i32) -> Result<(), Failure>;

    /// Starts every operation of `posts` in their order (MPI_Isend, MPI_Irecv), runs `meanwhile`,
    /// then waits for all of them (MPI_Waitall). If `meanwhile` fails, so does the call.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure>;

    /// Copies the bytes of `root` to every rank (MPI_Bcast).
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Replaces `values` by the sums over all ranks, element by element (MPI_Allreduce, MPI_SUM).
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure>;

    /// Sums the `values` of all ranks, element by element, into the `sums` of `root` (MPI_Reduce,
    /// MPI_SUM). `sums` has as many elements as `values`, and is used on `root` only.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure>;

    /// Collects the `data` of all ranks, which have the same length, on `root`, in rank order
    /// (MPI_Gather). `into` has one block per rank, and is used on `root` only.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Distributes the blocks of `data` of `root`, one to each rank (MPI_Scatter). `data` is used
    /// on `root` only.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Collects the `data` of all ranks, which have the same length, on every rank, in rank order
    /// (MPI_Allgather). `into` has one block per rank.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure>;

    /// Sends block `j` of `data` to rank `j`, and receives rank `j`'s block into block `j` of
    /// `into` (MPI_Alltoall). Both have `size` blocks of the same length.
    ///
    /// # Errors
    /// As [`Runtime::send`].
    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure>;
}

/// A non-blocking operation to start.
#[derive(Debug)]
pub enum Post<'buffer> {
    /// Sends `data`.
    Send {
        /// The data to send.
        data: &'buffer [u8],
        /// The destination rank.
        to: usize,
        /// The tag of the message.
        tag: i32,
    },
    /// Receives into `buffer`.
    Receive {
        /// The buffer for the message.
        buffer: &'buffer mut [u8],
        /// The source of the message.
        from: usize,
        /// The tag of the message.
        tag: i32,
    },
}

/// Why a program could not continue: one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<str>);

impl Failure {
    /// Creates a failure with this text.
    #[cold]
    pub fn new(text: impl fmt::Display) -> Self {
        Self(text.to_string().into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}
