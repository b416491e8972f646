//! What a launcher does on the host that ranks run on: their processes, their processors, and the clean-up behind
//! them.
//!
//! ```text
//!  local           the ranks of this host, as one value
//!  binding         the processors that each rank may run on
//!  rank            the process and the descriptors of one rank
//!  orphans      processes that left their rank's group
//!  process_table   parents, children, groups and threads of processes
//!  usage           the memory of a rank, and the messages that it has sent
//!  machine         the name and the processors of the host
//! ```

pub(crate) mod binding;
pub(crate) mod local;
pub(crate) mod machine;
pub(crate) mod orphans;
pub(crate) mod process_table;
pub(crate) mod rank;
pub(crate) mod usage;
