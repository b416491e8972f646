//! A wait of a rank, with the names that the rank has told for its calls and spaces.

use std::ops::Deref;

use transport_lapi::bootstrap::control::{PostedReceive, Vocabulary};
use transport_lapi::bootstrap::waits::{CallCode, Phase, Wait};

/// What a thread of a rank waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting<'a> {
    pub(super) wait: Wait,
    pub(super) words: &'a Vocabulary,
}

impl Deref for Waiting<'_> {
    type Target = Wait;

    fn deref(&self) -> &Wait {
        &self.wait
    }
}

impl Waiting<'_> {
    /// The name of the call.
    pub(super) fn name(&self) -> String {
        self.words.name(self.call)
    }

    /// Whether it is for a collective operation.
    pub(super) fn is_collective(&self) -> bool {
        self.operation != CallCode::NONE && !self.is_of_peer()
    }

    /// Whether it is for something that the peer is to do, which is no message.
    pub(super) fn is_of_peer(&self) -> bool {
        self.operation != CallCode::NONE && !self.space.is_collective && self.peer.is_some()
    }

    /// Whether it names no peer because it is for particular ranks, and not for any.
    pub(super) fn is_for_others(&self) -> bool {
        self.at_end || self.is_collective()
    }

    /// Whether it lasts until all ranks of the job, or all members of a space, have come to the same call.
    pub(super) fn is_of_all(&self) -> bool {
        self.at_end || self.words.needs_all(self.operation)
    }

    /// Whether nothing is known of it, as where the transport's own calls are used.
    pub(super) fn is_unknown(&self) -> bool {
        let has_no_message = matches!(self.phase, Phase::Unknown | Phase::Others);
        self.call == CallCode::NONE && self.operation == CallCode::NONE && has_no_message
    }

    /// The receive that has found no message. A probe is like one of any length.
    pub(super) fn receive(&self) -> Option<PostedReceive> {
        let Wait { peer: source, tag, space, phase, .. } = self.wait;
        let bytes = if phase == Phase::Sought { u64::MAX } else { self.bytes };
        let is_one = !self.sends && matches!(phase, Phase::Unmatched | Phase::Sought);
        is_one.then_some(PostedReceive { source, tag, space, bytes })
    }
}
