//! The benchmark programs, written once over the trait [`Runtime`].
//!
//! A *worker* is these programs bound to one message-passing library: `mpj-bench-rank` to mpj, and
//! one build of `mpj-bench-system` to each system MPI. The harness (`mpj-bench`) starts a worker as
//! the ranks of a job, under the launcher of the library. The worker reads an [`Order`] from its
//! command line, and rank 0 answers with [`Record`]s, one per line.
//!
//! [`series`] lists the measured quantities. Payloads are checked outside the timed parts; a wrong
//! one ends the program with a [`Failure`].

pub mod cache_line;
pub mod one_sided;
pub mod order;
pub mod pace;
pub mod payload;
pub mod pool;
pub mod programs;
pub mod record;
pub mod runtime;
pub mod series;
pub mod words;
pub mod worker;

pub use order::{Buffers, Order, Program};
pub use record::{Library, Record, Sample};
pub use runtime::{Failure, Job, Post, Runtime};
pub use series::{Better, Series, Unit, X};
