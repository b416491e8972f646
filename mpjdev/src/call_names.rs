//! MPI's names for the calls in which ranks block and for contexts, for the launcher's reports.
//!
//! The transport publishes codes and numbers. A rank that joins a job tells the launcher what they mean. Here is also
//! which context ids belong to which communicator.

use transport_lapi::bootstrap::control::Vocabulary;
use transport_lapi::bootstrap::waits::{CallCode, Space};

/// How many ids communicators have. Half of a context, modulo this number, is the id of its communicator, except for
/// the contexts from 6 times this number on, which belong to calls of ranks without a communicator. In the odd contexts
/// from 4 times this number on, some members of a communicator make another one; in the even ones they call services.
/// Odd contexts are for collective calls.
pub const CONTEXT_IDS: u32 = 1 << 29;

/// Returns the space of a context, in context `of_task` of the rank.
pub(crate) fn space(of_task: usize, context: u32) -> Space {
    let (communicator, is_collective) = (context / 2 % CONTEXT_IDS, context % 2 == 1);
    let label = match context / 2 / CONTEXT_IDS {
        0 | 1 => Some(communicator),
        // Not all ranks belong to this one, unlike the world.
        2 => Some(communicator).filter(|id| *id != 0 || !is_collective),
        _ => None,
    };
    Space { context: of_task as u32, id: context, label, is_collective }
}

/// Whether every rank waits in a collective operation until all have come. In the others a rank waits for some of
/// them, as a leaf of a broadcast waits for its root.
const ALL: bool = true;
const SOME: bool = false;

macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident = $words:expr;)*) => {
        /// The call in which a thread is blocked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Call {
            /// Any call not listed here.
            Other,
            $($(#[$doc])* $call,)*
        }

        impl Call {
            /// All calls but [`Call::Other`], in the order of their codes.
            #[cfg(test)]
            const NAMED: &[Self] = &[$(Self::$call),*];
        }

        /// Their names, in the order of their codes: MPI's in small letters, without the prefix.
        const NAMES: &[(&str, bool)] = &[$($words),*];
    };
}

calls! {
    /// Blocking send of any mode.
    Send = ("send", SOME);
    /// Blocking receive.
    Recv = ("recv", SOME);
    /// Blocking probe, matched or not.
    Probe = ("probe", SOME);
    /// Wait for one request.
    Wait = ("wait", SOME);
    /// Wait for the first of several requests, or for some of them.
    WaitAny = ("waitany", SOME);
    /// Wait for all of several requests.
    WaitAll = ("waitall", SOME);
    /// The end of the rank's part of the job, where it waits for all others to get there.
    Finish = ("finish", SOME);
    /// The wait of a thread that makes progress for all operations.
    Progress = ("progress", SOME);
    /// Barrier.
    Barrier = ("barrier", ALL);
    /// Duplication of a communicator.
    Dup = ("dup", SOME);
    /// Broadcast.
    Bcast = ("bcast", SOME);
    /// Gather.
    Gather = ("gather", SOME);
    /// Gather of blocks of different lengths.
    Gatherv = ("gatherv", SOME);
    /// Scatter.
    Scatter = ("scatter", SOME);
    /// Scatter of blocks of different lengths.
    Scatterv = ("scatterv", SOME);
    /// Gather to all.
    Allgather = ("allgather", ALL);
    /// Gather of blocks of different lengths to all.
    Allgatherv = ("allgatherv", ALL);
    /// Exchange of all with all.
    Alltoall = ("alltoall", ALL);
    /// Exchange of blocks of different lengths.
    Alltoallv = ("alltoallv", ALL);
    /// Exchange of blocks of different lengths and datatypes.
    Alltoallw = ("alltoallw", ALL);
    /// Reduction.
    Reduce = ("reduce", SOME);
    /// Reduction to all.
    Allreduce = ("allreduce", ALL);
    /// Reduction of blocks of different lengths, one of which each rank gets.
    ReduceScatter = ("reduce_scatter", ALL);
    /// Reduction of blocks, one of which each rank gets.
    ReduceScatterBlock = ("reduce_scatter_block", ALL);
    /// Inclusive prefix reduction.
    Scan = ("scan", SOME);
    /// Exclusive prefix reduction.
    Exscan = ("exscan", SOME);
    /// Division of a communicator by colours.
    Split = ("split", ALL);
    /// A communicator of some ranks of another one, made by all ranks of that one.
    Create = ("create", ALL);
    /// A communicator of some ranks of another one, made by those ranks only.
    CreateGroup = ("create_group", SOME);
    /// An intercommunicator.
    IntercommCreate = ("intercomm_create", SOME);
    /// The union of both sides of an intercommunicator.
    IntercommMerge = ("intercomm_merge", ALL);
    /// What a rank does for another one.
    CallOfService = ("call of service", SOME);
    /// Registration of a service.
    RegisterService = ("register_service", ALL);
    /// Wait until no call of a service is under way.
    Quiesce = ("quiesce", ALL);
    /// Creation of a window.
    WinCreate = ("win_create", ALL);
    /// The end of a window.
    WinFree = ("win_free", ALL);
    /// Fence of a window.
    WinFence = ("win_fence", ALL);
    /// Begin of accesses to the windows of ranks that expose them.
    WinStart = ("win_start", SOME);
    /// End of accesses to the windows of ranks that expose them.
    WinComplete = ("win_complete", SOME);
    /// Wait for the end of accesses to this rank's window.
    WinWait = ("win_wait", SOME);
    /// Lock of a window.
    WinLock = ("win_lock", SOME);
    /// Release of the lock of a window.
    WinUnlock = ("win_unlock", SOME);
    /// Wait until operations on a window have been carried out.
    WinFlush = ("win_flush", SOME);
    /// Read of a window with a request.
    Rget = ("rget", SOME);
    /// The opening of a file.
    FileOpen = ("file_open", ALL);
    /// The end of a file.
    FileClose = ("file_close", ALL);
    /// Choice of the bytes of a file that a rank sees.
    FileSetView = ("file_set_view", ALL);
    /// Choice of hints for a file.
    FileSetInfo = ("file_set_info", ALL);
    /// Change of the length of a file.
    FileSetSize = ("file_set_size", ALL);
    /// Reservation of space for a file.
    FilePreallocate = ("file_preallocate", ALL);
    /// Choice of whether accesses to a file are atomic.
    FileSetAtomicity = ("file_set_atomicity", ALL);
    /// Transfer of a file's bytes to the device.
    FileSync = ("file_sync", ALL);
    /// Change of a file's shared pointer.
    FileSeekShared = ("file_seek_shared", ALL);
    /// Read of a file by all ranks.
    FileReadAll = ("file_read_all", ALL);
    /// Write to a file by all ranks.
    FileWriteAll = ("file_write_all", ALL);
    /// Gather among neighbours in a topology.
    NeighborAllgather = ("neighbor_allgather", SOME);
    /// Gather of blocks of different lengths among neighbours.
    NeighborAllgatherv = ("neighbor_allgatherv", SOME);
    /// Exchange among neighbours in a topology.
    NeighborAlltoall = ("neighbor_alltoall", SOME);
    /// Exchange of blocks of different lengths among neighbours.
    NeighborAlltoallv = ("neighbor_alltoallv", SOME);
    /// Exchange of blocks of different lengths and datatypes among neighbours.
    NeighborAlltoallw = ("neighbor_alltoallw", SOME);
}

impl Call {
    /// Returns its name: MPI's in small letters, without the prefix.
    pub fn name(self) -> &'static str {
        (self as usize).checked_sub(1).map_or("call", |at| NAMES[at].0)
    }

    /// Returns the names of all calls and of contexts.
    pub fn vocabulary() -> Vocabulary {
        Vocabulary::new(NAMES.iter().copied(), "communicator", "world")
    }
}

impl From<Call> for CallCode {
    fn from(call: Call) -> Self {
        Self(call as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_launcher_learns_the_name_of_each_call() {
        let vocabulary = Call::vocabulary();
        assert_eq!(CallCode::from(Call::Other), CallCode::NONE);
        for (call, (name, needs_all)) in Call::NAMED.iter().zip(NAMES) {
            let code = CallCode::from(*call);
            assert_eq!((&*vocabulary.name(code), vocabulary.needs_all(code)), (*name, *needs_all));
            assert_eq!(call.name(), *name);
            assert_eq!(name.replace(['_', ' '], ""), format!("{call:?}").to_lowercase());
        }
        assert_eq!((vocabulary.space(), vocabulary.everywhere()), ("communicator", "world"));
    }

    #[test]
    fn contexts_are_named_after_their_communicator() {
        let of = |context| {
            let Space { id, label, is_collective, .. } = space(3, context);
            assert_eq!((id, is_collective), (context, context % 2 == 1));
            label
        };
        let third = 2 * CONTEXT_IDS;
        assert_eq!([0, 1, 6, 7].map(of), [Some(0), Some(0), Some(3), Some(3)]);
        assert_eq!([third, third + 6].map(of), [Some(0), Some(3)], "partitioned");
        assert_eq!([2 * third + 7, 2 * third + 1].map(of), [Some(3), None], "of some members");
        assert_eq!([2 * third + 6, 2 * third].map(of), [Some(3), Some(0)], "of services");
        assert_eq!([3 * third + 1, u32::MAX].map(of), [None, None], "without a communicator");
        assert_eq!(space(3, 0).context, 3);
    }
}
