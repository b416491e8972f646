//! The seam below the transport: what moves frames between tasks, and nothing else.
//!
//! An adapter is called only by [`crate::Context`], which holds it under its lock. Adapters know
//! nothing of handlers, counters or tags. Everything a peer wrote that comes up through
//! [`Frame`] is a claim: the adapter has copied the head out of shared memory once, and hands the
//! body up as [`ForeignBytes`], which can be copied but not borrowed as a slice.
//!
//! An adapter is a core, [`Adapter`], which every adapter has: it moves frames and has a bell to sleep on.
//! What else it can do are capabilities, each a trait of its own for which the core is asked:
//! [`OneSided`], [`SharedGets`], [`WaitBoard`]. What an adapter lacks, the transport builds from frames.
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
//! - A6: a task whose last `try_send` to a target answered [`Post::Full`] after it had announced is
//!   woken when there is room: room is given back as the target polls.
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

/// What an adapter can do; fixed for its lifetime, so callers choose protocols once.
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

/// Answer of [`Adapter::try_send`]: full is a value, not an error.
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

/// Names an operation of its caller, which an event reports later. A value of the caller's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticket(pub u32);

/// Answer of [`OneSided::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Transfer {
    /// The bytes are there.
    Done,
    /// They are under way: [`Events::got`] tells when they are there (A9).
    Started,
    /// No room now; nothing was begun. The caller polls and asks again.
    Full,
}

/// Answer of [`SharedGets::begin`].
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

/// Answer of [`SharedGets::advance`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Advance {
    /// A slice was copied.
    Copied,
    /// Nothing is left to do here, but the target is still copying: what is left of the get, or the slice
    /// that a get which has failed has to wait for.
    Waiting,
    /// All bytes are there.
    Complete,
}

/// One frame as it arrives.
#[derive(Debug)]
pub struct Frame<'a> {
    /// Who sent it. The adapter vouches for this: it is the ring that it came through.
    pub origin: TaskId,
    /// The head, already copied out of shared memory; contents are the peer's claim.
    pub head: &'a [u8],
    /// The body, still where the peer wrote it.
    pub body: ForeignBytes<'a>,
}

/// What takes in what [`Adapter::poll`] delivers. Closures over frames are such takers too, for adapters that
/// report nothing else.
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

/// Why an adapter refused.
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
    /// What to change after this refusal of the system, where the answer is always the same; empty or
    /// beginning with `;`.
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
#[allow(unsafe_code, reason = "what an implementation promises, no compiler can check")]
pub unsafe trait Adapter: Send + 'static {
    /// What this adapter can do.
    fn caps(&self) -> Caps;

    /// This task's number.
    fn task(&self) -> TaskId;

    /// Which of the task's contexts this is. Its frames come from, and go to, the contexts of the same number
    /// alone: what carries them is the address, so none is in a frame.
    fn context(&self) -> usize {
        0
    }

    /// How many tasks the job has.
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

    /// A thread waits, and some polls have found nothing: what the next frame will be read from may be asked for, so
    /// that it is here sooner.
    fn fetch_awaited(&self) {}

    /// This task gives up: what it has exposed may change from now on, and no get of it succeeds any more (A8).
    /// Begins nothing new, and drops what is under way, but for frames that were taken (A4). Answers whether no memory of this task is read or
    /// written any more; `false` means not yet, and the caller asks again.
    #[must_use]
    fn withdraw(&mut self) -> bool;

    /// The handle on which threads of this task sleep, and which peers ring.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// Changes whenever a task is declared lost, and is 0 before. Cheap enough for a spin loop's slow turn.
    fn losses(&self) -> usize;

    /// Whether `task` was declared lost.
    fn is_lost(&self, task: TaskId) -> bool;

    /// Whether long bodies for `target` are stored past the caches, as far as the adapter knows by now: a
    /// hint for who chooses how to send a long message. May change from call to call.
    fn stores_past_caches(&mut self, target: TaskId) -> bool {
        let _ = target;
        false
    }

    /// Reading other tasks' memory, if the adapter can. The same answer for its lifetime, here and below.
    fn one_sided(&mut self) -> Option<&mut dyn OneSided> {
        None
    }

    /// Gets that both of their ends carry out, if the adapter can share any.
    fn shared_gets(&mut self) -> Option<&mut dyn SharedGets> {
        None
    }

    /// Where waits are published, if somebody watches.
    fn wait_board(&self) -> Option<Arc<dyn WaitBoard>> {
        None
    }
}

/// The capability to read another task's memory without its help.
pub trait OneSided {
    /// How it is done.
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

/// Where the threads of one task sleep until a frame comes, or until a thread of the same task
/// completes something for another one. An event count: announce, look once more, sleep.
pub trait Doorbell: Send + Sync {
    /// Says that a thread is about to sleep, and returns the ticket to sleep with. After this call
    /// the thread must look once more for work, then call [`Doorbell::sleep`] or
    /// [`Doorbell::retract`].
    fn announce(&self) -> u32;

    /// Sleeps until the bell has rung since `ticket` was given, or `timeout` is over, and returns whether
    /// it has rung. Spurious returns are allowed.
    fn sleep(&self, ticket: u32, timeout: Option<Duration>) -> bool;

    /// Takes an announcement back without sleeping.
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

/// The capability to tell whoever watches over the job what this task's threads wait for.
pub trait WaitBoard: Send + Sync {
    /// Publishes what a thread waits for, at a place that no other thread of the task has, for whoever
    /// asks why nothing moves. One thread at a time publishes and withdraws; nothing is published at a place
    /// before what stood there was withdrawn.
    fn publish(&self, place: usize, wait: &Wait, standing: Standing);

    /// The thread whose wait is published at `place` has looked again for work, and found none.
    fn looked_again(&self, place: usize);

    /// Takes back what was published at `place`.
    fn withdraw(&self, place: usize);

    /// How often somebody outside has asked for this task's queues.
    fn inquiries(&self) -> u32;

    /// Whether somebody outside has found that it is in vain for this task to wait for the others at its
    /// end.
    fn is_dismissed(&self) -> bool;
}

/// How a thread stands in a wait that is published.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It sleeps on the bell, after it has looked for work and found none.
    Asleep {
        /// The ticket that the bell gave.
        ticket: u32,
    },
    /// It polls, and never sleeps.
    Awake,
    /// The wait has ended by an error; this is what it was.
    Failed,
}
