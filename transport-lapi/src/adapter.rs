//! The interface to adapters, which move frames between tasks and do nothing else.
//!
//! Only [`crate::Context`] calls an adapter, under its lock. Adapters know nothing of handlers, counters or tags. The
//! contents of a [`Frame`] are untrusted: the adapter has copied the head out of shared memory once, and passes the
//! body as [`ForeignBytes`], which can be copied but not borrowed as a slice.
//!
//! Every adapter implements the core, [`Adapter`]: it moves frames and has a bell to sleep on. Further capabilities are
//! separate traits, which the core returns if it has them: [`OneSided`], [`SharedGets`], [`SharedArea`], [`WaitBoard`].
//! The transport builds missing ones from frames.
//!
//! The suite in `tests/doubles/src/contract.rs` checks this contract, except A9, A10 and what concerns [`OneSided`]:
//!
//! - A1: frames from one origin to one target arrive whole, once, and in the order offered.
//! - A2: no method blocks, and none calls back into the transport. Only [`OneSided::conceal`] may wait for a copy out
//!   of the region to end.
//! - A3: [`Post::Full`] means that the frame was not sent. The caller polls and offers the same frame again.
//! - A4: a frame that was taken reaches its target as long as the target polls. If its body was copied
//!   ([`Post::Taken`]), the sender need not call the adapter again; if its body is still read ([`Post::Leaving`]), the
//!   sender must poll too.
//! - A5: a task that announced a sleep on its [`Doorbell`] and then polled without finding anything is woken by every
//!   frame that reaches it later.
//! - A6: a task whose last `try_send` to a target returned [`Post::Full`] after it had announced is woken when there is
//!   room. Polls of the target make room.
//! - A7: a shared get lasts from [`SharedGets::begin`] until [`SharedGets::advance`] has returned
//!   [`Advance::Complete`], [`Advance::Refused`] or an error, or [`SharedGets::end`] has returned `true`. Outside that
//!   time nobody writes into its region. The target reads its own memory only inside [`SharedGets::help`]. The get
//!   completes whether or not the target helps. A task that announced while the get was [`Advance::Waiting`] is woken.
//! - A8: the bytes that a get delivers are those that the region contained while it was exposed. A get during which its
//!   target has withdrawn ends with [`AdapterError::PeerLost`].
//! - A9: the memory of an offered body is read only until the call returns or, after [`Post::Leaving`], until
//!   [`Events::left`] reports its ticket. An adapter whose [`Caps::copies_bodies`] is true never returns that, and
//!   reads no body after the call. The memory that a get fills is written only until the call returns or, after
//!   [`Transfer::Started`], until [`Events::got`] reports its ticket. Once [`Adapter::withdraw`] has returned `true`,
//!   no such memory is read or written any more, whatever was unfinished.
//! - A10: frames that arrived from a task before it was declared lost can still be polled. Frames that it sends later
//!   may arrive too; the caller discards them. Operations towards a lost task end, although nobody receives there:
//!   bodies leave, and gets are over.

pub(crate) mod waits;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::io::Errno;

use crate::adapter::waits::Wait;
use crate::memory::body::Piece;
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};

/// Number of a task in its job: `0..num_tasks`. MPI calls it the rank.
pub type TaskId = u32;

/// The capabilities of an adapter; fixed for its lifetime, so callers choose protocols once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Short name of the adapter, for reports: `threads`, `shm`.
    pub name: &'static str,
    /// Largest head of a frame, in bytes.
    pub max_head: usize,
    /// Largest head plus body, in bytes, that travels in one slot together with its envelope.
    pub max_inline: usize,
    /// Largest body of one frame, in bytes.
    pub max_body: usize,
    /// Whether [`Adapter::try_send`] copies every body, and never returns [`Post::Leaving`].
    pub copies_bodies: bool,
}

/// How [`OneSided::get`] reads another task's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GetKind {
    /// The tasks share an address space: a memory copy.
    Memcpy,
    /// `process_vm_readv`, Linux cross-memory attach.
    CrossMemoryAttach,
}

/// Result of [`Adapter::try_send`]. A lack of room is a value, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Post {
    /// The frame is on its way, and its body was copied.
    Taken,
    /// The frame is on its way, but its body, which is not empty, is still read until [`Events::left`] reports its
    /// ticket (A9).
    Leaving,
    /// No room now; the frame was not sent.
    Full,
}

/// Identifies an operation whose end an event reports later. The caller chooses the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket(pub u32);

/// Result of [`OneSided::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Transfer {
    /// The bytes have arrived.
    Done,
    /// The get is under way: [`Events::got`] reports when the bytes have arrived (A9).
    Started,
    /// No room now; no get was started. The caller polls and tries again.
    Full,
}

/// Result of [`SharedGets::begin`].
#[derive(Debug)]
#[must_use]
pub enum Begun {
    /// The get is shared under this number. The caller sends it to the target, which passes it to [`SharedGets::help`].
    Shared(u32),
    /// Another get from the same target is shared: the caller tries again later.
    Busy(RecvRegion),
    /// This get cannot be shared: the caller carries it out alone.
    Alone(RecvRegion),
}

/// Result of [`SharedGets::advance`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Advance {
    /// A slice was copied.
    Copied,
    /// Nothing is left to copy here, but the target is still copying: the rest of the get, or a slice whose end a
    /// failed get must wait for.
    Waiting,
    /// All bytes have arrived.
    Complete,
    /// The kernel refuses this task the target's memory ([`AdapterError::is_refusal`]). The get is over, and its region
    /// comes back.
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
    fn left(&mut self, ticket: Ticket) {
        let _ = ticket;
    }

    /// Reports that the get with this ticket is over: its bytes have arrived, or it has failed.
    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        let _ = (ticket, outcome);
    }
}

impl Events for &mut dyn Events {
    fn frame(&mut self, frame: Frame<'_>) {
        (**self).frame(frame);
    }

    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        (**self).short(origin, head, body);
    }

    fn left(&mut self, ticket: Ticket) {
        (**self).left(ticket);
    }

    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        (**self).got(ticket, outcome);
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
    /// A one-sided read was refused by the kernel or by the region's owner.
    #[error("cannot read {len} bytes from rank {target}: {reason}")]
    GetFailed {
        /// The task to be read from.
        target: TaskId,
        /// How many bytes were wanted.
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
    /// A task cannot have this many contexts.
    #[error("a rank has 1 to {max} contexts, not {asked}")]
    ContextCount {
        /// The number asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
    /// A job cannot have this many tasks.
    #[error("a job has 1 to {max} ranks, not {asked}")]
    TaskCount {
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
        let Self::GetFailed { reason, .. } = self else { return false };
        matches!(Errno::from_io_error(reason), Some(Errno::PERM | Errno::ACCESS | Errno::NOSYS))
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

/// Moves frames between tasks, by the rules A1 to A10 of this module.
///
/// # Safety
/// The transport relies on an implementation when memory of users is read and written. An implementation, and each
/// capability that it returns, keeps A7, A8 and A9, and reads an exposed region only between [`OneSided::expose`] and
/// the end of [`OneSided::conceal`].
///
/// ```compile_fail,E0200
/// # use std::sync::Arc;
/// # use transport_lapi::adapter::*;
/// # use transport_lapi::Piece;
/// struct Careless;
/// impl Adapter for Careless {
/// #   fn caps(&self) -> Caps { unreachable!() }
/// #   fn task(&self) -> TaskId { 0 }
/// #   fn num_tasks(&self) -> usize { 1 }
/// #   fn try_send(&mut self, _: TaskId, _: &[u8], _: Piece<'_>, _: Ticket)
/// #       -> Result<Post, AdapterError> { unreachable!() }
/// #   fn poll(&mut self, _: Option<TaskId>, _: usize, _: &mut dyn Events) -> Result<usize, AdapterError> { Ok(0) }
/// #   fn withdraw(&mut self) -> bool { true }
/// #   fn doorbell(&self) -> Arc<dyn Doorbell> { unreachable!() }
/// #   fn losses(&self) -> usize { 0 }
/// #   fn is_lost(&self, _: TaskId) -> bool { false }
///     // every method, but no `unsafe`
/// }
/// ```
#[expect(unsafe_code, reason = "what an implementation promises, no compiler can check")]
pub unsafe trait Adapter: Send + 'static {
    /// Returns the capabilities of this adapter.
    fn caps(&self) -> Caps;

    /// Returns this task's number.
    fn task(&self) -> TaskId;

    /// Returns the number of this context. Frames travel only between contexts of the same number, so they do not
    /// contain the number.
    fn context(&self) -> usize {
        0
    }

    /// Returns the number of tasks of the job.
    fn num_tasks(&self) -> usize;

    /// Offers one frame to `target`, which may be this task itself. `head` has at most [`Caps::max_head`] bytes, and is
    /// copied. `body` has at most [`Caps::max_body`] bytes, and is copied, or read later (A9) and then identified by
    /// `ticket`. Callers have checked the lengths and the target.
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError>;

    /// Delivers at most `budget` frames to `events`, reports operations that have ended, and returns how many events
    /// there were. If `origin` is given, only its frames are wanted: an adapter that can look for these alone with less
    /// work leaves the others where they are. A damaged frame is skipped and reported as an error; the next call
    /// delivers the frames behind it.
    fn poll(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut dyn Events,
    ) -> Result<usize, AdapterError>;

    /// Does the same as [`Adapter::poll`]. An adapter that delivers frames within nanoseconds implements it too, so
    /// that what handles them is inlined. The error is in a box, so that the result is in registers.
    #[inline]
    fn poll_into<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, Box<AdapterError>>
    where
        Self: Sized,
    {
        self.poll(origin, budget, events).map_err(Box::new)
    }

    /// Offers a frame with a short head and a body of one span, as [`Adapter::try_send`], and returns whether it was
    /// [`Post::Taken`]. For callers that otherwise offer it again.
    #[inline(always)]
    fn takes(&mut self, target: TaskId, head: &[u8; SHORT_HEAD], body: SendRegion) -> bool {
        matches!(self.try_send(target, head, Piece::Span(body), Ticket(0)), Ok(Post::Taken))
    }

    /// Prefetches memory of the frames that are expected next, to or from this task. A waiting thread calls it between
    /// its polls, more often once some have found nothing.
    fn prefetch_expected(&mut self) {}

    /// Withdraws this task: its exposed memory may change from now on, and no get of it succeeds any more (A8). The
    /// adapter starts nothing new and drops all unfinished operations, except frames that were taken (A4). Returns
    /// whether no memory of this task is read or written any more; on `false` the caller tries again.
    #[must_use]
    fn withdraw(&mut self) -> bool;

    /// Returns the bell on which threads of this task sleep, and which peers ring.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Returns a number that is 0 at first and changes whenever a task is declared lost. The call is cheap enough for
    /// the slow turns of a spin loop.
    fn losses(&self) -> usize;

    /// Returns whether `task` was declared lost.
    fn is_lost(&self, task: TaskId) -> bool;

    /// Returns how many frames this context has sent and received, if the adapter counts them: each frame once, and for
    /// each peer modulo 2^32 at least.
    fn packets(&self) -> Option<(u64, u64)> {
        None
    }

    /// Returns the capability to read other tasks' memory, if the adapter has it. The result of this and the following
    /// methods never changes.
    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Returns the capability to share gets between both ends, if the adapter has it.
    fn shared_gets(&mut self) -> Option<&mut dyn SharedGets> {
        None
    }

    /// Returns the memory of the tasks that all of them have mapped, for this context, if there is such memory.
    fn shared_area(&self) -> Option<Arc<dyn SharedArea>> {
        None
    }

    /// Returns the board on which waits are published, if there is one.
    fn wait_board(&self) -> Option<Arc<dyn WaitBoard>> {
        None
    }
}

/// The capability to read another task's memory without that task's help.
pub trait OneSided {
    /// Returns how the memory is read.
    fn kind(&mut self) -> GetKind;

    /// Makes `region` readable under `key` by the other tasks' [`OneSided::get`], until [`OneSided::conceal`]. Adapters
    /// whose get needs no table do nothing.
    ///
    /// # Errors
    /// [`AdapterError::System`] if the system refuses: the caller then has the region read over frames.
    fn expose(&mut self, key: u64, region: SendRegion) -> Result<(), AdapterError>;

    /// Ends the exposure that [`OneSided::expose`] began. Returns only when no get reads the region any more.
    fn conceal(&mut self, key: u64);

    /// Reads `into.len()` bytes at `offset` of the `remote` region of `target`. `ticket` identifies the get if it ends
    /// later (A9). The caller has checked that the range lies inside `remote`.
    ///
    /// # Errors
    /// [`AdapterError::PeerLost`] (A8), [`AdapterError::GetFailed`].
    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
        ticket: Ticket,
    ) -> Result<Transfer, AdapterError>;
}

/// The capability to let both ends of a get copy (A7): at most one get at a time for each ordered pair of tasks.
pub trait SharedGets {
    /// Begins a get like that of [`OneSided::get`], in which the target may copy too (A7). Returns the region if that
    /// is not possible.
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun;

    /// Continues the get begun by [`SharedGets::begin`]: copies a slice, if one is left. Reports an error or a refusal
    /// only when nobody writes into the region any more.
    ///
    /// # Errors
    /// Those of [`OneSided::get`], except a refusal by the kernel, which is [`Advance::Refused`].
    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError>;

    /// Ends the get begun by [`SharedGets::begin`], complete or not. `false` means that the target is still writing a
    /// slice, and the caller tries again. Returns `true` if there is no get.
    #[must_use]
    fn end(&mut self, target: TaskId) -> bool;

    /// Copies a slice of get `number` of `origin` from `from` into that task's memory. Returns `false` if nothing is
    /// left to copy, or if this task cannot copy it; the origin then copies the rest.
    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool;
}

/// Memory of each task that every task of the job accesses by itself, for puts and read-modify-writes without the
/// target's help. It contains zeros at first. Any task may write it at any moment, so it is copied, or accessed by
/// atomic operations, but never borrowed.
pub trait SharedArea: Send + Sync {
    /// Returns how many bytes each task has.
    fn bytes(&self) -> usize;

    /// Returns a pointer to the byte at `offset` in the area of `task`; null if there is none.
    fn start(&self, task: TaskId, offset: u64) -> *mut u8;

    /// Makes sure that there is memory for a part of the area of `task`.
    ///
    /// # Errors
    /// [`AdapterError::System`] if there is not.
    fn reserve(&self, task: TaskId, offset: usize, len: usize) -> Result<(), AdapterError>;

    /// Copies a body into the area of `task`, beginning at `offset`. Returns whether it fits there; if not, nothing is
    /// copied.
    fn store(&self, task: TaskId, offset: u64, body: Piece<'_>) -> bool;

    /// Like [`SharedArea::store`], for bytes.
    fn fill(&self, task: TaskId, offset: u64, from: &[u8]) -> bool;

    /// Fills `into` from the area of `task`, beginning at `offset`. Returns whether there are so many bytes.
    fn load(&self, task: TaskId, offset: u64, into: RecvPart<'_>) -> bool;

    /// Returns bytes of the area of another task, beginning at `offset`; `None` unless they lie in it.
    fn foreign(&self, task: TaskId, offset: u64, len: usize) -> Option<ForeignBytes<'_>>;

    /// Returns the variable of 64 bits at `offset` in the area of `task`; `None` unless it lies inside and is aligned.
    fn word(&self, task: TaskId, offset: u64) -> Option<&AtomicU64>;

    /// Returns the variable of 32 bits at `offset` in the area of `task`; `None` unless it lies inside and is aligned.
    fn half_word(&self, task: TaskId, offset: u64) -> Option<&AtomicU32>;
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

    /// Declares this task lost and rings every task's bell, so that blocked peers notice. Frames that it still sends
    /// may be discarded.
    fn declare_lost(&self);
}

/// The capability to publish what this task's threads wait for, for the watcher of the job, which looks for deadlocks.
pub trait WaitBoard: Send + Sync {
    /// Publishes what a thread waits for, at a place that no other thread of the task uses. One thread at a time
    /// publishes and withdraws; a place is withdrawn before something else is published there.
    fn publish(&self, place: usize, wait: &Wait, standing: Standing);

    /// Records that the thread whose wait is published at `place` has polled again and found nothing.
    fn looked_again(&self, place: usize);

    /// Withdraws what was published at `place`.
    fn withdraw(&self, place: usize);

    /// Returns how often the watcher has asked for this task's queues.
    fn inquiries(&self) -> u32;

    /// Returns whether the watcher has released this task from the wait at its end, because that wait for the others
    /// cannot succeed.
    fn is_dismissed(&self) -> bool;
}

/// The state of a thread in a published wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
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
