//! The typed layer over channels, which stand for a network: the tests of `typed.rs`, with ranks that share no memory.

#[path = "typed/all.rs"]
mod all;
#[path = "over_channels/job.rs"]
mod job;
