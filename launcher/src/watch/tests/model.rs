//! Every interleaving of a small job, whatever its program does, and the looks of its launcher.
//!
//! There is no program: a thread that is not in a call may do anything next, as long as the job has
//! sends left. It sends, to its own rank too; it receives, and a frame that is taken in may be what any
//! thread of the rank waits for, or nobody; it polls; it starts a thread; it ends, or ends its process;
//! or it computes for a while, which is to do nothing. So one exploration stands for all programs of
//! that size. It breaks a wait into these steps, each of them atomic, those marked * under the lock:
//!
//! - look for frames*, in vain, and publish*; look again*, in vain, and count that*;
//! - look again* and take in a frame, for itself or another thread of the rank, of which all that sleep are
//!   woken, or not, since a ring may be lost; answer* with a frame; withdraw*;
//! - wake up by the bell, and withdraw*; find that another thread took in what is awaited, and withdraw*;
//! - send a frame*; ring*, or not.
//!
//! The launcher learns of ends at any time after them, reads line by line, and counts threads as the
//! kernel lists them ([`Job::list`]). What follows from its looks is said by [`Watch::judge`] itself.
//! Whenever that is a deadlock, no rank may ever get further; whenever none can, it has to come to that.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use super::*;

/// More looks than these are not told apart.
const MOST_LOOKS: u8 = 2;
/// Looks of the launcher.
const ROUNDS: usize = 3;

/// Where a thread stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    /// Not started yet.
    Unborn,
    Gone,
    /// Not in a call that waits.
    Free,
    /// Says that it never communicates any more.
    Bystander,
    /// Sent to that rank, and has still to ring.
    Sent(u8),
    /// In a wait, neither published nor announced.
    Waiting,
    /// Looked in vain, and has to publish.
    Looked,
    Asleep,
    /// Looked again in vain, and has to count it.
    LookedAgain,
    /// Found something when it looked again, and has to withdraw.
    Found,
    /// The same, and has to ring the bell of that rank, to which it has sent an answer.
    Answered(u8),
}

use At::{Answered, Asleep, Bystander, Found, Free, Gone, Looked, LookedAgain, Sent, Unborn, Waiting};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    at: At,
    /// Whether what it waits for has come.
    met: bool,
    /// Whether the bell has rung since it announced itself.
    rung: bool,
    /// Looks that were counted since the launcher read the line the second time.
    looks: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Rank<const T: usize> {
    threads: [Thread; T],
    frames: u8,
    ended: bool,
    /// Whether the slate has changed since the launcher read it first.
    changed: bool,
}

/// A line as it was read: whether the bell had rung, and the looks.
type Line = Option<(bool, u8)>;

/// What the launcher does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Doing {
    Reading { round: u8, rank: u8, line: u8 },
    Counting { rank: u8, told: u8, last: u8 },
}

use Doing::{Counting, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Launcher<const R: usize, const T: usize> {
    doing: Doing,
    /// Ranks that are known to have ended, before each look.
    ended: [[bool; R]; ROUNDS],
    lines: [[[Line; T]; R]; ROUNDS],
    changed: [[bool; R]; ROUNDS],
}

/// A job of `R` ranks that have at most `T` threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Job<const R: usize, const T: usize> {
    ranks: [Rank<T>; R],
    /// Frames that may still be sent.
    sends: u8,
    has_bystanders: bool,
    launcher: Launcher<R, T>,
}

/// What the launcher does not do, to see that the model notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    /// It does not ask for looks of the threads.
    Looks,
    /// It takes one look for enough.
    SecondLook,
    /// It does not compare epochs.
    Epochs,
    /// It does not count threads.
    Count,
    /// It counts them after the second look only.
    EarlyCount,
    /// It leaves threads out of the count that have gone when it asks for their names.
    Gone,
    /// It relies on bystanders, which start threads that are none.
    Bystanders,
    /// It lets ranks end between the looks.
    Ends,
}

impl Thread {
    fn new(at: At) -> Self {
        Self { at, met: false, rung: false, looks: 0 }
    }

    fn is_alive(self) -> bool {
        !matches!(self.at, Unborn | Gone)
    }

    /// Whether it has the session's lock between two of its steps.
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

impl<const T: usize> Rank<T> {
    /// Whether one of its threads waits, or waited when its process ended.
    fn waits(&self) -> bool {
        self.threads.iter().any(|thread| thread.is_open())
    }

    fn is_stuck(&self) -> bool {
        let is_stuck = |thread: &Thread| match thread.at {
            Unborn | Gone | Bystander => true,
            Found | Answered(_) => false,
            _ => thread.is_open(),
        };
        self.frames == 0 && self.threads.iter().all(is_stuck)
    }
}

impl<const R: usize, const T: usize> Launcher<R, T> {
    /// Whether it has read rank `rank`'s slate, and will read it again.
    fn compares(&self, rank: usize) -> bool {
        match self.doing {
            Reading { round: 0, rank: at, .. } => rank < at.into(),
            Reading { round: 2, rank: at, .. } => rank >= at.into(),
            Reading { .. } | Counting { .. } => true,
        }
    }

    /// Whether it has read that line the second time, and will read it again.
    fn counts_looks(&self, rank: usize, thread: usize) -> bool {
        let has_passed = |at: u8, line: u8| (rank, thread) < (at.into(), line.into());
        match self.doing {
            Reading { round: 1, rank: at, line } => has_passed(at, line),
            Reading { round: 2, rank: at, line } => !has_passed(at, line),
            _ => false,
        }
    }

    /// What the launcher makes of its looks so far: what it finds, and whether it goes on.
    fn judge(&self, rounds: usize, without: Without) -> (Finding, bool) {
        let (mut watch, now) = (deadlocks(), Instant::now());
        let mut found = Finding::Nothing;
        for round in 0..rounds {
            let known = if without == Without::Ends { rounds - 1 } else { round };
            let stage =
                |rank: usize| if self.ended[known][rank] { Stage::Ended } else { Stage::Running };
            let before = watch.candidate.take();
            found = watch.judge(before, self.look(round, without), stage, now);
        }
        (found, watch.candidate.is_some_and(|candidate| candidate.then.is_some() == (rounds > 1)))
    }

    /// Whether what was read of a rank keeps the launcher from finding anything.
    fn is_over(&self, round: usize, rank: usize, without: Without) -> bool {
        let [then, now] = [1, round].map(|round| self.state(round, rank, without));
        let is_blocked = now.as_ref().is_some_and(is_blocked);
        !self.ended[round][rank] && !(is_blocked && (round < 2 || have_looked(&then, &now)))
    }

    fn look(&self, round: usize, without: Without) -> Look {
        (0..R).map(|rank| self.state(round, rank, without)).collect()
    }

    /// What was read of a rank.
    fn state(&self, round: usize, rank: usize, without: Without) -> Option<TaskState> {
        let looks = |looks: u8| match without {
            Without::Looks => 9 * round as u32,
            Without::SecondLook => u32::from(looks) + round as u32,
            _ => looks.into(),
        };
        let blocked = |line: Line| {
            line.map(|(rung, count)| Blocked { undisturbed: !rung, looks: looks(count), ..asleep() })
        };
        let epoch = u64::from(self.changed[round][rank] && without != Without::Epochs);
        let lines = self.lines[round][rank].into_iter();
        state(epoch, lines.filter_map(blocked).collect())
    }
}

impl<const R: usize, const T: usize> Job<R, T> {
    /// A job whose ranks can have that many threads.
    fn new(threads: [usize; R], sends: u8) -> Self {
        let rank = |threads: usize| {
            let place = |at: usize| if at < threads { Unborn } else { Gone };
            let place = |at: usize| Thread::new(if at == 0 { Free } else { place(at) });
            Rank { threads: std::array::from_fn(place), frames: 0, ended: false, changed: false }
        };
        let launcher = Launcher {
            doing: Reading { round: 0, rank: 0, line: 0 },
            ended: [[false; R]; ROUNDS],
            lines: [[[None; T]; R]; ROUNDS],
            changed: [[false; R]; ROUNDS],
        };
        Self { ranks: threads.map(rank), sends, has_bystanders: false, launcher }
    }

    fn with_bystanders(self) -> Self {
        Self { has_bystanders: true, ..self }
    }

    /// The job after each step that one of its threads may take next.
    fn steps(&self, without: Without, then: &mut Vec<Self>) {
        for rank in (0..R).filter(|rank| !self.ranks[*rank].ended) {
            for thread in 0..T {
                self.free_step(rank, thread, without, then);
                self.step(rank, thread, then);
            }
        }
    }

    /// The steps of a thread inside of the library.
    fn step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        match self.ranks[rank].threads.iter().position(|thread| thread.has_lock()) {
            None => self.entering_step(rank, me, then),
            Some(holder) if holder == me => self.locked_step(rank, me, then),
            Some(_) => {}
        }
    }

    /// The steps of a thread outside of it.
    fn free_step(&self, rank: usize, me: usize, without: Without, then: &mut Vec<Self>) {
        let Rank { threads, .. } = self.ranks[rank];
        if !matches!(threads[me].at, Free | Bystander) {
            return;
        }
        let may_start = threads[me].at == Free || without == Without::Bystanders;
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
        // The process ends. What is published stays.
        let mut job = *self;
        let Rank { threads, frames, ended, .. } = &mut job.ranks[rank];
        (*frames, *ended) = (0, true);
        for thread in threads.iter_mut().filter(|thread| !thread.is_published()) {
            *thread = Thread::new(Gone);
        }
        then.push(job);
    }

    /// The steps of a thread that takes the lock.
    fn entering_step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let Rank { threads, frames, .. } = self.ranks[rank];
        let thread = threads[me];
        match thread.at {
            Free => {
                then.push(self.with(rank, me, Thread::new(Waiting)));
                self.send(rank, me, Sent, then);
                self.take_in(rank, me, Free, then);
            }
            Waiting if thread.met => then.push(self.with(rank, me, Thread::new(Free))),
            Waiting if frames > 0 => self.take_in(rank, me, Waiting, then),
            // It announces itself before it looks, so later rings are its own.
            Waiting => then.push(self.with(rank, me, Thread::new(Looked))),
            Asleep if thread.rung => then.push(self.withdrawn(rank, me)),
            Asleep if frames > 0 => self.take_in(rank, me, Found, then),
            Asleep => {
                let at = if thread.met { Found } else { LookedAgain };
                then.push(self.with(rank, me, Thread { at, ..thread }));
            }
            _ => {}
        }
    }

    /// The steps of the thread that has the lock.
    fn locked_step(&self, rank: usize, me: usize, then: &mut Vec<Self>) {
        let thread = self.ranks[rank].threads[me];
        let on = |at| Thread { at, ..thread };
        match thread.at {
            Sent(to) => self.with(rank, me, on(Free)).ring(to.into(), then),
            Answered(to) => self.with(rank, me, on(Found)).ring(to.into(), then),
            Looked => then.push(self.with(rank, me, on(Asleep)).with_change(rank)),
            LookedAgain => {
                let more = u8::from(self.launcher.counts_looks(rank, me));
                let looks = (thread.looks + more).min(MOST_LOOKS);
                then.push(self.with(rank, me, Thread { at: Asleep, looks, ..thread }));
            }
            Found => {
                self.take_in(rank, me, Found, then);
                self.send(rank, me, Answered, then);
                then.push(self.withdrawn(rank, me));
            }
            _ => {}
        }
    }

    fn send(&self, rank: usize, me: usize, at: fn(u8) -> At, then: &mut Vec<Self>) {
        if self.sends == 0 {
            return;
        }
        for to in 0..R {
            let mut job = *self;
            job.sends -= 1;
            job.ranks[to].frames += u8::from(!job.ranks[to].ended);
            job.ranks[rank].threads[me].at = at(to as u8);
            then.push(job);
        }
    }

    /// Takes in a frame, which is what one of the threads waits for, or not.
    fn take_in(&self, rank: usize, me: usize, at: At, then: &mut Vec<Self>) {
        if self.ranks[rank].frames == 0 {
            return;
        }
        let mut job = *self;
        job.ranks[rank].frames -= 1;
        let Thread { at: my, rung, .. } = &mut job.ranks[rank].threads[me];
        (*my, *rung) = (at, false);
        job.ring(rank, then);
        for thread in 0..T {
            if job.ranks[rank].threads[thread].is_open() {
                let mut job = job;
                job.ranks[rank].threads[thread].met = true;
                job.ring(rank, then);
            }
        }
    }

    /// Rings for all of the rank that have announced themselves, or the ring is lost.
    fn ring(self, to: usize, then: &mut Vec<Self>) {
        then.push(self);
        let mut job = self;
        let threads = job.ranks[to].threads.iter_mut();
        threads.filter(|thread| thread.is_announced()).for_each(|thread| thread.rung = true);
        if job != self {
            then.push(job);
        }
    }

    fn withdrawn(&self, rank: usize, me: usize) -> Self {
        let Thread { met, looks, .. } = self.ranks[rank].threads[me];
        self.with(rank, me, Thread { met, looks, ..Thread::new(Waiting) }).with_change(rank)
    }

    fn with(&self, rank: usize, thread: usize, new: Thread) -> Self {
        let mut job = *self;
        job.ranks[rank].threads[thread] = new;
        job
    }

    fn with_change(mut self, rank: usize) -> Self {
        self.ranks[rank].changed = self.launcher.compares(rank);
        self
    }

    /// The job after each step that its launcher may take next, or what that concludes.
    fn watch(&self, without: Without, then: &mut Vec<Self>) -> Finding {
        match self.launcher.doing {
            Reading { round, rank: 0, line: 0 } => {
                self.begin(round.into(), |job| job.read(round.into(), 0, 0, without, then))
            }
            Reading { round, rank, line } => {
                self.read(round.into(), rank.into(), line.into(), without, then)
            }
            Counting { rank, told, last } => {
                self.count(rank.into(), told, last, without, then);
                Finding::Nothing
            }
        }
    }

    /// Begins a look: some of the ranks that have ended are known to have.
    fn begin(&self, round: usize, mut look: impl FnMut(Self) -> Finding) -> Finding {
        let mut found = Finding::Nothing;
        for known in 0..1_u8 << R {
            let known: [bool; R] = std::array::from_fn(|rank| known >> rank & 1 == 1);
            let before = round.checked_sub(1).map(|before| self.launcher.ended[before]);
            let may_be = |rank: usize| {
                let was = before.is_some_and(|before| before[rank]);
                (!known[rank] || self.ranks[rank].ended) && (known[rank] || !was)
            };
            if (0..R).all(may_be) {
                let mut job = *self;
                job.launcher.ended[round] = known;
                found = look(job);
            }
        }
        found
    }

    /// Reads a line of a rank and goes on to the next one. What it reads in the first round, it reads at once.
    fn read(
        mut self,
        round: usize,
        rank: usize,
        line: usize,
        without: Without,
        then: &mut Vec<Self>,
    ) -> Finding {
        let Rank { threads, changed, .. } = self.ranks[rank];
        let lines = if round == 0 { 0..T } else { line..line + 1 };
        for line in lines.clone() {
            let Thread { rung, looks, .. } = threads[line];
            let is_there = threads[line].is_published();
            self.launcher.lines[round][rank][line] = is_there.then_some((rung, looks));
        }
        self.launcher.changed[round][rank] |= changed;
        let next = (lines.end..T).find(|&line| threads[line].is_published());
        if next.is_none() && self.launcher.is_over(round, rank, without) {
            return Finding::Nothing;
        }
        let (rank, line) = next.map_or((rank + 1, 0), |line| (rank, line));
        if line == 0 && rank == R {
            return self.end_look(round, without, then);
        }
        self.launcher.doing = Reading { round: round as u8, rank: rank as u8, line: line as u8 };
        then.push(self);
        Finding::Nothing
    }

    fn end_look(mut self, round: usize, without: Without, then: &mut Vec<Self>) -> Finding {
        let (found, goes_on) = self.launcher.judge(round + 1, without);
        if found == Finding::Nothing && goes_on && round + 1 < ROUNDS {
            let counts = match without {
                Without::Count => false,
                Without::EarlyCount => round == 1,
                _ => round == 0,
            };
            let next = Reading { round: round as u8 + 1, rank: 0, line: 0 };
            let counting = Counting { rank: 0, told: 0, last: 0 };
            self.launcher.doing = if counts { counting } else { next };
            then.push(self);
        }
        found
    }

    /// Goes on in the kernel's list of the rank's threads, and after its end to the next rank. A rank
    /// that has more threads than are blocked is not looked at further.
    fn count(&self, rank: usize, told: u8, last: u8, without: Without, then: &mut Vec<Self>) {
        let round = usize::from(without == Without::EarlyCount);
        let mut job = *self;
        let blocked = self.launcher.lines[round][rank].iter().flatten().count();
        let next = match self.list(rank, told, last) {
            _ if self.launcher.ended[round][rank] => Some(rank + 1),
            Some(thread) => {
                let (rank, told) = (rank as u8, told | 1 << thread);
                job.launcher.doing = Counting { rank, told, last: thread as u8 };
                None
            }
            None if self.counted(rank, told, without) == blocked => Some(rank + 1),
            None => return,
        };
        if let Some(next) = next {
            let rank = next as u8;
            let counting = Counting { rank, told: 0, last: 0 };
            let reading = Reading { round: round as u8 + 1, rank: 0, line: 0 };
            job.launcher.doing = if next == R { reading } else { counting };
        }
        then.push(job);
    }

    /// How many of the threads that the kernel told are no bystanders by their names. One that has gone is
    /// counted: where a name cannot be read, the launcher gives up.
    fn counted(&self, rank: usize, told: u8, without: Without) -> usize {
        let is_counted = |at: At| at != Bystander && (at != Gone || without != Without::Gone);
        let threads = self.ranks[rank].threads.iter().enumerate();
        let told = threads.filter(|(thread, _)| told >> thread & 1 == 1);
        told.filter(|(_, thread)| is_counted(thread.at)).count()
    }

    /// The thread that the kernel tells next, after those `told` of which the `last` one may have ended.
    /// It lists threads in the order in which they were started. Where the last one has gone, or was the
    /// end, it goes on at the place that is the number of those told, if there are more threads than that.
    /// Of a process that has ended, the first one is left.
    fn list(&self, rank: usize, told: u8, last: u8) -> Option<usize> {
        let Rank { threads, ended, .. } = &self.ranks[rank];
        let is_there = |&at: &usize| if *ended { at == 0 } else { threads[at].is_alive() };
        let after = (last as usize + 1..T).find(is_there);
        let after = after.filter(|_| told != 0 && is_there(&last.into()));
        after.or_else(|| (0..T).filter(is_there).nth(told.count_ones() as usize))
    }

    /// Whether some threads wait, and no rank can ever get further: what they wait for will not come.
    fn is_stuck(&self) -> bool {
        self.ranks.iter().any(Rank::waits)
            && self.ranks.iter().all(|rank| rank.ended || rank.is_stuck())
    }

    /// Whether the launcher has to find that. It does not judge a rank that has bystanders only.
    fn is_to_be_found(&self) -> bool {
        let mut left = self.ranks.iter().filter(|rank| !rank.ended).peekable();
        self.is_stuck() && left.peek().is_some() && left.all(Rank::waits)
    }
}

/// A hash that is good enough for states, and quick without optimisation.
#[derive(Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u8(*byte));
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(byte.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

/// What an exploration has met.
#[derive(Default)]
struct Outcome<const R: usize, const T: usize> {
    /// Whether a deadlock was ever found.
    found: bool,
    /// How it came to a deadlock that is none.
    wrong: Vec<Job<R, T>>,
    /// A deadlock that is never found.
    missed: Option<Job<R, T>>,
    states: usize,
}

impl<const R: usize, const T: usize> Job<R, T> {
    /// Goes all ways, until a deadlock is found that is none.
    fn explore(self, without: Without) -> Outcome<R, T> {
        let mut outcome = Outcome::default();
        let mut known = HashSet::<_, BuildHasherDefault<Fold>>::from_iter([self]);
        let (mut open, mut way, mut then) = (vec![(0, self)], Vec::new(), Vec::new());
        while let Some((depth, job)) = open.pop() {
            way.truncate(depth);
            way.push(job);
            let is_found = job.watch(without, &mut then) == Finding::Deadlock;
            outcome.found |= is_found;
            if is_found && !job.is_stuck() {
                outcome.wrong = way;
                break;
            }
            if job.launcher == self.launcher && job.is_to_be_found() && !job.is_found_in_time() {
                outcome.missed = Some(job);
            }
            job.steps(without, &mut then);
            then.retain(|next| !next.is_over(without) && known.insert(*next));
            open.extend(then.drain(..).map(|next| (depth + 1, next)));
        }
        outcome.states = known.len();
        outcome
    }

    /// Whether a slate has changed since the launcher read it first: SL3 tells it so when it reads it again.
    fn is_over(&self, without: Without) -> bool {
        self.ranks.iter().any(|rank| rank.changed)
            && !matches!(without, Without::Epochs | Without::Ends)
    }

    /// Whether the launcher finds a deadlock that is there, if all others go on meanwhile.
    fn is_found_in_time(mut self) -> bool {
        let mut then = Vec::new();
        loop {
            if matches!(self.launcher.doing, Reading { rank: 0, line: 0, .. }) {
                self.let_all_look();
            }
            if self.watch(Without::Nothing, &mut then) == Finding::Deadlock {
                return true;
            }
            // The last one is that in which most ends are known.
            let Some(next) = then.pop() else { return false };
            then.clear();
            self = next;
        }
    }

    /// Each thread that waits goes on until it has looked again twice, or more often.
    fn let_all_look(&mut self) {
        let mut then = Vec::new();
        for _ in 0..8 * T {
            for (rank, thread) in (0..R).flat_map(|rank| (0..T).map(move |thread| (rank, thread))) {
                if !self.ranks[rank].ended {
                    self.step(rank, thread, &mut then);
                    *self = then.pop().unwrap_or(*self);
                    then.clear();
                }
            }
        }
    }
}

#[test]
fn sizes() {
    fn one<const R: usize, const T: usize>(job: Job<R, T>, without: Without) {
        let start = Instant::now();
        let outcome = job.explore(without);
        eprintln!("{R} {T} {} {without:?}: found {} wrong {} missed {} states {} {:?}", job.sends, outcome.found, outcome.wrong.len(), outcome.missed.is_some(), outcome.states, start.elapsed());
        if without == Without::Nothing { for job in outcome.wrong.iter().rev().take(10) { eprintln!("{job:?}"); } 
         eprintln!("{:?}", outcome.missed); }
    }
    let no = Without::Nothing;
    one(Job::<2, 1>::new([1, 1], 2), no);
    one(Job::<3, 1>::new([1, 1, 1], 3), no);
    one(Job::<2, 2>::new([2, 2], 2), no);
    one(Job::<2, 3>::new([3, 1], 2), no);
    one(Job::<2, 3>::new([3, 1], 1).with_bystanders(), no);
    one(Job::<2, 2>::new([2, 2], 1).with_bystanders(), no);
    one(Job::<3, 2>::new([2, 1, 1], 2), no);
    use Without::*;
    for without in [Looks, SecondLook, Epochs, Count, EarlyCount, Without::Gone, Bystanders, Ends] {
       one(Job::<2, 1>::new([1, 1], 2), without);
       one(Job::<2, 2>::new([2, 1], 1), without);
       one(Job::<2, 2>::new([2, 1], 1).with_bystanders(), without);
       one(Job::<2, 3>::new([3, 1], 1), without);
    }
}
