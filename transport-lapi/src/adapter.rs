//! The seam below the transport: what moves frames between tasks, and nothing else.
//!
//! An adapter is called only by [`crate::Context`], which holds it under its lock. Adapters know
//! nothing of handlers, counters or tags. Everything a peer wrote that comes up through
//! [`Frame`] is a claim: the adapter has copied the head out of shared memory once, and hands the
//! body up as [`ForeignBytes`], which can be copied but not borrowed as a slice.
//!
//! The conformance suite in `tests/src/conformance/adapter.rs` checks this contract:
//!
//! - A1: frames from one origin to one target arrive whole, once, and in the order offered.
//! - A2: no method blocks, and none calls back into the transport. [`Adapter::conceal`] may wait for
//!   a copy out of the region that is under way.
//! - A3: [`Post::Full`] took nothing. The caller polls and offers the same frame again.
//! - A4: after [`Post::Taken`] the frame reaches its target as long as the target polls, even when
//!   the sender never calls the adapter again.
//! - A5: a task that announced on its [`Doorbell`] and then polled without finding anything is
//!   woken by every later `try_send` to it.
//! - A6: a task whose last `try_send` to a target answered [`Post::Full`] after it had announced is
//!   woken when there is room: room is given back as the target polls.
//! - A7: a shared get lasts from [`Adapter::share`] until [`Adapter::advance`] answered
//!   [`Advance::Complete`] or an error, or [`Adapter::unshare`] that it has ended. Outside of that time
//!   nobody writes into its region, and the target reads its own memory inside of [`Adapter::help`] only.
//!   The get completes whether the target helps or not; a task that announced while it was
//!   [`Advance::Waiting`] is woken.
//! - A8: what a get has brought is what the region held while it was exposed. A get during which its target
//!   has withdrawn ends with [`AdapterError::PeerLost`].

use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

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
    /// How [`Adapter::get`] reads another task's memory; `None` where it cannot.
    pub get: Option<GetKind>,
}

/// How one-sided reads are done.
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
    /// The frame is on its way.
    Taken,
    /// No room now; nothing was taken.
    Full,
}

/// Answer of [`Adapter::advance`].
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

/// What takes in the frames that [`Adapter::poll`] delivers. Closures are sinks; a type of its own can
/// also say that it wants to be inlined.
pub trait Sink {
    /// Takes in one frame.
    fn frame(&mut self, frame: Frame<'_>);

    /// Takes in one frame whose head is a short one. An adapter may call this in place of
    /// [`Sink::frame`].
    #[inline]
    fn short(&mut self, origin: TaskId, head: [u8; SHORT_HEAD], body: ForeignBytes<'_>) {
        self.frame(Frame { origin, head: &head, body });
    }
}

impl<F: FnMut(Frame<'_>)> Sink for F {
    #[inline]
    fn frame(&mut self, frame: Frame<'_>) {
        self(frame);
    }
}

/// Bytes of the head that [`Adapter::try_send_short`] takes.
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

/// Moves frames between tasks. See the module's contract A1 to A8.
///
/// # Safety
/// Memory of users is read and written on this trait's word: an implementation keeps A7 and A8. It reads the body
/// of a frame inside of [`Adapter::try_send`] only, a region between [`Adapter::expose`] and the end of
/// [`Adapter::conceal`] only, and writes the part that [`Adapter::get`] is given inside of that call only.
///
/// ```compile_fail,E0200
/// # use std::sync::Arc;
/// # use transport_lapi::adapter::*;
/// # use transport_lapi::{RecvPart, RemoteRegion};
/// struct Careless;
/// impl Adapter for Careless {
/// #   fn caps(&self) -> Caps { unreachable!() }
/// #   fn task(&self) -> TaskId { 0 }
/// #   fn num_tasks(&self) -> usize { 1 }
/// #   fn try_send(&mut self, _: TaskId, _: &[u8], _: &[u8]) -> Result<Post, AdapterError> { unreachable!() }
/// #   fn poll<K: Sink>(&mut self, _: usize, _: &mut K) -> Result<usize, AdapterError> { Ok(0) }
/// #   fn withdraw(&mut self) {}
/// #   fn get(&mut self, _: TaskId, _: RemoteRegion, _: u64, _: RecvPart<'_>) -> Result<(), AdapterError> { unreachable!() }
/// #   fn doorbell(&self) -> Arc<dyn Doorbell> { unreachable!() }
/// #   fn lost(&self) -> Option<TaskId> { None }
///     // every method, but no `unsafe`
/// }
/// ```
#[allow(unsafe_code, reason = "what an implementation promises, no compiler can check")]
pub unsafe trait Adapter: Send + 'static {
    /// What this adapter can do.
    fn caps(&self) -> Caps;

    /// This task's number.
    fn task(&self) -> TaskId;

    /// How many tasks the job has.
    fn num_tasks(&self) -> usize;

    /// Offers one frame to `target` (which may be this task itself): `head`, at most
    /// [`Caps::max_head`] bytes, and `body`, at most [`Caps::max_body`] bytes. Both are copied
    /// before the call returns. Callers have checked the lengths and the target.
    fn try_send(&mut self, target: TaskId, head: &[u8], body: &[u8]) -> Result<Post, AdapterError>;

    /// [`Adapter::try_send`] for the frames that most messages are, on the path of each of them.
    /// Returns whether the frame was taken; `false` says nothing about the reason, which
    /// [`Adapter::try_send`] then finds. An adapter without a shorter way leaves this as it is.
    #[inline]
    fn try_send_short(&mut self, target: TaskId, head: [u8; SHORT_HEAD], body: &[u8]) -> bool {
        let _ = (target, head, body);
        false
    }

    /// Delivers at most `budget` frames to `sink`, and returns how many. A damaged frame is
    /// skipped and reported as an error; frames behind it come with the next call.
    fn poll<K: Sink>(&mut self, budget: usize, sink: &mut K) -> Result<usize, AdapterError>;

    /// Whether the processor of `target` is far from this task's, as far as the adapter knows by now: a
    /// hint for who chooses how to send a long message. May change from call to call.
    fn is_far(&mut self, target: TaskId) -> bool {
        let _ = target;
        false
    }

    /// Makes `region` readable for the other tasks' [`Adapter::get`] under `key`, until
    /// [`Adapter::conceal`]. Adapters whose get needs no table ignore it.
    fn expose(&mut self, key: u64, region: SendRegion) {
        let _ = (key, region);
    }

    /// Ends what [`Adapter::expose`] began. Returns only when no get reads the region any more.
    fn conceal(&mut self, key: u64) {
        let _ = key;
    }

    /// This task gives up: what it has exposed may change from now on, and no get of it succeeds any more (A8).
    fn withdraw(&mut self);

    /// Reads `into.len()` bytes at `offset` of the `remote` region of `target`. Called only where
    /// [`Caps::get`] is `Some`; the caller has checked that the range lies inside `remote`.
    fn get(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvPart<'_>,
    ) -> Result<(), AdapterError>;

    /// Begins a get as [`Adapter::get`] does it, in which the target may copy too, and returns the
    /// number that the caller tells the target for its [`Adapter::help`]. Gives the region back where that
    /// is not possible, and while another one from the same target is under way (A7).
    fn share(
        &mut self,
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        into: RecvRegion,
    ) -> Result<u32, RecvRegion> {
        let _ = (target, remote, offset);
        Err(into)
    }

    /// Carries on the get that [`Adapter::share`] began: copies a slice, if one is left. An error is told
    /// when nobody writes into the region any more.
    fn advance(&mut self, target: TaskId) -> Result<Advance, AdapterError> {
        unreachable!("no get from task {target} is shared where `share` begins none")
    }

    /// Ends the get that [`Adapter::share`] began, complete or not. `false` means not yet: the target is
    /// still writing a slice, and the caller asks again. Without a get it is `true`.
    #[must_use]
    fn unshare(&mut self, target: TaskId) -> bool {
        let _ = target;
        true
    }

    /// Copies a slice of get `number` of `origin`, whose source is `from`, into that task's memory.
    /// `false` when there is nothing to copy any more, or that is not possible: the origin does it
    /// then.
    fn help(&mut self, origin: TaskId, number: u32, from: SendRegion) -> bool {
        let _ = (origin, number, from);
        false
    }

    /// The handle on which threads of this task sleep, and which peers ring.
    fn doorbell(&self) -> Arc<dyn Doorbell>;

    /// The first task that was declared lost, if any. Cheap enough for a spin loop's slow turn.
    fn lost(&self) -> Option<TaskId>;
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

    /// Declares this task lost and rings every task's bell, so that blocked peers find out.
    fn declare_lost(&self);

    /// Publishes what a thread waits for, at a place that no other thread of the task has, for whoever
    /// asks why nothing moves. One thread at a time publishes and withdraws; nothing is published at a place
    /// before what stood there was withdrawn.
    fn publish(&self, place: usize, wait: &Wait, standing: Standing) {
        let _ = (place, wait, standing);
    }

    /// The thread whose wait is published at `place` has looked again for work, and found none.
    fn looked_again(&self, place: usize) {
        let _ = place;
    }

    /// Takes back what was published at `place`.
    fn withdraw(&self, place: usize) {
        let _ = place;
    }

    /// How often somebody outside has asked for this task's queues.
    fn inquiries(&self) -> u32 {
        0
    }

    /// Whether somebody outside has found that it is in vain for this task to wait for the others at its
    /// end.
    fn is_dismissed(&self) -> bool {
        false
    }
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
