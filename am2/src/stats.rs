//! Counters of an endpoint, for reports and tests.

use crate::status::{Opcode, Shape};

/// Messages of each shape.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Short messages.
    pub short: u64,
    /// Medium messages.
    pub medium: u64,
    /// Long messages.
    pub long: u64,
}

/// What an endpoint has sent and received since it was made. It is an extension of AM-2.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Requests that were sent.
    pub requests_sent: Counts,
    /// Replies that handlers have sent. Acknowledgements of requests without a reply do not count.
    pub replies_sent: Counts,
    /// Requests that were accepted.
    pub requests_received: Counts,
    /// Replies that were accepted.
    pub replies_received: Counts,
    /// Bytes of payload that were sent.
    pub bytes_sent: u64,
    /// Bytes of payload that were accepted.
    pub bytes_received: u64,
    /// Messages of others that were refused.
    pub refused: u64,
    /// Messages of this endpoint that came back.
    pub returned: u64,
}

impl Stats {
    /// Counts a message that was sent.
    pub(crate) fn sent(&mut self, opcode: Opcode, len: usize) {
        let counts =
            if opcode.is_request() { &mut self.requests_sent } else { &mut self.replies_sent };
        *counts.of(opcode.shape()) += 1;
        self.bytes_sent += len as u64;
    }

    /// Takes back that a request was sent.
    pub(crate) fn not_sent(&mut self, opcode: Opcode, len: usize) {
        *self.requests_sent.of(opcode.shape()) -= 1;
        self.bytes_sent -= len as u64;
    }

    /// Counts a message that was accepted.
    pub(crate) fn received(&mut self, opcode: Opcode, len: usize) {
        let counts = if opcode.is_request() {
            &mut self.requests_received
        } else {
            &mut self.replies_received
        };
        *counts.of(opcode.shape()) += 1;
        self.bytes_received += len as u64;
    }
}

impl Counts {
    fn of(&mut self, shape: Shape) -> &mut u64 {
        match shape {
            Shape::Short => &mut self.short,
            Shape::Medium => &mut self.medium,
            Shape::Long => &mut self.long,
        }
    }
}
