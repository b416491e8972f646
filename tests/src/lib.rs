//! What the tests of the workspace share: conformance suites, simulation, random programs, faults.

pub use mpj_doubles::bytes;

pub mod clients;
pub mod conformance;
pub mod faults;
pub mod programs;
pub mod sim;
