//! Conformance suites: what every implementation of a layer has to do, written once.

pub mod device;
