//! What the programs ask of a message-passing library: the few calls that every one has.

use std::fmt;
use std::ops::DerefMut;

/// A library, seen from one rank of one job. Errors of the library are for the user's eyes alone, so
/// they are texts.
pub trait Runtime {
    /// Memory from [`Runtime::allocate`].
    type Allocated<'runtime>: DerefMut<Target = [u8]>
    where
        Self: 'runtime;

    /// The library and its version, as it calls itself: `Open MPI 4.1.4`.
    fn library(&self) -> String;

    /// Message sizes up to which (inclusive) messages travel in one way, and how longer ones do;
    /// nothing where the library does not tell.
    fn thresholds(&self) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// What else a reader of figures should know of the library.
    fn facts(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// This rank: `0..size`.
    fn rank(&self) -> usize;

    /// How many ranks the job has.
    fn size(&self) -> usize;

    /// Memory for `len` bytes of messages, zeroed (MPI_Alloc_mem).
    ///
    /// # Errors
    /// The library's, as a text. So it is for all other calls.
    fn allocate(&self, len: usize) -> Result<Self::Allocated<'_>, Failure>;

    /// Sends `data` (MPI_Send).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn send(&self, data: &[u8], to: usize, tag: i32) -> Result<(), Failure>;

    /// Receives into `buffer` (MPI_Recv, without a status: no program needs one).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn recv(&self, buffer: &mut [u8], from: Source, tag: i32) -> Result<(), Failure>;

    /// Starts every operation of `posts` in their order (MPI_Isend, MPI_Irecv), runs `meanwhile`,
    /// then waits for all of them (MPI_Waitall). If `meanwhile` fails, so does the call.
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn start_all<'buffer, R>(
        &self,
        posts: impl IntoIterator<Item = Post<'buffer>>,
        meanwhile: impl FnOnce() -> Result<R, Failure>,
    ) -> Result<R, Failure>;

    /// Waits until every rank is here (MPI_Barrier).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn barrier(&self) -> Result<(), Failure>;

    /// Gives the bytes of `root` to every rank (MPI_Bcast).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn broadcast(&self, buffer: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Puts the sums of the `values` of all ranks, element by element, into the `sums` of `root`, which matter there
    /// alone and are as many (MPI_Reduce, MPI_SUM).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn reduce(&self, values: &[f64], sums: &mut [f64], root: usize) -> Result<(), Failure>;

    /// Replaces `values` by the sums over all ranks, element by element (MPI_Allreduce, MPI_SUM).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn allreduce(&self, values: &mut [f64]) -> Result<(), Failure>;

    /// Brings the `data` of all ranks, which have the same length, to `root`, in the order of ranks. `into` matters
    /// there alone, and has a block for each rank (MPI_Gather).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn gather(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Brings to each rank its block of the `data` of `root`, which matters there alone (MPI_Scatter).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn scatter(&self, data: &[u8], into: &mut [u8], root: usize) -> Result<(), Failure>;

    /// Brings the `data` of all ranks, which have the same length, to all, in the order of ranks. `into` has a block
    /// for each rank (MPI_Allgather).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn allgather(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure>;

    /// Sends the block `j` of `data` to rank `j`, whose block goes to place `j` of `into`; both have
    /// `size` blocks of the same length (MPI_Alltoall).
    ///
    /// # Errors
    /// As [`Runtime::allocate`].
    fn alltoall(&self, data: &[u8], into: &mut [u8]) -> Result<(), Failure>;

    /// Seconds since an arbitrary moment (MPI_Wtime).
    fn wtime(&self) -> f64;
}

/// A non-blocking operation that is to be started.
#[derive(Debug)]
pub enum Post<'buffer> {
    /// Sends `data`.
    Send {
        /// What is sent.
        data: &'buffer [u8],
        /// To this rank.
        to: usize,
        /// With this tag.
        tag: i32,
    },
    /// Receives into `buffer`.
    Receive {
        /// Where to.
        buffer: &'buffer mut [u8],
        /// From whom.
        from: Source,
        /// With this tag.
        tag: i32,
    },
}

/// Whose messages a receive takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Those of one rank.
    Rank(usize),
    /// Anybody's (MPI_ANY_SOURCE).
    Any,
}

/// Why a program could not go on: one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(Box<str>);

impl Failure {
    /// A failure with this text.
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
