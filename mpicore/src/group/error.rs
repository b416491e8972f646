//! Why a call on a group was refused, and the MPI error class of each reason.

use super::RankRange;
use crate::ErrorClass;

/// Why a call on a group was refused. The group is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupError {
    /// No member has this rank.
    #[error("rank {rank} is out of range: {}", legal_ranks(*.size))]
    Rank {
        /// The rank that was given; it may be negative.
        rank: i64,
        /// Number of members of the group.
        size: u32,
    },
    /// A rank is named more than once, by itself or by ranges.
    #[error("rank {rank} is named more than once; name each rank once")]
    RankTwice {
        /// The lowest such rank.
        rank: u32,
    },
    /// A range names a rank that no member has.
    #[error("range {range} names rank {rank}, which is out of range: {}", legal_ranks(*.size))]
    RangeRank {
        /// The range.
        range: RankRange,
        /// The rank: the first or the last one of the range.
        rank: i64,
        /// Number of members of the group.
        size: u32,
    },
    /// A range has the stride 0.
    #[error("range {0} has stride 0; give a stride of at least 1, or of at most -1")]
    StrideZero(RankRange),
    /// A range steps away from its last rank.
    #[error("range {0} steps away from its last rank; change the sign of its stride")]
    StrideAway(RankRange),
    /// A task of the job would be a member twice.
    #[error("job rank {job_rank} is a member more than once; name each job rank once")]
    JobRankTwice {
        /// The lowest such job rank.
        job_rank: u32,
    },
    /// No job has a task with this rank.
    #[error("job rank {job_rank} is out of range: job ranks are 0 to {last}", last = u32::MAX - 1)]
    JobRank {
        /// The job rank that was given.
        job_rank: u32,
    },
}

impl GroupError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Rank { .. } | Self::RankTwice { .. } | Self::RangeRank { .. } => ErrorClass::Rank,
            Self::StrideZero(_) | Self::StrideAway(_) => ErrorClass::Arg,
            Self::JobRankTwice { .. } | Self::JobRank { .. } => ErrorClass::Group,
        }
    }
}

/// Describes which ranks a group of `size` members has.
fn legal_ranks(size: u32) -> String {
    match size {
        0 => "the group is empty".into(),
        _ => format!("the group has ranks 0 to {}", size - 1),
    }
}
