//! What `--profile` tells of a job: where its ranks spend their time, who waits for whom, and whose computation is the
//! cause. Pure; [`job`](crate::job) gives it what the ranks have recorded.
//!
//! ```text
//!  Collected ── timeline      the calls of each thread, one after the other
//!              ├── sites      calls by name and place
//!              ├── traffic    who sends how much to whom
//!              ├── shares     each rank's time
//!              └── meetings   which calls belong together: messages, collective calls
//!                     └── waits       which call waited for which other one, and how long
//!                            ├── causes      who is behind that, in the end
//!                            └── lateness    the same by pairs of ranks, and by collective calls
//!  Profile ── verdict     what dominates, in a sentence
//!              ├── table  the text for a terminal
//!              └── page   the page in HTML
//! ```
//!
//! Ranks are places in [`Profile::ranks`], which also has their numbers. All times are nanoseconds, and all sums of them
//! saturate.
//!
//! - PF1: a trace can hold anything, such as calls that overlap or end before they begin, and ranks that do not exist.
//!   Whatever it holds, a profile is made of it.
//! - PF2: a call waits at most once, from its beginning to the beginning of a call of another rank, and not beyond its
//!   own end. So a rank never waits longer than it is in calls.
//! - PF3: what all ranks cause is, in sum, what all ranks wait.

mod causes;
mod lateness;
mod meetings;
mod page;
mod shares;
mod sites;
mod table;
mod timeline;
mod traffic;
mod verdict;
mod waits;
mod words;

use std::path::PathBuf;

use crate::trace::Collected;
use causes::Charge;
use lateness::{CollectiveSite, Late};
use meetings::Meetings;
use shares::RankShare;
use sites::Site;
use timeline::Timelines;
use traffic::Traffic;
use waits::Why;

/// `--profile`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileChoice {
    /// The file for a page in HTML, if one is written.
    pub page: Option<PathBuf>,
}

/// What a job spent its time with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    /// The latest time in the trace.
    end: u64,
    ranks: Vec<RankShare>,
    /// Calls by name and place, those with the longest time first.
    sites: Vec<Site>,
    /// The same for the parts of the program that it has named itself.
    spans: Vec<Site>,
    traffic: Traffic,
    /// Who waited for whom directly.
    direct: Vec<Charge>,
    /// The same with the ranks that are behind it.
    causes: Vec<Charge>,
    /// Waits of receives for senders, by the sender, the longest first.
    late_senders: Vec<Late>,
    /// Waits of sends for receivers, by the receiver, the longest first.
    late_receivers: Vec<Late>,
    /// Collective calls by name and place, those with the longest waits first.
    collectives: Vec<CollectiveSite>,
}

impl Profile {
    /// Makes the profile of a job.
    pub(crate) fn of(collected: &Collected) -> Self {
        let trace = &collected.trace;
        let timelines = Timelines::of(trace);
        let meetings = Meetings::of(&timelines, &collected.flows);
        let waits = waits::find(&timelines, &meetings);
        let causes = causes::roots(&timelines, &meetings, &waits);
        let (sites, spans) = sites::of(trace, &timelines, &waits);
        Self {
            end: timelines.end,
            ranks: shares::of(trace, &timelines, &waits, &causes),
            sites,
            spans,
            traffic: Traffic::of(trace),
            direct: causes::direct(&timelines, &waits),
            late_senders: lateness::of_messages(&timelines, &waits, Why::LateSender),
            late_receivers: lateness::of_messages(&timelines, &waits, Why::LateReceiver),
            collectives: lateness::of_collectives(&timelines, &meetings, &waits),
            causes,
        }
    }

    /// The sum of these numbers of all ranks.
    fn sum(&self, of: fn(&RankShare) -> u64) -> u64 {
        self.ranks.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The time that ranks waited, in all.
    fn waited(&self) -> u64 {
        self.sum(|rank| rank.waited)
    }
}

/// A part of a whole, where both may be anything: 0 of nothing.
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests;
