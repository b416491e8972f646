//! Looks at what the ranks publish in the job segment, asks them for their queues, and takes the snapshot that reports
//! show. Owned by the job's poll loop, which passes it the time.
//!
//! - OV1: a look never blocks and takes microseconds. An inquiry waits for answers in the poll loop, for no longer than
//!   [`PATIENCE`]: a rank that computes does not answer. Agents have [`PATIENCE_FOR_HOSTS`] before that.
//! - OV2: the snapshot of an inquiry is taken before the ranks are asked, since asking wakes them.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use transport_lapi::TaskId;
use transport_lapi::adapter::AdapterError;
use transport_lapi::bootstrap::control::Observed;
use transport_lapi::bootstrap::control::agents::{Order, Pause};
use transport_lapi::bootstrap::waits::{JobView, TaskState};

use crate::exits::Verdict;
use crate::hang::agreement::Agreement;
use crate::hang::gathering::Gathering;
use crate::hang::observe;
use crate::hang::pauses::Pauses;
use crate::hang::snapshot::Snapshot;
use crate::hang::standstill::{self, Standstill};
use crate::hang::watch::{self, Finding, Stage, Watch};

/// How long ranks have to send their queues. Those that wait or poll answer at once.
const PATIENCE: Duration = Duration::from_millis(250);

/// How long agents have to tell what they see of their ranks.
const PATIENCE_FOR_HOSTS: Duration = Duration::from_secs(2);

/// When a job that makes no progress is noted or ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vigilance {
    /// Whether a deadlock ends the job, with exit code 125.
    pub ends_deadlocks: bool,
    /// After how long without progress of any rank the job ends, with exit code 124; `None` for never.
    pub stall: Option<Duration>,
    /// Time between two looks at the ranks.
    pub interval: Duration,
    /// After how long a job in which nothing moves is noted, unless deadlocks are ignored.
    pub standstill: Duration,
}

impl Default for Vigilance {
    fn default() -> Self {
        let (interval, standstill) = (watch::INTERVAL, standstill::SPAN);
        Self { ends_deadlocks: true, stall: None, interval, standstill }
    }
}

/// Why the ranks are asked for their queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// The user has asked; the job goes on.
    Request,
    /// Nothing has moved for this long; the job goes on.
    Standstill(Duration),
    /// The job will be ended for this reason.
    End(Verdict),
}

/// An inquiry under way.
struct Inquiry {
    occasion: Occasion,
    until: Instant,
    /// How many contexts of each rank have not answered yet.
    open: Vec<usize>,
}

/// Where the ranks are.
enum Place {
    /// All are on this host: the segment, and the process that was started for each.
    Here { view: JobView, children: Vec<u32> },
    /// Agents look at them.
    Elsewhere { gathering: Box<Gathering>, agreement: Agreement, pauses: Pauses },
}

/// See the module's head.
pub(crate) struct Watcher {
    place: Place,
    watch: Watch,
    /// `None` where deadlocks are ignored.
    standstill: Option<Standstill>,
    /// The ranks that never sleep while they wait.
    spinning: Vec<usize>,
    interval: Duration,
    next_look: Instant,
    inquiry: Option<Inquiry>,
    /// Until when agents have time to tell what they see, if they were asked by [`Watcher::glance`].
    glance: Option<Instant>,
    snapshot: Option<Snapshot>,
}

impl Watcher {
    /// For the job with this `segment` and so many `ranks`, which are these `children` or were started by them; the
    /// `spinning` ones never sleep while they wait.
    pub(crate) fn new(
        segment: &OwnedFd,
        vigilance: &Vigilance,
        (ranks, children): (usize, Vec<u32>),
        spinning: Vec<usize>,
    ) -> Result<Self, AdapterError> {
        let view = JobView::open(segment)?.of_first(ranks);
        let place = Place::Here { view, children };
        Ok(Self::at(place, vigilance, spinning))
    }

    /// For a job of so many ranks on so many hosts; the `spinning` ones never sleep while they wait.
    pub(crate) fn of_hosts(
        ranks: usize,
        hosts: usize,
        vigilance: &Vigilance,
        spinning: Vec<usize>,
    ) -> Self {
        let (gathering, agreement) = (Box::new(Gathering::new(ranks)), Agreement::new(hosts));
        let pauses = Pauses::new(hosts, vigilance, Instant::now());
        Self::at(Place::Elsewhere { gathering, agreement, pauses }, vigilance, spinning)
    }

    fn at(place: Place, vigilance: &Vigilance, spinning: Vec<usize>) -> Self {
        let watch = Watch::new(vigilance.ends_deadlocks, vigilance.stall);
        let standstill = Standstill::new(vigilance.standstill);
        let interval = vigilance.interval;
        Self {
            place,
            watch,
            standstill: vigilance.ends_deadlocks.then_some(standstill),
            spinning,
            interval,
            next_look: Instant::now() + interval,
            inquiry: None,
            glance: None,
            snapshot: None,
        }
    }

    /// Watches the ranks of a further world on this host, too, which these processes are or will start. With them the job
    /// has so many `ranks`. The `spinning` ones never sleep while they wait.
    pub(crate) fn admit(&mut self, pids: Vec<u32>, ranks: usize, spinning: Vec<usize>) {
        self.spinning.extend(spinning);
        if let Place::Here { view, children } = &mut self.place {
            children.extend(pids);
            view.show(ranks);
        }
    }

    /// Whether the processes of the ranks are on this host.
    pub(crate) fn sees_processes(&self) -> bool {
        matches!(self.place, Place::Here { .. })
    }

    /// When [`Watcher::look`] or [`Watcher::concluded`] has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let look = match &self.place {
            Place::Here { .. } => self.watch.is_on().then_some(self.next_look),
            Place::Elsewhere { agreement, pauses, .. } => {
                let due = agreement.is_due().then_some(self.next_look);
                let pause = pauses.next_question().map(|at| at.max(self.next_look));
                due.into_iter().chain(pause).min()
            }
        };
        let until = self.inquiry.as_ref().map(|inquiry| inquiry.until).or(look);
        until.into_iter().chain(self.glance).min()
    }

    /// Looks at the ranks if it is time, and returns why they should be asked for their queues, if there is a reason.
    /// `stage` returns what was known of a rank before this call.
    pub(crate) fn look(
        &mut self,
        stage: impl Fn(usize) -> Stage,
        now: Instant,
    ) -> Option<Occasion> {
        let view = match &mut self.place {
            Place::Here { view, .. } => view,
            Place::Elsewhere { .. } if self.inquiry.is_some() => return None,
            Place::Elsewhere { agreement, pauses, .. } => {
                let is_reached = agreement.is_reached();
                let deadlock = is_reached.then_some(Occasion::End(Verdict::Deadlock));
                return deadlock.or_else(|| pauses.found(now));
            }
        };
        if !self.watch.is_on() || self.inquiry.is_some() || now < self.next_look {
            return None;
        }
        let begun = Instant::now();
        let found = self.watch.look(view, &stage, now);
        // A look at thousands of threads takes a while: looks take a quarter of the time at most.
        let pause = self.watch.pause(self.interval);
        self.next_look = now + pause.max(4 * begun.elapsed());
        match found {
            Finding::Nothing => {
                let standstill = self.standstill.as_mut();
                let lasted = standstill.and_then(|still| still.look(view, &stage, now));
                lasted.map(Occasion::Standstill)
            }
            Finding::Deadlock => Some(Occasion::End(Verdict::Deadlock)),
            Finding::Stall(lasted) => Some(Occasion::End(Verdict::Stalled(lasted))),
        }
    }

    /// The questions to agents that are due.
    pub(crate) fn questions(&mut self, now: Instant) -> Vec<Order> {
        let is_time = self.inquiry.is_none() && now >= self.next_look;
        match &mut self.place {
            Place::Elsewhere { agreement, pauses, .. } if is_time => {
                let confirm = agreement.ask().map(|round| Order::Confirm { round });
                if confirm.is_some() {
                    self.next_look = now + self.interval;
                }
                let pause = pauses.ask(now).map(|round| Order::AskPause { round });
                confirm.into_iter().chain(pause).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Notes for how long the ranks of a host have paused, as it answers in this round.
    pub(crate) fn paused(&mut self, host: usize, round: u64, pause: Pause) {
        if let Place::Elsewhere { pauses, .. } = &mut self.place {
            pauses.answered(host, round, pause, Instant::now());
        }
    }

    /// Notes that the ranks of a host are still, with what they have sent to other hosts and received from there.
    pub(crate) fn still(&mut self, host: usize, sent: u64, received: u64) {
        if let Place::Elsewhere { agreement, .. } = &mut self.place {
            agreement.still(host, sent, received);
        }
    }

    /// Notes whether the ranks of a host have been still, as it answers in this round.
    pub(crate) fn has_been_still(&mut self, host: usize, round: u64, still: bool) {
        if let Place::Elsewhere { agreement, .. } = &mut self.place {
            agreement.answered(host, round, still);
        }
    }

    /// Notes that a host is out of reach.
    pub(crate) fn lost(&mut self, host: usize) {
        if let Place::Elsewhere { agreement, pauses, .. } = &mut self.place {
            agreement.moved(host);
            pauses.lost(host);
        }
    }

    /// Takes a snapshot and asks all ranks for their queues, unless an inquiry is under way. Returns the order for
    /// agents that does so, if there are agents; `is_gone` tells of which ranks nothing more will come, and these
    /// `threads` have panicked.
    pub(crate) fn inquire(
        &mut self,
        occasion: Occasion,
        is_gone: impl Fn(usize) -> bool,
        threads: Vec<(TaskId, i32)>,
        now: Instant,
    ) -> Option<Order> {
        if self.inquiry.is_some() {
            return None;
        }
        let (view, children) = match &mut self.place {
            Place::Here { view, children } => (view, children),
            Place::Elsewhere { gathering, .. } => {
                let until = now + PATIENCE_FOR_HOSTS;
                self.glance = None;
                self.inquiry = Some(Inquiry { occasion, until, open: Vec::new() });
                return Some(gathering.begin(is_gone, true, threads));
            }
        };
        let look = watch::look(view);
        let open: Vec<usize> = look.iter().map(|state| answers(state.as_ref())).collect();
        let snapshot = observe::snapshot(view, look, children);
        for rank in (0..open.len()).filter(|rank| open[*rank] > 0) {
            view.inquire(rank);
        }
        self.snapshot = Some(self.completed(snapshot));
        self.inquiry = Some(Inquiry { occasion, until: now + PATIENCE, open });
        None
    }

    /// The order for agents to look at the ranks once more, before the job is stopped; `None` if there are no agents.
    /// [`Watcher::gathered`] returns what they have told.
    pub(crate) fn look_before_the_end(&mut self, is_gone: impl Fn(usize) -> bool) -> Option<Order> {
        match &mut self.place {
            Place::Here { .. } => None,
            Place::Elsewhere { gathering, .. } => {
                self.glance = None;
                Some(gathering.begin(is_gone, false, Vec::new()))
            }
        }
    }

    /// Looks at the ranks without asking them for anything. Returns what there is to see, or the order for agents after
    /// which [`Watcher::glanced`] returns it; neither while agents have another one to carry out.
    pub(crate) fn glance(
        &mut self,
        is_gone: impl Fn(usize) -> bool,
        now: Instant,
    ) -> (Option<Snapshot>, Option<Order>) {
        match &mut self.place {
            Place::Here { view, children } => {
                let seen = observe::snapshot(view, watch::look(view), children);
                (Some(self.completed(seen)), None)
            }
            Place::Elsewhere { .. } if self.inquiry.is_some() || self.glance.is_some() => {
                (None, None)
            }
            Place::Elsewhere { gathering, .. } => {
                self.glance = Some(now + PATIENCE_FOR_HOSTS);
                (None, Some(gathering.begin(is_gone, false, Vec::new())))
            }
        }
    }

    /// What agents have told since [`Watcher::glance`], once all have or their time is over.
    pub(crate) fn glanced(&mut self, now: Instant) -> Option<Snapshot> {
        let until = self.glance?;
        let Place::Elsewhere { gathering, .. } = &self.place else { return None };
        if now < until && !gathering.is_complete() {
            return None;
        }
        self.glance = None;
        self.gathered()
    }

    /// Takes what an agent has seen of a rank at the look of this number.
    pub(crate) fn seen(&mut self, rank: usize, number: u64, seen: Observed) {
        let Place::Elsewhere { gathering, .. } = &mut self.place else { return };
        let contexts = answers(seen.state.as_ref());
        let is_complete = gathering.take(rank, number, seen);
        let Some(inquiry) = &mut self.inquiry else { return };
        inquiry.open.resize(inquiry.open.len().max(rank + 1), 0);
        inquiry.open[rank] = contexts;
        if is_complete {
            inquiry.until = Instant::now() + PATIENCE;
        }
    }

    /// Whether an inquiry is under way.
    pub(crate) fn is_inquiring(&self) -> bool {
        self.inquiry.is_some()
    }

    /// Notes that rank `rank` has sent the queues of one context.
    pub(crate) fn answered(&mut self, rank: usize) {
        self.open(rank).into_iter().for_each(|open| *open = open.saturating_sub(1));
    }

    /// Notes that rank `rank` has ended and will not answer.
    pub(crate) fn ended(&mut self, rank: usize) {
        self.open(rank).into_iter().for_each(|open| *open = 0);
        if let Place::Elsewhere { gathering, .. } = &mut self.place {
            gathering.ended(rank);
        }
    }

    fn open(&mut self, rank: usize) -> Option<&mut usize> {
        self.inquiry.as_mut()?.open.get_mut(rank)
    }

    /// Ends an inquiry that has all its answers or has waited long enough, and returns its occasion.
    pub(crate) fn concluded(&mut self, now: Instant) -> Option<Occasion> {
        let inquiry = self.inquiry.as_ref()?;
        let is_seen = match &self.place {
            Place::Here { .. } => true,
            Place::Elsewhere { gathering, .. } => gathering.is_complete(),
        };
        let is_told = is_seen && inquiry.open.iter().all(|contexts| *contexts == 0);
        if now < inquiry.until && !is_told {
            return None;
        }
        self.snapshot = self.gathered().or(self.snapshot.take());
        // The inquiry has woken the ranks.
        self.watch.wake();
        self.standstill.iter_mut().for_each(|standstill| standstill.wake(now));
        self.next_look = now + self.interval;
        self.inquiry.take().map(|inquiry| inquiry.occasion)
    }

    /// Returns the snapshot of the last inquiry, or a new one if there is none or `afresh` is set. `None` if agents would
    /// have to be asked.
    pub(crate) fn snapshot(&mut self, afresh: bool) -> Option<Snapshot> {
        let before = self.snapshot.take().filter(|_| !afresh);
        before.or_else(|| match &self.place {
            Place::Here { view, children } => {
                Some(self.completed(observe::snapshot(view, watch::look(view), children)))
            }
            Place::Elsewhere { .. } => None,
        })
    }

    /// What agents have told since they were asked last, if nobody has taken it.
    pub(crate) fn gathered(&mut self) -> Option<Snapshot> {
        let Place::Elsewhere { gathering, .. } = &mut self.place else { return None };
        let seen = gathering.snapshot();
        seen.map(|seen| self.completed(seen))
    }

    /// A snapshot with what is known without a look.
    fn completed(&self, seen: Snapshot) -> Snapshot {
        let ignores_deadlocks = self.standstill.is_none();
        Snapshot { ignores_deadlocks, spinning: self.spinning.clone(), ..seen }
    }

    /// Notes that the job was suspended until now.
    pub(crate) fn resumed(&mut self) {
        self.watch.start_anew();
        self.standstill.iter_mut().for_each(Standstill::start_anew);
        if let Place::Elsewhere { pauses, .. } = &mut self.place {
            pauses.start_anew(Instant::now());
        }
    }
}

/// How many contexts of a rank will send their queues: those in which a thread waits, or else one in which it may poll.
fn answers(state: Option<&TaskState>) -> usize {
    let Some(state) = state.filter(|state| state.is_there()) else { return 0 };
    let waiting = state.blocked.iter().filter(|thread| !thread.failed);
    let contexts = waiting.map(|thread| thread.wait.space.context);
    contexts.collect::<BTreeSet<_>>().len().max(1)
}
