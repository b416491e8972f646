//! What the tests of the workspace share: starting ranks, conformance suites, simulation.

pub mod bytes;
pub mod conformance;
pub mod faults;
pub mod launch;
pub mod programs;
pub mod sim;
