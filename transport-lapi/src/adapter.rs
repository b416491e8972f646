//! The interface to adapters, which move frames between tasks and access registered memory, and do nothing else.
//!
//! Only [`crate::Context`] calls an adapter, under its lock. Adapters know nothing of handlers, counters or tags. The
//! contents of a [`Frame`] are untrusted: the adapter has copied the head out of shared memory once, and passes the
//! body as [`ForeignBytes`], which can be copied but not borrowed as a slice.
//!
//! Every adapter moves frames and has a bell to sleep on. What else it can do, it says for each target in [`Caps`], and
//! in [`Parts`]; the transport builds from frames what is missing.
//!
//! The suite in `tests/doubles/src/contract.rs` checks this contract:
//!
//! - A1: frames from one origin to one target arrive whole, once, and in the order offered.
//! - A2: no method blocks, and none calls back into the transport. Only [`Adapter::deregister`] may wait for a copy out
//!   of the region to end.
//! - A3: [`Post::Full`] means that the frame was not sent. The caller polls and offers the same frame again.
//! - A4: a frame that was taken reaches its target as long as the target polls. If its body was copied
//!   ([`Post::Taken`]), the sender need not call the adapter again; if its body is still read ([`Post::InFlight`]), the
//!   sender must poll too.
//! - A5: a task that announced a sleep on its [`Doorbell`] and then polled without finding anything is woken by every
//!   frame and every event that reaches it later.
//! - A6: a task whose last `try_send` to a target returned [`Post::Full`] after it had announced is woken when there is
//!   room. Polls of the target make room. The same holds for [`Transfer::Full`].
//! - A7: a cooperative copy lasts from [`CooperativeCopy::begin`] until [`CooperativeCopy::advance`] has returned
//!   [`Advance::Complete`], [`Advance::Refused`] or an error, or [`CooperativeCopy::end`] has returned `true`. Outside
//!   that time nobody writes into its region. The target reads its own memory only inside [`CooperativeCopy::assist`].
//!   The copy completes whether or not the target assists. A task that announced while it was [`Advance::Waiting`] is
//!   woken.
//! - A8: the bytes that a get delivers are those that the region contained while it was registered. An operation on
//!   memory of a target that has detached meanwhile ends with [`AdapterError::PeerLost`]; on a network
//!   ([`GetKind::RemoteDirect`], [`GetKind::RemoteSoftware`]) perhaps only when the target is declared lost.
//! - A9: the memory of an offered body is read only until the call returns or, after [`Post::InFlight`], until
//!   [`Events::send_complete`] reports its ticket. An adapter whose [`Caps::copies_bodies`] is true for a target never
//!   returns that, and reads no body after the call. The memory of this task that a one-sided operation reads or fills
//!   is accessed only until the call returns or, after [`Transfer::Started`], until an event reports its ticket. Once
//!   [`Adapter::detach`] has returned `true`, no such memory is read or written any more, whatever was unfinished.
//! - A10: frames that arrived from a task before it was declared lost can still be polled. Frames that it sends later
//!   may arrive too; the caller discards them. Operations towards a lost task end, although nobody receives there:
//!   bodies leave, and one-sided operations are over.
//! - A11: registered memory is accessed only between [`Adapter::register`] and the end of [`Adapter::deregister`], only
//!   by those who name its key, and written only if it is [`Registered::Writable`]. Everything else does nothing and
//!   ends with [`AdapterError::AccessFailed`]; but where the key is an address, other memory can be read if the kernel
//!   permits it.
//! - A12: the end of a put says that its source is read no more. A [`OneSided::Flush`] ends after all puts and atomic
//!   operations that were started before it for the same target have ended, and when their bytes are in place.
//! - A13: atomic operations on one variable take place one after another, whoever starts them, and in the order in
//!   which one task starts them.

pub(crate) mod atomic;
mod error;
mod near;
mod pieces;
pub(crate) mod waits;

pub use error::AdapterError;
pub use near::PeerMemory;
pub use pieces::Pieces;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::adapter::atomic::Operation;
use crate::adapter::waits::Wait;
use crate::memory::body::Piece;
use crate::memory::region::{
    ForeignBytes, RecvPart, RecvRegion, RemoteKey, RemoteRegion, SendRegion,
};

/// Number of a task in its job: `0..num_tasks`. MPI calls it the rank.
pub type TaskId = u32;

/// Most tasks of a job. One host has room for fewer: [`crate::adapters::MAX_TASKS_PER_HOST`].
pub const MAX_TASKS: usize = 1 << 20;

/// Which context of which task an adapter belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// The task's number.
    pub task: TaskId,
    /// Number of tasks of the job.
    pub num_tasks: usize,
    /// Number of the context. Frames travel only between contexts of the same number, so they do not contain it.
    pub context: usize,
}

/// What an adapter can do with a target; fixed for its lifetime, so callers choose protocols once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Short name of what reaches the target, for reports: `threads`, `shm`.
    pub name: &'static str,
    /// Largest head of a frame, in bytes.
    pub max_head: usize,
    /// Largest head plus body, in bytes, that travels in one slot together with its envelope.
    pub max_inline: usize,
    /// Largest body of one frame, in bytes.
    pub max_body: usize,
    /// How long messages are best cut into frames, of which each is at most as long as `max_body` says.
    pub pieces: Pieces,
    /// Whether [`Adapter::try_send`] copies every body, and never returns [`Post::InFlight`].
    pub copies_bodies: bool,
    /// How [`OneSided::Get`] reads the target's memory; `None` if it does not.
    pub gets: Option<GetKind>,
    /// Whether there are [`OneSided::Put`] and [`OneSided::Flush`].
    pub puts: bool,
    /// Whether there is [`OneSided::Atomic`]. It is the same for all pairs of tasks of a job, since others must not
    /// carry out such operations in another way (A13).
    pub atomics: bool,
}

/// How [`OneSided::Get`] reads another task's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetKind {
    /// The tasks share an address space: a memory copy.
    Memcpy,
    /// `process_vm_readv`, Linux cross-memory attach.
    CrossMemoryAttach,
    /// The network reads it while the target does something else.
    RemoteDirect,
    /// As above, but it is software of the network that copies it at both ends.
    RemoteSoftware,
}

/// Result of [`Adapter::try_send`]. A lack of room is a value, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Post {
    /// The frame is on its way, and its body was copied.
    Taken,
    /// The frame is on its way, but its body, which is not empty, is still read until [`Events::send_complete`] reports
    /// its ticket (A9).
    InFlight,
    /// No room now; the frame was not sent.
    Full,
}

/// Identifies an operation whose end an event reports later. The caller chooses the value; bodies, gets and other
/// one-sided operations are numbered separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket(pub u32);

/// Memory that a task registers for the operations of others ([`Adapter::register`]).
#[derive(Debug)]
pub enum Registered {
    /// Nobody writes it.
    Constant(SendRegion),
    /// Puts and atomic operations may write it, those of the adapter and those of the owner's dispatcher.
    Writable(RecvRegion),
}

/// An operation on the memory of a target that the target does not take part in. The memory is the bytes from `offset`
/// on of `remote`, which the target has registered; the caller has checked that they lie inside.
pub enum OneSided<'a> {
    /// Fills `into`, if [`Caps::gets`] says how. Its end is [`Events::got`].
    Get {
        /// The target's memory.
        remote: &'a RemoteRegion,
        /// Offset in it, in bytes.
        offset: u64,
        /// Memory of this task.
        into: RecvPart<'a>,
    },
    /// Stores `from` (A12), if [`Caps::puts`].
    Put {
        /// The target's memory.
        remote: &'a RemoteRegion,
        /// Offset in it, in bytes.
        offset: u64,
        /// Bytes of this task.
        from: Piece<'a>,
    },
    /// Reads and modifies a variable (A13), if [`Caps::atomics`]. One that is not aligned to its size is refused.
    Atomic {
        /// The target's memory.
        remote: &'a RemoteRegion,
        /// Offset of the variable, in bytes.
        offset: u64,
        /// What is done.
        operation: Operation,
    },
    /// Says when what was started before for this target is in place (A12), if [`Caps::puts`].
    Flush,
}

impl<'a> OneSided<'a> {
    /// The target's memory; `None` for a flush.
    pub(crate) fn remote(&self) -> Option<&'a RemoteRegion> {
        match *self {
            Self::Get { remote, .. } | Self::Put { remote, .. } | Self::Atomic { remote, .. } => {
                Some(remote)
            }
            Self::Flush => None,
        }
    }

    /// The same operation on memory that is described in another way.
    pub(crate) fn of(self, remote: &'a RemoteRegion) -> Self {
        match self {
            Self::Get { offset, into, .. } => Self::Get { remote, offset, into },
            Self::Put { offset, from, .. } => Self::Put { remote, offset, from },
            Self::Atomic { offset, operation, .. } => Self::Atomic { remote, offset, operation },
            Self::Flush => Self::Flush,
        }
    }

    /// Returns the error of an adapter that does not have this operation.
    pub(crate) fn unsupported(&self, target: TaskId) -> AdapterError {
        let len = match self {
            Self::Get { into, .. } => into.len(),
            Self::Put { from, .. } => from.len(),
            Self::Atomic { operation, .. } => operation.size() as usize,
            Self::Flush => 0,
        };
        AdapterError::AccessFailed { target, len, reason: std::io::ErrorKind::Unsupported.into() }
    }
}

/// Result of [`Adapter::start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Transfer {
    /// The operation has ended, with this result if it is atomic; otherwise the value means nothing.
    Done(i64),
    /// The operation is under way: an event reports its end (A9).
    Started,
    /// No room now; nothing was started. The caller polls and tries again.
    Full,
}

/// Result of [`CooperativeCopy::begin`].
#[derive(Debug)]
#[must_use]
pub enum Begun {
    /// The copy has this number. The caller sends it to the target, which passes it to [`CooperativeCopy::assist`].
    Shared(u32),
    /// Another copy from the same target is under way: the caller tries again later.
    Busy(RecvRegion),
    /// The caller carries this get out alone.
    Alone(RecvRegion),
}

/// Result of [`CooperativeCopy::advance`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Advance {
    /// A slice was copied.
    Copied,
    /// Nothing is left to copy here, but the target is still copying: the rest, or a slice whose end a failed copy must
    /// wait for.
    Waiting,
    /// All bytes have arrived.
    Complete,
    /// The kernel refuses this task the target's memory ([`AdapterError::is_refusal`]). The copy is over, and its
    /// region comes back.
    Refused(RecvRegion),
}

/// One frame as it arrives.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The sender. It is trustworthy, since the adapter knows it from the ring that carried the frame.
    pub origin: TaskId,
    /// The head, already copied out of shared memory; its contents are untrusted.
    pub head: &'a [u8],
    /// The body, still in memory that the peer can write.
    pub body: ForeignBytes<'a>,
}

/// Receives the frames and events that [`Adapter::poll`] delivers. Closures over frames implement it, for callers that
/// need no other events.
pub trait Events {
    /// Handles one frame.
    fn frame(&mut self, frame: Frame<'_>);

    /// Handles one frame whose head has [`SHORT_HEAD`] bytes. An adapter may call this instead of [`Events::frame`].
    #[inline]
    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        self.frame(Frame { origin, head: &head, body });
    }

    /// Reports that the body offered with this ticket has been read, and its memory is not read any more.
    fn send_complete(&mut self, ticket: Ticket) {
        let _ = ticket;
    }

    /// Reports that the get with this ticket is over: its bytes have arrived, or it has failed.
    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        let _ = (ticket, outcome);
    }

    /// Reports that the put, the flush or the atomic operation with this ticket is over, with the result of the latter.
    fn ended(&mut self, ticket: Ticket, outcome: Result<i64, AdapterError>) {
        let _ = (ticket, outcome);
    }
}

impl<F: FnMut(Frame<'_>)> Events for F {
    #[inline]
    fn frame(&mut self, frame: Frame<'_>) {
        self(frame);
    }
}

/// Length of a short head in bytes. Most messages are single frames with a head of this length.
pub const SHORT_HEAD: usize = 16;

/// What the threads of a task share with its adapter ([`Adapter::parts`]).
#[derive(Clone)]
pub struct Parts {
    /// The bell on which threads of this task sleep, and which peers ring.
    pub bell: Arc<dyn Doorbell>,
    /// Which tasks are lost.
    pub losses: Arc<dyn Losses>,
    /// The memory of the tasks that all of them have mapped, for this context, if there is such memory.
    pub area: Option<Arc<dyn SharedArea>>,
    /// The memory of the other tasks of this host, where there is a way to it.
    pub peer_memory: Option<Arc<dyn PeerMemory>>,
    /// Where waits are published, if they are.
    pub wait_records: Option<Arc<dyn WaitRecords>>,
    /// The tasks of this host, if their numbers follow one another; none otherwise. If the job has one host, the tasks that
    /// are there when this one starts. [`Caps`] are the same for all others.
    pub near: Range<TaskId>,
    /// Number of tasks that share the processors of this host, with this one.
    pub neighbours: usize,
    /// Which hosts the tasks run on; `None` if all run on this one.
    pub hosts: Option<Arc<dyn Hosts>>,
}

/// The hosts of a job that has several.
pub trait Hosts: Send + Sync {
    /// Returns the number of the host of `task`, which the job has.
    fn host_of(&self, task: TaskId) -> u32;
}

/// What a context has sent and received: each frame once, and for each peer modulo 2^32 at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Frames that were taken.
    pub frames_sent: u64,
    /// Frames that a poll has delivered.
    pub frames_received: u64,
    /// Messages of a network that were dropped, since they were not of this job, or not the next ones of their origin.
    pub dropped: u64,
}

/// Moves frames between tasks and accesses their memory, by the rules A1 to A13 of this module.
///
/// # Safety
/// The transport relies on an implementation when memory of users is read and written. An implementation, and what it
/// returns, keeps A7, A8, A9 and A11.
///
/// ```compile_fail,E0200
/// # use transport_lapi::adapter::*;
/// # use transport_lapi::Piece;
/// struct Careless;
/// impl Adapter for Careless {
/// #   fn endpoint(&self) -> Endpoint { unreachable!() }
/// #   fn caps(&self, _: TaskId) -> Caps { unreachable!() }
/// #   fn parts(&self) -> Parts { unreachable!() }
/// #   fn try_send(&mut self, _: TaskId, _: &[u8], _: Piece<'_>, _: Ticket)
/// #       -> Result<Post, AdapterError> { unreachable!() }
/// #   fn poll(&mut self, _: Option<TaskId>, _: usize, _: &mut dyn Events) -> Result<usize, AdapterError> { Ok(0) }
/// #   fn detach(&mut self) -> bool { true }
///     // every method, but no `unsafe`
/// }
/// ```
#[expect(unsafe_code, reason = "what an implementation promises, no compiler can check")]
pub unsafe trait Adapter: Send + 'static {
    /// Returns which context of which task this is.
    fn endpoint(&self) -> Endpoint;

    /// Returns what this adapter can do with `target`, which may be this task itself. Callers have checked the target,
    /// here and in the following methods.
    fn caps(&self, target: TaskId) -> Caps;

    /// Returns what the threads of the task share with the adapter. It never changes.
    fn parts(&self) -> Parts;

    /// Offers one frame to `target`. `head` has at most [`Caps::max_head`] bytes, and is copied. `body` has at most
    /// [`Caps::max_body`] bytes, and is copied, or read later (A9) and then identified by `ticket`. Callers have
    /// checked the lengths.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`], [`AdapterError::Corrupt`].
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError>;

    /// Delivers at most `budget` frames to `events`, reports operations that have ended, and returns how many events
    /// there were. If `origin` is given, only its frames are wanted: an adapter that can look for these alone with less
    /// work leaves the others where they are.
    ///
    /// # Errors
    /// [`AdapterError::Corrupt`] for a damaged frame, which is skipped; the next call delivers the frames behind it.
    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError>;

    /// Does what helps the frames that are expected next. A waiting thread calls it between its polls, more often once
    /// some have found nothing.
    fn while_waiting(&mut self) {}

    /// Makes memory accessible to the one-sided operations of `user`, or of all tasks, under a key that this adapter
    /// chooses. `None` means that it does not: the caller then has the memory accessed over frames.
    ///
    /// # Errors
    /// [`AdapterError::System`] if the system refuses.
    fn register(
        &mut self,
        memory: Registered,
        user: Option<TaskId>,
    ) -> Result<Option<RemoteKey>, AdapterError> {
        let _ = (memory, user);
        Ok(None)
    }

    /// Ends a registration. Returns only when no operation accesses the memory any more.
    fn deregister(&mut self, key: RemoteKey) {
        let _ = key;
    }

    /// Starts an operation on memory of `target`. The caller has checked that [`Caps`] has it. `ticket` identifies it
    /// if it ends later (A9). An operation that fails later ends with the same errors.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] (A8), [`AdapterError::AccessFailed`] (A11).
    fn start(
        &mut self,
        target: TaskId,
        operation: OneSided<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError> {
        let _ = ticket;
        Err(operation.unsupported(target))
    }

    /// Returns the capability to let both ends of a get copy, if there is one for some target.
    fn cooperative_copy(&mut self) -> Option<&mut dyn CooperativeCopy> {
        None
    }

    /// Detaches this task: its registered memory may change from now on, and no operation on it succeeds any more (A8).
    /// The adapter starts nothing new and drops all unfinished operations, except frames that were taken (A4). Returns
    /// whether no memory of this task is read or written any more; on `false` the caller tries again.
    #[must_use]
    fn detach(&mut self) -> bool;

    /// Returns what this context has sent and received, if the adapter counts it.
    fn stats(&self) -> Option<Stats> {
        None
    }
}

/// Which tasks are lost: they ended, or gave up, while others still needed them.
pub trait Losses: Send + Sync {
    /// Returns a number that is 0 at first and changes whenever a task is declared lost. The call is cheap enough for
    /// the slow turns of a spin loop.
    fn count(&self) -> usize;

    /// Returns whether `task` was declared lost.
    fn is_lost(&self, task: TaskId) -> bool;

    /// Declares this task lost and rings every task's bell, so that blocked peers notice. Frames that it still sends
    /// may be discarded.
    fn declare(&self);

    /// Declares that this task sends nothing more to tasks that were not started together with it, and rings every
    /// task's bell. What it has sent before is in place.
    fn declare_end(&self) {}

    /// Returns whether `task` has called [`Losses::declare_end`].
    fn is_at_end(&self, task: TaskId) -> bool {
        let _ = task;
        false
    }
}

/// The capability to let both ends of a get copy (A7): at most one copy at a time for each ordered pair of tasks.
pub trait CooperativeCopy {
    /// Begins a get in which the target may copy too (A7). Returns the region if that is not possible.
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun;

    /// Continues the copy begun by [`CooperativeCopy::begin`]: copies a slice, if one is left. Reports an error or a
    /// refusal only when nobody writes into the region any more.
    ///
    /// # Errors
    /// Those of a get, except a refusal by the kernel, which is [`Advance::Refused`].
    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError>;

    /// Ends the copy begun by [`CooperativeCopy::begin`], complete or not. `false` means that the target is still
    /// writing a slice, and the caller tries again. Returns `true` if there is no copy.
    #[must_use]
    fn end(&mut self, target: TaskId) -> bool;

    /// Copies a slice of copy `number` of `origin` from `from` into that task's memory. Returns `false` if nothing is
    /// left to copy, or if this task cannot copy it; the origin then copies the rest.
    fn assist(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool;
}

/// Memory of each task that every task of the job accesses by itself, for puts and read-modify-writes without the
/// target's help. It contains zeros at first. Any task may write it at any moment, so it is copied, or accessed by
/// atomic operations, but never borrowed.
///
/// # Safety
/// For every task of the job, `bytes` bytes from `start` on may be read and written, from any thread, as long as this
/// value lives, and both answers stay the same.
#[expect(unsafe_code, reason = "areas are accessed by the pointers that it returns")]
pub unsafe trait SharedArea: Send + Sync {
    /// Returns how many bytes `task` has.
    fn bytes(&self, task: TaskId) -> usize;

    /// Returns a pointer to the first byte of the area of `task`. The area stays mapped as long as this value lives.
    fn start(&self, task: TaskId) -> *mut u8;

    /// Makes sure that there is memory for a part of the area of `task`, which lies inside it.
    ///
    /// # Errors
    /// [`AdapterError::System`] if there is not.
    fn reserve(&self, task: TaskId, offset: usize, len: usize) -> Result<(), AdapterError>;
}

/// The bell on which threads of one task sleep until a frame arrives, or until another thread of the task completes
/// something for them. It is an event count: announce, poll once more, sleep.
pub trait Doorbell: Send + Sync {
    /// Announces that a thread is about to sleep, and returns the ticket to sleep with. After this call the thread must
    /// poll once more for work, then call [`Doorbell::sleep`] or [`Doorbell::retract`].
    fn announce(&self) -> u32;

    /// Sleeps until the bell has rung since `ticket` was issued, or `timeout` is over. Returns whether the bell has
    /// rung. Spurious returns are allowed.
    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool;

    /// Cancels an announcement without sleeping.
    fn retract(&self);

    /// Wakes every thread that sleeps or is about to. Costs one load if there are none.
    fn ring(&self);

    /// Returns whether the calling thread has woken sleepers of any task since its last call. The scheduler often puts
    /// them on the waker's processor, where they run as soon as it yields.
    fn has_woken(&self) -> bool {
        false
    }
}

/// The capability to publish what this task's threads wait for, for the watcher of the job, which looks for deadlocks.
pub trait WaitRecords: Send + Sync {
    /// Publishes what a thread waits for, at a place that no other thread of the task uses. One thread at a time
    /// publishes and unpublishes; a place is unpublished before something else is published there.
    fn publish(&self, place: usize, wait: &Wait, state: ThreadState);

    /// Records that the thread whose wait is published at `place` has polled again and found nothing.
    fn looked_again(&self, place: usize);

    /// Unpublishes what was published at `place`.
    fn unpublish(&self, place: usize);

    /// Publishes where the client's counters are in the memory of this process; 0 for nowhere.
    fn count_at(&self, address: u64);

    /// Returns how often the watcher has asked for this task's queues.
    fn inquiries(&self) -> u32;

    /// Returns whether the watcher has released this task from the wait at its end, because that wait for the others
    /// cannot succeed.
    fn is_dismissed(&self) -> bool;
}

/// The state of a thread in a published wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread sleeps on the bell, after it has polled and found nothing.
    Asleep {
        /// The ticket that the bell issued.
        ticket: u32,
    },
    /// The thread polls, and never sleeps.
    Awake,
    /// The wait has ended with an error; the published wait is the one that failed.
    Failed,
}
