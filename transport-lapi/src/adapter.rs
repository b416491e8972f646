//! The interface to adapters, which move frames between tasks and do nothing else.
//!
//! Only [`crate::Context`] calls an adapter, under its lock. Adapters know nothing of handlers, counters or tags. The
//! contents of a [`Frame`] are untrusted: the adapter has copied the head out of shared memory once, and passes the
//! body as [`ForeignBytes`], which can be copied but not borrowed as a slice.
//!
//! Every adapter has the core, [`Adapter`]: it moves frames and has a bell to sleep on. Further capabilities are
//! traits of their own, which the core returns if it has them: [`OneSided`], [`SharedGets`], [`WaitBoard`]. The
//! transport builds missing ones from frames.
//!
//! The conformance suite in `tests/src/conformance/adapter.rs` checks this contract:
//!
//! - A1: frames from one origin to one target arrive whole, once, and in the order offered.
//! - A2: no method blocks, and none calls back into the transport. [`OneSided::conceal`] may wait for
//!   a copy out of the region that is under way.
//! - A3: [`Post::Full`] took nothing. The caller polls and offers the same frame again.
//! - A4: a frame that was taken reaches its target as long as the target polls. One whose body was copied,
//!   [`Post::Taken`], does so even when the sender never calls the adapter again; one whose body is still read,
//!   [`Post::Leaving`], as long as the sender polls.
//! - A5: a task that announced on its [`Doorbell`] and then polled without finding anything is
//!   woken by every frame that reaches it later.
//! - A6: a task whose last `try_send` to a target returned [`Post::Full`] after it had announced is woken when there
//!   is room: polls of the target free room.
//! - A7: a shared get lasts from [`SharedGets::begin`] until [`SharedGets::advance`] answered
//!   [`Advance::Complete`] or an error, or [`SharedGets::end`] that it has ended. Outside of that time
//!   nobody writes into its region, and the target reads its own memory inside of [`SharedGets::help`] only.
//!   The get completes whether the target helps or not; a task that announced while it was
//!   [`Advance::Waiting`] is woken.
//! - A8: what a get has brought is what the region held while it was exposed. A get during which its target
//!   has withdrawn ends with [`AdapterError::PeerLost`].
//! - A9: the memory of a body that was offered is read until the call returns, or, after [`Post::Leaving`], until
//!   [`Events::left`] names its ticket. The memory that a get fills is written until the call returns, or, after
//!   [`Transfer::Started`], until [`Events::got`] names its ticket. When [`Adapter::withdraw`] has answered
//!   `true`, none is read or written any more, whatever was under way.
//! - A10: what has arrived from a task before it is declared lost can still be taken in. What it sends after that may
//!   still come; the caller throws it away. What is under way towards a lost task ends: bodies leave, and gets are
//!   over, although nobody takes anything in there.

use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use crate::body::Piece;
use crate::bootstrap::board::Wait;
use crate::region::{ForeignBytes, RecvPart, RecvRegion, RemoteRegion, SendRegion};

/// Number of a task in its job: `0..num_tasks`. MPI calls it the rank.
pub type TaskId = u32;

/// The capabilities of an adapter; fixed for its lifetime, so callers choose protocols once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Short name of the adapter, for reports: `threads`, `shm`.
    pub name: &'static str,
    /// Largest head of a frame, in bytes.
    pub max_head: usize,
    /// Largest head plus body, in bytes, that travels in one cell together with its envelope.
    pub max_inline: usize,
    /// Largest body of one frame, in bytes.
    pub max_body: usize,
    /// Whether [`Adapter::try_send`] copies every body, and never answers [`Post::Leaving`].
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

/// Result of [`Adapter::try_send`]: full is a value, not an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Post {
    /// The frame is on its way, and its body was copied.
    Taken,
    /// The frame is on its way, and its body, which is not empty, is still read: [`Events::left`] tells when it has
    /// left (A9).
    Leaving,
    /// No room now; nothing was taken.
    Full,
}

/// Names an operation whose end an event reports later. The caller chooses the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket(pub u32);

/// Result of [`OneSided::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Transfer {
    /// The bytes have arrived.
    Done,
    /// They are under way: [`Events::got`] tells when they are there (A9).
    Started,
    /// No room now; nothing was begun. The caller polls and asks again.
    Full,
}

/// Result of [`SharedGets::begin`].
#[derive(Debug)]
#[must_use]
pub enum Begun {
    /// The get is shared under this number, which the caller tells the target for its [`SharedGets::help`].
    Shared(u32),
    /// Another get from the same target is shared: the caller asks again.
    Busy(RecvRegion),
    /// This get cannot be shared.
    Alone(RecvRegion),
}

/// Result of [`SharedGets::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Advance {
    /// A slice was copied.
    Copied,
    /// Nothing is left to do here, but the target is still copying: the rest of the get, or the slice that a failed
    /// get must wait for.
    Waiting,
    /// All bytes are there.
    Complete,
}

/// One frame as it arrives.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The sender. It is certain, since it follows from the ring that the frame came through.
    pub origin: TaskId,
    /// The head, already copied out of shared memory; its contents are untrusted.
    pub head: &'a [u8],
    /// The body, still where the peer wrote it.
    pub body: ForeignBytes<'a>,
}

/// Receives the frames and events that [`Adapter::poll`] delivers. Closures over frames implement it, for adapters
/// that report nothing else.
pub trait Events {
    /// Takes in one frame.
    fn frame(&mut self, frame: Frame<'_>);

    /// Takes in one frame whose head is a short one. An adapter may call this in place of
    /// [`Events::frame`].
    #[inline]
    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        self.frame(Frame { origin, head: &head, body });
    }

    /// The body that was offered with this ticket has left its memory, which is not read any more.
    fn left(&mut self, ticket: Ticket) {
        let _ = ticket;
    }

    /// The get with this ticket is over: its bytes are there, or it has failed.
    fn got(&mut self, ticket: Ticket, outcome: Result<(), AdapterError>) {
        let _ = (ticket, outcome);
    }
}

impl<F: FnMut(Frame<'_>)> Events for F {
    #[inline]
    fn frame(&mut self, frame: Frame<'_>) {
        self(frame);
    }
}

/// Length of a short head: that of the frames that most messages are.
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
        /// The task whose bytes they are.
        origin: TaskId,
        /// What was impossible about them.
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
    /// The inherited segment is not one of ours, or of another version.
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
        /// The process that was it first.
        pid: u32,
    },
    /// `MPJ_GET=cma` was demanded and the probe failed.
    #[error(
        "MPJ_GET=cma was demanded, but process_vm_readv is refused here ({reason}); \
         allow ptrace between the ranks, or set MPJ_GET=auto"
    )]
    GetRefused {
        /// What the probe met.
        reason: String,
    },
    /// Tasks with this many contexts are not possible.
    #[error("a rank has 1 to {max} contexts, not {asked}")]
    ContextCount {
        /// What was asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
    /// A job of this many tasks is not possible.
    #[error("a job has 1 to {max} ranks, not {asked}")]
    TaskCount {
        /// What was asked for.
        asked: usize,
        /// The limit.
        max: usize,
    },
}

impl AdapterError {
    /// Returns advice for an error of the system that always has the same remedy; empty, or beginning with `;`.
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

/// Moves frames between tasks. See the module's contract A1 to A10.
///
/// # Safety
/// Memory of users is read and written on this trait's word: an implementation, and each capability that it
/// gives out, keeps A7, A8 and A9, and reads an exposed region between [`OneSided::expose`] and the end of
/// [`OneSided::conceal`] only.
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
/// #   fn try_send(&mut self, _: TaskId, _: &[u8], _: Piece<'_>, _: Ticket) -> Result<Post, AdapterError> { unreachable!() }
/// #   fn poll<E: Events>(&mut self, _: Option<TaskId>, _: usize, _: &mut E) -> Result<usize, AdapterError> { Ok(0) }
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

    /// Returns the number of this context. Frames travel only between contexts of the same number, so a frame does
    /// not contain it.
    fn context(&self) -> usize {
        0
    }

    /// Returns the number of tasks of the job.
    fn num_tasks(&self) -> usize;

    /// Offers one frame to `target` (which may be this task itself): `head`, at most
    /// [`Caps::max_head`] bytes, which are copied, and `body`, at most [`Caps::max_body`] bytes, which are
    /// copied or read later (A9); `ticket` names the body then. Callers have checked the lengths and the target.
    fn try_send(
        &mut self,
        target: TaskId,
        head: &[u8],
        body: Piece<'_>,
        ticket: Ticket,
    ) -> Result<Post, AdapterError>;

    /// Delivers at most `budget` frames to `events`, reports the ends of operations, and returns how many events
    /// there were. If `origin` is given, its frames alone are awaited: where it is less work to look for these alone,
    /// the others stay where they are. A damaged frame is skipped and reported as an error; frames behind it come with
    /// the next call.
    fn poll<E: Events>(
        &mut self,
        origin: Option<TaskId>,
        budget: usize,
        events: &mut E,
    ) -> Result<usize, AdapterError>;

    /// Prefetches the memory of the next frame. A thread that waits calls it after some polls without success.
    fn fetch_awaited(&self) {}

    /// Withdraws this task: its exposed memory may change from now on, and no get of it succeeds any more (A8). It
    /// begins nothing new, and drops everything under way but frames that were taken (A4). Returns whether no memory
    /// of this task is read or written any more; on `false` the caller asks again.
    #[must_use]
    fn withdraw(&mut self) -> bool;

    /// Returns the bell on which threads of this task sleep, and which peers ring.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Returns a number that is 0 at first and changes whenever a task is declared lost. It is cheap enough for a
    /// spin loop's slow turn.
    fn losses(&self) -> usize;

    /// Returns whether `task` was declared lost.
    fn is_lost(&self, task: TaskId) -> bool;

    /// Returns whether long bodies for `target` are stored past the caches, as far as the adapter knows: a hint for
    /// the choice of a protocol. It may change from call to call.
    fn stores_past_caches(&mut self, target: TaskId) -> bool {
        let _ = target;
        false
    }

    /// Returns the capability to read other tasks' memory, if the adapter has it. The result never changes, here and
    /// below.
    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Returns the capability to share gets between both ends, if the adapter has it.
    fn shared_gets(&mut self) -> Option<&mut dyn SharedGets> {
        None
    }

    /// Returns the board on which waits are published, if there is one.
    fn wait_board(&self) -> Option<Arc<dyn WaitBoard>> {
        None
    }
}

/// The capability to read another task's memory without its help.
pub trait OneSided {
    /// Returns how the memory is read.
    fn kind(&mut self) -> GetKind;

    /// Makes `region` readable for the other tasks' [`OneSided::get`] under `key`, until
    /// [`OneSided::conceal`]. Adapters whose get needs no table have nothing to do.
    ///
    /// # Errors
    /// [`AdapterError::System`] when the system refuses: the region is read over frames then.
    fn expose(&mut self, key: u64, region: SendRegion) -> Result<(), AdapterError>;

    /// Ends what [`OneSided::expose`] began. Returns only when no get reads the region any more.
    fn conceal(&mut self, key: u64);

    /// Reads `into.len()` bytes at `offset` of the `remote` region of `target`; `ticket` names the get if it
    /// is over later (A9). The caller has checked that the range lies inside `remote`.
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

/// The capability to let both ends of a get copy (A7): one get at a time for each ordered pair of tasks.
pub trait SharedGets {
    /// Begins a get as [`OneSided::get`] does it, in which the target may copy too (A7). Gives the region back
    /// where that is not possible.
    fn begin(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Begun;

    /// Carries on the get that [`SharedGets::begin`] began: copies a slice, if one is left.
    ///
    /// # Errors
    /// What [`OneSided::get`] says; told when nobody writes into the region any more.
    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError>;

    /// Ends the get that [`SharedGets::begin`] began, complete or not. `false` means not yet: the target is
    /// still writing a slice, and the caller asks again. Without a get it is `true`.
    #[must_use]
    fn end(&mut self, target: TaskId) -> bool;

    /// Copies a slice of get `number` of `origin`, whose source is `from`, into that task's memory.
    /// `false` when there is nothing to copy any more, or that is not possible: the origin does it
    /// then.
    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool;
}

/// The bell on which threads of one task sleep until a frame arrives, or until another thread of the task completes
/// something for them. It is an event count: announce, look once more, sleep.
pub trait Doorbell: Send + Sync {
    /// Says that a thread is about to sleep, and returns the ticket to sleep with. After this call
    /// the thread must look once more for work, then call [`Doorbell::sleep`] or
    /// [`Doorbell::retract`].
    fn announce(&self) -> u32;

    /// Sleeps until the bell has rung since `ticket` was given, or `timeout` is over, and returns whether
    /// it has rung. Spurious returns are allowed.
    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool;

    /// Cancels an announcement without sleeping.
    fn retract(&self);

    /// Wakes every thread that sleeps or is about to. Costs one load when none does.
    fn ring(&self);

    /// Whether the calling thread has woken sleepers of any task since it last asked. They are often
    /// put on the waker's processor, and run as soon as it yields.
    fn has_woken(&self) -> bool {
        false
    }

    /// Declares this task lost and rings every task's bell, so that blocked peers find out. What it still sends
    /// may be thrown away.
    fn declare_lost(&self);
}

/// The capability to publish what this task's threads wait for, for the watcher of the job.
pub trait WaitBoard: Send + Sync {
    /// Publishes what a thread waits for, at a place that no other thread of the task has, for whoever
    /// asks why nothing moves. One thread at a time publishes and withdraws; nothing is published at a place
    /// before what stood there was withdrawn.
    fn publish(&self, place: usize, wait: &Wait, standing: Standing);

    /// The thread whose wait is published at `place` has looked again for work, and found none.
    fn looked_again(&self, place: usize);

    /// Takes back what was published at `place`.
    fn withdraw(&self, place: usize);

    /// Returns how often the watcher has asked for this task's queues.
    fn inquiries(&self) -> u32;

    /// Returns whether the watcher has found that this task waits for the others at its end without success, and has
    /// released it.
    fn is_dismissed(&self) -> bool;
}

/// The state of a thread in a published wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It sleeps on the bell, after it has looked for work and found none.
    Asleep {
        /// The ticket that the bell gave.
        ticket: u32,
    },
    /// It polls, and never sleeps.
    Awake,
    /// The wait has ended with an error; the published wait is the one that failed.
    Failed,
}
