//! Suites that hold every implementation of a contract against it. A suite is a module of functions
//! that take a maker; a file under `tests/` instantiates it for each implementation.

pub mod collective;
pub mod device;
pub mod network;
pub mod over_hosts;
pub mod ranks;
pub mod window;

pub use mpj_doubles::numbers::{Numbers, cut, payload};
