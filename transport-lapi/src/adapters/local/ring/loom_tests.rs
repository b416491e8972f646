//! Models of the ring: every interleaving of one producer and one consumer, on very few slots.

use std::sync::Arc;

use loom::thread;

use super::memory::Memory;
use super::*;

/// Sends `frames` frames and receives them on another thread; each must arrive once, in order, with its own bytes.
fn model(slots: usize, lines: usize, frames: u8, head_len: usize, body_len: usize) {
    loom::model(move || {
        let memory = Arc::new(Memory::new(slots, lines));
        let origin = thread::spawn({
            let memory = Arc::clone(&memory);
            move || {
                let mut producer = Producer::new(
                    memory.ring(),
                    RecycledBuffers::new(&[], false),
                    CachePolicy::Pull,
                );
                for i in 0..frames {
                    let (head, body) = (vec![i; head_len], vec![!i; body_len]);
                    while producer.offer(&head, Piece::of(&body)) != Ok(Post::Taken) {
                        thread::yield_now();
                    }
                }
            }
        });
        let mut consumer = Consumer::new(memory.ring());
        for i in 0..frames {
            let mut check = |frame: Frame<'_>| {
                assert_eq!(frame.head, vec![i; head_len]);
                assert_eq!(frame.body.to_vec(), vec![!i; body_len]);
            };
            while consumer.take(0, &mut RecycledBuffers::new(&[], false), &mut check) != Ok(true) {
                thread::yield_now();
            }
        }
        assert_eq!(
            consumer.take(0, &mut RecycledBuffers::new(&[], false), &mut |_: Frame<'_>| panic!(
                "a frame too many"
            )),
            Ok(false)
        );
        origin.join().expect("the producer does not panic");
    });
}

#[test]
fn loom_two_cells_lose_and_repeat_nothing_around_the_wrap() {
    model(2, 4, 5, 1, 8);
}

/// A long head and a body of one line do not fit a slot together, so the bodies go through the data ring
/// area, which is full before the slots are.
#[test]
fn loom_data_ring_lines_are_handed_over_and_back() {
    model(8, 4, 6, MAX_HEAD, LINE);
}

/// Each of two tasks sends to the other and receives from it, on two rings with common recycled buffers: a recycled
/// buffer passes to and fro, and who has none uses the data ring.
#[test]
fn loom_buffers_are_recycled() {
    fn task(out: &Memory, in_: &Memory, recycled: RecycledBuffers<'_>, mark: u8) {
        let mut to = Producer::new(out.ring(), recycled, CachePolicy::Demote);
        let mut from = Consumer::new(in_.ring());
        for round in 0..2 {
            assert_eq!(
                to.offer(&[mark; MAX_HEAD], Piece::of(&[mark + round; LINE])),
                Ok(Post::Taken)
            );
            let mut check = |frame: Frame<'_>| {
                assert_eq!(frame.body.to_vec(), vec![3 - mark + round; LINE]);
            };
            while from.take(0, &mut to.recycled, &mut check) != Ok(true) {
                thread::yield_now();
            }
            to.on_receive();
        }
    }
    loom::model(|| {
        let there = Arc::new(Memory::new(4, 4).with_recycled(1));
        let back = Arc::new(Memory::new(4, 4));
        let other = thread::spawn({
            let (there, back) = (Arc::clone(&there), Arc::clone(&back));
            move || task(&back, &there, there.recycled(false), 2)
        });
        task(&there, &back, there.recycled(true), 1);
        other.join().expect("the task does not panic");
    });
}
