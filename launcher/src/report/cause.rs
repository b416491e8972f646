//! The headline of a report, and the complaints of ranks.

use std::fmt::Write;

use super::INDENT;
use super::format::{
    and_more, ended_how, printable_line, printable_lines, ranks, seconds_between, signal_words,
};
use crate::exits::{Complaint, Ending, ExitLog, Failure, Fault, Record, Verdict};
use crate::io::output::Broken;

/// Most complaints of ranks that are not the cause.
const MAX_COMPLAINTS: usize = 16;

/// Why the job ended, in one line.
pub(super) fn headline(exit_log: &ExitLog, verdict: Verdict) -> String {
    let what = match verdict {
        Verdict::Failed(failure) => failure_words(exit_log, &failure),
        Verdict::TimedOut(limit) => {
            format!("the job still ran after {} s, its time limit", limit.as_secs_f64())
        }
        Verdict::Stalled(lasted) => {
            format!("no rank made progress for {:.1} s (--stall)", lasted.as_secs_f64())
        }
        Verdict::Deadlock => "deadlock: every rank that is left waits for another one, and no \
                              message is on its way"
            .to_owned(),
        Verdict::Signalled(signal) => format!("ended by {}", signal_words(signal)),
        Verdict::Output(Broken::Closed) => "nobody reads standard output any more".to_owned(),
        Verdict::Output(Broken::Refused(errno)) => {
            format!("cannot write standard output: {errno}")
        }
        Verdict::Output(Broken::File(errno)) => {
            format!("cannot write a file of --output dir: {errno}")
        }
    };
    format!("mpjrun: {what}\n")
}

/// Why the job failed, in a sentence for a failing test: the complaint of the rank that failed first, or else how it
/// ended. `None` if the exit code says it all.
pub(crate) fn in_brief(exit_log: &ExitLog, verdict: Verdict) -> Option<String> {
    let Failure { rank, fault, .. } = match verdict {
        Verdict::Failed(failure) => failure,
        Verdict::Deadlock => return Some("deadlock: every rank waits for another one".to_owned()),
        _ => return None,
    };
    let record = exit_log.records().get(rank)?;
    let panicked = record.complaints.iter().rfind(|said| !said.location.is_empty());
    let printed = last_words(record).map(|words| printable_lines(words).join("\n"));
    // What it printed is why it ended; a mistake that it found at its end is not.
    let said = record.complaints.last().filter(|said| !said.is_mistake || printed.is_none());
    let printed = printed.map_or(String::new(), |words| format!(": {words}"));
    Some(match (panicked.or(said), fault, record.ended) {
        (_, Fault::Aborted(code), _) => format!("rank {rank} called abort with code {code}"),
        (_, Fault::Unreachable, _) => {
            format!("rank {rank} {}", printable_line(&record.unreachable))
        }
        (Some(Complaint { message, location, .. }), ..) if location.is_empty() => {
            format!("rank {rank} said: {}", printable_lines(message).join("\n"))
        }
        (Some(Complaint { message, location, .. }), ..) => {
            let message = printable_lines(message).join("\n");
            format!("rank {rank} panicked at {}: {message}", printable_line(location))
        }
        (None, _, Some((Ending::Code(0), _))) => format!("rank {rank} ended without finishing"),
        (None, _, Some((ending, _))) => format!("rank {rank} {}{printed}", ended_how(ending)),
        (None, _, None) => format!("rank {rank} failed"),
    })
}

fn failure_words(exit_log: &ExitLog, failure: &Failure) -> String {
    let Failure { rank, fault, .. } = *failure;
    let Some(record) = exit_log.records().get(rank) else { return format!("rank {rank} failed") };
    let at = match (fault, record.ended) {
        (Fault::Aborted(_) | Fault::Unreachable | Fault::GaveUp { .. }, _)
        | (Fault::Deserted | Fault::Unwinding, _)
        | (_, None) => failure.at,
        (_, Some((_, at))) => at,
    };
    let when = format!("{} s after start", seconds_between(exit_log.start(), at));
    let what = match fault {
        Fault::Code(code) if record.dismissed => format!(
            "{}, {when}: it had dropped its World, or called MPI_Finalize, while others waited for it",
            ended_how(Ending::Code(code))
        ),
        Fault::Code(code) => {
            let is_early = !record.joined && exit_log.somebody_joined();
            let before = if is_early { ", before it joined the job" } else { "" };
            format!("{}, {when}{before}", ended_how(Ending::Code(code)))
        }
        Fault::Signal(signal) => format!("{}, {when}", ended_how(Ending::Signal(signal))),
        Fault::HostLost => {
            let (host, lost) = (exit_log.host(rank), ranks(&exit_log.lost_with(rank)));
            let reason = printable_line(exit_log.loss_of_host(rank));
            return format!("host {host} was lost with {lost}, {when}: {reason}");
        }
        Fault::Aborted(code) => format!("called abort with code {code}, {when}"),
        Fault::Unreachable => format!("{} ({when})", printable_line(&record.unreachable)),
        Fault::Unfinished => unfinished_words(record, &when),
        Fault::LineClosed => format!(
            "exited with code 0, but its control line to mpjrun was closed before: it closed a \
             descriptor that is not its own, or became another program by exec ({when})"
        ),
        Fault::GaveUp { panicked } => {
            let how = if panicked { "panicked" } else { "met an error" };
            format!("{how}, gave up its place in the job, and has not ended since ({when})")
        }
        Fault::Deserted => {
            format!("lost a thread by a panic, {when}, and now every rank waits for another one")
        }
        Fault::Unwinding => format!(
            "panicked, {when}, and waits for others while it unwinds; now every rank waits for another \
             one"
        ),
        Fault::Gone { panicked } => format!(
            "{} without finishing, {when}, and the script that started it goes on: let that end with \
             the program's code",
            if panicked { "panicked and ended" } else { "ended" }
        ),
        Fault::NeverJoined => format!(
            "ended without joining the job ({when}), which other ranks did: call mpj::init, in C \
             MPI_Init, in every rank"
        ),
    };
    let pid = record.pid.map_or("unknown".to_owned(), |pid| pid.to_string());
    format!("rank {rank} (pid {pid}, host {}) {what}", exit_log.host(rank))
}

/// Exit code 0 without finishing, and the remedy.
fn unfinished_words(record: &Record, when: &str) -> String {
    let exited = "exited with code 0 without finishing";
    if record.is_script() {
        return format!(
            "{exited}, {when}: that is the script's code; let it end with the program's (set -o \
             pipefail, or exec)"
        );
    }
    if record.is_mistaken() {
        return format!("exited with code 0, {when}, and left messages that it never received");
    }
    match (record.gave_up(), record.complaints.is_empty()) {
        (true, false) => format!(
            "{exited}, {when}: it dropped its World with an error, and so did not wait for the others; a program that has \
             dealt with the error ends with World::finish"
        ),
        (_, false) => format!("{exited}, {when}"),
        (_, true) => {
            format!(
                "{exited}: in C, call MPI_Finalize; in Rust, keep the World alive until the end of main and \
                 let it drop (process::exit, mem::forget, and a World in a static or in an Arc that is \
                 left drop none), or call World::finish first ({when})"
            )
        }
    }
}

/// The line about ranks that ended with code 0 and without finishing, which was no failure; `None` if there are none.
pub(crate) fn early_ends(early: &[usize]) -> Option<String> {
    (!early.is_empty()).then(|| {
        format!(
            "mpjrun: {} exited with code 0 without finishing, which may lose messages: in C, call MPI_Finalize; in \
             Rust, let the World drop at the end of main\n",
            ranks(early)
        )
    })
}

/// The complaints of the rank that is the cause; if it has none, what it printed last.
pub(super) fn complaints_of(exit_log: &ExitLog, rank: usize) -> String {
    let record = &exit_log.records()[rank];
    // The words of a rank that is alone stand right above the report.
    let has_others = exit_log.records().len() > 1;
    let mut text = String::new();
    if let Some(words) = last_words(record).filter(|_| has_others) {
        text = format!("{INDENT}it printed last: {}\n", indented(words));
    }
    record.complaints.iter().for_each(|complaint| append(complaint, "it", &mut text));
    text
}

/// What a rank has printed last that ended with an error of its program, about which it has not complained: a mistake
/// that it found at its end is another matter, unless that is what it printed. The output of other ranks may stand
/// between that and the report, and its lines need not name the rank.
fn last_words(record: &Record) -> Option<&str> {
    let is_error =
        matches!(record.ended, Some((Ending::Code(1..) | Ending::Signal(libc::SIGABRT), _)));
    let words = record.last_words.as_str();
    let mut complaints = record.complaints.iter();
    let is_unsaid = complaints.all(|said| said.is_mistake && !words.contains(&said.message));
    (is_error && is_unsaid && !words.is_empty()).then_some(words)
}

/// The complaints of all ranks that have not finished.
pub(super) fn complaints(exit_log: &ExitLog) -> String {
    let unfinished = exit_log.records().iter().enumerate().filter(|(_, record)| !record.finished);
    let said: Vec<_> = unfinished
        .flat_map(|(rank, record)| record.complaints.iter().map(move |said| (rank, said)))
        .collect();
    let mut text = String::new();
    for (rank, complaint) in said.iter().take(MAX_COMPLAINTS) {
        append(complaint, &format!("rank {rank}"), &mut text);
    }
    text + &and_more(said.len(), MAX_COMPLAINTS, "complaints")
}

/// A text of a rank, whose further lines stand below the first.
fn indented(text: &str) -> String {
    printable_lines(text).join("\nmpjrun:     ")
}

/// Appends a complaint of `who` to the text.
fn append(complaint: &Complaint, who: &str, text: &mut String) {
    let message = indented(&complaint.message);
    // Writing to a string does not fail.
    let _ = match complaint.location.as_str() {
        "" => writeln!(text, "{INDENT}{who} said: {message}"),
        place => {
            writeln!(text, "{INDENT}{who} panicked at {}: {message}", printable_line(place))
        }
    };
}
