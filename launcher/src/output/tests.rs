//! What waits for the launcher's streams: its order, its bound, and whose the open line is.

use super::*;

#[test]
fn the_launchers_words_begin_a_line() {
    let mut printer = printer(Kind::Pipe);
    printer.push(ONE, b"unfinished");
    printer.say("mpjrun: one\n");
    printer.say("mpjrun: two\n");
    let waiting: Vec<u8> = printer.out.waiting.iter().copied().collect();
    assert_eq!(waiting, b"unfinished\nmpjrun: one\nmpjrun: two\n");
}

#[test]
fn a_full_queue_makes_the_ranks_of_its_stream_wait() {
    let err = Some(Queue::new(Stream::Err));
    let mut printer = Printer { err, ..printer(Kind::Pipe) };
    printer.push(Source { rank: 0, stream: Stream::Err }, &vec![0; CONGESTED + 1]);
    assert!(printer.is_congested(Stream::Err) && !printer.is_congested(Stream::Out));
    assert_eq!(printer.wanting().map(|(stream, _)| stream).collect::<Vec<_>>(), [Stream::Err]);
    assert!(!printer.is_flushed());
    printer.queue(Stream::Err).give_up(Broken::Closed);
    assert!(printer.is_flushed() && printer.broken_output().is_none());
}

fn waiting(printer: &Printer) -> String {
    String::from_utf8(printer.out.waiting.iter().copied().collect()).expect("text")
}

const ONE: Source = Source { rank: 1, stream: Stream::Out };
const TWO: Source = Source { rank: 2, stream: Stream::Out };

/// A printer for both streams of several ranks into what is of this `kind`.
fn printer(kind: Kind) -> Printer {
    let out = Queue { kind, ..Queue::new(Stream::Out) };
    Printer { out, err: None, is_exact: false, refused_file: None }
}

/// A printer that somebody looks at.
fn watched() -> Printer {
    printer(Kind::Terminal)
}

/// How lines of `source` are seen now.
fn view<'a>(printer: &Printer, source: Source, prefix: &'a str) -> View<'a> {
    View { at: printer.at(source), prefix, bars: printer.bars(source) }
}

/// Takes `bytes` that begin no whole line, and shows them as a prompt of `source`.
fn prompt(
    printer: &mut Printer,
    lines: &mut LineBuffer,
    source: Source,
    prefix: &str,
    bytes: &[u8],
) {
    lines.push(bytes, view(printer, source, prefix), &mut |_| panic!("not a whole line"));
    let view = view(printer, source, prefix);
    lines.prompt(view, &mut |bytes| printer.push(source, bytes));
}

#[test]
fn a_prompt_is_its_ranks_line_until_somebody_else_writes() {
    let (mut printer, mut lines) = (watched(), LineBuffer::default());
    prompt(&mut printer, &mut lines, ONE, "", b"name");
    assert!(printer.at(ONE) == At::Middle && printer.at(TWO) == At::LineStart);
    printer.push(ONE, b"? Bob\n");
    printer.push(ONE, b"age? ");
    printer.push(TWO, b"");
    assert!(printer.at(ONE) == At::Middle, "nothing is written by nothing");
    printer.push(TWO, b"two\n");
    printer.push(ONE, b"7\n");
    assert_eq!(waiting(&printer), "name? Bob\nage? \ntwo\n7\n");
}

#[test]
fn a_label_begins_a_prompt_and_not_its_continuation() {
    let (mut printer, mut lines) = (watched(), LineBuffer::default());
    prompt(&mut printer, &mut lines, ONE, "[1] ", b"na");
    prompt(&mut printer, &mut lines, ONE, "[1] ", b"me? ");
    let view = view(&printer, ONE, "[1] ");
    lines.push(b"Bob\nage\n", view, &mut |bytes| printer.push(ONE, bytes));
    assert_eq!(waiting(&printer), "[1] name? Bob\n[1] age\n");
}

#[test]
fn a_prompt_is_shown_only_where_it_is_seen_in_a_line_of_its_own() {
    let mut printer = watched();
    assert!(printer.takes_prompt(ONE));
    printer.push(ONE, b"name? ");
    assert!(!printer.takes_prompt(ONE), "the beginning still waits");
    printer.out.waiting.clear();
    assert!(printer.takes_prompt(ONE) && !printer.takes_prompt(TWO));
    printer.push(TWO, b"two\n");
    printer.out.waiting.clear();
    assert!(printer.takes_prompt(TWO));
    printer.push(TWO, b"binary");
    printer.out.waiting.clear();
    assert!(!printer.takes_prompt(ONE), "the open line is of another one");
    printer.ended(TWO);
    assert!(printer.takes_prompt(ONE), "nobody goes on with the line");
}

#[test]
fn where_nobody_looks_a_slow_line_is_no_prompt_but_of_a_job_of_one_rank() {
    for kind in [Kind::Pipe, Kind::Socket, Kind::Device, Kind::File] {
        assert!(!printer(kind).takes_prompt(ONE), "{kind:?}");
        let alone = Printer { is_exact: true, ..printer(kind) };
        assert_eq!(alone.takes_prompt(ONE), kind != Kind::File, "{kind:?}");
    }
}

#[test]
fn the_last_line_of_a_rank_that_ended_is_ended_by_who_writes_next() {
    let mut printer = printer(Kind::File);
    printer.push(ONE, b"done");
    printer.ended(ONE);
    printer.push(Source { stream: Stream::Err, ..ONE }, b"oops");
    printer.push(TWO, b"hello\n");
    assert_eq!(waiting(&printer), "done\noops\nhello\n");
}

#[test]
fn nothing_is_added_to_the_bytes_of_one_rank() {
    let mut printer = Printer { is_exact: true, ..printer(Kind::Terminal) };
    printer.push(ONE, b"done");
    printer.push(Source { stream: Stream::Err, ..ONE }, b"oops");
    printer.ended(ONE);
    printer.push(ONE, b" again\n");
    assert_eq!(waiting(&printer), "doneoops again\n");
    let choice = OutputChoice::default();
    assert!(choice.is_exact(1) && !choice.is_exact(2));
    assert!(!OutputChoice { tag: true, ..choice }.is_exact(1));
}

#[test]
fn bars_pass_for_rank_0_where_somebody_may_be_looking() {
    let zero = Source { rank: 0, stream: Stream::Out };
    let bars = |kind| {
        let printer = printer(kind);
        [printer.bars(zero), printer.bars(ONE)]
    };
    assert_eq!(bars(Kind::Terminal), [Bars::Live, Bars::Last]);
    assert_eq!(bars(Kind::Pipe), [Bars::Live, Bars::Kept]);
    assert_eq!(bars(Kind::File), [Bars::Kept, Bars::Kept]);
}

#[test]
fn a_line_of_another_rank_ends_an_open_bar_first() {
    let zero = Source { rank: 0, stream: Stream::Out };
    let (mut printer, mut lines) = (watched(), LineBuffer::default());
    for bytes in [&b"10%\r"[..], b"20%\r"] {
        let view = view(&printer, zero, "[0] ");
        lines.push(bytes, view, &mut |piece| printer.push(zero, piece));
        assert_eq!(printer.at(zero), At::Return);
    }
    printer.push(TWO, b"two\n");
    let view = view(&printer, zero, "[0] ");
    lines.push(b"done\n", view, &mut |piece| printer.push(zero, piece));
    assert_eq!(waiting(&printer), "[0] 10%\r[0] 20%\r\ntwo\n[0] done\n");
}

#[test]
fn a_file_that_cannot_be_written_breaks_the_output() {
    let mut printer = watched();
    printer.refused_file(Errno::NOSPC);
    printer.refused_file(Errno::IO);
    assert_eq!(printer.broken_output(), Some(Broken::File(Errno::NOSPC)));
}
