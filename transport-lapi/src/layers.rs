//! Adapters around another adapter, which change what passes through, for tests.

pub mod fault;
