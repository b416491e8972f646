//! Persistent sends and receives (MPI-4.1 section 3.9): made once with all arguments, started any number of times.
//!
//! A transfer keeps the description of its buffer, not the buffer. Its maker lends the memory as long as a started
//! operation lasts (CM1 of `memory.rs`), and may use it between the end of one and the start of the next.

use mpjdev::{Call, Mode, Request, Status};

use crate::communicator::Communicator;
use crate::error::Error;
use crate::memory::{Input, Memory, Output};

/// The rank that stands for no process: MPI_PROC_NULL. No job has it. A transfer with it is complete at once and moves
/// no data. The status of the device holds this rank as a `u32`.
pub const PROC_NULL: usize = u32::MAX as usize;

/// MPI's send modes (MPI-4.1 section 3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SendMode {
    /// Complete when the buffer can be used again.
    #[default]
    Standard,
    /// Complete at once, since the data are copied: see [`Communicator::bsend`].
    Buffered,
    /// Complete when a receive has begun.
    Synchronous,
    /// The receive has been posted already. This is the standard mode here.
    Ready,
}

/// A send or receive that can be started many times.
pub struct PersistentTransfer {
    communicator: Communicator,
    memory: Memory,
    count: u64,
    what: What,
}

enum What {
    Send { dest: usize, tag: i32, mode: SendMode },
    Receive { source: Option<usize>, tag: Option<i32> },
}

impl Communicator {
    /// Makes a persistent send of `count` elements to the job rank `dest`, or to [`PROC_NULL`]: MPI_Send_init,
    /// MPI_Bsend_init, MPI_Ssend_init, MPI_Rsend_init.
    ///
    /// # Errors
    /// No such rank, a negative tag; [`Error::Buffer`], [`Error::Layout`] or [`Error::Datatype`] if the elements do not
    /// lie in the memory.
    pub fn send_init(
        &self,
        data: Input,
        count: u64,
        dest: usize,
        tag: i32,
        mode: SendMode,
    ) -> Result<PersistentTransfer, Error> {
        self.check_peer(Some(dest), Some(tag))?;
        let memory = Memory::of_input(data);
        memory.input_from(0, count)?;
        let what = What::Send { dest, tag, mode };
        Ok(PersistentTransfer { communicator: self.clone(), memory, count, what })
    }

    /// Makes a persistent receive of at most `count` elements from the job rank `source`, from [`PROC_NULL`], or, if it
    /// is `None`, from any rank: MPI_Recv_init. Without a tag it receives messages with any tag.
    ///
    /// # Errors
    /// As [`Communicator::send_init`].
    pub fn recv_init(
        &self,
        into: Output,
        count: u64,
        source: Option<usize>,
        tag: Option<i32>,
    ) -> Result<PersistentTransfer, Error> {
        self.check_peer(source, tag)?;
        let memory = Memory::of_output(into);
        memory.output_from(0, count)?;
        let what = What::Receive { source, tag };
        Ok(PersistentTransfer { communicator: self.clone(), memory, count, what })
    }

    /// Refuses ranks that do not exist, and negative tags.
    pub(crate) fn check_peer(&self, peer: Option<usize>, tag: Option<i32>) -> Result<(), Error> {
        let own = self.device().rank() as usize;
        let rank = peer.filter(|&peer| peer != PROC_NULL).unwrap_or(own);
        Ok(self.device().check_send(rank, tag.unwrap_or(0))?)
    }

    /// Makes a request that is complete with this status.
    pub(crate) fn complete(&self, status: Status) -> Result<Request, Error> {
        let (request, ending) = self.device().begin(Call::Other, self.context(), 0)?;
        self.device().end(ending, Ok(status));
        Ok(request)
    }
}

impl PersistentTransfer {
    /// Starts the operation: MPI_Start. The caller first waits for the request of the previous start. The status of a
    /// receive from [`PROC_NULL`] has this rank as its source, the tag -1 and no bytes.
    ///
    /// # Errors
    /// Those of `isend` and `irecv` of the device, and of [`Communicator::bsend`]. It was not started then.
    pub fn start(&mut self) -> Result<Request, Error> {
        let Self { communicator, memory, count, what } = self;
        let (device, context) = (communicator.device(), communicator.context());
        match *what {
            What::Send { dest: PROC_NULL, .. } | What::Receive { source: Some(PROC_NULL), .. } => {
                communicator.complete(Status::new(PROC_NULL as u32, -1, 0))
            }
            What::Send { dest, tag, mode: SendMode::Buffered } => {
                let status = communicator.bsend(&memory.input_from(0, *count)?, dest, tag)?;
                communicator.complete(status)
            }
            What::Send { dest, tag, mode } => {
                let mode = match mode {
                    SendMode::Synchronous => Mode::Synchronous,
                    _ => Mode::Standard,
                };
                Ok(device.isend(memory.input_from(0, *count)?, dest, tag, context, mode)?)
            }
            What::Receive { source, tag } => {
                Ok(device.irecv(memory.output_from(0, *count)?, source, tag, context)?)
            }
        }
    }

    /// Returns the words of a buffer that belongs to the transfer.
    #[cfg(test)]
    pub(crate) fn words(&mut self) -> Vec<u64> {
        self.memory.take_kept()
    }

    /// Returns the communicator of the messages.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }
}
