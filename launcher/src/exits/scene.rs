//! Made-up jobs for the tests of exit codes and reports.

use super::*;

/// When every job starts.
pub(crate) const START: u64 = 1_000_000_000;

/// So many milliseconds after the start.
pub(crate) fn ms(after_start: u64) -> u64 {
    START + after_start * 1_000_000
}

/// A job whose ranks have been started.
pub(crate) fn exit_log(ranks: u32) -> ExitLog {
    ExitLog::new(START, "box".to_owned(), ranks as usize, (0..ranks).map(|rank| 100 + rank))
}

/// The same on hosts of these names, one rank on each.
pub(crate) fn exit_log_of_hosts(names: &[&str]) -> ExitLog {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let ranks = (100..).take(names.len()).map(Some).enumerate();
    ExitLog::of_hosts(START, &names, ranks)
}

pub(crate) fn finish(exit_log: &mut ExitLog, rank: u32) {
    exit_log.note(rank as usize, ControlMessage::Finished, ms(1));
}

pub(crate) fn panic(exit_log: &mut ExitLog, rank: u32, at: u64, text: &str) {
    complain(exit_log, rank, at, text, "src/main.rs:1:2");
}

pub(crate) fn complain(exit_log: &mut ExitLog, rank: u32, at: u64, text: &str, place: &str) {
    let (message, location) = (text.to_owned(), place.to_owned());
    let failed = ControlMessage::Failed { at_nanos: at, message, location, thread: 0 };
    exit_log.note(rank as usize, failed, ms(1_000));
}

pub(crate) fn mistake(exit_log: &mut ExitLog, rank: u32, at: u64, text: &str) {
    let mistaken = ControlMessage::Mistaken { at_nanos: at, message: text.to_owned() };
    exit_log.note(rank as usize, mistaken, ms(1_000));
}
