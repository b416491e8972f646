//! What happens on the host of the ranks: their processes, the processors that they run on, and what they leave
//! behind. It knows of one host; an agent on another one would own the same.
//!
//! ```text
//!  spawn           one process per rank, each leading its own process group; checks everything before
//!  binding         which processors each rank may run on
//!  rank            the descriptors of one rank
//!  stragglers      what ranks started and what left their groups
//!  process_table   whose child a process is, as the kernel tells
//!  machine         which machine this is
//!  tuning_file     the values tuned to it
//! ```

pub(crate) mod binding;
pub mod machine;
pub(crate) mod process_table;
pub(crate) mod rank;
pub(crate) mod spawn;
pub(crate) mod stragglers;
pub mod tuning_file;
