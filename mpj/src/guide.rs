//! Guides: how to run and test programs, how messages travel, and mpj for users of MPI and of the crate `mpi`.
//!
//! They are the files of the folder `docs`, for readers of the documentation; a build contains none of this.

// A guide refers to another one by a label, which it defines at its end for readers of the repository. The same labels
// are defined for rustdoc in `guide/links.md`: of several definitions the first one counts.

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/backends.md")]
pub mod backends {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/from-mpi.md")]
pub mod from_mpi {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/from-rsmpi.md")]
pub mod from_rsmpi {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/hosts.md")]
pub mod hosts {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/performance.md")]
pub mod performance {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../docs/running.md")]
pub mod running {}

#[doc = include_str!("guide/links.md")]
#[doc = include_str!("../SECURITY.md")]
pub mod security {}

#[cfg_attr(feature = "test", doc = include_str!("guide/links.md"))]
#[cfg_attr(feature = "test", doc = include_str!("../docs/testing.md"))]
#[cfg_attr(
    not(feature = "test"),
    doc = "# Testing your program\n\nThis guide needs the feature `test`."
)]
pub mod testing {}
