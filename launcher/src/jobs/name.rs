//! The name of a job: its launcher's process, and when it started. Pure but for [`JobName::of_this_process`].

use std::fmt;
use std::str::FromStr;

use transport_lapi::bootstrap::monotonic_nanos;

/// The name of a job. Older ones are less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct JobName {
    /// When it started, in nanoseconds of the monotonic clock.
    pub(crate) start: u64,
    /// The process of its launcher.
    pub(crate) launcher: u32,
}

impl JobName {
    /// That of a job that this process starts now.
    pub(crate) fn of_this_process() -> Self {
        Self { launcher: std::process::id(), start: monotonic_nanos() }
    }
}

impl fmt::Display for JobName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:x}", self.launcher, self.start)
    }
}

/// The text is no name of a job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoJobName;

impl FromStr for JobName {
    type Err = NoJobName;

    /// Takes what [`JobName`] displays, and nothing else.
    fn from_str(text: &str) -> Result<Self, NoJobName> {
        let (launcher, start) = text.split_once('-').ok_or(NoJobName)?;
        let launcher = launcher.parse().map_err(|_| NoJobName)?;
        let start = u64::from_str_radix(start, 16).map_err(|_| NoJobName)?;
        let name = Self { launcher, start };
        if launcher > 0 && name.to_string() == text { Ok(name) } else { Err(NoJobName) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_comes_back_and_other_texts_do_not() {
        let name = JobName { launcher: 4711, start: 0x1a2b };
        assert_eq!(name.to_string().parse(), Ok(name));
        for text in ["", "4711", "4711-", "-1a", "4711-1A2B", "4711-+1", "04711-1a", "0-1", "1-2-3"]
        {
            assert_eq!(text.parse::<JobName>(), Err(NoJobName), "{text}");
        }
    }
}
