//! Ends a job at the program's request: MPI_Abort. This is the only place where the library ends a process.

use std::sync::OnceLock;

use mpjdev::wireup::Control;

/// The connection to the launcher of the job that this process has joined.
static LAUNCHER: OnceLock<Control> = OnceLock::new();

/// Notes that this process has joined a job that has a launcher.
pub(crate) fn joined(control: &Control) {
    LAUNCHER.get_or_init(|| control.clone());
}

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
#[expect(clippy::disallowed_methods, reason = "MPI_Abort ends the process by its meaning")]
pub fn abort(code: i32) -> ! {
    if let Some(control) = LAUNCHER.get() {
        control.aborted(code);
    }
    let told = code & 0xff;
    std::process::exit(if told == 0 { 1 } else { told })
}
