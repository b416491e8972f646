//! What a misspelt word may have been meant to be. Pure.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::foreign;

/// How alike two words have to be, from 0 to 1: clap's own measure, so that its hints and these agree.
const ALIKE: f64 = 0.7;

/// The one of the `known` words that is most like `word`, if one is like it.
pub(super) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<(f64, &'a str)> {
    let measured = known.into_iter().map(|known| (strsim::jaro(word, known), known));
    measured.filter(|(alike, _)| *alike > ALIKE).max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// clap's error about an unknown option, with another launcher's option as the hint where that is more
/// like it than any of ours.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.trim_start_matches('-').to_owned(),
        _ => String::new(),
    };
    let (unknown, ours) = (text(ContextKind::InvalidArg), text(ContextKind::SuggestedArg));
    let theirs = nearest(&unknown, foreign::accepted());
    match theirs.filter(|(alike, _)| *alike > strsim::jaro(&unknown, &ours)) {
        Some((_, name)) if error.kind() == ErrorKind::UnknownArgument => {
            let hint = ContextValue::String(format!("--{name}"));
            error.insert(ContextKind::SuggestedArg, hint);
        }
        _ => {}
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_alike_is_the_nearest() {
        let known = ["WAIT", "GET", "BACKEND"];
        for (word, meant) in [("WAT", "WAIT"), ("GETS", "GET"), ("BACKND", "BACKEND")] {
            assert_eq!(nearest(word, known).map(|(_, word)| word), Some(meant), "{word}");
        }
        assert_eq!(nearest("PRICE", known), None);
        assert_eq!(nearest("", known), None);
    }
}
