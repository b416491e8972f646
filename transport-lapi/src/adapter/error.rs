//! Why an adapter fails: a task is lost, memory is damaged, the system refuses something.

use rustix::io::Errno;

use crate::adapter::{MAX_TASKS, TaskId};

/// The reason why an adapter failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdapterError {
    /// A task ended, or was declared lost, while others still needed it.
    #[error("rank {task} is gone: it gave up or ended before the job was finished")]
    PeerLost {
        /// The task that is gone.
        task: TaskId,
    },
    /// A peer wrote something impossible into the shared structures.
    #[error("rank {origin} damaged the shared memory of the job: {what}")]
    Corrupt {
        /// The task that wrote the bytes.
        origin: TaskId,
        /// Describes the damage.
        what: &'static str,
    },
    /// A one-sided operation was refused, by the kernel or because the memory is not registered for it.
    #[error("cannot access {len} bytes of rank {target}'s memory: {reason}")]
    AccessFailed {
        /// The task that owns the memory.
        target: TaskId,
        /// How many bytes were to be accessed.
        len: usize,
        /// The cause.
        reason: std::io::Error,
    },
    /// The system refused a resource at start-up.
    #[error("cannot {action}: {source}{}", Self::remedy(source))]
    System {
        /// What was being done.
        action: &'static str,
        /// What the system answered.
        source: std::io::Error,
    },
    /// The inherited segment is not one of this transport, or of another version.
    #[error("the inherited job segment is not usable: {what}")]
    BadSegment {
        /// What is wrong with it.
        what: String,
    },
    /// A process has attached as this task before.
    #[error(
        "rank {task} has joined the job before, in process {pid}: a script that is a rank may run \
         one mpj program, not several"
    )]
    AlreadyAttached {
        /// The task.
        task: TaskId,
        /// The process that joined first.
        pid: u32,
    },
    /// `MPJ_GET=cma` was demanded and the probe failed.
    #[error(
        "MPJ_GET=cma was demanded, but process_vm_readv is refused here ({reason}); \
         allow ptrace between the ranks, or set MPJ_GET=auto"
    )]
    GetRefused {
        /// How the probe failed.
        reason: String,
    },
    /// No network reaches the other hosts.
    #[error("cannot reach the other hosts of the job: {reason}")]
    NoFabric {
        /// The cause, and what to change.
        reason: String,
    },
    /// An endpoint cannot have this address.
    #[error(
        "context {context} of rank {task} gave a network address of {len} bytes, which is not usable"
    )]
    BadAddress {
        /// The task.
        task: TaskId,
        /// Its context.
        context: usize,
        /// Length of the address.
        len: usize,
    },
    /// A task cannot have this many contexts.
    #[error("a rank has 1 to {max} contexts, not {asked}")]
    ContextCount {
        /// The number asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
    /// The other clients of this process leave too few contexts.
    #[error(
        "{client} cannot join: it asks for {asked} of the contexts of its rank, and the clients before it leave {left}; a \
         rank has as many as mpjrun --contexts says and {spare} more{}",
        if *spare == 0 { ", since ulimit -f or ulimit -v leaves no room for them" } else { "" }
    )]
    ContextsTaken {
        /// The client.
        client: String,
        /// The number asked for.
        asked: usize,
        /// The number of contexts that no client has.
        left: usize,
        /// The number of contexts of a rank beyond those that were asked for when the job started.
        spare: usize,
    },
    /// Tasks join their job with different clients.
    #[error(
        "rank {task} joins the job as {client}, where rank {first} joins as {expected}: all ranks join with the same \
         clients in the same order"
    )]
    OtherClient {
        /// The task.
        task: TaskId,
        /// Its client.
        client: String,
        /// Another task.
        first: TaskId,
        /// The client of that one.
        expected: String,
    },
    /// A job cannot have this many tasks.
    #[error("a job has 1 to {MAX_TASKS} ranks, not {asked}")]
    TaskCount {
        /// The number asked for.
        asked: usize,
    },
    /// One host cannot run this many tasks of a job.
    #[error("1 to {max} ranks of a job run on one host, not {asked}: use more hosts")]
    HostTaskCount {
        /// The number asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
}

impl AdapterError {
    /// Returns whether a read failed because the kernel does not let this task read that target's memory, at least not
    /// any more: the target has changed its user, or forbids it. The transport then reads over frames.
    pub fn is_refusal(&self) -> bool {
        let Self::AccessFailed { reason, .. } = self else { return false };
        matches!(Errno::from_io_error(reason), Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS))
    }

    /// The error for what the system has refused while doing this.
    pub(crate) fn system(action: &'static str, errno: Errno) -> Self {
        Self::System { action, source: errno.into() }
    }

    /// Returns advice for a system error that always has the same remedy: either empty, or text that begins with `;`.
    pub fn remedy(refusal: &std::io::Error) -> &'static str {
        match refusal.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::MFILE) => {
                "; raise the limit on open files (ulimit -n), or ask for fewer ranks"
            }
            Some(Errno::NFILE) => "; the whole system has no open files left (sysctl fs.file-max)",
            _ => "",
        }
    }
}
