//! Cutting into lines: whole ones only, no byte lost, changed or reordered.

use super::*;

fn feed(lines: &mut LineBuffer, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    pieces
        .iter()
        .map(|piece| {
            let mut emitted = Vec::new();
            lines.push(piece, &mut |bytes| emitted.extend_from_slice(bytes));
            emitted
        })
        .collect()
}

fn finish(lines: &mut LineBuffer) -> Vec<u8> {
    let mut emitted = Vec::new();
    lines.finish(&mut |bytes| emitted.extend_from_slice(bytes));
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
    printer.push(Stream::Err, &vec![0; CONGESTED + 1]);
    assert!(printer.is_congested(Stream::Err) && !printer.is_congested(Stream::Out));
    assert_eq!(printer.wanting().map(|(stream, _)| stream).collect::<Vec<_>>(), [Stream::Err]);
    assert!(!printer.is_flushed());
    printer.queue(Stream::Err).give_up(Broken::Closed);
    assert!(printer.is_flushed() && printer.broken_output().is_none());
}
