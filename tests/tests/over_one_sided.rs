//! The typed layer over channels whose network cards access memory: the tests of `typed.rs`.

use mpj_tests::conformance::network::Network;

#[path = "typed/arrays.rs"]
mod arrays;
#[path = "typed/buffers.rs"]
mod buffers;
#[path = "typed/collective.rs"]
mod collective;
#[path = "typed/elements.rs"]
mod elements;
#[path = "typed/failures.rs"]
mod failures;
#[path = "typed/interleaved.rs"]
mod interleaved;
#[path = "over_channels/job.rs"]
mod job;
#[path = "typed/point_to_point.rs"]
mod point_to_point;
#[path = "typed/requests.rs"]
mod requests;
#[path = "typed/scopes.rs"]
mod scopes;
#[path = "typed/strided.rs"]
mod strided;
#[path = "typed/structures.rs"]
mod structures;

const NETWORK: Network = Network::OneSided;
