//! What a misspelt word may have been meant to be. Pure.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::foreign;

/// How alike two words have to be, from 0 to 1. clap is content with less, which makes `deadlock` of
/// `detach`.
const ALIKE: f64 = 0.8;

/// The one of the `known` words that is most like `word`, if one is like it.
pub(super) fn nearest<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<(f64, &'a str)> {
    let measured = known.into_iter().map(|known| (likeness(word, known), known));
    measured.filter(|(alike, _)| *alike > ALIKE).max_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// How alike two words are, by clap's measure. A letter is like no other word.
fn likeness(word: &str, known: &str) -> f64 {
    if word.len() > 1 { strsim::jaro(word, known) } else { 0.0 }
}

/// clap's error about an unknown option, with the option that is most like it as the hint: the one of
/// ours that clap has found, or another launcher's. A word without a dash is no misspelt option.
pub(crate) fn with_hint(mut error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let unknown = text(&error, ContextKind::InvalidArg);
    let ours = text(&error, ContextKind::SuggestedArg);
    error.remove(ContextKind::SuggestedArg);
    let known = foreign::accepted().map(|name| name as &str).chain([ours.trim_start_matches('-')]);
    let meant = nearest(unknown.trim_start_matches('-'), known);
    if let Some((_, name)) = meant.filter(|_| unknown.starts_with('-')) {
        error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{name}")));
    }
    error
}

/// The text that clap's error has of this kind, or none.
pub(crate) fn text(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        _ => String::new(),
    }
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
        assert_eq!(nearest("detach", ["deadlock"]), None);
        assert_eq!(nearest("a", ["a", "ab"]), None);
    }
}
