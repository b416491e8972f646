//! The functions that the expansion of `#[mpj::test]` calls; the launcher's `testing` runs the body.

use std::fmt::Debug;

use crate::world::{self, World};

pub use mpj_launcher::testing::Case;

/// A value that the body of a test may return.
#[diagnostic::on_unimplemented(
    message = "a test returns nothing, or a `Result<(), E>` whose error can be written with `Debug`",
    label = "a test cannot return `{Self}`"
)]
pub trait Answer {
    /// Returns the error as text, if the value is one.
    fn error(self) -> Option<String>;
}

impl Answer for () {
    fn error(self) -> Option<String> {
        None
    }
}

impl<E: Debug> Answer for Result<(), E> {
    fn error(self) -> Option<String> {
        self.err().map(|error| format!("{error:?}"))
    }
}

/// Runs a body that joins the job by itself.
///
/// # Panics
/// If the test fails, as the other functions here do.
#[track_caller]
pub fn run(case: &Case, body: fn()) {
    mpj_launcher::testing::run(case, body);
}

/// Runs a body that gets the world and drops it.
#[track_caller]
pub fn run_owning_world(case: &Case, body: fn(World)) {
    mpj_launcher::testing::run(case, || body(join()));
}

/// Runs a body that borrows the world. A body that succeeds has handled the errors that it met, so its world is
/// finished, not only dropped.
#[track_caller]
pub fn run_with_world(case: &Case, body: fn(&World)) {
    mpj_launcher::testing::run(case, || {
        let world = join();
        body(&world);
        if let Err(error) = world.finish() {
            panic!("the test has ended well here, but leaving the job failed: {error}");
        }
    });
}

/// Joins the job. Tests ask for checks of mistakes between ranks in release builds, too.
fn join() -> World {
    world::join(true).unwrap_or_else(|error| panic!("cannot join the job: {error}"))
}

/// Turns an error that a body returned into a panic of the rank while its world still exists, so that the drop of the
/// world does not wait for the other ranks.
#[track_caller]
pub fn check(answer: impl Answer) {
    if let Some(error) = answer.error() {
        panic!("the test returned an error: {error}");
    }
}
