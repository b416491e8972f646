//! The thread of an endpoint. It keeps packets going while no thread of the program is in the transport, and wakes
//! threads that sleep.
//!
//! Providers make progress only when they are polled. So this thread polls for the owner of the endpoint while packets
//! wait that were taken (A4), or a sender waits for room (A6), and the owner has not polled for a while. And it waits for
//! the descriptor of the queue of completions while threads of the task sleep (A5). Otherwise it is blocked in the
//! kernel.
//!
//! - SV1: whoever leaves something to do stores `work`, then loads `sleeps`; this thread stores `sleeps`, then loads
//!   `work`, all sequentially consistent. So one of them sees the other: either this thread does not fall asleep, or it
//!   is woken.
//! - SV2: a thread that is about to sleep has announced that on the bell, has polled, and the provider has said that the
//!   descriptor becomes readable for whatever comes later (fi_trywait). Then this thread is told to watch the descriptor,
//!   and rings the bell once it is readable. If this thread polls meanwhile itself, it rings for all that has come.
//! - SV3: some providers have no such descriptor, or one that is readable always (libfabric 1.17 over TCP). Then this
//!   thread looks once a millisecond while threads sleep.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

use crate::adapter::waits::become_bystander;
use crate::adapter::{AdapterError, Doorbell};

/// Time between two polls of this thread, and how long an owner may not poll before this thread does.
const PERIOD: Duration = Duration::from_micros(200);
/// The same while the owner polls: each round takes the processor from somebody for some microseconds.
const LONG_PERIOD: Duration = Duration::from_millis(1);
/// Time between two looks for what has come, where no descriptor tells it. A look takes a few microseconds.
const LOOK: Duration = Duration::from_millis(1);
/// The same while the descriptor is watched: some providers do not tell by it that a peer wants a connection.
const RARE_LOOK: Duration = Duration::from_millis(20);
/// Rounds without work before this thread sleeps until it is woken. Waking it costs a system call.
const AWAKE: u32 = 20;

/// What the thread has to do for an owner that does not poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Work {
    None,
    /// What other tasks ask for, whose requests the descriptor tells.
    Others,
    /// What the owner has begun.
    Own,
}

/// What the thread does for an endpoint, under its lock.
pub(super) trait Served: Send + Sync + 'static {
    /// Polls the provider, sends what waits, and says what is left to do ([`Signals::set_work`]). Returns
    /// whether sleepers have to be woken.
    fn serve(&self) -> bool;
}

/// What owner and thread share.
pub(super) struct Signals {
    wake: OwnedFd,
    /// The descriptor of the queue of completions.
    descriptor: Option<RawFd>,
    bell: Arc<dyn Doorbell>,
    /// What is left to do, a [`Work`].
    work: AtomicU8,
    /// Whether the thread sleeps until it is woken.
    sleeps: AtomicBool,
    /// Whether the descriptor is to be watched.
    watches: AtomicBool,
    /// Whether to look at times for what has come (SV3).
    looks: AtomicBool,
    /// Whether the bell was rung for the descriptor.
    rang: AtomicBool,
    /// Polls of the owner.
    polls: AtomicU64,
    ends: AtomicBool,
}

impl Signals {
    pub(super) fn new(
        descriptor: Option<RawFd>,
        bell: Arc<dyn Doorbell>,
    ) -> Result<Arc<Self>, AdapterError> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let action = "make a descriptor for the network's thread";
        let wake = eventfd(0, flags).map_err(|errno| AdapterError::system(action, errno))?;
        Ok(Arc::new(Self {
            wake,
            descriptor,
            bell,
            work: AtomicU8::new(Work::None as u8),
            sleeps: AtomicBool::new(false),
            watches: AtomicBool::new(false),
            looks: AtomicBool::new(false),
            rang: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            ends: AtomicBool::new(false),
        }))
    }

    /// Says what is left to do. Called under the lock of the endpoint, so that no answer is overtaken.
    pub(super) fn set_work(&self, work: Work) {
        let work = work as u8;
        // Less work may be seen late: that costs one round.
        let is_more = work > self.work.load(Ordering::Relaxed);
        self.work.store(work, if is_more { Ordering::SeqCst } else { Ordering::Relaxed });
        // While the descriptor is watched, it tells what others ask for.
        let is_watched = || self.watches.load(Ordering::SeqCst);
        if work == Work::None as u8 || (work == Work::Others as u8 && is_watched()) {
            return;
        }
        if self.sleeps.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Notes a poll of the owner.
    pub(super) fn polled(&self, polls: u64) {
        // Relaxed: a clock.
        self.polls.store(polls, Ordering::Relaxed);
        // Whoever sleeps next says so again.
        if self.looks.load(Ordering::Relaxed) {
            self.looks.store(false, Ordering::SeqCst);
        }
    }

    /// Whether the bell was rung for the descriptor since the last call.
    pub(super) fn takes_ring(&self) -> bool {
        self.rang.swap(false, Ordering::SeqCst)
    }

    /// Prepares for a sleep of the task: has the descriptor watched (SV2) if it `is_trusted`, otherwise looks at times.
    pub(super) fn watch(&self, is_trusted: bool) {
        let flag = match is_trusted && self.descriptor.is_some() {
            true => &self.watches,
            false => &self.looks,
        };
        flag.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn has_ended(&self) -> bool {
        self.ends.load(Ordering::Acquire) // SYNC: end of a service thread
    }

    fn wake(&self) {
        // It fails only if nobody has read for 2^64 times.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// The thread, which ends with this value.
pub(super) struct Service {
    signals: Arc<Signals>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(super) fn start(
        signals: Arc<Signals>,
        served: Arc<impl Served>,
    ) -> Result<Self, AdapterError> {
        let shared = Arc::clone(&signals);
        let thread = std::thread::Builder::new().spawn(move || run(&shared, &*served)).map_err(
            |source| AdapterError::System { action: "start the network's thread", source },
        )?;
        Ok(Self { signals, thread: Some(thread) })
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.signals.ends.store(true, Ordering::Release); // SYNC: end of a service thread
        self.signals.wake();
        // It returns soon, and has not panicked.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Calls `finish` in a thread of its own until it returns `false`, or the time is over.
pub(super) fn finish_later(time: Duration, mut finish: impl FnMut() -> bool + Send + 'static) {
    let until = Instant::now() + time;
    let work = move || {
        while finish() && Instant::now() < until {
            std::thread::sleep(PERIOD);
        }
    };
    // Without a thread, what is left does not go.
    let _ = std::thread::Builder::new().spawn(work);
}

fn run(signals: &Signals, served: &impl Served) {
    take_no_signals();
    // It sends only what its owner has sent, and what that was is counted (HA4 of `crate::adapters::hosts`).
    become_bystander();
    let (mut idle, mut seen, mut period) = (AWAKE, 0, PERIOD);
    while !signals.has_ended() {
        let looks = signals.looks.load(Ordering::SeqCst);
        signals.sleeps.store(idle >= AWAKE, Ordering::SeqCst);
        let work = signals.work.load(Ordering::SeqCst);
        let watches = signals.watches.load(Ordering::SeqCst);
        let waits_for_others = work == Work::Others as u8 && watches;
        let busy = work != Work::None as u8 && !waits_for_others;
        if busy {
            idle = 0;
        }
        let time = match idle < AWAKE {
            true => Some(period),
            false if looks => Some(LOOK),
            false => watches.then_some(RARE_LOOK),
        };
        wait(signals, time);
        idle = idle.saturating_add(1);
        let polls = signals.polls.load(Ordering::Relaxed);
        let is_left_alone = std::mem::replace(&mut seen, polls) == polls;
        period = if is_left_alone { PERIOD } else { LONG_PERIOD };
        if (busy || looks || watches) && is_left_alone && served.serve() {
            signals.looks.store(false, Ordering::SeqCst);
            signals.bell.ring();
        }
    }
}

/// Waits until this thread is woken, the descriptor is readable, or the time is over.
fn wait(signals: &Signals, time: Option<Duration>) {
    let watches = signals.watches.load(Ordering::SeqCst);
    let mut set = vec![PollFd::new(&signals.wake, PollFlags::IN)];
    if let Some(descriptor) = signals.descriptor.filter(|_| watches) {
        set.push(PollFd::from_borrowed_fd(borrowed(descriptor), PollFlags::IN));
    }
    let time = time.map(|time| Timespec { tv_sec: 0, tv_nsec: time.subsec_nanos().into() });
    // Interrupted or not, what is readable is looked at in the next round.
    let _ = poll(&mut set, time.as_ref());
    let is_ready = |entry: &PollFd<'_>| !entry.revents().is_empty();
    let (is_woken, has_come) = (is_ready(&set[0]), set.get(1).is_some_and(is_ready));
    if is_woken {
        let _ = rustix::io::read(&signals.wake, &mut [0; 8]);
    }
    if has_come {
        signals.watches.store(false, Ordering::SeqCst);
        signals.rang.store(true, Ordering::SeqCst);
        signals.bell.ring();
    }
}

/// Leaves all signals to the threads of the program.
#[expect(unsafe_code, reason = "a call of the C library")]
fn take_no_signals() {
    // SAFETY: the set is local; the call changes only what this thread takes.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
    }
}

#[expect(unsafe_code, reason = "the provider tells its descriptor as a number")]
fn borrowed<'a>(descriptor: RawFd) -> BorrowedFd<'a> {
    // SAFETY: the endpoint, which owns the descriptor, is closed after this thread has ended (OA1 of
    // `crate::adapters::ofi`).
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
