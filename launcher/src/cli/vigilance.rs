//! When a job that does not end by itself is ended.

use std::time::Duration;

use clap::Args;

use super::values::seconds;
use crate::job::Vigilance;

/// Options about jobs that hang.
#[derive(Debug, Clone, Args)]
pub(super) struct VigilanceOptions {
    /// End the job, with exit code 124, when no rank has made progress for S seconds
    #[arg(long, value_name = "S", value_parser = seconds, allow_negative_numbers = true)]
    stall: Option<Duration>,
    /// What to do with a job that cannot go on, since all ranks wait for each other: end it, with exit
    /// code 125, or ignore it
    #[arg(long, value_name = "WHAT", default_value = "end", value_parser = ["end", "ignore"])]
    deadlock: String,
    /// Seconds between two looks at the ranks
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    look_every: Option<Duration>,
    /// Seconds in which nothing moves before that is noted
    #[arg(long, value_name = "S", value_parser = seconds, hide = true)]
    note_after: Option<Duration>,
}

impl VigilanceOptions {
    pub(super) fn vigilance(self) -> Vigilance {
        let ends_deadlocks = self.deadlock == "end";
        let usual = Vigilance::default();
        let interval = self.look_every.unwrap_or(usual.interval);
        let standstill = self.note_after.unwrap_or(usual.standstill);
        Vigilance { ends_deadlocks, stall: self.stall, interval, standstill }
    }
}
