//! Recycled buffers: two rings with common buffers, and every way to damage the number of one.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;

use super::*;
use crate::adapters::local::recycled::{BUFFER_BYTES, LONGEST, MAX_BUFFERS};

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
        let seen = take_with(&mut self.from, &mut self.to.recycled).unwrap();
        self.to.on_receive();
        seen
    }
}

/// Two tasks with the buffers of `there`, of which the first one has all.
fn two_ends<'m>(there: &'m Memory, back: &'m Memory, policy: CachePolicy) -> [End<'m>; 2] {
    let end = |to: &'m Memory, from: &'m Memory, has_all| End {
        to: Producer::new(to.ring(), there.recycled(has_all), policy),
        from: Consumer::new(from.ring()),
    };
    [end(there, back, true), end(back, there, false)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Compares two rings with common buffers with two queues. Bodies of up to 40 KiB occupy up to two buffers or the
    /// data ring, and fewer buffers than slots are used up by bodies that nobody takes.
    #[test]
    fn a_pair_with_recycled_buffers_behaves_like_a_bounded_queue_each_way(
        buffers in prop_oneof![Just(0_usize), Just(1), Just(4)],
        policy in prop_oneof![Just(CachePolicy::Pull), Just(CachePolicy::Demote)],
        steps in prop::collection::vec(
            (0..2_usize, prop_oneof![Just(None), (0..2000_usize).prop_map(Some), (0..40_000_usize).prop_map(Some)]),
            0..60,
        ),
    ) {
        let (there, back) = (Memory::new(8, 4096).with_recycled(buffers), Memory::new(8, 4096));
        let mut ends = two_ends(&there, &back, policy);
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
fn a_dialogue_stays_in_one_buffer() {
    for policy in [CachePolicy::Pull, CachePolicy::Demote] {
        let (there, back) = (Memory::new(8, 2048).with_recycled(2), Memory::new(8, 2048));
        let mut ends = two_ends(&there, &back, policy);
        let mut addresses = Vec::new();
        for round in 0..20 {
            let [sender, receiver] = [round % 2, 1 - round % 2];
            assert_eq!(ends[sender].send(round, [1000, 20_000][round / 10]), Post::Taken);
            let End { to, from } = &mut ends[receiver];
            let mut see = |frame: Frame<'_>| addresses.push(frame.body.as_ptr().addr());
            assert_eq!(from.take(0, &mut to.recycled, &mut see), Ok(true));
        }
        assert!(addresses.iter().all(|&address| address == addresses[0]), "{addresses:?}");
        assert!(ends.iter().all(|end| end.to.data_ring.position == 0), "nothing is in a data ring");
    }
}

#[test]
fn all_recycled_buffers_pass_and_the_longest_body_in_them() {
    let (there, back) = (Memory::new(64, 2048).with_recycled(MAX_BUFFERS), Memory::new(64, 2048));
    let [mut sender, mut receiver] = two_ends(&there, &back, CachePolicy::Demote);
    let longest = vec![7; LONGEST];
    let others = MAX_BUFFERS - LONGEST / BUFFER_BYTES;
    for seed in 0..others {
        assert_eq!(sender.send(seed, 700), Post::Taken);
    }
    assert_eq!(sender.to.offer(b"", Piece::of(&longest)), Ok(Post::Taken));
    for seed in 0..others {
        assert_eq!(receiver.receive(), Some((vec![seed as u8], pattern(seed, 700))));
    }
    assert!(receiver.receive().is_some_and(|(_, body)| body == longest));
    assert_eq!(sender.to.data_ring.position, 0);
    assert_eq!(receiver.to.offer(b"", Piece::of(&longest)), Ok(Post::Taken));
    assert!(sender.receive().is_some_and(|(_, body)| body == longest));
    assert_eq!(receiver.to.data_ring.position, 0);
}

/// Bodies lie one behind the other, and one that needs more buffers than there are in a row goes to the data ring.
#[test]
fn bodies_occupy_recycled_buffers_in_a_row() {
    let (there, back) = (Memory::new(64, 8192).with_recycled(4), Memory::new(64, 8192));
    let [mut sender, mut receiver] = two_ends(&there, &back, CachePolicy::Pull);
    let place_of = |sender: &mut End<'_>, receiver: &mut End<'_>, len| {
        assert_eq!(sender.send(1, len), Post::Taken);
        let mut place = 0;
        let mut see = |frame: Frame<'_>| place = frame.body.as_ptr().addr();
        assert_eq!(receiver.from.take(0, &mut receiver.to.recycled, &mut see), Ok(true));
        place
    };
    let first = place_of(&mut sender, &mut receiver, BUFFER_BYTES);
    let lens = [2 * BUFFER_BYTES, 2 * BUFFER_BYTES, 1000];
    let places = lens.map(|len| place_of(&mut sender, &mut receiver, len));
    assert_eq!([places[0], places[2]], [1, 3].map(|nth| first + nth * BUFFER_BYTES));
    assert!(!(first..first + 4 * BUFFER_BYTES).contains(&places[1]), "in the data ring");
    for expected in [first, first + 2 * BUFFER_BYTES] {
        assert_eq!(place_of(&mut receiver, &mut sender, 2 * BUFFER_BYTES), expected);
    }
}

#[test]
fn a_recycled_buffer_stands_in_for_a_full_data_ring() {
    let memory = Memory::new(64, 8192).with_recycled(1);
    let mut producer = Producer::new(memory.ring(), no_recycled(), CachePolicy::Demote);
    let offer = |producer: &mut Producer<'_>| {
        let post = producer.offer(b"head", Piece::of(&[1; 13_000]));
        producer.on_receive();
        // Each wait prefetches the next place. The area holds 32 such bodies, which lie apart.
        (0..100).for_each(|_| producer.prefetch_more());
        post
    };
    assert_eq!(offer(&mut producer), Ok(Post::Taken));
    producer.recycled = memory.recycled(true);
    let (mut before, mut is_recycled) = (producer.data_ring.position, false);
    while offer(&mut producer) == Ok(Post::Taken) {
        assert!(!is_recycled, "the buffer is used last");
        is_recycled = producer.data_ring.position == before;
        before = producer.data_ring.position;
    }
    assert!(is_recycled, "the buffer is used");
    assert_eq!(producer.data_ring.position as usize, 8192 * LINE, "after the whole area");
}

#[test]
fn a_sink_that_panics_has_the_recycled_buffer_of_its_frame() {
    let (there, back) = (Memory::new(8, 64).with_recycled(1), Memory::new(8, 64));
    let [mut sender, mut receiver] = two_ends(&there, &back, CachePolicy::Demote);
    assert_eq!(sender.send(1, 1000), Post::Taken);
    let mut explode = |_: Frame<'_>| panic!("on purpose");
    let End { to, from } = &mut receiver;
    catch_unwind(AssertUnwindSafe(|| from.take(0, &mut to.recycled, &mut explode))).unwrap_err();
    assert_eq!(receiver.receive(), None);
    assert_eq!(receiver.send(2, 1000), Post::Taken);
    assert_eq!(sender.receive(), Some((vec![2], pattern(2, 1000))));
    assert_eq!(receiver.to.data_ring.position, 0, "the receiver had the buffer");
}

#[test]
fn a_waiting_producer_learns_what_was_freed() {
    let memory = Memory::new(64, 16_384);
    let (mut producer, mut consumer) = ends_of(&memory, 0, CachePolicy::Demote);
    let mut pass = |producer: &mut Producer<'_>, len| {
        let body = vec![1; len];
        assert_eq!(producer.offer(&[0; SHORT_HEAD], Piece::of(&body)), Ok(Post::Taken));
        take(&mut consumer).unwrap();
    };
    for len in [250_000, 250_000, 250_000, 255_000] {
        pass(&mut producer, len);
    }
    producer.on_receive();
    pass(&mut producer, 20_000);
    let left = 16_384 * LINE - producer.data_ring.position as usize;
    (0..100).for_each(|_| producer.prefetch_more());
    let ahead = producer.data_ring.ahead as usize;
    assert!(left < 20_000 && ahead >= 20_000, "{ahead} of {left} up to the area's end");
}

#[test]
fn a_stream_uses_up_the_recycled_buffers_and_then_the_data_ring() {
    let (there, back) = (Memory::new(8, 64).with_recycled(2), Memory::new(8, 64));
    let [mut sender, mut receiver] = two_ends(&there, &back, CachePolicy::Demote);
    let used = [0, 0, 1000, 2000].map(|least| {
        assert_eq!(sender.send(1, 1000), Post::Taken);
        assert_eq!(receiver.receive(), Some((vec![1], pattern(1, 1000))));
        (least, sender.to.data_ring.position)
    });
    assert!(used[..2].iter().all(|&(_, position)| position == 0), "{used:?}");
    assert!(used[2..].iter().all(|&(least, position)| position >= least), "{used:?}");
    // Now the receiver has the buffers.
    assert_eq!(receiver.send(2, 1000), Post::Taken);
    assert_eq!(sender.receive(), Some((vec![2], pattern(2, 1000))));
    assert_eq!(receiver.to.data_ring.position, 0);
}

#[test]
fn a_long_body_goes_where_lines_were_prefetched() {
    let (there, back) = (Memory::new(8, 8192).with_recycled(2), Memory::new(8, 4096));
    let [mut sender, mut receiver] = two_ends(&there, &back, CachePolicy::Demote);
    let mut passed = || {
        let before = sender.to.data_ring.position;
        assert_eq!(sender.send(1, 9000), Post::Taken);
        assert!(receiver.receive().is_some());
        sender.to.on_receive();
        let is_recycled = sender.to.data_ring.position == before;
        (0..100).for_each(|_| sender.to.prefetch_more());
        is_recycled
    };
    assert!(passed(), "at first nothing is prefetched");
    assert!(!passed(), "the wait has prefetched the place of as many bytes");
}

/// Offers a body in buffer 0 of two, rewrites its length word, and requires that a task with all buffers or none
/// refuses it.
fn refuses_buffer(length_word: u64, receiver_has_all: bool, expected: RingDamage) {
    let memory = Memory::new(8, 64).with_recycled(2);
    let mut producer = Producer::new(memory.ring(), memory.recycled(true), CachePolicy::Demote);
    let mut consumer = Consumer::new(memory.ring());
    let mut recycled = memory.recycled(receiver_has_all);
    assert_eq!(producer.offer(b"head", Piece::of(&[1; 700])), Ok(Post::Taken));
    memory.ring().slots[0].length_word.store(length_word, Ordering::Relaxed);
    assert_eq!(producer.offer(b"next", Piece::of(b"x")), Ok(Post::Taken));
    assert_eq!(take_with(&mut consumer, &mut recycled), Err(expected));
    let next = (b"next".to_vec(), b"x".to_vec());
    assert_eq!(take_with(&mut consumer, &mut recycled), Ok(Some(next)));
    assert!(!expected.what().is_empty());
}

#[test]
fn refuses_a_recycled_buffer_that_its_sender_does_not_have() {
    for number in [2, 63, 64, 0xffff_ffff] {
        refuses_buffer(700 | number << 32, false, RingDamage::RecycledBuffer);
    }
    refuses_buffer((BUFFER_BYTES as u64 + 1) | 1 << 32, false, RingDamage::RecycledBuffer);
    refuses_buffer(700, true, RingDamage::RecycledBuffer);
    refuses_buffer(700 | 1 << 32, true, RingDamage::RecycledBuffer);
}

#[test]
fn refuses_two_recycled_buffers_of_which_the_second_is_its_own() {
    let memory = Memory::new(8, 64).with_recycled(3);
    let mut producer = Producer::new(memory.ring(), memory.recycled(true), CachePolicy::Demote);
    let mut consumer = Consumer::new(memory.ring());
    let mut recycled = memory.recycled(false);
    let two = BUFFER_BYTES as u64 + 1;
    for (slot, length_word, expected) in
        [(0, 700 | 1 << 32, Ok(true)), (1, two, Err(RingDamage::RecycledBuffer))]
    {
        assert_eq!(producer.offer(b"", Piece::of(&[1; 700])), Ok(Post::Taken));
        memory.ring().slots[slot].length_word.store(length_word, Ordering::Relaxed);
        let taken = take_with(&mut consumer, &mut recycled);
        assert_eq!(taken.map(|seen| seen.is_some()), expected);
    }
}

#[test]
fn refuses_a_body_that_is_too_long_for_recycled_buffers() {
    for len in [LONGEST as u64 + 1, 0xffff_ffff] {
        refuses_buffer(len, false, RingDamage::BodyLength);
    }
}
