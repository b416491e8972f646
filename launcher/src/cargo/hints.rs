//! What is said to those who write `cargo mpj run` as they would write `cargo run` or `mpjrun`. Pure.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::with_tip;

const SEVERAL: &str = "several programs in one job are for mpjrun: mpjrun -n N A : -n M B";
const ARGUMENTS: &str =
    "the program is named with --bin or --example, and its arguments follow `--`";

/// clap's error, with a hint about a word that is no option.
pub(super) fn with_hints(error: clap::Error) -> clap::Error {
    let mut error = with_tip(error);
    let unknown = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => return error,
    };
    if error.kind() == ErrorKind::UnknownArgument && !unknown.starts_with('-') {
        let hint = if unknown == ":" { SEVERAL } else { ARGUMENTS };
        let hints = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
        error.insert(ContextKind::Suggested, hints);
    }
    error
}

/// What is to be noted about the arguments of a program: that a `:` is one of them.
pub(super) fn note_on(args: &[OsString]) -> Option<String> {
    let note = || format!("`:` and what follows it are arguments of the program; {SEVERAL}");
    args.iter().any(|word| word == ":").then(note)
}
