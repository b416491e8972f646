//! Messages of a provider to one peer, without an adapter: what the adapter is measured against.

use std::collections::VecDeque;

use super::MAX_BODY;
use super::endpoint::{Completion, Offered, OfiEndpoint, SENDS};

/// Messages to and from one peer, each by one call of libfabric, in the order of sending. Nothing is packed, numbered or
/// proved, and calls that wait poll.
pub struct Bare {
    endpoint: OfiEndpoint,
    peer: u64,
    /// Buffers that messages have come into, with their lengths.
    came: VecDeque<(usize, usize)>,
    /// Buffers that the provider did not take back.
    idle: Vec<usize>,
    is_broken: bool,
}

impl Bare {
    /// Length of the longest message, in bytes.
    pub const LONGEST: usize = MAX_BODY;

    /// Takes an endpoint for messages to the one with this address; `None` if the address is none of its network.
    pub fn new(mut endpoint: OfiEndpoint, address: &[u8]) -> Option<Self> {
        let peer = endpoint.insert(address)?;
        Some(Self { endpoint, peer, came: VecDeque::new(), idle: Vec::new(), is_broken: false })
    }

    /// Sends a message of at most [`Bare::LONGEST`] bytes; they may change as soon as the call returns. Returns whether
    /// the provider has taken it.
    pub fn send(&mut self, message: &[u8]) -> bool {
        let is_short = message.len() <= self.endpoint.inject_size();
        let mut buffer = None;
        while !self.is_broken {
            if !is_short && buffer.is_none() {
                buffer = self.endpoint.take_buffer();
                if let Some(index) = buffer {
                    self.endpoint.buffer(index)[..message.len()].copy_from_slice(message);
                }
            }
            let offered = match buffer {
                _ if is_short => self.endpoint.inject(self.peer, message),
                Some(index) => self.endpoint.send(self.peer, index, message.len()),
                None => Offered::Again,
            };
            match offered {
                Offered::Taken => return true,
                Offered::Again => self.progress(),
                Offered::Refused => self.is_broken = true,
            }
        }
        false
    }

    /// Waits for the next message, passes it to `take`, and returns what that returns; `None` if the provider reports an
    /// error.
    pub fn receive<R>(&mut self, take: impl FnOnce(&[u8]) -> R) -> Option<R> {
        while self.came.is_empty() && !self.is_broken {
            self.progress();
        }
        let (buffer, len) = self.came.pop_front()?;
        let taken = take(self.endpoint.packet(buffer, len));
        if !self.endpoint.release(buffer) {
            self.idle.push(buffer);
        }
        Some(taken)
    }

    /// Waits until the provider needs no buffer of what was sent; returns whether there was no error.
    pub fn flush(&mut self) -> bool {
        while self.endpoint.free_buffers() < SENDS && !self.is_broken {
            self.progress();
        }
        !self.is_broken
    }

    fn progress(&mut self) {
        let Self { endpoint, came, idle, is_broken, .. } = self;
        idle.retain(|buffer| !endpoint.release(*buffer));
        endpoint.complete(|endpoint, completion| match completion {
            Completion::Sent(buffer) => endpoint.give_back(buffer),
            Completion::Received(buffer, len) => came.push_back((buffer, len)),
            Completion::NotSent(_) | Completion::NotReceived(_) => *is_broken = true,
            // Nothing is read.
            Completion::Accessed(_) | Completion::NotAccessed(_) => {}
        });
    }
}
