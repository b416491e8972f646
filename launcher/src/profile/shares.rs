//! How each rank spends its time: outside of calls, in them, and waiting for others.

use super::causes::Charge;
use super::timeline::Timelines;
use super::waits::Wait;
use crate::trace::{RankTrace, Trace};

/// Into how many parts the time of the job is cut to show what ranks do when.
pub(super) const PARTS: usize = 60;

/// What a rank's time was spent with, over all its threads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RankShare {
    /// Its number.
    pub(super) rank: u32,
    pub(super) host: String,
    /// From the beginning of the job to the end of its last call, for further threads from their first call on.
    pub(super) whole: u64,
    /// Outside of calls.
    pub(super) computing: u64,
    /// In calls, waits included.
    pub(super) in_calls: u64,
    /// Waiting for other ranks.
    pub(super) waited: u64,
    /// What others waited since this rank was late.
    pub(super) caused: u64,
    /// The calls that were not recorded.
    pub(super) lost: u64,
    /// What its first thread did in each of [`PARTS`] parts of the time.
    pub(super) parts: Vec<Part>,
}

impl RankShare {
    /// In calls, but not waiting for others.
    pub(super) fn moving(&self) -> u64 {
        self.in_calls.saturating_sub(self.waited)
    }
}

/// What a thread did in a part of the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(super) in_calls: u64,
    pub(super) waited: u64,
}

/// The shares of all ranks. `causes` says who is behind the waits.
pub(super) fn of(
    trace: &Trace,
    timelines: &Timelines<'_>,
    waits: &[Wait],
    causes: &[Charge],
) -> Vec<RankShare> {
    let mut shares: Vec<RankShare> = trace.ranks.iter().map(nothing).collect();
    for line in &timelines.all {
        let share = &mut shares[line.rank];
        let (whole, in_calls) = (line.end() - line.begin, line.in_calls(line.end()));
        share.whole = share.whole.saturating_add(whole);
        share.in_calls = share.in_calls.saturating_add(in_calls);
        share.computing = share.computing.saturating_add(whole - in_calls);
        if line.is_first {
            for (place, part) in share.parts.iter_mut().enumerate() {
                let (from, until) = bounds(place, timelines.end);
                part.in_calls = line.in_calls(until) - line.in_calls(from);
            }
        }
    }
    for wait in waits {
        let line = &timelines.all[wait.at.timeline];
        let share = &mut shares[line.rank];
        share.waited = share.waited.saturating_add(wait.lasted());
        if line.is_first {
            add_to_parts(&mut share.parts, wait, timelines.end);
        }
    }
    for charge in causes {
        let caused = &mut shares[charge.cause].caused;
        *caused = caused.saturating_add(charge.nanos);
    }
    shares
}

/// The share of a rank without calls.
pub(super) fn nothing(rank: &RankTrace) -> RankShare {
    RankShare {
        rank: rank.rank,
        host: rank.host.clone(),
        whole: 0,
        computing: 0,
        in_calls: 0,
        waited: 0,
        caused: 0,
        lost: rank.sum(|thread| thread.lost),
        parts: vec![Part::default(); PARTS],
    }
}

/// The beginning and the end of a part of the time until `end`.
fn bounds(part: usize, end: u64) -> (u64, u64) {
    let at = |part: usize| (u128::from(end) * part as u128 / PARTS as u128) as u64;
    (at(part), at(part + 1))
}

fn add_to_parts(parts: &mut [Part], wait: &Wait, end: u64) {
    let first = (u128::from(wait.from) * PARTS as u128 / u128::from(end.max(1))) as usize;
    // Bounds are rounded down, so the wait may begin one part earlier.
    for (place, part) in parts.iter_mut().enumerate().skip(first.saturating_sub(1)) {
        let (from, until) = bounds(place, end);
        if from >= wait.until {
            break;
        }
        part.waited += wait.until.min(until).saturating_sub(wait.from.max(from));
    }
}
