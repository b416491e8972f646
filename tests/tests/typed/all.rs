//! The tests of the typed layer, for the jobs of `crate::job`, which the test that includes them names.

mod arrays;
mod between;
mod buffers;
mod collective;
mod collective_buffers;
mod collectives;
mod communicators;
mod elements;
mod failures;
mod files;
mod forms;
mod futures;
mod interleaved;
mod parts;
mod point_to_point;
mod requests;
mod scopes;
mod services;
mod strided;
mod structures;
mod windows;

use mpj::tuning::Options;

/// The options of jobs whose ranks make mistakes on purpose.
fn unchecked() -> Options {
    Options { checks: Some(false), ..Options::default() }
}
