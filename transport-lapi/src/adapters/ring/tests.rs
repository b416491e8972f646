//! The ring in one thread: wrap-around, filling and draining, and every way to damage it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::memory::Memory;
use super::*;
use crate::adapters::blocks::BLOCK_BYTES;

/// Head and body of a received frame.
type Seen = (Vec<u8>, Vec<u8>);

/// Bytes that distinguish frames.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (seed * 31 + i * 7) as u8).collect()
}

fn take(consumer: &mut Consumer<'_>) -> Result<Option<Seen>, RingDamage> {
    take_with(consumer, &mut no_blocks())
}

/// [`take`] of a task with these blocks.
fn take_with(
    consumer: &mut Consumer<'_>,
    blocks: &mut Blocks<'_>,
) -> Result<Option<Seen>, RingDamage> {
    let mut seen = None;
    let mut see = |frame: Frame<'_>| seen = Some((frame.head.to_vec(), frame.body.to_vec()));
    let ready = consumer.take(0, blocks, &mut see)?;
    assert_eq!(ready, seen.is_some());
    Ok(seen)
}

fn no_blocks() -> Blocks<'static> {
    Blocks::new(&[], false)
}

/// Both ends, as they are after `start` cells and `start` lines have been used.
fn ends(memory: &Memory, start: u32) -> (Producer<'_>, Consumer<'_>) {
    ends_of(memory, start, Passing::Fetched)
}

fn ends_of(memory: &Memory, start: u32, passing: Passing) -> (Producer<'_>, Consumer<'_>) {
    let ring = memory.ring();
    let mut producer = Producer::new(ring, no_blocks(), passing);
    let mut consumer = Consumer::new(ring);
    let bytes = start.wrapping_mul(LINE as u32);
    (producer.position, producer.freed) = (start, start);
    (consumer.position, consumer.published) = (start, start);
    (producer.bulk.position, producer.bulk.freed) = (bytes, bytes);
    (consumer.bulk.position, consumer.bulk.published) = (bytes, bytes);
    ring.indices.cells.store(start, Ordering::Relaxed);
    ring.indices.bulk.store(bytes, Ordering::Relaxed);
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
        passing in prop_oneof![Just(Passing::Fetched), Just(Passing::Pushed)],
        lines in prop_oneof![Just(64), Just(1024)],
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let memory = Memory::new(8, lines);
        let (mut producer, mut consumer) = ends_of(&memory, start, passing);
        let mut queue: VecDeque<Seen> = VecDeque::new();
        for (seed, step) in steps.into_iter().enumerate() {
            match step {
                Step::Offer { head, body } => {
                    let (head, body) = (pattern(seed, head), pattern(seed + 1, body));
                    match producer.offer(&head, Piece::of(&body)).unwrap() {
                        Post::Taken => queue.push_back((head, body)),
                        // R3 and B2: once the consumer has seen everything, there is room for any frame.
                        Post::Full => prop_assert!(!queue.is_empty()),
                        Post::Leaving => prop_assert!(false, "a ring copies"),
                    }
                    prop_assert!(queue.len() <= 8);
                }
                Step::Take => {
                    prop_assert_eq!(take(&mut consumer).unwrap(), queue.pop_front());
                    producer.hears();
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
        for body in (0..80).chain(CELL_DATA - MAX_HEAD - 2..CELL_DATA + 2).chain([1023, 1024]) {
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
fn places(passing: Passing, are_lone: bool) -> Vec<u32> {
    let memory = Memory::new(8, 1024);
    let (mut producer, mut consumer) = ends_of(&memory, 0, passing);
    let mut place = || {
        let begins = producer.bulk.position;
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&[1; 1000])), Ok(Post::Taken));
        take(&mut consumer).unwrap();
        assert!(!producer.listens());
        if are_lone {
            producer.hears();
            assert!(producer.listens());
        }
        begins
    };
    (0..3).map(|_| place()).collect()
}

#[test]
fn lone_bodies_begin_in_pages_of_their_own() {
    for passing in [Passing::Fetched, Passing::Pushed] {
        assert_eq!(places(passing, true), [0, 4096, 8192]);
        assert_eq!(places(passing, false), [0, 4096, 5120], "the first of a stream is lone");
    }
}

#[test]
fn a_waiting_producer_prefetches_as_much_as_it_has_sent() {
    let memory = Memory::new(8, 2048);
    let (mut producer, mut consumer) = ends_of(&memory, 0, Passing::Pushed);
    let mut ahead_after = |lens: &[usize], is_heard: bool| {
        if is_heard {
            producer.hears();
        }
        for &len in lens {
            let body = vec![1; len];
            assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&body)), Ok(Post::Taken));
            take(&mut consumer).unwrap();
        }
        (0..100).for_each(|_| producer.expect_more());
        producer.bulk.ahead
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
    let (mut producer, _consumer) = ends_of(&memory, 0, Passing::Pushed);
    for len in [32_000, 32_000, 32_000, 27_648] {
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&vec![1; len])), Ok(Post::Taken));
    }
    let free = 2048 * LINE as u32 - producer.bulk.position;
    (0..100).for_each(|_| producer.expect_more());
    let ahead = producer.bulk.ahead;
    assert!(free < 4096 && ahead == free, "{ahead} of {free}");
}

/// One of two tasks that send to each other.
struct End<'m> {
    to: Producer<'m>,
    from: Consumer<'m>,
}

impl End<'_> {
    fn send(&mut self, seed: usize, len: usize) -> Post {
        self.to.offer(&[seed as u8], Piece::of(&pattern(seed, len))).unwrap()
    }

    fn receive(&mut self) -> Option<Seen> {
        let seen = take_with(&mut self.from, &mut self.to.blocks).unwrap();
        self.to.hears();
        seen
    }
}

/// Two tasks with the blocks of `there`, of which the first one has all.
fn two_ends<'m>(there: &'m Memory, back: &'m Memory, passing: Passing) -> [End<'m>; 2] {
    let end = |to: &'m Memory, from: &'m Memory, has_all| End {
        to: Producer::new(to.ring(), there.blocks(has_all), passing),
        from: Consumer::new(from.ring()),
    };
    [end(there, back, true), end(back, there, false)]
}

proptest! {
    /// Compares two rings with common blocks with two queues. Bodies of up to 40 KiB are longer than a block, and fewer
    /// blocks than cells are used up by bodies that nobody takes.
    #[test]
    fn a_pair_with_blocks_behaves_like_a_bounded_queue_each_way(
        blocks in prop_oneof![Just(0_usize), Just(1), Just(4)],
        passing in prop_oneof![Just(Passing::Fetched), Just(Passing::Pushed)],
        steps in prop::collection::vec(
            (0..2_usize, prop_oneof![Just(None), (0..2000_usize).prop_map(Some), (0..40_000_usize).prop_map(Some)]),
            0..60,
        ),
    ) {
        let (there, back) = (Memory::new(8, 4096).with_blocks(blocks), Memory::new(8, 4096));
        let mut ends = two_ends(&there, &back, passing);
        let mut queues = [VecDeque::new(), VecDeque::new()];
        let take_all = (0..16).map(|i| (i % 2, None));
        for (seed, (end, offered)) in steps.into_iter().chain(take_all).enumerate() {
            match offered {
                Some(len) => match ends[end].send(seed, len) {
                    Post::Taken => queues[end].push_back((vec![seed as u8], pattern(seed, len))),
                    full => prop_assert!(full == Post::Full && !queues[end].is_empty()),
                },
                None => prop_assert_eq!(ends[end].receive(), queues[1 - end].pop_front()),
            }
        }
        prop_assert!(queues.iter().all(VecDeque::is_empty));
    }
}

#[test]
fn a_dialogue_stays_in_one_block() {
    for passing in [Passing::Fetched, Passing::Pushed] {
        let (there, back) = (Memory::new(8, 2048).with_blocks(2), Memory::new(8, 2048));
        let mut ends = two_ends(&there, &back, passing);
        let mut addresses = Vec::new();
        for round in 0..20 {
            let [sender, receiver] = [round % 2, 1 - round % 2];
            assert_eq!(ends[sender].send(round, [1000, 20_000][round / 10]), Post::Taken);
            let End { to, from } = &mut ends[receiver];
            let mut see = |frame: Frame<'_>| addresses.push(frame.body.as_ptr().addr());
            assert_eq!(from.take(0, &mut to.blocks, &mut see), Ok(true));
        }
        assert!(addresses.iter().all(|&address| address == addresses[0]), "{addresses:?}");
        assert!(ends.iter().all(|end| end.to.bulk.position == 0), "nothing is in a bulk area");
    }
}

#[test]
fn all_32_blocks_pass_and_the_longest_body_of_one() {
    let (there, back) = (Memory::new(64, 2048).with_blocks(32), Memory::new(64, 2048));
    let [mut sender, mut receiver] = two_ends(&there, &back, Passing::Pushed);
    let longest = vec![7; BLOCK_BYTES];
    for seed in 0..31 {
        assert_eq!(sender.send(seed, 700), Post::Taken);
    }
    assert_eq!(sender.to.offer(b"", Piece::of(&longest)), Ok(Post::Taken));
    for seed in 0..31 {
        assert_eq!(receiver.receive(), Some((vec![seed as u8], pattern(seed, 700))));
    }
    assert!(receiver.receive().is_some_and(|(_, body)| body == longest));
    assert_eq!(sender.to.bulk.position, 0);
    assert_eq!(receiver.to.offer(b"", Piece::of(&longest)), Ok(Post::Taken));
    assert!(sender.receive().is_some_and(|(_, body)| body == longest));
    assert_eq!(receiver.to.bulk.position, 0);
}

#[test]
fn a_block_stands_in_for_a_full_bulk_area() {
    let memory = Memory::new(64, 8192).with_blocks(1);
    let mut producer = Producer::new(memory.ring(), no_blocks(), Passing::Pushed);
    let offer = |producer: &mut Producer<'_>| {
        let post = producer.offer(b"head", Piece::of(&[1; 13_000]));
        producer.hears();
        // Each wait prefetches the next place. The area holds 32 such bodies, which lie apart.
        (0..100).for_each(|_| producer.expect_more());
        post
    };
    assert_eq!(offer(&mut producer), Ok(Post::Taken));
    producer.blocks = memory.blocks(true);
    let (mut before, mut is_in_block) = (producer.bulk.position, false);
    while offer(&mut producer) == Ok(Post::Taken) {
        assert!(!is_in_block, "the block is used last");
        is_in_block = producer.bulk.position == before;
        before = producer.bulk.position;
    }
    assert!(is_in_block, "the block is used");
    assert_eq!(producer.bulk.position as usize, 8192 * LINE, "after the whole area");
}

#[test]
fn a_sink_that_panics_has_the_block_of_its_frame() {
    let (there, back) = (Memory::new(8, 64).with_blocks(1), Memory::new(8, 64));
    let [mut sender, mut receiver] = two_ends(&there, &back, Passing::Pushed);
    assert_eq!(sender.send(1, 1000), Post::Taken);
    let mut explode = |_: Frame<'_>| panic!("on purpose");
    let End { to, from } = &mut receiver;
    catch_unwind(AssertUnwindSafe(|| from.take(0, &mut to.blocks, &mut explode))).unwrap_err();
    assert_eq!(receiver.receive(), None);
    assert_eq!(receiver.send(2, 1000), Post::Taken);
    assert_eq!(sender.receive(), Some((vec![2], pattern(2, 1000))));
    assert_eq!(receiver.to.bulk.position, 0, "the receiver had the block");
}

#[test]
fn a_waiting_producer_learns_what_was_freed() {
    let memory = Memory::new(64, 16_384);
    let (mut producer, mut consumer) = ends_of(&memory, 0, Passing::Pushed);
    let mut pass = |producer: &mut Producer<'_>, len| {
        let body = vec![1; len];
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&body)), Ok(Post::Taken));
        take(&mut consumer).unwrap();
    };
    for len in [250_000, 250_000, 250_000, 255_000] {
        pass(&mut producer, len);
    }
    producer.hears();
    pass(&mut producer, 20_000);
    let left = 16_384 * LINE - producer.bulk.position as usize;
    (0..100).for_each(|_| producer.expect_more());
    let ahead = producer.bulk.ahead as usize;
    assert!(left < 20_000 && ahead >= 20_000, "{ahead} of {left} up to the area's end");
}

#[test]
fn a_stream_uses_up_the_blocks_and_then_the_bulk_area() {
    let (there, back) = (Memory::new(8, 64).with_blocks(2), Memory::new(8, 64));
    let [mut sender, mut receiver] = two_ends(&there, &back, Passing::Pushed);
    let used = [0, 0, 1000, 2000].map(|least| {
        assert_eq!(sender.send(1, 1000), Post::Taken);
        assert_eq!(receiver.receive(), Some((vec![1], pattern(1, 1000))));
        (least, sender.to.bulk.position)
    });
    assert!(used[..2].iter().all(|&(_, position)| position == 0), "{used:?}");
    assert!(used[2..].iter().all(|&(least, position)| position >= least), "{used:?}");
    // Now the receiver has the blocks.
    assert_eq!(receiver.send(2, 1000), Post::Taken);
    assert_eq!(sender.receive(), Some((vec![2], pattern(2, 1000))));
    assert_eq!(receiver.to.bulk.position, 0);
}

#[test]
fn a_long_body_goes_where_lines_were_prefetched() {
    let (there, back) = (Memory::new(8, 8192).with_blocks(2), Memory::new(8, 4096));
    let [mut sender, mut receiver] = two_ends(&there, &back, Passing::Pushed);
    let mut passed = || {
        let before = sender.to.bulk.position;
        assert_eq!(sender.send(1, 9000), Post::Taken);
        assert!(receiver.receive().is_some());
        sender.to.hears();
        let is_in_block = sender.to.bulk.position == before;
        (0..100).for_each(|_| sender.to.expect_more());
        is_in_block
    };
    assert!(passed(), "at first nothing is prefetched");
    assert!(!passed(), "the wait has prefetched the place of as many bytes");
}

#[test]
fn a_full_bulk_area_takes_nothing_and_recovers() {
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
        catch_unwind(AssertUnwindSafe(|| consumer.take(0, &mut no_blocks(), &mut explode)))
            .unwrap_err();
        assert_eq!(take(&mut consumer), Ok(Some((vec![1], pattern(round, 600)))));
        assert_eq!(take(&mut consumer), Ok(None));
    }
}

/// Offers a frame, lets `damage` rewrite its stamp and extent, and requires that only this frame is refused, with
/// `expected`, and that the next frame arrives.
fn refuses(body: &[u8], expected: RingDamage, damage: impl Fn(&mut u64, &mut u64)) {
    let memory = Memory::new(8, 64);
    let (mut producer, mut consumer) = ends(&memory, 0);
    assert_eq!(producer.offer(b"head", Piece::of(body)), Ok(Post::Taken));
    let cell = &memory.ring().cells[0];
    let (mut stamp, mut extent) =
        (cell.stamp.load(Ordering::Relaxed), cell.extent.load(Ordering::Relaxed));
    damage(&mut stamp, &mut extent);
    cell.stamp.store(stamp, Ordering::Relaxed);
    cell.extent.store(extent, Ordering::Relaxed);
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
    refuses(b"x", RingDamage::HeadLength, |stamp, _| replace(stamp, 32, 16, too_long));
    refuses(b"x", RingDamage::HeadLength, |stamp, _| replace(stamp, 32, 16, 0xffff));
    refuses(&[1; 700], RingDamage::HeadLength, |stamp, _| replace(stamp, 32, 16, too_long));
}

#[test]
fn refuses_an_inline_body_longer_than_its_cell() {
    let fits = CELL_DATA as u64 - 4;
    refuses(b"x", RingDamage::InlineLength, |_, extent| replace(extent, 0, 32, fits + 1));
    refuses(b"x", RingDamage::InlineLength, |_, extent| replace(extent, 0, 32, 0xffff_ffff));
}

#[test]
fn refuses_an_unknown_kind() {
    refuses(b"x", RingDamage::Kind, |stamp, _| replace(stamp, 48, 16, 3));
    refuses(b"x", RingDamage::Kind, |stamp, _| replace(stamp, 48, 16, 0xffff));
}

#[test]
fn refuses_a_body_longer_than_a_quarter_of_the_area() {
    refuses(&[1; 700], RingDamage::BodyLength, |_, extent| replace(extent, 0, 32, 1025));
    refuses(&[1; 700], RingDamage::BodyLength, |_, extent| replace(extent, 0, 32, 0xffff_ffff));
}

#[test]
fn refuses_a_body_that_is_not_on_lines_or_crosses_the_end() {
    refuses(&[1; 700], RingDamage::BulkPlace, |_, extent| replace(extent, 32, 32, 1));
    refuses(&[1; 700], RingDamage::BulkPlace, |_, extent| replace(extent, 32, 32, 4096 - 64));
}

#[test]
fn refuses_a_body_outside_of_what_was_filled() {
    refuses(&[1; 700], RingDamage::BulkRange, |_, extent| replace(extent, 32, 32, 4096));
    refuses(&[1; 700], RingDamage::BulkRange, |_, extent| replace(extent, 32, 32, 0x8000_0000));
    refuses(&[1; 700], RingDamage::BulkRange, |_, extent| {
        replace(extent, 32, 32, u64::from(0_u32.wrapping_sub(4096)));
    });
}

/// Offers a body in block 0 of two, rewrites its extent, and requires that a task with all blocks or none refuses it.
fn refuses_block(extent: u64, receiver_has_all: bool, expected: RingDamage) {
    let memory = Memory::new(8, 64).with_blocks(2);
    let mut producer = Producer::new(memory.ring(), memory.blocks(true), Passing::Pushed);
    let mut consumer = Consumer::new(memory.ring());
    let mut blocks = memory.blocks(receiver_has_all);
    assert_eq!(producer.offer(b"head", Piece::of(&[1; 700])), Ok(Post::Taken));
    memory.ring().cells[0].extent.store(extent, Ordering::Relaxed);
    assert_eq!(producer.offer(b"next", Piece::of(b"x")), Ok(Post::Taken));
    assert_eq!(take_with(&mut consumer, &mut blocks), Err(expected));
    let next = (b"next".to_vec(), b"x".to_vec());
    assert_eq!(take_with(&mut consumer, &mut blocks), Ok(Some(next)));
    assert!(!expected.what().is_empty());
}

#[test]
fn refuses_a_block_that_its_sender_does_not_have() {
    for number in [2, 31, 32, 0xffff_ffff] {
        refuses_block(700 | number << 32, false, RingDamage::Block);
    }
    refuses_block(700, true, RingDamage::Block);
    refuses_block(700 | 1 << 32, true, RingDamage::Block);
}

#[test]
fn refuses_a_body_longer_than_a_block() {
    for len in [BLOCK_BYTES as u64 + 1, 0xffff_ffff] {
        refuses_block(len, false, RingDamage::BodyLength);
    }
}

#[test]
fn a_stale_or_foreign_lap_is_not_a_frame() {
    let memory = Memory::new(8, 64);
    let (_, mut consumer) = ends(&memory, 800);
    for lap in [0, 1, 793, 800, 802, u32::MAX] {
        memory.ring().cells[0].stamp.store(lap.into(), Ordering::Relaxed);
        assert_eq!(take(&mut consumer), Ok(None), "lap {lap}");
    }
    memory.ring().cells[0].stamp.store(801, Ordering::Relaxed);
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
        memory.ring().indices.cells.store(claim, Ordering::Relaxed);
        assert_eq!(
            producer.offer(b"", Piece::of(b"")),
            Err(RingDamage::CellCredit),
            "claim {claim}"
        );
    }
}

#[test]
fn refuses_credit_for_bulk_memory_that_was_never_filled() {
    for claim in [63, 4096 + 64, u32::MAX - 63] {
        let memory = Memory::new(8, 64);
        let (mut producer, _) = ends(&memory, 0);
        for _ in 0..4 {
            assert_eq!(producer.offer(b"", Piece::of(&[1; 1024])), Ok(Post::Taken));
        }
        memory.ring().indices.bulk.store(claim, Ordering::Relaxed);
        assert_eq!(
            producer.offer(b"", Piece::of(&[1; 1024])),
            Err(RingDamage::BulkCredit),
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
