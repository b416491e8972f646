//! A model of a small job: every interleaving of its threads and the looks of its launcher, for every program.
//!
//! There is no program: a thread that is not in a call may do anything next. It sends, to its own rank too, as long as
//! the job has sends left; it receives; it polls; it starts a thread; it ends, or ends its process; it computes, which
//! is to do nothing for a while. So one exploration stands for all programs that send this often. In the library a
//! thread takes the following steps. Each is atomic, and the thread holds the session's lock between the steps of one
//! item.
//!
//! - Send a frame; ring, or not, since a ring may be lost.
//! - In a wait, look for frames in vain; publish. Asleep, look again in vain; count that.
//! - Take in a frame. It may be what any one of the rank's threads waits for, whatever that has asked for, or what none
//!   waits for; the threads are woken by that, or not. Asleep, perhaps answer it; unpublish the wait.
//! - Woken by the bell, unpublish the wait.
//! - Asleep, find that another thread took in what it waits for; unpublish the wait.
//!
//! Ranks may have several contexts, each with its own lock and its own wait table. A call of the library is in any one
//! of them: there it sends to the same context of another rank, takes in what was sent there, and wakes or completes
//! the threads that wait there. Frames to a context that nobody enters stay there.
//!
//! In jobs with pools, a thread outside of the library may go to sleep there. Another thread of its rank wakes it, also
//! one that has found something in the library and runs a function of the program; or, depending on the job, something
//! beyond its rank wakes it ([`Pool`]). A thread may also sleep until the lock of a context is free.
//!
//! The launcher (`launcher.rs`) learns of an end at any time after it, reads line by line, and asks for threads as the
//! kernel lists them. [`Watch::judge`] itself draws the conclusion. If that is a deadlock, no rank may ever get
//! further; if no rank can get further, the launcher has to find the deadlock.

use super::*;
use launcher::{BEYOND, Launcher, Without};
use ways::Outcome;

mod launcher;
mod packed;
mod ways;

/// Greater numbers of looks are not distinguished.
const MOST_LOOKS: u8 = 2;

/// What a thread is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Not started yet.
    Unborn,
    Gone,
    /// Not in a call that waits.
    Free,
    /// Has declared that it communicates no more.
    Bystander,
    /// Asleep outside of the library until it is woken.
    Idle,
    /// Asleep until the lock of its context is free.
    Queued,
    /// Has sent to that rank, and has yet to ring its bell.
    Sent(u8),
    /// In a wait that is neither published nor announced.
    Waiting,
    /// Has looked in vain, and has yet to publish.
    Looked,
    Asleep,
    /// Has looked again in vain, and has yet to count that.
    LookedAgain,
    /// Has found something when it looked again, and has yet to unpublish its wait.
    Found,
    /// The same; it has sent an answer to that rank and has yet to ring its bell.
    Answered(u8),
}

use At::{
    Answered, Asleep, Bystander, Found, Free, Gone, Idle, Looked, LookedAgain, Queued, Sent,
    Unborn, Waiting,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    at: At,
    /// The context that it has entered; 0 outside of the library.
    context: u8,
    /// Whether what it waits for has come.
    met: bool,
    /// Whether the bell has rung since it announced itself.
    rung: bool,
    /// Looks that were counted since the launcher read the line the second time.
    looks: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rank<const T: usize, const C: usize> {
    threads: [Thread; T],
    /// How many frames lie in each context.
    frames: [u8; C],
    ended: bool,
    /// Whether the wait table of a context has changed since the launcher read it first.
    changed: [bool; C],
    /// The threads, one bit each, that were woken after the launcher had found them idle.
    woken: u8,
}

/// Who wakes threads that sleep outside of the library, if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pool {
    None,
    /// Another thread of the rank, and nobody else.
    Own,
    /// Something that the launcher excludes by this rule: a process outside of the job, time, a signal.
    Beyond(Without),
}

/// A job of `R` ranks that have at most `T` threads, and `C` contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Job<const R: usize, const T: usize, const C: usize> {
    ranks: [Rank<T, C>; R],
    /// Frames that may still be sent.
    sends: u8,
    has_bystanders: bool,
    pool: Pool,
    launcher: Launcher<R, T, C>,
}

impl Thread {
    fn new(at: At) -> Self {
        Self { at, context: 0, met: false, rung: false, looks: 0 }
    }

    fn is_alive(self) -> bool {
        !matches!(self.at, Unborn | Gone)
    }

    /// Whether it holds the session's lock between two of its steps.
    fn has_lock(self) -> bool {
        matches!(self.at, Sent(_) | Looked | LookedAgain | Found | Answered(_))
    }

    fn is_published(self) -> bool {
        matches!(self.at, Asleep | LookedAgain | Found | Answered(_))
    }

    /// Whether it waits for something that has not come.
    fn is_open(self) -> bool {
        !self.met && (self.is_published() || matches!(self.at, Waiting | Looked))
    }

    fn is_announced(self) -> bool {
        matches!(self.at, Looked | Asleep | LookedAgain)
    }
}

impl<const T: usize, const C: usize> Rank<T, C> {
    /// Whether one of its threads waits, or waited when its process ended.
    fn waits(&self) -> bool {
        self.threads.iter().any(|thread| thread.is_open())
    }

    /// Whether it can never go on. A frame in a context in which no thread waits moves nobody, and neither does a pool
    /// in which all threads wait for each other.
    fn is_stuck(&self, pool: Pool) -> bool {
        let is_stuck = |thread: &Thread| match thread.at {
            Unborn | Gone | Bystander => true,
            Idle => pool == Pool::Own,
            Queued => false,
            Found | Answered(_) => false,
            _ => thread.is_open() && self.frames[usize::from(thread.context)] == 0,
        };
        self.threads.iter().all(is_stuck)
    }

    /// The thread that holds the lock of `context`.
    fn holder(&self, context: usize) -> Option<usize> {
        let holds = |thread: &Thread| thread.has_lock() && usize::from(thread.context) == context;
        self.threads.iter().position(holds)
    }
}

impl<const R: usize, const T: usize, const C: usize> Job<R, T, C> {
    /// A job whose ranks can have these numbers of threads.
    fn new(threads: [usize; R], sends: u8) -> Self {
        let rank = |most: usize| {
            let at = |thread| match thread {
                0 => Free,
                _ if thread < most => Unborn,
                _ => Gone,
            };
            let threads = std::array::from_fn(|thread| Thread::new(at(thread)));
            Rank { threads, frames: [0; C], ended: false, changed: [false; C], woken: 0 }
        };
        let ranks = threads.map(rank);
        let launcher = Launcher::new();
        Self { ranks, sends, has_bystanders: false, pool: Pool::None, launcher }
    }

    fn with_bystanders(self) -> Self {
        Self { has_bystanders: true, ..self }
    }

    fn with_pool(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// Appends the job after each step that one of its threads may take next.
    fn steps(&self, without: Without, then: &mut Vec<Self>) {
        for rank in (0..R).filter(|rank| !self.ranks[*rank].ended) {
            for thread in 0..T {
                self.free_step(rank, thread, without, then);
                self.pool_step(rank, thread, then);
                self.step(rank, thread, then);
            }
        }
    }

    /// The steps of a thread inside of the library.
    fn step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let Thread { at, context, .. } = self.ranks[rank].threads[me];
        if at == Free {
            let contexts = 0..C;
            let free = contexts.filter(|context| self.ranks[rank].holder(*context).is_none());
            return free.for_each(|context| self.calling_step(rank, me, context, then));
        }
        match self.ranks[rank].holder(context.into()) {
            None => self.entering_step(rank, me, then),
            Some(holder) if holder == me => self.locked_step(rank, me, then),
            Some(_) => {}
        }
    }

    /// The steps of a thread outside of the library.
    fn free_step(&self, rank: usize, me: usize, without: Without, then: &mut Vec<Self>) {
        let Rank { threads, .. } = self.ranks[rank];
        if !matches!(threads[me].at, Free | Bystander) {
            return;
        }
        let may_start = threads[me].at == Free || without == Without::LoneBystanders;
        let unborn = threads.iter().position(|thread| thread.at == Unborn);
        if let Some(new) = unborn.filter(|_| may_start) {
            then.push(self.with(rank, new, Thread::new(Free)));
        }
        if self.has_bystanders {
            then.push(self.with(rank, me, Thread::new(Bystander)));
        }
        if me > 0 {
            then.push(self.with(rank, me, Thread::new(Gone)));
        }
        // The process ends. What it has published stays.
        let mut job = *self;
        let Rank { threads, frames, ended, .. } = &mut job.ranks[rank];
        (*frames, *ended) = ([0; C], true);
        for thread in threads.iter_mut().filter(|thread| !thread.is_published()) {
            *thread = Thread::new(Gone);
        }
        then.push(job);
    }

    /// The steps of a thread in a pool: it goes to sleep outside of the library, waits for a lock, wakes others, or is
    /// woken.
    fn pool_step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let Rank { threads, .. } = self.ranks[rank];
        let Thread { at, context, .. } = threads[me];
        let has_lock = |context| self.ranks[rank].holder(context).is_some();
        let is_woken = match at {
            Idle => matches!(self.pool, Pool::Beyond(_)),
            Queued => !has_lock(context.into()),
            _ => false,
        };
        if is_woken {
            then.push(self.woken(rank, me));
        }
        if self.pool == Pool::None || !matches!(at, Free | Found) {
            return;
        }
        let idle = (0..T).filter(|thread| threads[*thread].at == Idle);
        then.extend(idle.map(|thread| self.woken(rank, thread)));
        if at == Free {
            then.push(self.with(rank, me, Thread::new(Idle)));
            let contexts = (0..C).filter(|context| has_lock(*context));
            let queued = |context| Thread { context: context as u8, ..Thread::new(Queued) };
            then.extend(contexts.map(|context| self.with(rank, me, queued(context))));
        }
    }

    fn woken(&self, rank: usize, thread: usize) -> Self {
        let mut job = self.with(rank, thread, Thread::new(Free));
        job.ranks[rank].woken |= self.launcher.idle[rank] & 1 << thread;
        job
    }

    /// The steps of a thread that calls the library, in this context.
    fn calling_step(&self, rank: usize, me: usize, context: usize, then: &mut Vec<Self>) {
        let called = Thread { context: context as u8, ..Thread::new(Waiting) };
        let job = self.with(rank, me, called);
        then.push(job);
        job.send(rank, me, Sent, then);
        self.take_in(rank, me, called.context, Free, then);
    }

    /// The steps of a thread that takes the lock.
    fn entering_step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let Rank { threads, frames, .. } = self.ranks[rank];
        let thread = threads[me];
        let frames = frames[usize::from(thread.context)];
        match thread.at {
            Waiting if thread.met => then.push(self.with(rank, me, Thread::new(Free))),
            Waiting if frames > 0 => self.take_in(rank, me, thread.context, Waiting, then),
            // It announces itself before it looks, so later rings reach it.
            Waiting => {
                let looked = Thread { context: thread.context, ..Thread::new(Looked) };
                then.push(self.with(rank, me, looked));
            }
            Asleep if thread.rung => then.push(self.unpublished(rank, me)),
            Asleep if frames > 0 => self.take_in(rank, me, thread.context, Found, then),
            Asleep => {
                let at = if thread.met { Found } else { LookedAgain };
                then.push(self.with(rank, me, Thread { at, ..thread }));
            }
            _ => {}
        }
    }

    /// The steps of the thread that holds the lock.
    fn locked_step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let thread = self.ranks[rank].threads[me];
        let on = |at| Thread { at, ..thread };
        match thread.at {
            Sent(to) => self.with(rank, me, Thread::new(Free)).ring(to, thread.context, then),
            Answered(to) => self.with(rank, me, on(Found)).ring(to, thread.context, then),
            Looked => then.push(self.with(rank, me, on(Asleep)).with_change(rank, thread.context)),
            LookedAgain => {
                let context = usize::from(thread.context);
                let more = u8::from(self.launcher.counts_looks(rank, context, me));
                let looks = (thread.looks + more).min(MOST_LOOKS);
                then.push(self.with(rank, me, Thread { at: Asleep, looks, ..thread }));
            }
            Found => {
                self.take_in(rank, me, thread.context, Found, then);
                self.send(rank, me, Answered, then);
                then.push(self.unpublished(rank, me));
            }
            _ => {}
        }
    }

    fn send(&self, rank: usize, me: usize, at: fn(u8) -> At, then: &mut Vec<Self>) {
        if self.sends == 0 {
            return;
        }
        let context = usize::from(self.ranks[rank].threads[me].context);
        for to in 0..R {
            let mut job = *self;
            job.sends -= 1;
            job.ranks[to].frames[context] += u8::from(!job.ranks[to].ended);
            job.ranks[rank].threads[me].at = at(to as u8);
            then.push(job);
        }
    }

    /// Takes in a frame of the context, for which one of the threads waits, or none, and goes on at `at`.
    fn take_in(&self, rank: usize, me: usize, context: u8, at: At, then: &mut Vec<Self>) {
        if self.ranks[rank].frames[usize::from(context)] == 0 {
            return;
        }
        let mut job = *self;
        job.ranks[rank].frames[usize::from(context)] -= 1;
        let Thread { at: my, rung, .. } = &mut job.ranks[rank].threads[me];
        (*my, *rung) = (at, false);
        job.ring(rank as u8, context, then);
        for thread in 0..T {
            let other = job.ranks[rank].threads[thread];
            if other.is_open() && other.context == context {
                let mut job = job;
                job.ranks[rank].threads[thread].met = true;
                job.ring(rank as u8, context, then);
            }
        }
    }

    /// Rings for all threads of the rank that have announced themselves in the context, or loses the ring.
    fn ring(self, to: u8, context: u8, then: &mut Vec<Self>) {
        then.push(self);
        let mut job = self;
        let threads = job.ranks[usize::from(to)].threads.iter_mut();
        let announced = threads.filter(|one| one.is_announced() && one.context == context);
        announced.for_each(|thread| thread.rung = true);
        if job != self {
            then.push(job);
        }
    }

    fn unpublished(&self, rank: usize, me: usize) -> Self {
        let Thread { context, met, looks, .. } = self.ranks[rank].threads[me];
        let waiting = Thread { context, met, looks, ..Thread::new(Waiting) };
        self.with(rank, me, waiting).with_change(rank, context)
    }

    fn with(&self, rank: usize, thread: usize, new: Thread) -> Self {
        let mut job = *self;
        job.ranks[rank].threads[thread] = new;
        job
    }

    fn with_change(mut self, rank: usize, context: u8) -> Self {
        let context = usize::from(context);
        self.ranks[rank].changed[context] = self.launcher.compares(rank, context);
        self
    }

    /// Whether some threads wait, and no rank can ever get further.
    fn is_stuck(&self) -> bool {
        self.ranks.iter().any(Rank::waits)
            && self.ranks.iter().all(|rank| rank.ended || rank.is_stuck(self.pool))
    }

    /// Whether the launcher has to find that. It does not judge a rank that has only bystanders.
    fn is_to_be_found(&self) -> bool {
        let mut left = self.ranks.iter().filter(|rank| !rank.ended).peekable();
        self.is_stuck() && left.peek().is_some() && left.all(Rank::waits)
    }
}

/// Asserts that the launcher finds all deadlocks of the job, and nothing else.
fn check<const R: usize, const T: usize, const C: usize>(job: Job<R, T, C>) {
    check_without(Without::Nothing, job);
}

fn check_without<const R: usize, const T: usize, const C: usize>(
    without: Without,
    job: Job<R, T, C>,
) {
    let Outcome { found, wrong, missed } = job.explore(without);
    assert!(wrong.is_empty(), "a rank gets further: {wrong:#?}");
    assert!(missed.is_none(), "never found: {missed:#?}");
    assert!(found, "no deadlock at all");
}

#[test]
fn ranks_of_one_thread() {
    check_without(Without::Haste, Job::<2, 1, 1>::new([1, 1], 2));
    check(Job::<3, 1, 1>::new([1, 1, 1], 2));
}

#[test]
fn ranks_of_two_threads() {
    check_without(Without::Haste, Job::<2, 2, 1>::new([2, 1], 1));
    check(Job::<2, 2, 1>::new([2, 2], 1));
    check(Job::<2, 2, 1>::new([2, 1], 3));
}

/// Of a thread that starts another one and ends, the launcher's list shows one or the other.
#[test]
fn threads_that_come_and_go() {
    check(Job::<2, 3, 1>::new([3, 1], 2));
}

#[test]
fn bystanders() {
    check(Job::<2, 2, 1>::new([2, 2], 1).with_bystanders());
    check(Job::<2, 3, 1>::new([3, 1], 1).with_bystanders());
}

/// The launcher judges only pools that nobody else can wake.
#[test]
fn pools() {
    check(Job::<2, 2, 1>::new([2, 2], 1).with_pool(Pool::Own));
    check(Job::<2, 3, 1>::new([3, 1], 1).with_pool(Pool::Own));
    // With their rules, all of these are alike.
    check(Job::<2, 2, 1>::new([2, 2], 1).with_pool(Pool::Beyond(Without::Limits)));
}

/// Threads that go from one context to another, and frames in a context in which nobody waits.
#[test]
fn contexts() {
    check_without(Without::Haste, Job::<2, 1, 2>::new([1, 1], 1));
    check(Job::<2, 1, 2>::new([1, 1], 3));
    check(Job::<2, 2, 2>::new([2, 1], 1));
}

#[test]
#[ignore = "twenty seconds without optimisation"]
fn jobs_that_send_more() {
    check(Job::<3, 1, 1>::new([1, 1, 1], 3));
    check(Job::<2, 2, 1>::new([2, 2], 2));
    check(Job::<2, 2, 1>::new([2, 1], 4));
    check_without(Without::Haste, Job::<2, 1, 2>::new([1, 1], 2));
}

#[test]
#[ignore = "a minute with optimisation, and half a gigabyte"]
fn larger_jobs() {
    check(Job::<2, 2, 1>::new([2, 2], 4));
    check(Job::<3, 1, 1>::new([1, 1, 1], 5));
    check(Job::<2, 3, 1>::new([3, 2], 2));
    check(Job::<3, 2, 1>::new([2, 1, 1], 2));
    check(Job::<2, 2, 2>::new([2, 2], 1));
    check(Job::<2, 1, 2>::new([1, 1], 5));
    check(Job::<2, 3, 1>::new([3, 2], 1).with_pool(Pool::Own));
    check(Job::<2, 2, 2>::new([2, 1], 1).with_pool(Pool::Own));
}

/// The model finds an error in a launcher without any one of these rules.
#[test]
fn each_part_of_the_protocol_is_needed() {
    let small = Job::<2, 1, 1>::new([1, 1], 2);
    for without in [Without::Looks, Without::SecondLook, Without::Epochs, Without::Ends] {
        assert!(!small.explore(without).wrong.is_empty(), "{without:?}");
    }
    let threads = Job::<2, 3, 1>::new([3, 1], 1);
    for without in [Without::Lists, Without::UnexpectedLists, Without::Names] {
        assert!(!threads.explore(without).wrong.is_empty(), "{without:?}");
    }
    let contexts = Job::<2, 1, 2>::new([1, 1], 2);
    for without in [Without::ContextLooks, Without::ContextEpochs] {
        assert!(!contexts.explore(without).wrong.is_empty(), "{without:?}");
    }
    assert!(
        contexts.explore(Without::Contexts).missed.is_some(),
        "a context left out of the count"
    );
    let own = threads.with_pool(Pool::Own);
    for without in [Without::SecondList, Without::Switches, Without::LockLimits] {
        assert!(!own.explore(without).wrong.is_empty(), "{without:?}");
    }
    for rule in BEYOND {
        let job = Job::<2, 2, 1>::new([2, 2], 1).with_pool(Pool::Beyond(rule));
        assert!(!job.explore(rule).wrong.is_empty(), "{rule:?}");
    }
    let bystanders = threads.with_bystanders().explore(Without::LoneBystanders);
    assert!(!bystanders.wrong.is_empty(), "bystanders that start others");
}
