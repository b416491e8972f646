//! The adapters, which move frames between the tasks of a job.
//!
//! | adapter | tasks are | memory | one-sided read |
//! |---|---|---|---|
//! | [`threads`] | threads of one process | one private mapping | memory copy |
//! | [`shm`] | processes of one host | one sealed memfd | `process_vm_readv`, where allowed |
//!
//! Both are one adapter, `local`, and differ in how tasks access each other's memory. [`hosts`] joins such an adapter
//! with that of a network, which is [`ofi`]. `any` is the adapter for which programs are compiled. Adapters do not know each other, and
//! know nothing above [`crate::adapter`].

mod any;
pub mod hosts;
pub(crate) mod local;
mod noted_bell;
pub mod ofi;
pub mod shm;
pub mod threads;

pub use any::{AnyAdapter, Brought};
pub use local::layout::{
    MAX_CONTEXTS, MAX_PLACES_PER_HOST, MAX_TASKS_PER_HOST, SPARE_CONTEXTS, segment_bytes,
};
pub use local::{LocalAdapter, Reach};
