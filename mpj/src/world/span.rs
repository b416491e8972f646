//! Parts of a program that it names itself, for a timeline of its calls.

use std::panic::Location;

use mpjdev::RecordedSpan;

/// A part of the program that [`span`] has begun. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "the part ends when this is dropped"]
pub struct Span {
    _recorded: Option<RecordedSpan>,
}

/// Begins a part of the program in this thread, which lasts until the result is dropped. A timeline of the job
/// (`mpjrun --trace`) shows it under this name, with the calls in it below. Without a timeline nothing happens.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut sum = world.rank();
///     {
///         let _part = mpj::span("assemble");
///         sum += 1;
///     }
///     world.all_reduce(&mut sum, mpj::Op::Sum).unwrap();
///     assert_eq!(sum, 3);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[track_caller]
pub fn span(name: &'static str) -> Span {
    let place = Location::caller();
    Span { _recorded: RecordedSpan::begin(name, Some((place.file(), place.line()))) }
}
