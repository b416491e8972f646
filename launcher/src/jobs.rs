//! `mpjrun ps`, `kill` and `attach`: what is known of running jobs.

use crate::LaunchError;

fn absent() -> LaunchError {
    LaunchError::System { action: "look for jobs", source: std::io::ErrorKind::Unsupported.into() }
}

/// The running jobs of this user, as a table.
///
/// # Errors
/// [`LaunchError`].
pub fn ps() -> Result<String, LaunchError> {
    Err(absent())
}

/// Ends a job, and says what became of it.
///
/// # Errors
/// [`LaunchError`].
pub fn kill(_job: &str) -> Result<String, LaunchError> {
    Err(absent())
}

/// What the ranks of a job are doing.
///
/// # Errors
/// [`LaunchError`].
pub fn attach(_job: &str) -> Result<String, LaunchError> {
    Err(absent())
}
