//! The launcher of the model: it reads the wait tables and lists the threads, a line and a thread at a time, and passes
//! what it has read to [`Watch::judge`].
//!
//! It is no stricter than the real one. It lists the threads only between two looks, twice if it has found idle ones;
//! the real one lists them between all looks. It reads at once that a thread sleeps and how often it has been switched,
//! which the real one need not (ID4). It leaves out what cannot matter: it gives up as soon as it can find nothing any
//! more, since it may begin anew at any time.

use super::*;

/// Looks of the launcher.
const ROUNDS: usize = 3;

/// A line as it was read: whether the bell had rung, and how many looks it counted.
pub(super) type Line = Option<(bool, u8)>;

/// What the launcher does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Reading {
        round: u8,
        rank: u8,
        context: u8,
        line: u8,
    },
    /// The kernel has listed the threads `told` of that rank, `last` the latest of them.
    Listing {
        second: bool,
        rank: u8,
        told: u8,
        last: u8,
    },
    /// It has still to find out whether these threads of the rank are idle.
    Asking {
        second: bool,
        rank: u8,
        threads: u8,
    },
}

use Doing::{Asking, Listing, Reading};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Launcher<const R: usize, const T: usize, const C: usize> {
    pub(super) doing: Doing,
    /// The ranks that are known to have ended before each look.
    pub(super) ended: [[bool; R]; ROUNDS],
    pub(super) lines: [[[[Line; T]; C]; R]; ROUNDS],
    /// Whether the epoch of a context differed from that of the first look.
    pub(super) changed: [[[bool; C]; R]; ROUNDS],
    /// The threads of each rank, one bit each, that were idle by the first list.
    pub(super) idle: [u8; R],
}

/// Which rule is left out, to show that it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Without {
    Nothing,
    /// The launcher gives up where a wait table has changed since it was read. This only saves time.
    Haste,
    /// Threads count their looks.
    Looks,
    /// Each thread has to look twice.
    SecondLook,
    /// Epochs are compared.
    Epochs,
    /// Contexts beyond the first are read.
    Contexts,
    /// The looks of threads in those contexts count.
    ContextLooks,
    /// The epochs of those contexts are compared.
    ContextEpochs,
    /// Threads are listed.
    Lists,
    /// They are listed before the second look of the launcher, not only after it.
    UnexpectedLists,
    /// They are listed a second time, when idle threads still have to sleep.
    SecondList,
    /// Idle threads must not have been switched since the first list.
    Switches,
    /// No other process has the futex of an idle thread.
    Privacy,
    /// No other process has the memory of an idle thread.
    Memory,
    /// An idle thread sleeps without a time limit.
    Limits,
    /// The process of an idle thread catches no signals.
    Signals,
    /// The kernel does not wake an idle thread on behalf of something else.
    Rings,
    /// A wait for the lock of a context has a time limit, since a thread that is asleep in a call may hold that lock.
    LockLimits,
    /// A listed thread that is gone when its name is read makes the launcher give up.
    Names,
    /// Bystanders start no threads.
    LoneBystanders,
    /// No rank may end between the looks.
    Ends,
}

/// The rules against what could wake a thread from beyond its process.
pub(super) const BEYOND: [Without; 5] =
    [Without::Privacy, Without::Memory, Without::Limits, Without::Signals, Without::Rings];

impl<const R: usize, const T: usize, const C: usize> Launcher<R, T, C> {
    pub(super) fn new() -> Self {
        Self {
            doing: Reading { round: 0, rank: 0, context: 0, line: 0 },
            ended: [[false; R]; ROUNDS],
            lines: [[[[None; T]; C]; R]; ROUNDS],
            changed: [[[false; C]; R]; ROUNDS],
            idle: [0; R],
        }
    }

    /// Whether it has read rank `rank`'s wait table of `context`, and will read it again.
    pub(super) fn compares(&self, rank: usize, context: usize) -> bool {
        let is_before = |at: u8, of: u8| (rank, context) < (at.into(), of.into());
        match self.doing {
            Reading { round: 0, rank: at, context: of, .. } => is_before(at, of),
            Reading { round: 2, rank: at, context: of, .. } => !is_before(at, of),
            Reading { .. } | Listing { .. } | Asking { .. } => true,
        }
    }

    /// Whether it has read that line of the wait table of `context` twice, and will read it again.
    pub(super) fn counts_looks(&self, rank: usize, context: usize, thread: usize) -> bool {
        let has_passed = |at: u8, of: u8, line: u8| {
            (rank, context, thread) < (at.into(), of.into(), line.into())
        };
        match self.doing {
            Reading { round: 1, rank: at, context: of, line } => has_passed(at, of, line),
            Reading { round: 2, rank: at, context: of, line } => !has_passed(at, of, line),
            _ => false,
        }
    }

    /// Judges the looks so far: what they have found, and whether the launcher goes on.
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

    /// Whether the launcher can find nothing any more, by what it has read of a rank.
    fn is_over(&self, round: usize, rank: usize, without: Without) -> bool {
        let [then, now] = [1, round].map(|round| self.state(round, rank, without));
        let is_blocked = now.as_ref().is_some_and(is_blocked);
        !self.ended[round][rank] && !(is_blocked && (round < 2 || have_looked(&then, &now)))
    }

    fn look(&self, round: usize, without: Without) -> Look {
        (0..R).map(|rank| self.state(round, rank, without)).collect()
    }

    /// The state of a rank as it was read.
    fn state(&self, round: usize, rank: usize, without: Without) -> Option<TaskState> {
        let looks = |looks: u8, context: usize| match without {
            Without::Looks => 9 * round as u32,
            Without::ContextLooks if context > 0 => 9 * round as u32,
            Without::SecondLook => u32::from(looks) + round as u32,
            _ => looks.into(),
        };
        let blocked = |context: usize, (rung, count): (bool, u8)| Blocked {
            undisturbed: !rung,
            looks: looks(count, context),
            ..asleep()
        };
        let of_epoch = match without {
            Without::Epochs => 0,
            Without::ContextEpochs => 1,
            _ => C,
        };
        let contexts = if without == Without::Contexts { 1 } else { C };
        let changed = self.changed[round][rank].iter().take(of_epoch.min(contexts));
        let tables = self.lines[round][rank].iter().take(contexts).enumerate();
        let lines = tables.flat_map(|(context, lines)| {
            lines.iter().flatten().map(move |line| blocked(context, *line))
        });
        state(changed.map(|changed| u64::from(*changed)).sum(), lines.collect())
    }
}

impl<const R: usize, const T: usize, const C: usize> Job<R, T, C> {
    /// Appends the job after each step that its launcher may take next, and returns what that step has found.
    pub(super) fn watch(&self, without: Without, then: &mut Vec<Self>) -> Finding {
        match self.launcher.doing {
            Reading { round, rank: 0, context: 0, line: 0 } => {
                let looks = self.begun(round.into());
                let found = looks.map(|job| job.read(round.into(), (0, 0), 0, without, then));
                found.last().unwrap_or(Finding::Nothing)
            }
            Reading { round, rank, context, line } => {
                let table = (rank.into(), context.into());
                self.read(round.into(), table, line.into(), without, then)
            }
            Listing { second, rank, told, last } => {
                self.list(second, rank.into(), (told, last), without, then);
                Finding::Nothing
            }
            Asking { second, rank, threads } => {
                self.ask(second, rank.into(), threads, without, then);
                Finding::Nothing
            }
        }
    }

    /// The job at the beginning of a look, for each set of ended ranks that the launcher may know of; the last set has
    /// all of them.
    fn begun(&self, round: usize) -> impl Iterator<Item = Self> + '_ {
        let knows = |known: u8, rank: usize| known >> rank & 1 == 1;
        let has_known = move |rank: usize| round > 0 && self.launcher.ended[round - 1][rank];
        let may_know = move |known: &u8| {
            (0..R).all(|rank| match knows(*known, rank) {
                true => self.ranks[rank].ended,
                false => !has_known(rank),
            })
        };
        (0..1 << R).filter(may_know).map(move |known| {
            let mut job = *self;
            job.launcher.ended[round] = std::array::from_fn(|rank| knows(known, rank));
            job
        })
    }

    /// Reads a line of the wait table of a rank and context, and goes on to the next one. The first look reads all
    /// lines of a wait table at once: a wait table that changes meanwhile is read again (SL2), and the looks of its
    /// threads do not matter yet.
    fn read(
        mut self,
        round: usize,
        (rank, context): (usize, usize),
        line: usize,
        without: Without,
        then: &mut Vec<Self>,
    ) -> Finding {
        let Rank { threads, changed, .. } = self.ranks[rank];
        let is_there = |line: usize| {
            threads[line].is_published() && usize::from(threads[line].context) == context
        };
        let lines = if round == 0 { 0..T } else { line..line + 1 };
        for line in lines.clone() {
            let Thread { rung, looks, .. } = threads[line];
            let is_there = is_there(line);
            self.launcher.lines[round][rank][context][line] = is_there.then_some((rung, looks));
        }
        self.launcher.changed[round][rank][context] |= changed[context];
        let next = (lines.end..T).find(|&line| is_there(line));
        let is_read = next.is_none() && context + 1 == C;
        if is_read && self.launcher.is_over(round, rank, without) {
            return Finding::Nothing;
        }
        let (rank, context, line) = match next {
            Some(line) => (rank, context, line),
            None if is_read => (rank + 1, 0, 0),
            None => (rank, context + 1, 0),
        };
        if rank == R {
            return self.end_look(round, without, then);
        }
        let (round, rank, context, line) = (round as u8, rank as u8, context as u8, line as u8);
        self.launcher.doing = Reading { round, rank, context, line };
        then.push(self);
        Finding::Nothing
    }

    fn end_look(mut self, round: usize, without: Without, then: &mut Vec<Self>) -> Finding {
        let (found, goes_on) = self.launcher.judge(round + 1, without);
        if found == Finding::Nothing && goes_on && round + 1 < ROUNDS {
            let lists = match without {
                Without::Lists => false,
                Without::UnexpectedLists => round == 1,
                _ => round == 0,
            };
            let next = Reading { round: round as u8 + 1, rank: 0, context: 0, line: 0 };
            let listing = Listing { second: false, rank: 0, told: 0, last: 0 };
            self.launcher.doing = if lists { listing } else { next };
            then.push(self);
        }
        found
    }

    /// Goes on in the kernel's list of the rank's threads. At its end, the launcher looks at what those do that are
    /// neither blocked nor bystanders.
    fn list(
        &self,
        second: bool,
        rank: usize,
        (told, last): (u8, u8),
        without: Without,
        then: &mut Vec<Self>,
    ) {
        let round = usize::from(without == Without::UnexpectedLists);
        if self.launcher.ended[round][rank] {
            return self.listed(second, rank, round, without, then);
        }
        if let Some(thread) = self.next_thread(rank, told, last) {
            let mut job = *self;
            let (rank, told) = (rank as u8, told | 1 << thread);
            job.launcher.doing = Listing { second, rank, told, last: thread as u8 };
            return then.push(job);
        }
        let contexts = if without == Without::Contexts { 1 } else { C };
        let lines = self.launcher.lines[round][rank].iter().take(contexts);
        let bits = |line: (usize, &Line)| u8::from(line.1.is_some()) << line.0;
        let blocked = lines.flat_map(|lines| lines.iter().enumerate().map(bits));
        let blocked = blocked.fold(0, |all, bit| all | bit);
        if told & blocked == blocked {
            let threads = self.asked(rank, told & !blocked, without);
            let mut job = *self;
            job.launcher.doing = Asking { second, rank: rank as u8, threads };
            job.ask(second, rank, threads, without, then);
        }
    }

    /// Finds out whether the first of these threads is idle. The launcher gives up if it is not, or was not by the
    /// first list.
    fn ask(&self, second: bool, rank: usize, threads: u8, without: Without, then: &mut Vec<Self>) {
        let round = usize::from(without == Without::UnexpectedLists);
        if threads == 0 {
            return self.listed(second, rank, round, without, then);
        }
        let thread = threads.trailing_zeros() as usize;
        let bit = 1 << thread;
        let Rank { threads: all, woken, .. } = self.ranks[rank];
        let Thread { at, context, .. } = all[thread];
        let is_idle = match (at, self.pool) {
            (At::Idle, Pool::Beyond(rule)) => without == rule,
            (At::Idle, _) => true,
            (At::Queued, _) => {
                without == Without::LockLimits && self.ranks[rank].holder(context.into()).is_some()
            }
            _ => false,
        };
        let was_idle = self.launcher.idle[rank] & bit != 0;
        let has_slept = was_idle && (woken & bit == 0 || without == Without::Switches);
        if is_idle && (!second || has_slept) {
            let mut job = *self;
            job.launcher.idle[rank] |= bit;
            job.launcher.doing = Asking { second, rank: rank as u8, threads: threads & !bit };
            then.push(job);
        }
    }

    /// Goes on after the threads of a rank are listed: with the next rank, the second list, or the next look.
    fn listed(
        &self,
        second: bool,
        rank: usize,
        round: usize,
        without: Without,
        then: &mut Vec<Self>,
    ) {
        let mut job = *self;
        let has_idle = self.launcher.idle.iter().any(|idle| *idle != 0);
        let again = !second && has_idle && without != Without::SecondList;
        job.launcher.doing = match rank + 1 {
            next if next < R => Listing { second, rank: next as u8, told: 0, last: 0 },
            _ if again => Listing { second: true, rank: 0, told: 0, last: 0 },
            _ => Reading { round: round as u8 + 1, rank: 0, context: 0, line: 0 },
        };
        then.push(job);
    }

    /// The listed threads that are no bystanders by their names. One that is gone counts among them: the launcher gives
    /// up where a name cannot be read.
    fn asked(&self, rank: usize, told: u8, without: Without) -> u8 {
        let is_asked =
            |at: At| at != At::Bystander && (at != At::Gone || without != Without::Names);
        let threads = self.ranks[rank].threads.iter().enumerate();
        let asked = threads.filter(|(_, thread)| is_asked(thread.at));
        asked.fold(0, |all, (thread, _)| all | told & 1 << thread)
    }

    /// The thread that the kernel lists next, after those `told`, of which the `last` one may have ended. It lists
    /// threads in the order in which they were started. If the last one is gone, or no thread follows it, the kernel
    /// goes on at the place that is the number of threads told, if there are more than that. Of a process that has
    /// ended, the first thread is left.
    fn next_thread(&self, rank: usize, told: u8, last: u8) -> Option<usize> {
        let Rank { threads, ended, .. } = &self.ranks[rank];
        let is_there = |&at: &usize| if *ended { at == 0 } else { threads[at].is_alive() };
        let after = (last as usize + 1..T).find(is_there);
        let after = after.filter(|_| told != 0 && is_there(&last.into()));
        after.or_else(|| (0..T).filter(is_there).nth(told.count_ones() as usize))
    }
}
