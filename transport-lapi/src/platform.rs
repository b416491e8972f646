//! What the machine offers: atomics that loom can replace (`sync.rs`), system calls that rustix lacks (`sys.rs`),
//! notice of forks (`fork.rs`), descriptors for other processes (`offer.rs`), memory
//! that they share (`shared.rs`), and where a process runs (`home.rs`).

pub(crate) mod fork;
pub(crate) mod home;
pub(crate) mod offer;
pub(crate) mod shared;
pub(crate) mod sync;
pub(crate) mod sys;
