//! Ends a job at the program's request: MPI_Abort.

/// Ends the whole job at once with exit code `code` (MPI_Abort), for a program that cannot continue. The launcher
/// reports which rank called it, and exits with the low 8 bits of `code`, or with 1 if these are 0, since a job that
/// was aborted has not succeeded.
///
/// Any thread may call it, also before [`crate::init`] or without it. A rank that was started alone, or by
/// [`crate::local::run`], ends its own process. Nothing is dropped, and of the program's buffered output only that of
/// the standard library's `stdout` is written.
///
/// In a fork of a rank it ends only the fork, with the same code: a fork has no part in the job.
///
/// ```no_run
/// let world = mpj::init()?;
/// let Ok(input) = std::fs::read("input") else { mpj::abort(3) };
/// world.send(&input, 0, 0)?;
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Abort")]
pub fn abort(code: i32) -> ! {
    mpicore::job::abort(code)
}
