//! Ways in which a peer can damage a ring.

/// How a peer damaged the ring. There is one variant per violation, and each has a test that provokes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingDamage {
    /// A head longer than any frame's.
    HeadLength,
    /// An inline body longer than the slot.
    InlineLength,
    /// A body longer than any frame's.
    BodyLength,
    /// An unknown kind.
    Kind,
    /// A data ring body that starts inside a line or crosses the end of the area.
    DataPlace,
    /// A data ring body outside the part that the producer may have filled.
    DataRange,
    /// A body in a recycled buffer that does not exist or was not the producer's.
    RecycledBuffer,
    /// The consumer freed slots that it never received.
    SlotCredit,
    /// The consumer freed data ring memory that it never received.
    DataCredit,
}

impl RingDamage {
    /// Describes the damage.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::HeadLength => "a frame's head is longer than a head can be",
            Self::InlineLength => "a frame's body is longer than its slot",
            Self::BodyLength => "a frame's body is longer than a body can be",
            Self::Kind => "a frame is of an unknown kind",
            Self::DataPlace => "a body does not lie on lines of the data ring",
            Self::DataRange => "a body lies outside of the filled part of the data ring",
            Self::RecycledBuffer => {
                "a body lies in a recycled buffer that its sender does not have"
            }
            Self::SlotCredit => "more slots came back than were filled",
            Self::DataCredit => "more data_ring memory came back than was filled",
        }
    }
}
