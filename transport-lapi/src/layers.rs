//! Adapters around another adapter: one that injects faults, for tests, and one that makes a lossy adapter reliable.

pub mod fault;
pub mod reliable;
