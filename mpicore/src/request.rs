//! Point-to-point communication beyond single sends and receives (MPI-4.1 chapters 3 and 4): persistent and partitioned
//! transfers, and exchanges.

mod exchange;
pub(crate) mod partitioned;
pub(crate) mod transfer;

pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use transfer::{PROC_NULL, PersistentTransfer, SendMode};
