//! Copies for many ranks, over pipes that take as much as a test lets them.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;

#[derive(Debug, Default)]
struct Slow {
    took: Vec<u8>,
    room: usize,
    closed: bool,
}

/// The launcher's end of a pipe whose other end the test holds.
#[derive(Debug, Clone, Default)]
struct Pipe(Rc<RefCell<Slow>>);

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut slow = self.0.borrow_mut();
        let len = bytes.len().min(slow.room);
        match (slow.closed, len) {
            (true, _) => Err(ErrorKind::BrokenPipe.into()),
            (_, 0) => Err(ErrorKind::WouldBlock.into()),
            _ => {
                slow.room -= len;
                slow.took.extend(&bytes[..len]);
                Ok(len)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn two(now: Instant) -> (Forwarding<Pipe>, Pipe, Pipe) {
    let (one, other) = (Pipe::default(), Pipe::default());
    (Forwarding::new(false, vec![(0, one.clone()), (1, other.clone())], now), one, other)
}

fn give_room(pipe: &Pipe, room: usize) {
    pipe.0.borrow_mut().room = room;
}

#[test]
fn every_rank_gets_every_byte_at_its_own_pace() {
    let now = Instant::now();
    let (mut input, fast, slow) = two(now);
    give_room(&fast, usize::MAX);
    let bytes: Vec<u8> = (0..200_000u32).map(|number| (number % 251) as u8).collect();
    for piece in bytes.chunks(777) {
        give_room(&slow, 500);
        input.take(piece, now);
    }
    input.end_input(now);
    assert_eq!(fast.0.borrow().took, bytes);
    assert_eq!(input.readers.len(), 1, "the fast one is at the end");
    while !input.is_over() {
        give_room(&slow, 40_001);
        input.write(now);
    }
    assert_eq!(slow.0.borrow().took, bytes);
}

#[test]
fn a_rank_that_closed_its_input_is_no_reason_to_wait() {
    let now = Instant::now();
    let (mut input, open, closed) = two(now);
    give_room(&open, usize::MAX);
    closed.0.borrow_mut().closed = true;
    input.take(b"text", now);
    assert_eq!((input.readers.len(), input.log.len()), (1, 0));
}

#[test]
fn a_rank_that_reads_nothing_is_left_behind_and_named() {
    let start = Instant::now();
    let (mut input, reads, deaf) = two(start);
    give_room(&reads, usize::MAX);
    give_room(&deaf, 100);
    while !input.is_full() {
        input.take(&[7; 1 << 20], start);
    }
    assert_eq!(input.patient_until(), Some(start + PATIENCE));
    assert_eq!(input.leave_behind(start + PATIENCE / 2), None);
    assert_eq!(input.leave_behind(start + PATIENCE), Some((1, 100)));
    assert!(!input.is_full() && input.patient_until().is_none());
    assert_eq!(input.readers.len(), 1);
    input.take(b"more", start + PATIENCE);
    assert!(reads.0.borrow().took.ends_with(b"more"));
}

#[test]
fn a_rank_that_takes_a_little_is_waited_for() {
    let start = Instant::now();
    let (mut input, reads, slow) = two(start);
    give_room(&reads, usize::MAX);
    while !input.is_full() {
        input.take(&[7; 1 << 20], start);
    }
    // As much as keeps the log full.
    input.log.extend([7; 10]);
    let later = start + PATIENCE / 2;
    give_room(&slow, 5);
    input.write(later);
    assert!(input.is_full());
    assert_eq!(input.patient_until(), Some(later + PATIENCE));
    input.resumed(later + PATIENCE);
    assert_eq!(input.leave_behind(later + PATIENCE), None, "a pause counts against nobody");
}

#[test]
fn a_terminal_is_read_line_by_line() {
    let now = Instant::now();
    let pipe = Pipe::default();
    let mut input = Forwarding::new(true, vec![(0, pipe.clone())], now);
    input.take(b"line\n", now);
    assert!(input.is_full() && input.patient_until().is_none());
    give_room(&pipe, 10);
    input.write(now);
    assert!(!input.is_full());
}
