//! Point-to-point communication beyond single sends and receives (MPI-4.1 chapters 3 and 4): persistent, buffered and
//! partitioned transfers, and exchanges.

pub(crate) mod buffered;
mod exchange;
pub(crate) mod partitioned;
pub(crate) mod transfer;

pub use buffered::{AttachedBuffer, SendBuffer};
pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use transfer::{PROC_NULL, PersistentTransfer, SendMode};
