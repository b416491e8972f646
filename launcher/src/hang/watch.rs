//! Watches a running job: whether it can still go on (deadlock), and whether it does (stall).
//!
//! # Deadlock
//!
//! A job is in deadlock when every thread of every rank is blocked in a call that only another rank's call can
//! complete, and no message is under way. Nothing can happen in it any more, since a rank acts only in its threads.
//! [`Watch::look`] concludes this from several looks at the ranks' wait tables, some time apart, and from lists of
//! their threads in between. It has no false positive:
//!
//! - WD1: a rank counts as blocked only while each of its threads, by the kernel's list, sleeps in a call, by the wait
//!   tables of its contexts, or is idle: only another thread of its process can wake it ([`crate::hang::idle`]). A
//!   thread that waits for the tasks of its host, to join beside other clients, is in a call as well (JC3 of
//!   `transport_lapi`). A thread that does anything else may go on, and so may its rank: one that computes, reads a
//!   file, sleeps for a time, polls with `test` or `probe`, or waits with MPJ_WAIT=spin, which never sleeps. A rank may
//!   also go on if its threads cannot be listed (it is in another PID namespace), or if more of them are blocked in a
//!   context than its wait table has lines. Bystanders are left out: their name, which no other thread can have, says
//!   that they never communicate and start no thread that does (`bystander_name`). The threads of a rank are not looked
//!   at once it has dropped its last access to the library and waits for the end in all of its contexts (`alone`): no
//!   other thread can call the library then, and no other client of the process is in the job or joins it any more.
//! - WD2: all ranks were blocked at the same time, and have been since. The epoch of a rank is the sum of those of its
//!   contexts, each of which only grows when waits change (SL3 of `transport_lapi`'s wait tables), and of the number
//!   of contexts, which grows when a client joins. So if it is the same in all looks, the same waits stood there from
//!   the end of the first look to the beginning of the last one, for all ranks at once, however long each look took.
//!   The threads are listed after the first look and before each later one; idle threads that are in both lists have
//!   slept in between (ID4). Threads may come and go while a list is made. But the kernel ends a list only when it has
//!   named as many threads as there are, and sleeping threads are there all the time. So if the second list names no
//!   others, there were none when it ended, before the first idle thread was looked at; and none came later, since
//!   only a thread that is awake starts others or wakes idle ones. A listed thread that is gone when its name is read
//!   may have taken the place of another one: then nothing is concluded.
//! - WD3: no message is under way. Sleeping threads look for messages now and then, and count the looks that found
//!   nothing (SL4). The second look of the launcher began when all threads slept and had been listed. Each thread has
//!   counted two more looks since, so one of them began after that look. Whoever still had something to send then had
//!   either ended, and its frames had arrived; or was a sleeping thread in a look that had found something, and such a
//!   thread counts no look and unpublishes its wait, whatever its functions have woken. So each counted look that began
//!   later has found every frame that was ever sent taken in, and its effect done: a look that takes in a frame for
//!   another thread of its rank has found something, and a thread that finds its wait ended by another one does so too.
//!   What a rank has still to send waits for room that will not come. A bell that has rung since its thread looked is a
//!   reason to wait for another look of that context. (On processors where a store may be visible to one other
//!   processor before it is to all, the time between two looks stands for the missing order.) Each context can be
//!   judged by itself, since a wait only handles what is in its own context. A message to a context in which nobody
//!   waits wakes nobody: no thread is left that could go there.
//! - WD4: wildcards need no rule: a receive from any rank is completed by another rank's call as well. Requests that
//!   nobody waits for complete only when their rank makes progress, and only its threads do that. The transport's
//!   notification thread, if a program has one, is such a thread, and publishes its sleeps like any other. The kernel
//!   copies from memory to memory in a thread that is not asleep.
//! - WD5: a stopped rank (SIGSTOP) is judged by what its threads did when it was stopped. A signal of the program
//!   interrupts no published sleep, and its handler cannot call the library.
//! - WD6: a rank that has ended can complete nothing, but what it did before may. So a rank is left out only if its
//!   end was known before the first look; if one ends between the looks, they begin anew. Whether that end was a
//!   failure is judged elsewhere, first. A rank that has not joined yet may still do so; it keeps the job from being
//!   in deadlock, and so does a wait table that cannot be read.
//!
//! In a job of several hosts each agent watches the ranks of its host in this way, and what it finds is that they are
//! still: nothing can happen among them unless something comes from another host. [`crate::hang::agreement`] draws the
//! conclusion, and [`crate::hang::pauses`] that on a stall.
//!
//! A model (`watch/tests/model.rs`) runs all interleavings of small jobs with these looks, for all programs at once,
//! and finds a false report wherever one of these rules is left out.
//!
//! The kernel's count and the wait table are claims of the rank's own process; a rank that forges them harms
//! its own job alone.
//!
//! # Stall
//!
//! A job stalls when for a time no rank has begun or ended a wait, received a message, or copied a part of one. A job
//! that computes for longer than the limit stalls too: the user sets the limit. Ranks that have finished are not
//! expected to make progress.

use std::time::{Duration, Instant};

use transport_lapi::bootstrap::waits::{Blocked, JobView, TaskState};

use crate::hang::idle::{self, Idle, Stacks};
use crate::host::process_table;

pub(crate) use transport_lapi::bootstrap::control::Doubt;

/// Time from one look to the next.
pub(crate) const INTERVAL: Duration = Duration::from_millis(250);

/// By how much sooner the next look follows where all ranks are blocked. A rank whose main returns an error waits at
/// its end until the deadlock that it causes is found, and prints the error then.
const SOONER: u32 = 5;

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The job may go on.
    Nothing,
    /// The job cannot go on.
    Deadlock,
    /// The job has not gone on for this long.
    Stall(Duration),
}

/// How far a rank has come, by what the launcher knows without the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It has not finished.
    Running,
    /// It has finished its part in the job, and may do something else.
    Finished,
    /// Its process has ended.
    Ended,
}

/// The state of each rank at one look; `None` for a rank whose wait table changed during every attempt to read it.
pub(crate) type Look = Vec<Option<TaskState>>;

/// Ranks of one host among which nothing can happen any more by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stillness {
    /// Differs from that of any stillness before. It has lasted since.
    pub(crate) number: u64,
    /// Frames that all ranks of the host have sent to other hosts, wrapping.
    pub(crate) sent: u64,
    /// Frames that they have received from other hosts, wrapping.
    pub(crate) received: u64,
}

/// Epoch and moves of a rank.
type Progress = Option<(u64, u64)>;

/// A job that may be in deadlock.
#[derive(Debug, Clone)]
struct Candidate {
    number: u64,
    /// Whether it was found to be in deadlock.
    is_certain: bool,
    /// The ranks that had not ended before the first look.
    left: Vec<usize>,
    /// The first look at which all of them were blocked as they are now.
    first: Look,
    /// The second such look.
    then: Option<Look>,
    /// The idle threads of each rank, as listed after the first look.
    idle: Option<Vec<Vec<Idle>>>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Watch {
    deadlocks: bool,
    stall: Option<Duration>,
    candidate: Option<Candidate>,
    /// The number of candidates so far.
    candidates: u64,
    /// Epochs and moves of all ranks at the last look that found a change, and the time of that look; `None` if no rank
    /// has progress to make.
    last_change: Option<(Vec<Progress>, Instant)>,
    /// Whether the launcher has woken the ranks since, which is no progress.
    were_woken: bool,
}

impl Watch {
    /// Looks for deadlocks if `deadlocks` is set, and for stalls of the length `stall`.
    pub(crate) fn new(deadlocks: bool, stall: Option<Duration>) -> Self {
        let (candidate, last_change) = (None, None);
        Self { deadlocks, stall, candidate, candidates: 0, last_change, were_woken: false }
    }

    /// Whether looking has a purpose.
    pub(crate) fn is_on(&self) -> bool {
        self.deadlocks || self.stall.is_some()
    }

    /// The time until the next look, if looks are usually so far apart: less if all ranks were blocked at the last look,
    /// so that further looks may find a deadlock.
    pub(crate) fn pause(&self, interval: Duration) -> Duration {
        if self.candidate.is_some() { interval / SOONER } else { interval }
    }

    /// The stillness of all ranks that the last look has found or confirmed.
    pub(crate) fn stillness(&self) -> Option<Stillness> {
        let candidate = self.candidate.as_ref().filter(|candidate| candidate.is_certain)?;
        let (sent, received) = traffic(&candidate.first)?;
        Some(Stillness { number: candidate.number, sent, received })
    }

    /// Looks at the ranks at the time `now`. `stage` returns what was known of a rank before this call (WD6).
    pub(crate) fn look(
        &mut self,
        view: &JobView,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Finding {
        // Between the look before and this one (WD2).
        let before = self.candidate.take();
        let before = before.filter(|before| idle_of_all(&before.first, &stage) == before.idle);
        let found = self.judge(before, look(view), &stage, now);
        if let Some(candidate) = self.candidate.as_mut().filter(|new| new.idle.is_none()) {
            candidate.idle = idle_of_all(&candidate.first, &stage);
            if candidate.idle.is_none() {
                self.candidate = None;
            }
        }
        found
    }

    /// Judges a look. `before` are the looks before it, if all threads of all ranks have been blocked or idle since.
    fn judge(
        &mut self,
        before: Option<Candidate>,
        look: Look,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Finding {
        self.note_progress(&look, &stage, now);
        let stalled = self.paused(now).filter(|lasted| self.stall.is_some_and(|it| *lasted >= it));
        let left: Vec<usize> =
            (0..look.len()).filter(|rank| stage(*rank) != Stage::Ended).collect();
        let mut found = stalled.map_or(Finding::Nothing, Finding::Stall);
        let are_blocked = |rank: &usize| look[*rank].as_ref().is_some_and(is_blocked);
        if self.deadlocks && !left.is_empty() && left.iter().all(are_blocked) {
            let is_same = |before: &Candidate| {
                let same = |&rank: &usize| epoch(&before.first[rank]) == epoch(&look[rank]);
                before.left == left && left.iter().all(same)
            };
            let candidate = match before.filter(is_same) {
                None => {
                    self.candidates += 1;
                    let (number, is_certain) = (self.candidates, false);
                    Candidate { number, is_certain, left, first: look, then: None, idle: None }
                }
                Some(before) => match before.then {
                    None => Candidate { then: Some(look), ..before },
                    Some(then) if left.iter().all(|&at| have_looked(&then[at], &look[at])) => {
                        found = Finding::Deadlock;
                        Candidate { then: Some(look), is_certain: true, ..before }
                    }
                    then => Candidate { then, ..before },
                },
            };
            self.candidate = Some(candidate);
        }
        found
    }

    /// How long no rank has made progress at `now`, if stalls are looked for, and a rank has progress to make.
    pub(crate) fn paused(&self, now: Instant) -> Option<Duration> {
        self.last_change.as_ref().map(|(_, since)| now.saturating_duration_since(*since))
    }

    /// Notes whether anything has changed.
    fn note_progress(&mut self, look: &Look, stage: impl Fn(usize) -> Stage, now: Instant) {
        if self.stall.is_none() {
            return;
        }
        let seen = look.iter().map(|state| state.as_ref().map(|state| (state.epoch, state.moves)));
        let seen: Vec<_> = seen.collect();
        // A rank that does not use the library, or has finished, has no progress to make.
        let is_expected = look.iter().enumerate().any(|(rank, state)| {
            stage(rank) == Stage::Running && state.as_ref().is_none_or(TaskState::is_there)
        });
        let were_woken = std::mem::take(&mut self.were_woken);
        match &mut self.last_change {
            Some((last, _)) if is_expected && (were_woken || *last == seen) => *last = seen,
            last_change => *last_change = is_expected.then_some((seen, now)),
        }
    }

    /// Notes that the launcher wakes the ranks: what they do then is no progress, and ends no stall.
    pub(crate) fn wake(&mut self) {
        self.candidate = None;
        self.were_woken = true;
    }

    /// Begins anew after a suspension, whose time does not count.
    pub(crate) fn start_anew(&mut self) {
        (self.candidate, self.last_change) = (None, None);
    }
}

/// One look at every rank.
pub(crate) fn look(view: &JobView) -> Look {
    (0..view.tasks()).map(|rank| view.state(rank)).collect()
}

/// Whether a rank is blocked by what it has published; the list of its threads is read elsewhere (WD1).
fn is_blocked(state: &TaskState) -> bool {
    state.is_there() && waiting(state).next().is_some() && doubt_of_waits(state).is_none()
}

/// The threads that wait. Waits that have failed are left out: if their threads are still there, the list of threads
/// shows them.
fn waiting(state: &TaskState) -> impl Iterator<Item = &Blocked> {
    state.blocked.iter().filter(|thread| !thread.failed)
}

/// Why a rank that waits may go on (WD1).
pub(crate) fn doubt(state: &TaskState, stacks: &Stacks) -> Option<Doubt> {
    doubt_of_waits(state).or_else(|| doubt_of_threads(state, stacks))
}

/// The reason in what it has published.
fn doubt_of_waits(state: &TaskState) -> Option<Doubt> {
    let asleep = waiting(state).all(|thread| thread.undisturbed);
    match (asleep, state.unlisted) {
        (false, _) => Some(Doubt::Awake),
        (true, 1..) => Some(Doubt::Crowded),
        (true, 0) => None,
    }
}

/// The reason in the list of its threads.
fn doubt_of_threads(state: &TaskState, stacks: &Stacks) -> Option<Doubt> {
    match idle(state, stacks) {
        Some(_) => None,
        None if !state.is_here => Some(Doubt::Elsewhere),
        None => Some(Doubt::OtherThread),
    }
}

fn epoch(state: &Option<TaskState>) -> Option<u64> {
    state.as_ref().map(|state| state.epoch)
}

/// How many frames all ranks have sent to other hosts, and received from there; `None` if one could not be read.
pub(crate) fn traffic(look: &Look) -> Option<(u64, u64)> {
    look.iter().try_fold((0, 0), |(sent, received): (u64, u64), state| {
        let state = state.as_ref()?;
        Some((sent.wrapping_add(state.sent), received.wrapping_add(state.received)))
    })
}

/// Whether each thread has looked twice in vain between two looks of the launcher (WD3).
fn have_looked(then: &Option<TaskState>, now: &Option<TaskState>) -> bool {
    let (Some(then), Some(now)) = (then, now) else { return false };
    let pairs = waiting(then).zip(waiting(now));
    pairs.map(|(then, now)| now.looks.wrapping_sub(then.looks)).all(|looks| looks >= 2)
}

/// The idle threads of each rank; `None` if a rank may have threads that are neither blocked nor idle (WD1).
fn idle_of_all(look: &Look, stage: impl Fn(usize) -> Stage) -> Option<Vec<Vec<Idle>>> {
    let stacks = Stacks::new(process_table::stacks);
    let of_rank = |(rank, state): (usize, &Option<TaskState>)| match state {
        Some(state) if stage(rank) != Stage::Ended => idle(state, &stacks),
        _ => Some(Vec::new()),
    };
    look.iter().enumerate().map(of_rank).collect()
}

/// The idle threads of a rank; `None` if it may have threads that are neither blocked nor idle.
fn idle(state: &TaskState, stacks: &Stacks) -> Option<Vec<Idle>> {
    let ends = waiting(state).filter(|thread| thread.wait.alone).count();
    if ends > 0 && ends >= state.contexts {
        return Some(Vec::new());
    }
    let pid = process_table::numbered(state.pid).filter(|_| state.is_here)?;
    let blocked: Vec<u32> = waiting(state).map(|thread| thread.wait.thread).collect();
    idle::beside(pid, &blocked, stacks)
}

#[cfg(test)]
mod tests;
