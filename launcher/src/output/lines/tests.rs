//! Cutting into lines: whole ones only, no byte lost, changed or reordered.

use super::*;

fn view(prefix: &str, bars: Bars) -> View<'_> {
    View { at: At::LineStart, prefix, bars }
}

const PLAIN: View<'_> = View { at: At::LineStart, prefix: "", bars: Bars::Kept };

fn feed_as(lines: &mut LineBuffer, mut view: View<'_>, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    pieces
        .iter()
        .map(|piece| {
            let mut emitted = Vec::new();
            lines.push(piece, view, &mut |bytes| emitted.extend_from_slice(bytes));
            // As in the printer with nobody else writing.
            view.at = match emitted.last() {
                Some(b'\n') => At::LineStart,
                Some(b'\r') => At::Return,
                Some(_) => At::Middle,
                None => view.at,
            };
            emitted
        })
        .collect()
}

fn feed(lines: &mut LineBuffer, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
    feed_as(lines, PLAIN, pieces)
}

fn finish_as(lines: &mut LineBuffer, view: View<'_>) -> Vec<u8> {
    let mut emitted = Vec::new();
    lines.finish(view, &mut |bytes| emitted.extend_from_slice(bytes));
    emitted
}

fn finish(lines: &mut LineBuffer) -> Vec<u8> {
    finish_as(lines, PLAIN)
}

#[test]
fn only_whole_lines_pass() {
    let mut lines = LineBuffer::default();
    let passed = feed(&mut lines, &[b"on", b"e\ntwo\nth", b"ree", b"\n", b"rest"]);
    let expected: [&[u8]; 5] = [b"", b"one\ntwo\n", b"", b"three\n", b""];
    assert_eq!(passed, expected);
    assert_eq!(finish(&mut lines), b"rest");
    assert_eq!(finish(&mut lines), b"");
}

#[test]
fn every_line_is_labelled_once() {
    let mut lines = LineBuffer::default();
    let labelled = view("[7] ", Bars::Kept);
    let passed = feed_as(&mut lines, labelled, &[b"a\n\nb", b"c\n", b"end"]);
    let expected: [&[u8]; 3] = [b"[7] a\n[7] \n", b"[7] bc\n", b""];
    assert_eq!(passed, expected);
    assert_eq!(finish_as(&mut lines, labelled), b"[7] end\n");
}

#[test]
fn an_endless_line_passes_in_pieces() {
    let piece = vec![b'x'; LONGEST_LINE / 2];
    let mut plain = LineBuffer::default();
    let passed = feed(&mut plain, &[&piece, &piece, b"y\n"]);
    assert_eq!(passed.iter().map(Vec::len).collect::<Vec<_>>(), [0, LONGEST_LINE, 2]);
    let mut labelled = LineBuffer::default();
    let passed = feed_as(&mut labelled, view("> ", Bars::Kept), &[&piece, &piece, b"y\n"]);
    assert_eq!(passed.iter().map(Vec::len).collect::<Vec<_>>(), [0, LONGEST_LINE + 3, 4]);
}

/// Every way to cut a stream of arbitrary bytes into two reads gives the same bytes.
#[test]
fn bytes_are_neither_changed_nor_lost() {
    let stream: Vec<u8> = (0..=255u8).chain(*b"\n\r\n\0\n").chain((0..=255).rev()).collect();
    for bars in [Bars::Kept, Bars::Live] {
        for cut in 0..=stream.len() {
            let mut lines = LineBuffer::default();
            let pieces = [&stream[..cut], &stream[cut..]];
            let mut passed = feed_as(&mut lines, view("", bars), &pieces).concat();
            passed.extend(finish(&mut lines));
            assert_eq!(passed, stream, "cut at {cut}");
        }
    }
}

#[test]
fn states_of_a_live_bar_pass_at_once() {
    let mut lines = LineBuffer::default();
    let pieces: [&[u8]; 5] = [b"one\n10%\r", b"2", b"0%\r30%", b"\r", b"\nend\n"];
    let passed = feed_as(&mut lines, view("", Bars::Live), &pieces);
    let expected: [&[u8]; 5] = [b"one\n10%\r", b"", b"20%\r", b"30%\r", b"\nend\n"];
    assert_eq!(passed, expected);
}

#[test]
fn every_state_of_a_live_bar_is_labelled() {
    let live = view("> ", Bars::Live);
    let passed = |pieces: &[&[u8]]| {
        String::from_utf8(feed_as(&mut LineBuffer::default(), live, pieces).concat()).expect("text")
    };
    assert_eq!(passed(&[b"10%\r20%\r", b"done\n", b"next\n"]), "> 10%\r> 20%\r> done\n> next\n");
    assert_eq!(passed(&[b"10%\r20%\rdone\n"]), "> 10%\r> 20%\r> done\n");
    assert_eq!(passed(&[b"dos\r", b"\nx\r\n"]), "> dos\r\n> x\r\n");
    assert_eq!(passed(&[b"\r10%", b"\r20%\n"]), "> \r> 10%\r> 20%\n");
}

#[test]
fn a_terminal_gets_the_last_state_of_other_bars() {
    let last = view("> ", Bars::Last);
    let mut lines = LineBuffer::default();
    let pieces: [&[u8]; 5] = [b"10%\r20%", b"\r", b"30%\r", b"\n", b"a\rb\r\n\rc"];
    let passed = feed_as(&mut lines, last, &pieces);
    let expected: [&[u8]; 5] = [b"", b"", b"", b"> 30%\r\n", b"> b\r\n"];
    assert_eq!(passed, expected);
    assert_eq!(finish_as(&mut lines, last), b"> c\n");
}

#[test]
fn a_bar_that_never_ends_takes_no_memory() {
    let mut lines = LineBuffer::default();
    for _ in 0..10_000 {
        feed_as(&mut lines, view("", Bars::Last), &[b"a state of twenty bytes\r"]);
    }
    assert!(lines.pending.len() < 100);
}

#[test]
fn the_bar_of_a_rank_that_shows_none_is_no_prompt() {
    let mut lines = LineBuffer::default();
    feed(&mut lines, &[b"name? "]);
    assert!(lines.may_be_prompt(Bars::Kept) && lines.may_be_prompt(Bars::Live));
    feed(&mut lines, &[b"\r10%"]);
    assert!(!lines.may_be_prompt(Bars::Kept) && !lines.may_be_prompt(Bars::Last));
}
