//! The typed layer over channels whose network cards access memory: the tests of `typed.rs`.

use mpj_tests::conformance::network::Network;

#[path = "typed/all.rs"]
mod all;
#[path = "over_channels/job.rs"]
mod job;

const NETWORK: Network = Network::OneSided;
