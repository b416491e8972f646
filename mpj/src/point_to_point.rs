//! Point-to-point calls: blocking ones and probes, buffered sends, matched probes, partitioned and persistent calls.
//! Non-blocking calls are in `request` and `scope`.

mod blocking;
mod buffered;
mod message;
mod partitioned;
mod persistent;

pub use message::Message;
pub use partitioned::{Arrivals, PartitionedReceive, PartitionedSend, UnreadyPartition};
