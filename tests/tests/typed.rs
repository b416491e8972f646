//! The typed layer, as programs use it, with ranks that are threads.
//!
//! Every job runs under a watchdog, whose failure shows the dumps of all ranks.

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
#[path = "../../mpj/tests/job/mod.rs"]
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
