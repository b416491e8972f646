//! The ring in one thread: wrap-around, filling and draining, and every way to damage it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::memory::Memory;
use super::*;

mod recycled;

/// Head and body of a received frame.
type Seen = (Vec<u8>, Vec<u8>);

/// Bytes that distinguish frames.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (seed * 31 + i * 7) as u8).collect()
}

fn take(consumer: &mut Consumer<'_>) -> Result<Option<Seen>, RingDamage> {
    take_with(consumer, &mut no_recycled())
}

/// [`take`] of a task with these recycled buffers.
fn take_with(
    consumer: &mut Consumer<'_>,
    recycled: &mut RecycledBuffers<'_>,
) -> Result<Option<Seen>, RingDamage> {
    let mut seen = None;
    let mut see = |frame: Frame<'_>| seen = Some((frame.head.to_vec(), frame.body.to_vec()));
    let ready = consumer.take(0, recycled, &mut see)?;
    assert_eq!(ready, seen.is_some());
    Ok(seen)
}

fn no_recycled() -> RecycledBuffers<'static> {
    RecycledBuffers::new(&[], false)
}

/// Both ends, as they are after `start` slots and `start` lines have been used.
fn ends(memory: &Memory, start: u32) -> (Producer<'_>, Consumer<'_>) {
    ends_of(memory, start, CachePolicy::Pull)
}

fn ends_of(memory: &Memory, start: u32, policy: CachePolicy) -> (Producer<'_>, Consumer<'_>) {
    let ring = memory.ring();
    let mut producer = Producer::new(ring, no_recycled(), policy);
    let mut consumer = Consumer::new(ring);
    let bytes = start.wrapping_mul(LINE as u32);
    (producer.position, producer.freed) = (start, start);
    (consumer.position, consumer.published) = (start, start);
    (producer.data_ring.position, producer.data_ring.freed) = (bytes, bytes);
    (consumer.data_ring.position, consumer.data_ring.published) = (bytes, bytes);
    ring.indices.slots.store(start, Ordering::Relaxed);
    ring.indices.data_ring.store(bytes, Ordering::Relaxed);
    (producer, consumer)
}

#[derive(Debug, Clone)]
enum Step {
    Offer { head: usize, body: usize },
    Take,
}

fn step() -> impl Strategy<Value = Step> {
    let body = prop_oneof![0..80_usize, 240..330_usize, 0..=1024_usize];
    prop_oneof![
        (0..=MAX_HEAD, body).prop_map(|(head, body)| Step::Offer { head, body }),
        Just(Step::Take),
    ]
}

proptest! {
    /// Compares the ring with a queue, from the start and across the wrap of the positions. Bodies of up to 1024 bytes
    /// are a quarter of an area of 64 lines; in one of 1024 lines lone bodies are kept apart.
    #[test]
    fn behaves_like_a_bounded_queue(
        start in prop_oneof![Just(0), Just(0_u32.wrapping_sub(16)), Just((1 << 26) - 24)],
        policy in prop_oneof![Just(CachePolicy::Pull), Just(CachePolicy::Demote)],
        lines in prop_oneof![Just(64), Just(1024)],
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let memory = Memory::new(8, lines);
        let (mut producer, mut consumer) = ends_of(&memory, start, policy);
        let mut queue: VecDeque<Seen> = VecDeque::new();
        for (seed, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer { head, body } => {
                    let (head, body) = (pattern(seed, head), pattern(seed + 1, body));
                    match producer.offer(&head, Piece::of(&body)).unwrap() {
                        Post::Taken => queue.push_back((head, body)),
                        // R3 and B2: once the consumer has seen everything, there is room for any frame.
                        Post::Full => prop_assert!(!queue.is_empty()),
                        Post::InFlight => prop_assert!(false, "a ring copies"),
                    }
                    prop_assert!(queue.len() <= 8);
                }
                Step::Take => {
                    prop_assert_eq!(take(&mut consumer).unwrap(), queue.pop_front());
                    producer.on_receive();
                }
            }
        }
        while let Some(expected) = queue.pop_front() {
            prop_assert_eq!(take(&mut consumer).unwrap(), Some(expected));
        }
        prop_assert_eq!(take(&mut consumer).unwrap(), None);
    }
}

#[test]
fn carries_every_length_around_the_inline_limit() {
    let memory = Memory::new(4, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    for head in [0, 1, 8, 16, 24, 40, 255, MAX_HEAD] {
        for body in (0..80).chain(SLOT_DATA - MAX_HEAD - 2..SLOT_DATA + 2).chain([1023, 1024]) {
            let frame = (pattern(head, head), pattern(body, body));
            assert_eq!(producer.offer(&frame.0, Piece::of(&frame.1)), Ok(Post::Taken));
            assert_eq!(take(&mut consumer), Ok(Some(frame)), "head {head}, body {body}");
        }
    }
}

#[test]
fn takes_as_many_frames_as_it_has_cells_and_no_more() {
    let memory = Memory::new(8, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    for i in 0..8 {
        assert_eq!(producer.offer(&[i], Piece::of(&[])), Ok(Post::Taken));
    }
    assert_eq!(producer.offer(&[8], Piece::of(&[])), Ok(Post::Full));
    assert_eq!(take(&mut consumer), Ok(Some((vec![0], vec![]))));
    assert_eq!(
        producer.offer(&[8], Piece::of(&[])),
        Ok(Post::Full),
        "a quarter comes back at once"
    );
    assert_eq!(take(&mut consumer), Ok(Some((vec![1], vec![]))));
    for i in 8..10 {
        assert_eq!(producer.offer(&[i], Piece::of(&[])), Ok(Post::Taken));
    }
    assert_eq!(producer.offer(&[10], Piece::of(&[])), Ok(Post::Full));
    for i in 2..10 {
        assert_eq!(take(&mut consumer), Ok(Some((vec![i], vec![]))));
    }
    assert_eq!(take(&mut consumer), Ok(None));
}

/// The places of some bodies of 1000 bytes. If they are lone, each is the first after a frame from the consumer.
fn places(policy: CachePolicy, are_lone: bool) -> Vec<u32> {
    let memory = Memory::new(8, 1024);
    let (mut producer, mut consumer) = ends_of(&memory, 0, policy);
    let mut place = || {
        let begins = producer.data_ring.position;
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&[1; 1000])), Ok(Post::Taken));
        take(&mut consumer).unwrap();
        assert!(!producer.next_is_lone());
        if are_lone {
            producer.on_receive();
            assert!(producer.next_is_lone());
        }
        begins
    };
    (0..3).map(|_| place()).collect()
}

#[test]
fn lone_bodies_begin_in_pages_of_their_own() {
    for policy in [CachePolicy::Pull, CachePolicy::Demote] {
        assert_eq!(places(policy, true), [0, 4096, 8192]);
        assert_eq!(places(policy, false), [0, 4096, 5120], "the first of a stream is lone");
    }
}

#[test]
fn a_waiting_producer_prefetches_as_much_as_it_has_sent() {
    let memory = Memory::new(8, 2048);
    let (mut producer, mut consumer) = ends_of(&memory, 0, CachePolicy::Demote);
    let mut ahead_after = |lens: &[usize], is_heard: bool| {
        if is_heard {
            producer.on_receive();
        }
        for &len in lens {
            let body = vec![1; len];
            assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&body)), Ok(Post::Taken));
            take(&mut consumer).unwrap();
        }
        (0..100).for_each(|_| producer.prefetch_more());
        producer.data_ring.ahead
    };
    assert_eq!(ahead_after(&[1000, 1000], true), 2048);
    assert_eq!(ahead_after(&[3000], true), 3008);
    // It does not grow if a short frame is the first one after the consumer's, or if the consumer sends nothing.
    for (lens, is_heard) in [(&[8, 1000], true), (&[1000, 8], false)] {
        let after: Vec<u32> = (0..5).map(|_| ahead_after(lens, is_heard)).collect();
        assert!(after[1..].iter().all(|&ahead| ahead <= 2048), "{after:?}");
    }
    assert_eq!(ahead_after(&[20_000, 20_000], true), 4096, "a part of the area");
}

#[test]
fn a_waiting_producer_leaves_to_the_consumer_what_that_has_not_freed() {
    let memory = Memory::new(8, 2048);
    let (mut producer, _consumer) = ends_of(&memory, 0, CachePolicy::Demote);
    for len in [32_000, 32_000, 32_000, 27_648] {
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&vec![1; len])), Ok(Post::Taken));
    }
    let free = 2048 * LINE as u32 - producer.data_ring.position;
    (0..100).for_each(|_| producer.prefetch_more());
    let ahead = producer.data_ring.ahead;
    assert!(free < 4096 && ahead == free, "{ahead} of {free}");
}

#[test]
fn a_full_data_ring_takes_nothing_and_recovers() {
    let memory = Memory::new(16, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    let frame = |i: usize| (vec![i as u8], pattern(i, 1000));
    for i in 0..4 {
        assert_eq!(producer.offer(&frame(i).0, Piece::of(&frame(i).1)), Ok(Post::Taken));
    }
    assert_eq!(producer.offer(&frame(4).0, Piece::of(&frame(4).1)), Ok(Post::Full));
    assert_eq!(producer.offer(&[9], Piece::of(b"small ones still pass")), Ok(Post::Taken));
    for i in 0..4 {
        assert_eq!(take(&mut consumer), Ok(Some(frame(i))));
    }
    assert_eq!(take(&mut consumer).unwrap().unwrap().0, [9]);
    assert_eq!(producer.offer(&frame(4).0, Piece::of(&frame(4).1)), Ok(Post::Taken));
    assert_eq!(take(&mut consumer), Ok(Some(frame(4))));
}

#[test]
fn a_sink_that_panics_costs_its_own_frame_only() {
    let memory = Memory::new(4, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    for round in 0..8 {
        for i in 0..2 {
            assert_eq!(producer.offer(&[i], Piece::of(&pattern(round, 600))), Ok(Post::Taken));
        }
        let mut explode = |_: Frame<'_>| panic!("on purpose");
        catch_unwind(AssertUnwindSafe(|| consumer.take(0, &mut no_recycled(), &mut explode)))
            .unwrap_err();
        assert_eq!(take(&mut consumer), Ok(Some((vec![1], pattern(round, 600)))));
        assert_eq!(take(&mut consumer), Ok(None));
    }
}

/// Offers a frame, lets `damage` rewrite its header word and length word, and requires that only this frame is refused,
/// with `expected`, and that the next frame arrives.
fn refuses(body: &[u8], expected: RingDamage, damage: impl Fn(&mut u64, &mut u64)) {
    let memory = Memory::new(8, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    assert_eq!(producer.offer(b"head", Piece::of(body)), Ok(Post::Taken));
    let slot = &memory.ring().slots[0];
    let (mut header_word, mut length_word) =
        (slot.header_word.load(Ordering::Relaxed), slot.length_word.load(Ordering::Relaxed));
    damage(&mut header_word, &mut length_word);
    slot.header_word.store(header_word, Ordering::Relaxed);
    slot.length_word.store(length_word, Ordering::Relaxed);
    for i in 1..20 {
        assert_eq!(producer.offer(&[i], Piece::of(&[i; 700])), Ok(Post::Taken));
        if i == 1 {
            assert_eq!(take(&mut consumer), Err(expected));
        }
        assert_eq!(take(&mut consumer), Ok(Some((vec![i], vec![i; 700]))));
    }
    assert!(!expected.what().is_empty());
}

/// Replaces `bits` bits of `word`, from bit `shift` on.
fn replace(word: &mut u64, shift: u32, bits: u32, value: u64) {
    let mask = ((1 << bits) - 1) << shift;
    *word = *word & !mask | value << shift;
}

#[test]
fn refuses_a_head_longer_than_a_head_can_be() {
    let too_long = MAX_HEAD as u64 + 1;
    refuses(b"x", RingDamage::HeadLength, |header_word, _| replace(header_word, 32, 16, too_long));
    refuses(b"x", RingDamage::HeadLength, |header_word, _| replace(header_word, 32, 16, 0xffff));
    refuses(&[1; 700], RingDamage::HeadLength, |header_word, _| {
        replace(header_word, 32, 16, too_long)
    });
}

#[test]
fn refuses_an_inline_body_longer_than_its_cell() {
    let fits = SLOT_DATA as u64 - 4;
    refuses(b"x", RingDamage::InlineLength, |_, length_word| replace(length_word, 0, 32, fits + 1));
    refuses(b"x", RingDamage::InlineLength, |_, length_word| {
        replace(length_word, 0, 32, 0xffff_ffff)
    });
}

#[test]
fn refuses_an_unknown_kind() {
    refuses(b"x", RingDamage::Kind, |header_word, _| replace(header_word, 48, 16, 3));
    refuses(b"x", RingDamage::Kind, |header_word, _| replace(header_word, 48, 16, 0xffff));
}

#[test]
fn refuses_a_body_longer_than_a_quarter_of_the_area() {
    refuses(&[1; 700], RingDamage::BodyLength, |_, length_word| replace(length_word, 0, 32, 1025));
    refuses(&[1; 700], RingDamage::BodyLength, |_, length_word| {
        replace(length_word, 0, 32, 0xffff_ffff)
    });
}

#[test]
fn refuses_a_body_that_is_not_on_lines_or_crosses_the_end() {
    refuses(&[1; 700], RingDamage::DataPlace, |_, length_word| replace(length_word, 32, 32, 1));
    refuses(&[1; 700], RingDamage::DataPlace, |_, length_word| {
        replace(length_word, 32, 32, 4096 - 64)
    });
}

#[test]
fn refuses_a_body_outside_of_what_was_filled() {
    refuses(&[1; 700], RingDamage::DataRange, |_, length_word| replace(length_word, 32, 32, 4096));
    refuses(&[1; 700], RingDamage::DataRange, |_, length_word| {
        replace(length_word, 32, 32, 0x8000_0000)
    });
    refuses(&[1; 700], RingDamage::DataRange, |_, length_word| {
        replace(length_word, 32, 32, u64::from(0_u32.wrapping_sub(4096)));
    });
}

#[test]
fn a_stale_or_foreign_lap_is_not_a_frame() {
    let memory = Memory::new(8, 64);
    let (_, mut consumer) = ends(&memory, 800);
    for number in [0, 1, 793, 800, 802, u32::MAX] {
        memory.ring().slots[0].header_word.store(number.into(), Ordering::Relaxed);
        assert_eq!(take(&mut consumer), Ok(None), "number {number}");
    }
    memory.ring().slots[0].header_word.store(801, Ordering::Relaxed);
    assert_eq!(take(&mut consumer), Ok(Some((vec![], vec![]))));
}

#[test]
fn refuses_credit_for_cells_that_were_never_filled() {
    for claim in [9, 100, u32::MAX] {
        let memory = Memory::new(8, 64);
        let (mut producer, _) = ends(&memory, 0);
        for _ in 0..8 {
            assert_eq!(producer.offer(b"", Piece::of(b"")), Ok(Post::Taken));
        }
        memory.ring().indices.slots.store(claim, Ordering::Relaxed);
        assert_eq!(
            producer.offer(b"", Piece::of(b"")),
            Err(RingDamage::SlotCredit),
            "claim {claim}"
        );
    }
}

#[test]
fn refuses_credit_for_data_ring_memory_that_was_never_filled() {
    for claim in [63, 4096 + 64, u32::MAX - 63] {
        let memory = Memory::new(8, 64);
        let (mut producer, _) = ends(&memory, 0);
        for _ in 0..4 {
            assert_eq!(producer.offer(b"", Piece::of(&[1; 1024])), Ok(Post::Taken));
        }
        memory.ring().indices.data_ring.store(claim, Ordering::Relaxed);
        assert_eq!(
            producer.offer(b"", Piece::of(&[1; 1024])),
            Err(RingDamage::DataCredit),
            "claim {claim}"
        );
    }
}

#[test]
#[should_panic(expected = "callers respect Caps::max_head")]
fn a_head_that_is_too_long_is_the_callers_fault() {
    let memory = Memory::new(8, 64);
    let _ = ends(&memory, 0).0.offer(&[0; MAX_HEAD + 1], Piece::of(b""));
}

#[test]
#[should_panic(expected = "callers respect Caps::max_body")]
fn a_body_that_is_too_long_is_the_callers_fault() {
    let memory = Memory::new(8, 64);
    let _ = ends(&memory, 0).0.offer(b"", Piece::of(&[0; 1025]));
}
