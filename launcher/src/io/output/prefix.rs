//! What a line of output begins with: the time, the rank, both or nothing.

use std::borrow::Cow;
use std::time::SystemTime;

use super::OutputChoice;

/// What the lines of one rank begin with.
#[derive(Debug, Clone)]
pub(crate) struct Prefix {
    label: String,
    timestamp: bool,
}

impl Prefix {
    pub(crate) fn new(choice: &OutputChoice, rank: usize) -> Self {
        let label = if choice.tag { format!("[{rank}] ") } else { String::new() };
        Self { label, timestamp: choice.timestamp }
    }

    /// The text for lines that come now. The time is that of the launcher, in UTC, so that lines of all
    /// ranks can be sorted by it.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        if !self.timestamp {
            return Cow::Borrowed(&self.label);
        }
        let now = humantime::format_rfc3339_millis(SystemTime::now());
        Cow::Owned(format!("{now} {}", self.label))
    }
}
