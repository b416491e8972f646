//! Cutting into lines: whole ones only, no byte lost, changed or reordered.

use super::*;

fn feed(lines: &mut LineBuffer, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    pieces
        .iter()
        .map(|piece| {
            let mut emitted = Vec::new();
            lines.push(piece, false, &mut |bytes| emitted.extend_from_slice(bytes));
            emitted
        })
        .collect()
}

fn finish(lines: &mut LineBuffer) -> Vec<u8> {
    let mut emitted = Vec::new();
    lines.finish(false, &mut |bytes| emitted.extend_from_slice(bytes));
    emitted
}

#[test]
fn only_whole_lines_pass() {
    let mut lines = LineBuffer::new(None);
    let passed = feed(&mut lines, &[b"on", b"e\ntwo\nth", b"ree", b"\n", b"rest"]);
    let expected: [&[u8]; 5] = [b"", b"one\ntwo\n", b"", b"three\n", b""];
    assert_eq!(passed, expected);
    assert_eq!(finish(&mut lines), b"rest");
    assert_eq!(finish(&mut lines), b"");
}

#[test]
fn every_line_is_labelled_once() {
    let mut lines = LineBuffer::new(Some("[7] ".to_owned()));
    let passed = feed(&mut lines, &[b"a\n\nb", b"c\n", b"end"]);
    let expected: [&[u8]; 3] = [b"[7] a\n[7] \n", b"[7] bc\n", b""];
    assert_eq!(passed, expected);
    assert_eq!(finish(&mut lines), b"[7] end\n");
}

#[test]
fn an_endless_line_passes_in_pieces() {
    let piece = vec![b'x'; LONGEST_LINE / 2];
    let mut plain = LineBuffer::new(None);
    let passed = feed(&mut plain, &[&piece, &piece, b"y\n"]);
    assert_eq!(passed.iter().map(Vec::len).collect::<Vec<_>>(), [0, LONGEST_LINE, 2]);
    let mut labelled = LineBuffer::new(Some("> ".to_owned()));
    let passed = feed(&mut labelled, &[&piece, &piece, b"y\n"]);
    assert_eq!(passed.iter().map(Vec::len).collect::<Vec<_>>(), [0, LONGEST_LINE + 3, 4]);
}

/// Every way to cut a stream of arbitrary bytes into two reads gives the same bytes.
#[test]
fn bytes_are_neither_changed_nor_lost() {
    let stream: Vec<u8> = (0..=255u8).chain(*b"\n\r\n\0\n").chain((0..=255).rev()).collect();
    for cut in 0..=stream.len() {
        let mut lines = LineBuffer::new(None);
        let mut passed = feed(&mut lines, &[&stream[..cut], &stream[cut..]]).concat();
        passed.extend(finish(&mut lines));
        assert_eq!(passed, stream, "cut at {cut}");
    }
}

#[test]
fn the_launchers_words_begin_a_line() {
    let mut queue = Queue::new(Stream::Out);
    queue.push(b"unfinished");
    let mut printer = Printer { out: queue, err: None };
    printer.say("mpjrun: one\n");
    printer.say("mpjrun: two\n");
    let waiting: Vec<u8> = printer.out.waiting.iter().copied().collect();
    assert_eq!(waiting, b"unfinished\nmpjrun: one\nmpjrun: two\n");
}

#[test]
fn a_full_queue_makes_the_ranks_of_its_stream_wait() {
    let mut printer = Printer { out: Queue::new(Stream::Out), err: Some(Queue::new(Stream::Err)) };
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
    Printer { out: Queue { is_file: false, ..Queue::new(Stream::Out) }, err: None }
}

/// Shows what `lines` holds as a prompt of `source`.
fn prompt(printer: &mut Printer, lines: &mut LineBuffer, source: Source) {
    let continues = printer.is_prompting(source);
    lines.prompt(continues, &mut |bytes| printer.push(source, bytes));
    printer.prompted(source);
}

#[test]
fn a_prompt_is_its_ranks_line_until_somebody_else_writes() {
    let (mut printer, mut lines) = (watched(), LineBuffer::new(None));
    assert_eq!(feed(&mut lines, &[b"name"]), [b""]);
    prompt(&mut printer, &mut lines, ONE);
    assert!(printer.is_prompting(ONE) && !printer.is_prompting(TWO));
    printer.push(ONE, b"? Bob\n");
    printer.push(ONE, b"age? ");
    printer.prompted(ONE);
    printer.push(TWO, b"two\n");
    printer.push(ONE, b"7\n");
    assert_eq!(waiting(&printer), "name? Bob\nage? \ntwo\n7\n");
}

#[test]
fn a_label_begins_a_prompt_and_not_its_continuation() {
    let (mut printer, mut lines) = (watched(), LineBuffer::new(Some("[1] ".to_owned())));
    assert_eq!(feed(&mut lines, &[b"na"]), [b""]);
    prompt(&mut printer, &mut lines, ONE);
    assert_eq!(feed(&mut lines, &[b"me? "]), [b""]);
    prompt(&mut printer, &mut lines, ONE);
    let continues = printer.is_prompting(ONE);
    lines.push(b"Bob\nage\n", continues, &mut |bytes| printer.push(ONE, bytes));
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
