//! Names and tags of endpoints: what tasks tell each other so that one can send to the other.

use transport_lapi::TaskId;

/// Names an endpoint inside its task (`ep_t`). It stays valid when the endpoint moves to another bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub(crate) core: u64,
    pub(crate) number: u16,
}

/// The global name of an endpoint (`en_t`): valid in every task of the job, and never used again after the endpoint was
/// freed. Tasks exchange names with [`crate::Bundle::exchange_names`], or as numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EndpointName {
    pub(crate) task: TaskId,
    pub(crate) number: u16,
}

impl EndpointName {
    /// Returns the task of the endpoint.
    pub fn task(self) -> TaskId {
        self.task
    }

    /// Returns the name as a number, to send it to another task.
    pub fn to_bits(self) -> u64 {
        u64::from(self.task) << 16 | u64::from(self.number)
    }

    /// Returns the name that [`EndpointName::to_bits`] made a number of. `None` for numbers that are no name.
    pub fn from_bits(bits: u64) -> Option<Self> {
        let task = TaskId::try_from(bits >> 16).ok()?;
        Some(Self { task, number: bits as u16 })
    }
}

impl std::fmt::Display for EndpointName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "endpoint {} of task {}", self.number, self.task)
    }
}

/// The tag of an endpoint or of a translation (`tag_t`): a capability. An endpoint accepts a message only if its tag is
/// [`Tag::ALL`], or equal to the message's tag and not [`Tag::NONE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// AM_NONE: refuses every message. New endpoints have this tag.
    pub const NONE: Self = Self(0);
    /// AM_ALL: accepts every message.
    pub const ALL: Self = Self(1);

    /// Whether an endpoint with this tag accepts messages with that one.
    pub(crate) fn accepts(self, message: Self) -> bool {
        self == Self::ALL || self != Self::NONE && self == message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_the_way_through_a_number() {
        for name in [(0, 0), (3, 7), (TaskId::MAX, u16::MAX)] {
            let name = EndpointName { task: name.0, number: name.1 };
            assert_eq!(EndpointName::from_bits(name.to_bits()), Some(name));
        }
        assert_eq!(EndpointName::from_bits(u64::MAX), None);
    }

    #[test]
    fn tags_accept_all_none_or_equals() {
        for message in [Tag::NONE, Tag::ALL, Tag(7), Tag(8)] {
            assert!(Tag::ALL.accepts(message));
            assert!(!Tag::NONE.accepts(message));
            assert_eq!(Tag(7).accepts(message), message == Tag(7));
        }
    }
}
