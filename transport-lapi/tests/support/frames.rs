//! Packets written by hand, byte for byte, as described in `wire.rs`: what a peer with another implementation, or a
//! broken one, puts into a ring.

use transport_lapi::AnyAdapter;
use transport_lapi::adapter::{Adapter, Frame, Post, Ticket};
use transport_lapi::{Source, TaskId};

/// The whole message is in the packet.
pub const SINGLE: u8 = 1;
/// The first packet of a message.
pub const FIRST: u8 = 2;
/// A later packet of a message.
pub const BODY: u8 = 3;
/// Increments a completion counter.
pub const COMPLETE: u8 = 4;
/// Requests a get over messages.
pub const GET_REQUEST: u8 = 5;
/// Data of a get over messages.
pub const GET_DATA: u8 = 6;
/// Refuses a get over messages.
pub const GET_REFUSED: u8 = 7;
/// A fence.
pub const FENCE: u8 = 8;
/// The answer to a fence.
pub const FENCE_ACK: u8 = 9;
/// A round of the barrier.
pub const BARRIER: u8 = 10;
/// Offers the target to help with a get by the adapter.
pub const GET_SHARE: u8 = 11;
/// A message whose data lies in its sender's shared area.
pub const PLACED: u8 = 12;
/// The answer to it.
pub const COPIED: u8 = 13;
/// Refuses a put.
pub const PUT_REFUSED: u8 = 20;
/// Requests a read-modify-write.
pub const RMW: u8 = 21;
/// The result of a read-modify-write.
pub const RMW_DONE: u8 = 22;
/// Refuses a read-modify-write.
pub const RMW_REFUSED: u8 = 23;
/// A value of a collective exchange of addresses.
pub const ADDRESS: u8 = 40;
/// The packet by which a task resumes another one.
pub const RESUME: u8 = 41;
/// The flag for counters.
pub const COUNTERS: u8 = 0x80;

/// A head under construction.
#[derive(Debug, Clone)]
pub struct Head(pub Vec<u8>);

impl Head {
    /// Makes the fixed part: kind, handler or round, message number or ticket or counter.
    pub fn new(kind: u8, handler: u8, number: u32) -> Self {
        let mut bytes = vec![kind, handler, 0, 0];
        bytes.extend(number.to_le_bytes());
        Self(bytes)
    }

    /// Announces a user header of this length.
    pub fn claims_uhdr(mut self, len: u16) -> Self {
        self.0[2..4].copy_from_slice(&len.to_le_bytes());
        self
    }

    /// Announces and appends counters; each number is the index plus one.
    pub fn counters(mut self, target: u32, completion: u32) -> Self {
        self.0[0] |= COUNTERS;
        self.0.extend(target.to_le_bytes());
        self.0.extend(completion.to_le_bytes());
        self
    }

    /// Appends a field.
    pub fn field(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Announces and appends a user header.
    pub fn uhdr(self, uhdr: &[u8]) -> Self {
        let mut head = self.claims_uhdr(uhdr.len() as u16);
        head.0.extend(uhdr);
        head
    }

    /// Truncates the head.
    pub fn cut(mut self, len: usize) -> Self {
        self.0.truncate(len);
        self
    }

    /// Puts the frame into the ring to `target`.
    pub fn send(&self, from: &mut AnyAdapter, target: TaskId, body: &[u8]) {
        let source = Source::from(body.to_vec());
        let post = from.try_send(target, &self.0, source.piece(0, body.len()), Ticket(0));
        let post = post.expect("the ring is sound");
        assert_eq!(post, Post::Taken, "the ring has room for a few frames");
    }
}

/// Everything that has arrived at `at`: heads and bodies.
pub fn received(at: &mut (impl Adapter + ?Sized)) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut frames = Vec::new();
    at.poll(None, usize::MAX, &mut |frame: Frame<'_>| {
        frames.push((frame.head.to_vec(), frame.body.to_vec()))
    })
    .expect("the ring is sound");
    frames
}

/// The number in the fixed part of a head.
pub fn number(head: &[u8]) -> u32 {
    word(head, 4)
}

/// Four bytes of a head as a number.
pub fn word(head: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"))
}
