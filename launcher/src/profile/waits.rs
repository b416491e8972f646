//! Which call waited for which call of another rank.
//!
//! A receive that began before the send did, waited for it (a late sender), and a send that was still going on when its
//! receive began, waited for that (a late receiver), as those do that copy no data before. In a collective call a rank
//! waited for the last one that came before it was through: that holds for calls which need all ranks, and for those in
//! which ranks need some others, such as the root. What a call has started is waited for in the call in which the rank
//! was when the other one came.

use std::collections::HashMap;

use super::meetings::{Gathering, Meetings, Message};
use super::timeline::{At, Timelines};
use crate::trace::{Call, Kind};

/// How many calls behind a probe the receive of its message is sought.
const MOST_AHEAD: usize = 4;

/// What kind of wait it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    LateSender,
    LateReceiver,
    Collective,
}

/// A wait, which began when its call did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) at: At,
    pub(super) why: Why,
    /// The call that it waited for.
    pub(super) by: At,
    pub(super) from: u64,
    /// When that call began.
    pub(super) until: u64,
}

impl Wait {
    pub(super) fn lasted(&self) -> u64 {
        self.until - self.from
    }

    /// Of several candidates for one wait, that which ended last is it. Late receivers come behind all others, since a
    /// wait for several requests often includes sends that had ended.
    fn preference(&self) -> (bool, u64) {
        (self.why != Why::LateReceiver, self.until)
    }
}

/// Finds the waits, in the order in which they ended.
pub(super) fn find(timelines: &Timelines<'_>, meetings: &Meetings) -> Vec<Wait> {
    let mut finder = Finder { timelines, found: HashMap::new() };
    meetings.messages.iter().for_each(|message| finder.message(message));
    meetings.gatherings.iter().for_each(|gathering| finder.gathering(gathering));
    let mut waits: Vec<Wait> = finder.found.into_values().collect();
    waits.sort_by_key(|wait| (wait.until, wait.from, wait.at));
    waits
}

struct Finder<'a> {
    timelines: &'a Timelines<'a>,
    found: HashMap<At, Wait>,
}

impl Finder<'_> {
    fn message(&mut self, message: &Message) {
        let Message { send, receive, end } = *message;
        self.has_waited(end, send, Why::LateSender);
        self.has_waited(receive, send, Why::LateSender);
        if let Some(probe) = self.probe_of(receive) {
            self.has_waited(probe, send, Why::LateSender);
        }
        self.has_waited(send, receive, Why::LateReceiver);
        if is_started(&self.timelines.step(send).call.name) {
            self.has_waited_later(send, receive, Why::LateReceiver);
        }
    }

    fn gathering(&mut self, gathering: &Gathering) {
        let steps = &gathering.steps;
        let start = |at: At| self.timelines.step(at).start;
        let Some(last) = steps.last().copied() else { return };
        for &at in steps {
            let end = self.timelines.step(at).end;
            let come = steps.partition_point(|other| start(*other) <= end);
            let later = steps[..come].iter().rev().take_while(|other| start(**other) > start(at));
            let rank = self.timelines.rank(at);
            let by = later.copied().find(|other| self.timelines.rank(*other) != rank);
            if let Some(by) = by {
                self.has_waited(at, by, Why::Collective);
            }
            if is_started(&self.timelines.step(at).call.name) {
                self.has_waited_later(at, last, Why::Collective);
            }
        }
    }

    /// Notes that the call `at` waited for the call `by`, if that began while `at` went on.
    fn has_waited(&mut self, at: At, by: At, why: Why) {
        let (waiting, other) = (self.timelines.step(at), self.timelines.step(by));
        let (from, until) = (waiting.start, other.start);
        let is_of_others = self.timelines.rank(at) != self.timelines.rank(by);
        // A send that ends when its receive begins has not waited for it.
        let has_ended = until > waiting.end || (until == waiting.end && why == Why::LateReceiver);
        if from >= until || has_ended || !is_of_others {
            return;
        }
        let wait = Wait { at, why, by, from, until };
        let known = self.found.entry(at).or_insert(wait);
        if known.preference() < wait.preference() {
            *known = wait;
        }
    }

    /// The same of the call that waited for what `at` had started.
    fn has_waited_later(&mut self, at: At, by: At, why: Why) {
        let line = &self.timelines.all[at.timeline];
        let inside = line.inside(self.timelines.step(by).start);
        let waiting = inside.filter(|step| *step > at.step);
        let waiting = waiting.filter(|step| line.steps[*step].call.kind == Kind::Wait);
        if let Some(step) = waiting {
            self.has_waited(At { step, ..at }, by, why);
        }
    }

    /// The call that waited for the message before `receive` took it.
    fn probe_of(&self, receive: At) -> Option<At> {
        let line = &self.timelines.all[receive.timeline];
        let call = line.steps[receive.step].call;
        let before = line.steps[..receive.step].iter().enumerate().rev().take(MOST_AHEAD);
        let mut probes = before.filter(|(_, step)| step.call.kind == Kind::Probe);
        let is_same = |other: &Call| {
            other.communicator == call.communicator
                && other.peer == call.peer
                && other.tag == call.tag
        };
        let (step, _) = probes.find(|(_, step)| is_same(step.call))?;
        Some(At { step, ..receive })
    }
}

/// Whether a call of this name starts an operation that another call waits for: `MPI_Isend`, `irecv`, `start`.
fn is_started(name: &str) -> bool {
    let name = name.strip_prefix("MPI_").unwrap_or(name);
    let is_immediate =
        name.starts_with(['I', 'i']) && !name.starts_with("Inter") && !name.starts_with("inter");
    is_immediate || name.starts_with("Start") || name.starts_with("start")
}
