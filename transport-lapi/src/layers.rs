//! Adapters around another adapter: one that injects faults, for tests.

pub mod fault;
