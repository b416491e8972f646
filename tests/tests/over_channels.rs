//! The typed layer over channels, which stand for a network: the tests of `typed.rs`, with ranks that share no memory.

use mpj_tests::conformance::network::Network;

#[path = "typed/all.rs"]
mod all;
#[path = "over_channels/job.rs"]
mod job;

const NETWORK: Network = Network::Channels;
