//! What the launcher's programs print where no job runs: on standard output, which belongs to the ranks
//! as long as there is one.

use std::io::{ErrorKind, Write};

use crate::LaunchError;

/// Prints the text, and answers the exit code for that. A reader that has seen enough closes the pipe,
/// which is no failure.
///
/// # Errors
/// [`LaunchError::System`] when the text could not be written.
pub fn tell(text: &str) -> Result<u8, LaunchError> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != ErrorKind::BrokenPipe => {
            Err(LaunchError::System { action: "write standard output", source })
        }
        _ => Ok(0),
    }
}
