//! What a receive asks of a message, and what is known of one that has come: its source, its tag and its length
//! (MPI-4.1 section 3.2).

mod selector;
mod status;

pub use selector::{ANY_SOURCE, ANY_TAG, Source, Tag};
pub use status::Status;
