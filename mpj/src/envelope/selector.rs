//! Sources and tags that a receive or probe accepts.

/// The source that a receive or probe accepts.
///
/// ```
/// use mpj::{ANY_SOURCE, Source};
/// assert_eq!(Source::from(3), Source::Rank(3));
/// assert_eq!(ANY_SOURCE, Source::Any);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Any rank: MPI_ANY_SOURCE.
    #[doc(alias = "MPI_ANY_SOURCE")]
    Any,
    /// This rank only.
    Rank(usize),
}

/// The tag that a receive or probe accepts.
///
/// ```
/// use mpj::{ANY_TAG, Tag};
/// assert_eq!(Tag::from(3), Tag::Is(3));
/// assert_eq!(ANY_TAG, Tag::Any);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// Any tag: MPI_ANY_TAG.
    #[doc(alias = "MPI_ANY_TAG")]
    Any,
    /// This tag only; tags are 0 to `i32::MAX`.
    Is(i32),
}

/// Any rank: MPI_ANY_SOURCE.
#[doc(alias = "MPI_ANY_SOURCE")]
pub const ANY_SOURCE: Source = Source::Any;

/// Any tag: MPI_ANY_TAG.
#[doc(alias = "MPI_ANY_TAG")]
pub const ANY_TAG: Tag = Tag::Any;

impl From<usize> for Source {
    fn from(rank: usize) -> Self {
        Self::Rank(rank)
    }
}

impl From<i32> for Tag {
    fn from(tag: i32) -> Self {
        Self::Is(tag)
    }
}

impl Source {
    pub(crate) fn rank(self) -> Option<usize> {
        match self {
            Self::Any => None,
            Self::Rank(rank) => Some(rank),
        }
    }
}

impl Tag {
    pub(crate) fn value(self) -> Option<i32> {
        match self {
            Self::Any => None,
            Self::Is(tag) => Some(tag),
        }
    }
}
