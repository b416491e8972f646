//! The tests of the typed layer, for the jobs of `crate::job`, which the test that includes them names.

mod arrays;
mod buffers;
mod collective;
mod elements;
mod failures;
mod futures;
mod interleaved;
mod point_to_point;
mod requests;
mod scopes;
mod strided;
mod structures;
