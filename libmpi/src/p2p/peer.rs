//! The envelope of a message (MPI-5.0 section 3.2.3): a rank, a tag and a communicator. Functions take the three as one
//! value, [`Peer`], and make of it what the layers below take, once, when it has been checked.

use std::ffi::c_int;

use crate::abi::*;
use crate::call::{Fault, Outcome};
use crate::comm::Comm;

/// The peer of a message as a program gives it.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub rank: c_int,
    pub tag: c_int,
    pub comm: MPI_Comm,
}

impl Peer {
    /// Puts the arguments of a function together.
    #[inline(always)]
    pub fn new(rank: c_int, tag: c_int, comm: MPI_Comm) -> Self {
        Self { rank, tag, comm }
    }

    /// Returns the job rank of the receiver of a message, `None` for MPI_PROC_NULL, and the tag, which the function calls
    /// `argument`.
    ///
    /// # Errors
    /// MPI_ERR_TAG, MPI_ERR_RANK.
    #[inline(always)]
    pub fn receiver(self, comm: &Comm, argument: &'static str) -> Outcome<(Option<usize>, c_int)> {
        let tag = checked_tag(self.tag, argument)?;
        Ok((comm.receiver(self.rank)?, tag))
    }

    /// Returns the job rank of the sender of a message, where `None` inside is any and `None` as a whole is
    /// MPI_PROC_NULL, and the tag, where `None` is any. The function calls it `argument`.
    ///
    /// # Errors
    /// MPI_ERR_TAG, MPI_ERR_RANK.
    #[inline(always)]
    pub fn sender(
        self,
        comm: &Comm,
        argument: &'static str,
    ) -> Outcome<(Option<Option<usize>>, Option<c_int>)> {
        let tag = match self.tag {
            0.. => Some(self.tag),
            MPI_ANY_TAG => None,
            tag => return Err(bad_tag(tag, argument)),
        };
        Ok((comm.sender(self.rank)?, tag))
    }
}

/// Returns a tag if it is one.
///
/// # Errors
/// MPI_ERR_TAG.
#[inline(always)]
pub(crate) fn checked_tag(tag: c_int, argument: &'static str) -> Outcome<c_int> {
    if tag >= 0 { Ok(tag) } else { Err(bad_tag(tag, argument)) }
}

#[cold]
fn bad_tag(tag: c_int, argument: &'static str) -> Fault {
    Fault::argument(MPI_ERR_TAG, argument, format!("{tag} is no tag: tags are 0 to {}", c_int::MAX))
}
