//! Separates the output of a test's ranks from that of its launcher and of libtest. Pure; called by [`super::watch`].
//!
//! Both streams of the launcher go to one file, so their lines are in order. Lines of a rank begin with its label; all
//! others are the launcher's report.
//!
//! - TT1: libtest prints a greeting before it calls a test function, which prints [`START`]. All lines of the launcher
//!   before its start are dropped. Of a rank only libtest's lines are dropped, since a line of standard error may
//!   overtake the start, which is on standard output.

/// Printed by a process when it enters the test function.
pub(super) const START: &str = "\u{1e}mpj::test starts\u{1e}";
/// Printed before the cause of a failure, which is the last text.
pub(super) const CAUSE: &str = "\u{1e}mpj::test failed\u{1e}";

/// How the lines of libtest's greeting begin.
const GREETINGS: [&str; 2] = ["running 1 test", "test "];

/// How far the launcher has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    Greeting,
    Running,
    Ended,
}

/// The output of a test, separated.
#[derive(Debug)]
pub(super) struct Transcript {
    /// Bytes of a line whose end has not come.
    pending: Vec<u8>,
    progress: Progress,
    /// Which ranks have started.
    started: Vec<bool>,
    greeting: String,
    report: String,
    cause: String,
}

impl Transcript {
    /// Returns an empty transcript of a job of `ranks` ranks.
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            pending: Vec::new(),
            progress: Progress::Greeting,
            started: vec![false; ranks],
            greeting: String::new(),
            report: String::new(),
            cause: String::new(),
        }
    }

    /// Takes output, and returns the lines of it that are to be printed.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let rest = self.pending.split_off(whole);
        let lines = std::mem::replace(&mut self.pending, rest);
        self.take(&lines)
    }

    /// Returns the lines to be printed at the end of the output.
    pub(super) fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.pending);
        self.take(&rest)
    }

    /// Whether the launcher has reported its start.
    pub(super) fn has_started(&self) -> bool {
        self.progress != Progress::Greeting
    }

    /// The lines before the launcher's start.
    pub(super) fn greeting(&self) -> &str {
        &self.greeting
    }

    /// Why the test failed, if the launcher has reported that.
    pub(super) fn cause(&self) -> Option<&str> {
        Some(self.cause.trim_end()).filter(|cause| !cause.is_empty())
    }

    /// The launcher's report.
    pub(super) fn report(&self) -> &str {
        self.report.trim_end()
    }

    fn take(&mut self, lines: &[u8]) -> String {
        let lines = String::from_utf8_lossy(lines);
        lines.split_inclusive('\n').filter(|line| self.is_output(line)).collect()
    }

    /// Whether `line` is output of a rank and not of libtest (TT1). Keeps the launcher's lines.
    fn is_output(&mut self, line: &str) -> bool {
        let text = line.trim_end_matches('\n');
        match self.progress {
            Progress::Greeting if text.ends_with(START) => self.progress = Progress::Running,
            Progress::Greeting => self.greeting += line,
            Progress::Running if text == CAUSE => self.progress = Progress::Ended,
            Progress::Running => match labelled(text) {
                Some((rank, said)) if rank < self.started.len() => return self.is_said(rank, said),
                _ => self.report += line,
            },
            Progress::Ended => self.cause += line,
        }
        false
    }

    fn is_said(&mut self, rank: usize, said: &str) -> bool {
        let started = &mut self.started[rank];
        if *started {
            return true;
        }
        *started = said.ends_with(START);
        !*started && !said.is_empty() && !GREETINGS.iter().any(|words| said.starts_with(words))
    }
}

/// The rank in the label of a line, and the rest of the line.
fn labelled(line: &str) -> Option<(usize, &str)> {
    let (rank, said) = line.strip_prefix('[')?.split_once("] ")?;
    Some((rank.parse().ok()?, said))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: &str = "\nrunning 1 test\ntest a::ring ... ";

    fn greeted(rank: usize) -> String {
        format!("{GREETING}{START}\n")
            .split_inclusive('\n')
            .map(|line| format!("[{rank}] {line}"))
            .collect()
    }

    #[test]
    fn the_ranks_lines_are_printed_and_libtests_are_not() {
        let mut transcript = Transcript::new(2);
        let text = format!(
            "{GREETING}{START}\n{}[0] one\n{}[1] two\n[1] running 1 test\n[0] \n",
            greeted(0),
            greeted(1)
        );
        assert_eq!(
            transcript.push(text.as_bytes()),
            "[0] one\n[1] two\n[1] running 1 test\n[0] \n"
        );
        assert!(transcript.has_started());
        assert_eq!((transcript.cause(), transcript.report()), (None, ""));
    }

    #[test]
    fn lines_may_come_in_pieces_and_the_last_one_unfinished() {
        let text = format!("{GREETING}{START}\n{}[0] \u{e9}ins\n[0] two", greeted(0));
        let mut transcript = Transcript::new(1);
        let mut printed = String::new();
        for byte in text.as_bytes() {
            printed += &transcript.push(&[*byte]);
        }
        assert_eq!(printed, "[0] \u{e9}ins\n");
        assert_eq!(transcript.finish(), "[0] two");
    }

    #[test]
    fn standard_error_may_overtake_the_start() {
        let mut transcript = Transcript::new(1);
        let text = format!("{GREETING}{START}\n[0] \n[0] a warning\n{}", greeted(0));
        assert_eq!(transcript.push(text.as_bytes()), "[0] a warning\n");
    }

    #[test]
    fn other_lines_are_the_launchers() {
        let mut transcript = Transcript::new(1);
        let report = "mpjrun: rank 0 (pid 7) exited\n[1] no such rank\n[x] no rank\n";
        let text =
            format!("{GREETING}{START}\n{}{report}{CAUSE}\nrank 0 said:\n[0] no\n", greeted(0));
        assert_eq!(transcript.push(text.as_bytes()), "");
        assert_eq!(transcript.report(), report.trim_end());
        assert_eq!(transcript.cause(), Some("rank 0 said:\n[0] no"));
    }

    #[test]
    fn a_launcher_that_never_started() {
        let mut transcript = Transcript::new(1);
        transcript.push(b"\nrunning 0 tests\n");
        assert!(!transcript.has_started());
        assert_eq!(transcript.greeting(), "\nrunning 0 tests\n");
    }
}
