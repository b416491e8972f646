//! The calls of each thread as steps that follow each other, and how long the thread was in calls until any time.
//!
//! - PF4: steps of a timeline do not overlap, and each ends at its beginning or later. A call that begins inside another
//!   one is a part of it, and no step. Spans and parts of calls are none either.

use super::sites::{Numbers, SiteKey};
use crate::trace::{Call, CallAt, Kind, Trace};

/// A call of a thread.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step<'a> {
    pub(super) call: &'a Call,
    pub(super) start: u64,
    /// That of the call. One that has not ended goes on to the next one, or to the end of the trace.
    pub(super) end: u64,
    /// The place of its name and line in the list of sites.
    pub(super) site: usize,
}

/// The calls of one thread.
#[derive(Debug)]
pub(super) struct Timeline<'a> {
    /// The place of its rank.
    pub(super) rank: usize,
    pub(super) is_first: bool,
    /// The beginning of the job for the first thread of a rank, its first call for others.
    pub(super) begin: u64,
    pub(super) steps: Vec<Step<'a>>,
    /// The time in the steps before each one.
    before: Vec<u64>,
    /// The step of each call of the thread, if it is one.
    of_calls: Vec<Option<usize>>,
}

/// A step of a timeline, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct At {
    pub(super) timeline: usize,
    pub(super) step: usize,
}

/// All threads of a job.
#[derive(Debug)]
pub(super) struct Timelines<'a> {
    pub(super) all: Vec<Timeline<'a>>,
    /// The latest time in the trace.
    pub(super) end: u64,
    pub(super) sites: Vec<SiteKey>,
    /// The first timeline of each rank.
    first: Vec<usize>,
}

impl<'a> Timeline<'a> {
    /// `is_first` tells whether its thread is the first one of its rank. `end` is that of the trace.
    fn new(
        (rank, is_first): (usize, bool),
        calls: &'a [Call],
        end: u64,
        sites: &mut Numbers<'a>,
    ) -> Self {
        let is_call = |(_, call): &(usize, &Call)| !matches!(call.kind, Kind::Span | Kind::Part);
        let mut order: Vec<(usize, &Call)> = calls.iter().enumerate().filter(is_call).collect();
        order.sort_by_key(|(_, call)| call.start);
        let mut steps: Vec<Step<'a>> = Vec::with_capacity(order.len());
        let (mut before, mut sum) = (Vec::with_capacity(order.len()), 0);
        let mut of_calls = vec![None; calls.len()];
        for (at, &(place, call)) in order.iter().enumerate() {
            if steps.last().is_some_and(|last| call.start < last.end) {
                continue;
            }
            let next = order.get(at + 1).map_or(end, |(_, next)| next.start);
            let end = call.end.unwrap_or(next).max(call.start);
            let step = Step { call, start: call.start, end, site: sites.of(call) };
            before.push(sum);
            sum += step.end - step.start;
            of_calls[place] = Some(steps.len());
            steps.push(step);
        }
        let begin = steps.first().filter(|_| !is_first).map_or(0, |step| step.start);
        Self { rank, is_first, begin, steps, before, of_calls }
    }

    /// The end of its last call.
    pub(super) fn end(&self) -> u64 {
        self.steps.last().map_or(self.begin, |step| step.end)
    }

    /// How long it was in calls until `time`.
    pub(super) fn in_calls(&self, time: u64) -> u64 {
        let begun = self.steps.partition_point(|step| step.start < time);
        let Some(last) = begun.checked_sub(1) else { return 0 };
        let step = &self.steps[last];
        self.before[last] + (time.min(step.end) - step.start)
    }

    /// The step that it was in at `time`, having begun before.
    pub(super) fn inside(&self, time: u64) -> Option<usize> {
        let at = self.steps.partition_point(|step| step.start < time).checked_sub(1)?;
        (time <= self.steps[at].end).then_some(at)
    }
}

impl<'a> Timelines<'a> {
    pub(super) fn of(trace: &'a Trace) -> Self {
        let calls = || trace.ranks.iter().flat_map(|rank| &rank.threads).flat_map(|it| &it.calls);
        let end = calls().map(|call| call.end.unwrap_or(0).max(call.start)).max().unwrap_or(0);
        let (mut all, mut first) = (Vec::new(), Vec::new());
        let mut sites = Numbers::default();
        for (place, rank) in trace.ranks.iter().enumerate() {
            first.push(all.len());
            for (nth, thread) in rank.threads.iter().enumerate() {
                all.push(Timeline::new((place, nth == 0), &thread.calls, end, &mut sites));
            }
        }
        Self { all, end, sites: sites.keys, first }
    }

    /// The step of a call; `None` if it is a part of another one, or not in the trace.
    pub(super) fn find(&self, call: CallAt) -> Option<At> {
        let timeline = self.first.get(call.rank)?.checked_add(call.thread)?;
        let line = self.all.get(timeline).filter(|line| line.rank == call.rank)?;
        let step = (*line.of_calls.get(call.call)?)?;
        Some(At { timeline, step })
    }

    pub(super) fn step(&self, at: At) -> &Step<'a> {
        &self.all[at.timeline].steps[at.step]
    }

    /// The place of the rank of a step.
    pub(super) fn rank(&self, at: At) -> usize {
        self.all[at.timeline].rank
    }

    /// Every step, by timeline.
    pub(super) fn steps(&self) -> impl Iterator<Item = (At, &Step<'a>)> {
        self.all.iter().enumerate().flat_map(|(timeline, line)| {
            line.steps.iter().enumerate().map(move |(step, one)| (At { timeline, step }, one))
        })
    }
}
