//! What the launcher knows of the ranks beyond their processes: it looks at what they publish in the job
//! segment, asks them for their queues, and takes the snapshot that reports show. Owned by the job's poll
//! loop, which gives it the time.
//!
//! - OV1: a look blocks for nothing and takes microseconds; an inquiry waits for answers in the poll loop,
//!   and not longer than [`PATIENCE`]: a rank that computes does not answer.
//! - OV2: the snapshot of an inquiry is taken before the ranks are asked, since asking wakes them.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::adapter::AdapterError;
use transport_lapi::bootstrap::board::{Board, TaskState, parts_of_context};

use crate::hang::observe;
use crate::hang::standstill::Standstill;
use crate::hang::watch::{self, Finding, Look, Stage, Watch};
use crate::job::Vigilance;
use crate::job::exits::Verdict;
use crate::report::Snapshot;

/// How long ranks have to tell their queues. Those that wait or poll do it at once.
const PATIENCE: Duration = Duration::from_millis(250);

/// Why the ranks are asked for their queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The user wants to know; the job goes on.
    Request,
    /// Nothing has moved for so long; the job goes on.
    Standstill(Duration),
    /// The job is to be ended for this reason.
    End(Verdict),
}

/// An inquiry under way.
struct Inquiry {
    occasion: Occasion,
    until: Instant,
    /// How many contexts of each rank have still to answer.
    open: Vec<usize>,
}

/// See the module's head.
pub(crate) struct Oversight {
    board: Board,
    watch: Watch,
    /// `None` where the user does not want it.
    standstill: Option<Standstill>,
    /// The processes that were started, rank by rank.
    children: Vec<u32>,
    interval: Duration,
    next_look: Instant,
    inquiry: Option<Inquiry>,
    snapshot: Option<Snapshot>,
}

impl Oversight {
    /// Of the job whose segment this is, and whose ranks are, or were started by, these processes.
    pub(crate) fn new(
        segment: &OwnedFd,
        vigilance: &Vigilance,
        children: Vec<u32>,
    ) -> Result<Self, AdapterError> {
        let board = Board::open(segment)?;
        let watch = Watch::new(vigilance.ends_deadlocks, vigilance.stall);
        let standstill = Standstill::new(vigilance.standstill);
        let interval = vigilance.interval;
        Ok(Self {
            board,
            watch,
            standstill: vigilance.ends_deadlocks.then_some(standstill),
            children,
            interval,
            next_look: Instant::now() + interval,
            inquiry: None,
            snapshot: None,
        })
    }

    /// When [`Oversight::look`] or [`Oversight::concluded`] have something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let look = (self.watch.is_on() && self.inquiry.is_none()).then_some(self.next_look);
        self.inquiry.as_ref().map(|inquiry| inquiry.until).or(look)
    }

    /// Looks at the ranks if it is time, and says why they are to be asked, if they are. `stage` tells what
    /// is known from before this call.
    pub(crate) fn look(
        &mut self,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Option<Occasion> {
        if !self.watch.is_on() || self.inquiry.is_some() || now < self.next_look {
            return None;
        }
        let begun = Instant::now();
        let found = self.watch.look(&self.board, &stage, now);
        // Looks at thousands of threads take a while: they get a quarter of the time.
        self.next_look = now + self.interval.max(4 * begun.elapsed());
        match found {
            Finding::Nothing => {
                let standstill = self.standstill.as_mut();
                let lasted = standstill.and_then(|still| still.look(&self.board, &stage, now));
                lasted.map(Occasion::Standstill)
            }
            Finding::Deadlock => Some(Occasion::End(Verdict::Deadlock)),
            Finding::Stall(lasted) => Some(Occasion::End(Verdict::Stalled(lasted))),
        }
    }

    /// Takes a snapshot and asks all ranks for their queues, unless that is being done.
    pub(crate) fn inquire(&mut self, occasion: Occasion, now: Instant) {
        if self.inquiry.is_some() {
            return;
        }
        let look = watch::look(&self.board);
        let open: Vec<usize> = look.iter().map(|state| answers(state.as_ref())).collect();
        self.snapshot = Some(self.observe(look));
        for rank in (0..open.len()).filter(|rank| open[*rank] > 0) {
            self.board.inquire(rank);
        }
        self.inquiry = Some(Inquiry { occasion, until: now + PATIENCE, open });
    }

    /// Whether an inquiry is under way.
    pub(crate) fn is_inquiring(&self) -> bool {
        self.inquiry.is_some()
    }

    /// Rank `rank` has told its queues of one context.
    pub(crate) fn answered(&mut self, rank: usize) {
        self.open(rank).into_iter().for_each(|open| *open = open.saturating_sub(1));
    }

    /// Rank `rank` has ended, and tells nothing more.
    pub(crate) fn ended(&mut self, rank: usize) {
        self.open(rank).into_iter().for_each(|open| *open = 0);
    }

    fn open(&mut self, rank: usize) -> Option<&mut usize> {
        self.inquiry.as_mut()?.open.get_mut(rank)
    }

    /// The occasion of an inquiry that has all its answers, or will get no more.
    pub(crate) fn concluded(&mut self, now: Instant) -> Option<Occasion> {
        let inquiry = self.inquiry.as_ref()?;
        if now < inquiry.until && inquiry.open.iter().any(|contexts| *contexts > 0) {
            return None;
        }
        // The ranks have been woken to answer.
        self.watch.wake();
        self.standstill.iter_mut().for_each(|standstill| standstill.wake(now));
        self.next_look = now + self.interval;
        self.inquiry.take().map(|inquiry| inquiry.occasion)
    }

    /// The ranks as they were at the last inquiry, unless that is not `afresh` enough, or else as they are
    /// now.
    pub(crate) fn snapshot(&mut self, afresh: bool) -> Snapshot {
        let before = self.snapshot.take().filter(|_| !afresh);
        before.unwrap_or_else(|| self.observe(watch::look(&self.board)))
    }

    fn observe(&self, look: Look) -> Snapshot {
        let ignores_deadlocks = self.standstill.is_none();
        Snapshot { ignores_deadlocks, ..observe::snapshot(&self.board, look, &self.children) }
    }

    /// Ends the calls of the other ranks that wait, since rank `rank` is gone.
    pub(crate) fn declare_lost(&self, rank: usize) {
        self.board.declare_lost(rank as TaskId);
    }

    /// Lets rank `rank` go, which waits at its end for others that will not come there.
    pub(crate) fn dismiss(&self, rank: usize) {
        self.board.dismiss(rank);
    }

    /// The job was suspended until now.
    pub(crate) fn resumed(&mut self) {
        self.watch.start_anew();
        self.standstill.iter_mut().for_each(Standstill::start_anew);
    }
}

/// How many contexts of a rank will tell their queues: those in which a thread waits, or one in which it may poll.
fn answers(state: Option<&TaskState>) -> usize {
    let Some(state) = state.filter(|state| state.is_there()) else { return 0 };
    let waiting = state.blocked.iter().filter(|thread| !thread.failed);
    let contexts = waiting.map(|thread| parts_of_context(thread.wait.context).0);
    contexts.collect::<BTreeSet<_>>().len().max(1)
}
