//! Calls by name and place in the program.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::timeline::Timelines;
use super::waits::Wait;
use crate::trace::{Call, Kind, Trace};

/// A name of a call, and the line that calls it if that is known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SiteKey {
    pub(super) name: Arc<str>,
    pub(super) place: Option<Arc<str>>,
}

/// What the calls of one site come to, over all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    pub(super) key: SiteKey,
    pub(super) calls: u64,
    pub(super) total: u64,
    /// The part of it that was spent waiting for other ranks.
    pub(super) waited: u64,
    pub(super) longest: u64,
    pub(super) bytes: u64,
}

impl Site {
    /// The mean length of a call.
    pub(super) fn mean(&self) -> u64 {
        self.total / self.calls.max(1)
    }
}

/// Numbers for sites, from 0 in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Numbers<'a> {
    numbers: HashMap<(&'a str, Option<&'a str>), usize>,
    pub(super) keys: Vec<SiteKey>,
}

impl<'a> Numbers<'a> {
    pub(super) fn of(&mut self, call: &'a Call) -> usize {
        *self.numbers.entry((&call.name, call.place.as_deref())).or_insert_with(|| {
            self.keys.push(SiteKey { name: call.name.clone(), place: call.place.clone() });
            self.keys.len() - 1
        })
    }
}

/// The sites of calls, and those of the program's own spans, the longest ones first.
pub(super) fn of(
    trace: &Trace,
    timelines: &Timelines<'_>,
    waits: &[Wait],
) -> (Vec<Site>, Vec<Site>) {
    let (mut calls, mut spans) = (Sums::default(), Sums::default());
    for (_, step) in timelines.steps() {
        calls.add(step.call, step.end - step.start);
    }
    let threads = trace.ranks.iter().flat_map(|rank| &rank.threads);
    let all = threads.flat_map(|thread| &thread.calls);
    for span in all.filter(|call| call.kind == Kind::Span) {
        spans.add(span, span.end.unwrap_or(timelines.end).saturating_sub(span.start));
    }
    for wait in waits {
        let site = calls.of(timelines.step(wait.at).call);
        site.waited = site.waited.saturating_add(wait.lasted());
    }
    (calls.listed(), spans.listed())
}

#[derive(Debug, Default)]
struct Sums<'a> {
    numbers: Numbers<'a>,
    sites: Vec<Site>,
}

impl<'a> Sums<'a> {
    fn of(&mut self, call: &'a Call) -> &mut Site {
        let number = self.numbers.of(call);
        if number == self.sites.len() {
            let key = self.numbers.keys[number].clone();
            let site = Site { key, calls: 0, total: 0, waited: 0, longest: 0, bytes: 0 };
            self.sites.push(site);
        }
        &mut self.sites[number]
    }

    fn add(&mut self, call: &'a Call, lasted: u64) {
        let site = self.of(call);
        site.calls += 1;
        site.total = site.total.saturating_add(lasted);
        site.longest = site.longest.max(lasted);
        site.bytes = site.bytes.saturating_add(call.bytes);
    }

    fn listed(mut self) -> Vec<Site> {
        self.sites.sort_by(|one, other| {
            let order = |site: &Site| Reverse(site.total);
            order(one).cmp(&order(other)).then_with(|| one.key.cmp(&other.key))
        });
        self.sites
    }
}
