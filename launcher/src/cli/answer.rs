//! What the launcher's programs print where no job runs.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

use crate::LaunchError;

/// Prints a text on standard output, and returns the exit code. A reader that closes the pipe has seen enough,
/// which is no failure.
///
/// # Errors
/// [`LaunchError::System`] when the text could not be written.
pub fn print(text: &str) -> Result<u8, LaunchError> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(LaunchError::System { action: "write standard output", source })
        }
        _ => Ok(0),
    }
}

/// Prints a line on standard error, if that can be written.
pub fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
