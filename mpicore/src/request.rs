//! Operations that programs start and wait for, beyond single sends and receives: exchanges (MPI-4.1 sections 3.10 and
//! 3.11), persistent transfers (section 3.9), partitioned ones (chapter 4), and generalized requests, which the program
//! itself completes (section 13.2).

mod description;
mod exchange;
mod generalized;
mod partitioned;
mod transfer;

pub use exchange::ExchangeTypes;
pub use generalized::{GeneralizedCallbacks, GeneralizedRequest};
pub use partitioned::{PartitionedReceive, PartitionedSend};
pub use transfer::{PROC_NULL, PersistentTransfer, SendMode};
