//! Messages whose bytes do not lie together at one end or at both: strided blocks and lists of spans.

use std::sync::Barrier;

use mpjdev::{Error, Layout};

use super::job::Setup;
use super::rank::{Pending, check};
use crate::conformance::payload;

/// Shapes from a few bytes to more than is on its way at once: block, gap, count.
const SHAPES: [(usize, usize, usize); 7] = [
    (8, 8, 1),
    (1, 3, 40),
    (8, 8, 1_000),
    (24, 1, 900),
    (4_096, 512, 20),
    (8, 24, 60_000),
    (100_000, 64, 7),
];

fn layout((block, gap, count): (usize, usize, usize)) -> Layout {
    Layout::strided(block, (block + gap) as isize, count).expect("a possible layout")
}

/// Memory of this shape with the bytes of a message, and 0xEE between them.
fn spread(shape: (usize, usize, usize), bytes: &[u8]) -> Vec<u8> {
    let (block, gap, _) = shape;
    let mut memory = Vec::new();
    for block in bytes.chunks(block) {
        memory.extend_from_slice(block);
        memory.resize(memory.len() + gap, 0xEE);
    }
    memory.truncate(memory.len().saturating_sub(gap));
    memory
}

/// The bytes of a message from memory of this shape, after a check of its gaps.
fn gathered((block, gap, _): (usize, usize, usize), memory: &[u8]) -> Vec<u8> {
    let (mut bytes, untouched) = (Vec::new(), vec![0; gap]);
    for part in memory.chunks(block + gap) {
        let (block, gap) = part.split_at(block.min(part.len()));
        bytes.extend_from_slice(block);
        assert!(untouched.starts_with(gap), "what lies between the blocks was written");
    }
    bytes
}

/// Strided at both ends, at the sender only, and at the receiver only; the receive is posted before, and after.
pub fn strided_messages(setup: &Setup) {
    let met = Barrier::new(2);
    setup.run(2, move |rank| {
        for (tag, blocks) in (0..).zip(SHAPES) {
            let layout = layout(blocks);
            let bytes = payload(tag as u64, layout.size());
            for (from_blocks, into_blocks, posted) in [
                (true, true, true),
                (true, true, false),
                (true, false, false),
                (false, true, true),
                (false, true, false),
            ] {
                if rank.me() == 0 {
                    if posted {
                        met.wait();
                    }
                    let send = match from_blocks {
                        true => rank.isend_layout(spread(blocks, &bytes), &layout, 1, tag),
                        false => rank.isend(bytes.clone(), 1, tag),
                    };
                    let send = send.unwrap();
                    if !posted {
                        met.wait();
                    }
                    assert_eq!(rank.wait(send).0.unwrap().bytes, layout.size());
                    continue;
                }
                let post = || match into_blocks {
                    true => rank.irecv_layout(&layout, 0, tag),
                    false => rank.irecv(layout.size(), 0, tag),
                };
                let receive: Result<Pending, Error> = if posted {
                    let receive = post();
                    met.wait();
                    receive
                } else {
                    met.wait();
                    rank.probe(0, tag).unwrap();
                    post()
                };
                let (outcome, memory) = rank.wait(receive.unwrap());
                assert_eq!(outcome.unwrap().bytes, layout.size());
                check(&if into_blocks { gathered(blocks, &memory) } else { memory }, tag as u64);
            }
        }
    });
}

/// The receiver's blocks differ from the sender's, in number or in size.
pub fn shapes_that_differ(setup: &Setup) {
    const FROM: (usize, usize, usize) = (12, 4, 10_000);
    const INTO: (usize, usize, usize) = (500, 20, 240);
    const SHORT: (usize, usize, usize) = (100, 1, 50);
    setup.run(2, |rank| {
        let bytes = payload(5, layout(FROM).size());
        if rank.me() == 0 {
            for tag in [1, 2] {
                let send = rank.isend_layout(spread(FROM, &bytes), &layout(FROM), 1, tag).unwrap();
                rank.wait(send).0.unwrap();
            }
            return;
        }
        let (outcome, memory) = rank.wait(rank.irecv_layout(&layout(INTO), 0, 1).unwrap());
        assert_eq!(outcome.unwrap().bytes, bytes.len());
        assert!(gathered(INTO, &memory) == bytes);
        let (outcome, memory) = rank.wait(rank.irecv_layout(&layout(SHORT), 0, 2).unwrap());
        assert!(matches!(outcome, Err(Error::Truncate { capacity: 5_000, .. })), "{outcome:?}");
        assert!(gathered(SHORT, &memory) == bytes[..5_000]);
    });
}
