//! The queues of the launcher's streams: their order, their bound, and the source of the open line.

use super::*;

const ONE: Source = Source { rank: 1, stream: Stream::Out };
const TWO: Source = Source { rank: 2, stream: Stream::Out };

/// A printer for both streams of several ranks.
fn printer() -> Printer {
    let queues = vec![Queue::new(Stream::Out)];
    Printer { queues, is_exact: false, refused_file: None }
}

fn waiting(printer: &Printer) -> String {
    String::from_utf8(printer.queues[0].waiting.iter().copied().collect()).expect("text")
}

#[test]
fn the_launchers_words_begin_a_line() {
    let mut printer = printer();
    printer.push(ONE, "", b"unfinished");
    printer.say("mpjrun: one\n");
    printer.say("mpjrun: two\n");
    assert_eq!(waiting(&printer), "unfinished\nmpjrun: one\nmpjrun: two\n");
}

#[test]
fn a_full_queue_makes_the_ranks_of_its_stream_wait() {
    let mut printer = printer();
    printer.queues.push(Queue::new(Stream::Err));
    printer.push(Source { rank: 0, stream: Stream::Err }, "", &vec![0; CONGESTED + 1]);
    assert!(printer.is_congested(Stream::Err) && !printer.is_congested(Stream::Out));
    assert_eq!(printer.wanting().map(|(stream, _)| stream).collect::<Vec<_>>(), [Stream::Err]);
    assert!(printer.left() > 0);
    printer.queue(Stream::Err).give_up(Broken::Closed);
    assert!(printer.left() == 0 && printer.broken_output().is_none());
}

#[test]
fn an_open_line_is_its_sources_until_somebody_else_writes() {
    let mut printer = printer();
    printer.push(ONE, "", b"name");
    printer.push(ONE, "", b"? Bob\n");
    printer.push(ONE, "", b"age? ");
    printer.push(TWO, "", b"");
    assert!(printer.has_open_line(ONE), "nothing is written by nothing");
    printer.push(TWO, "", b"two\n");
    printer.push(ONE, "", b"7\n");
    assert_eq!(waiting(&printer), "name? Bob\nage? \ntwo\n7\n");
}

#[test]
fn a_prefix_begins_every_line_and_no_continuation() {
    let mut printer = printer();
    printer.push(ONE, "[1] ", b"one\n\nna");
    printer.push(ONE, "[1] ", b"me? ");
    printer.push(TWO, "[2] ", b"two\n");
    printer.push(ONE, "[1] ", b"Bob\n");
    assert_eq!(waiting(&printer), "[1] one\n[1] \n[1] name? \n[2] two\n[1] Bob\n");
}

#[test]
fn a_line_whose_source_has_ended_is_ended_by_the_next() {
    let mut printer = printer();
    printer.push(ONE, "", b"one");
    printer.ended(ONE);
    printer.ended(TWO);
    printer.push(ONE, "", b"again");
    assert_eq!(waiting(&printer), "one\nagain");
}

#[test]
fn nothing_is_added_in_a_job_of_one_rank() {
    let mut printer = Printer { is_exact: true, ..printer() };
    printer.push(ONE, "", b"one");
    printer.push(Source { stream: Stream::Err, ..ONE }, "", b"error\n");
    assert_eq!(waiting(&printer), "oneerror\n");
    assert!(printer.passes(ONE));
    // It spawns others.
    printer.share();
    printer.push(ONE, "", b"one");
    printer.push(TWO, "", b"two");
    assert_eq!(waiting(&printer), "oneerror\none\ntwo");
    assert!(!printer.passes(ONE));
}
