//! The adapters, which move frames between the tasks of a job.
//!
//! | adapter | tasks are | memory | one-sided read |
//! |---|---|---|---|
//! | [`threads`] | threads of one process | one private mapping | memory copy |
//! | [`shm`] | processes of one host | one sealed memfd | `process_vm_readv`, where allowed |
//!
//! Both are one adapter, `local`, and differ in how tasks access each other's memory. It uses a `port`, which
//! knows the rings (`ring`, `data_ring`) and the bells (`doorbell`, `arrivals`) of a `segment`, laid out by `layout`.
//! In long gets both ends copy (`share`). Tasks that are processes can access memory in each other's shared areas, and
//! a task that is alone in its job in its own (`area`). A task that gives up announces it before its buffers change
//! (`withdrawal`). The waits of a task's threads are published on its `slate`, which `board` reads for the launcher.
//! Adapters do not know each other, and know nothing above [`crate::adapter`]. Loom models cover the rings, the bells,
//! shared gets and withdrawals without a segment.

mod area;
mod arrivals;
mod blocks;
pub(crate) mod board;
mod data_ring;
mod distance;
mod doorbell;
mod header;
mod layout;
pub(crate) mod local;
pub(crate) mod port;
mod ring;
mod segment;
mod share;
pub mod shm;
mod slate;
pub mod threads;
mod withdrawal;

pub use layout::{MAX_CONTEXTS, MAX_TASKS, segment_bytes};
pub use local::{LocalAdapter, Reach};
