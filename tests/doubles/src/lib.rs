//! What the tests of several crates need to hold adapters, and the code above them, against the contract of
//! [`transport_lapi::adapter`]: adapters that misbehave within it, jobs on several hosts in one
//! process, and the suite that checks it.
//!
//! It uses the public interface of the transport only. Unit tests of the transport cannot use it: they are compiled with
//! a second copy of the transport, whose traits these adapters do not implement.

pub mod bytes;
pub mod channels;
pub mod contract;
pub mod fabric;
pub mod fault;
pub mod hosts;
pub mod mailboxes;
pub mod numbers;

pub use mpj_harness::watch;
