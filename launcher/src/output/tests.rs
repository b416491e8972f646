//! What waits for the launcher's streams: its order, its bound, and whose the open line is.

use super::*;

#[test]
fn the_launchers_words_begin_a_line() {
    let mut queue = Queue::new(Stream::Out);
    queue.push(b"unfinished");
    let mut printer = Printer { out: queue, err: None, refused_file: None };
    printer.say("mpjrun: one\n");
    printer.say("mpjrun: two\n");
    let waiting: Vec<u8> = printer.out.waiting.iter().copied().collect();
    assert_eq!(waiting, b"unfinished\nmpjrun: one\nmpjrun: two\n");
}

#[test]
fn a_full_queue_makes_the_ranks_of_its_stream_wait() {
    let err = Some(Queue::new(Stream::Err));
    let mut printer = Printer { out: Queue::new(Stream::Out), err, refused_file: None };
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

/// A printer that somebody may be looking at.
fn watched() -> Printer {
    let out = Queue { is_file: false, is_terminal: false, ..Queue::new(Stream::Out) };
    Printer { out, err: None, refused_file: None }
}

/// How lines of `source` are seen now.
fn view<'a>(printer: &Printer, source: Source, prefix: &'a str) -> View<'a> {
    View { continues: printer.is_prompting(source), prefix, bars: printer.bars(source) }
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
    printer.prompted(source);
}

#[test]
fn a_prompt_is_its_ranks_line_until_somebody_else_writes() {
    let (mut printer, mut lines) = (watched(), LineBuffer::default());
    prompt(&mut printer, &mut lines, ONE, "", b"name");
    assert!(printer.is_prompting(ONE) && !printer.is_prompting(TWO));
    printer.push(ONE, b"? Bob\n");
    printer.push(ONE, b"age? ");
    printer.prompted(ONE);
    printer.push(TWO, b"");
    assert!(printer.is_prompting(ONE), "nothing is written by nothing");
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
    printer.prompted(ONE);
    assert!(!printer.takes_prompt(ONE), "the beginning still waits");
    printer.out.waiting.clear();
    assert!(printer.takes_prompt(ONE) && !printer.takes_prompt(TWO));
    printer.push(TWO, b"two\n");
    printer.out.waiting.clear();
    assert!(printer.takes_prompt(TWO));
    printer.push(TWO, b"binary");
    printer.out.waiting.clear();
    assert!(!printer.takes_prompt(TWO), "the open line is no prompt");
    let mut into_a_file = watched();
    into_a_file.out.is_file = true;
    assert!(!into_a_file.takes_prompt(ONE));
}

#[test]
fn bars_pass_for_rank_0_where_somebody_may_be_looking() {
    let zero = Source { rank: 0, stream: Stream::Out };
    let bars = |is_file, is_terminal| {
        let out = Queue { is_file, is_terminal, ..Queue::new(Stream::Out) };
        let printer = Printer { out, err: None, refused_file: None };
        [printer.bars(zero), printer.bars(ONE)]
    };
    assert_eq!(bars(false, true), [Bars::Live, Bars::Last]);
    assert_eq!(bars(false, false), [Bars::Live, Bars::Kept]);
    assert_eq!(bars(true, false), [Bars::Kept, Bars::Kept]);
}

#[test]
fn a_line_of_another_rank_ends_an_open_bar_first() {
    let zero = Source { rank: 0, stream: Stream::Out };
    let (mut printer, mut lines) = (watched(), LineBuffer::default());
    for bytes in [&b"10%\r"[..], b"20%\r"] {
        let view = view(&printer, zero, "[0] ");
        assert!(lines.push(bytes, view, &mut |piece| printer.push(zero, piece)));
        printer.prompted(zero);
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
