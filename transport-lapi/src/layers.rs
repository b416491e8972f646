//! Adapters around an adapter: they change what passes through, for tests.

pub mod fault;
