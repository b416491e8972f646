//! How processes end and ranks fail, why jobs do not succeed, and the exit code that follows. Made by
//! [`super::ExitLog`] and the judgement of the job.

use std::time::Duration;

pub(crate) use transport_lapi::bootstrap::control::agents::Ending;

use crate::io::output::Broken;

/// How a rank failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Any exit code but 0.
    Code(i32),
    /// Killed.
    Signal(i32),
    /// It was lost with its host.
    HostLost,
    /// Exit code 0 of a rank that joined and did not finish, where that is a failure (EX3).
    Unfinished,
    /// Exit code 0 of a rank that joined and closed its control line long before its end, so that nobody knows
    /// whether it finished.
    LineClosed,
    /// It gave up its place in the job after a panic or an error, and still runs (EX7).
    GaveUp { panicked: bool },
    /// One of its threads ended by a panic, and every rank waits for another one.
    Deserted,
    /// One of its threads is in a call while it unwinds from a panic, and every rank waits for another one.
    Unwinding,
    /// The program ended without finishing, and the script that started it goes on (EX7).
    Gone { panicked: bool },
    /// Exit code 0 of a rank that never joined, while another did.
    NeverJoined,
    /// It called abort with this code (EX5).
    Aborted(i32),
    /// It cannot communicate with another rank (EX5).
    Unreachable,
}

/// The failure that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) rank: usize,
    pub(crate) fault: Fault,
    /// When, in nanoseconds of the monotonic clock.
    pub(crate) at: u64,
}

/// Why a job did not succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A rank failed.
    Failed(Failure),
    /// `--timeout` was over.
    TimedOut(Duration),
    /// No rank made progress for this long, longer than `--stall` allows.
    Stalled(Duration),
    /// Every rank waits for another one, and nothing is on its way.
    Deadlock,
    /// The launcher got this signal.
    Signalled(i32),
    /// The launcher's output cannot be written.
    Output(Broken),
}

impl Fault {
    fn exit_code(self) -> u8 {
        match self {
            Self::Code(code) => code as u8,
            // No rank has failed.
            Self::HostLost | Self::Unreachable => 125,
            Self::Signal(signal) => after_signal(signal),
            // The end of a job by abort is no success.
            Self::Aborted(code) => (code as u8).max(1),
            Self::GaveUp { panicked: true } | Self::Gone { panicked: true } => 101,
            Self::Deserted | Self::Unwinding => 101,
            _ => 1,
        }
    }
}

impl Verdict {
    /// The launcher's exit code.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Failed(failure) => failure.fault.exit_code(),
            Self::TimedOut(_) | Self::Stalled(_) => 124,
            Self::Signalled(signal) => after_signal(signal),
            Self::Output(Broken::Closed) => after_signal(libc::SIGPIPE),
            Self::Output(_) | Self::Deadlock => 125,
        }
    }
}

fn after_signal(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
