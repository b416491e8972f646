//! Shared by the integration tests of the transport: jobs in this process over every adapter, a watchdog, buffers that
//! outlive every operation, and seeded numbers.

#![allow(dead_code, reason = "every test file uses its own part")]

pub mod board;
pub mod buffers;
pub mod flaky;
pub mod frames;
pub mod job;
