//! Ways in which a peer can damage a ring.

/// How a peer damaged the ring. There is one variant per violation, and each has a test that provokes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingDamage {
    /// A head longer than any frame's.
    HeadLength,
    /// An inline body longer than the cell.
    InlineLength,
    /// A body longer than any frame's.
    BodyLength,
    /// An unknown kind.
    Kind,
    /// A bulk body that starts inside a line or crosses the end of the area.
    BulkPlace,
    /// A bulk body outside the part that the producer may have filled.
    BulkRange,
    /// A body in a block that does not exist or was not the producer's.
    Block,
    /// The consumer freed cells that it never received.
    CellCredit,
    /// The consumer freed bulk memory that it never received.
    BulkCredit,
}

impl RingDamage {
    /// Describes the damage.
    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::HeadLength => "a frame's head is longer than a head can be",
            Self::InlineLength => "a frame's body is longer than its cell",
            Self::BodyLength => "a frame's body is longer than a body can be",
            Self::Kind => "a frame is of an unknown kind",
            Self::BulkPlace => "a body does not lie on lines of the bulk area",
            Self::BulkRange => "a body lies outside of the filled part of the bulk area",
            Self::Block => "a body lies in a block that its sender does not have",
            Self::CellCredit => "more cells came back than were filled",
            Self::BulkCredit => "more bulk memory came back than was filled",
        }
    }
}
