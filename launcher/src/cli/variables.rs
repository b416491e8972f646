//! Notes about variables that begin as those of this project do and that nobody reads: misspelt ones,
//! mostly. Pure.

use std::collections::BTreeSet;

use transport_lapi::config::{self, PREFIX, SETTINGS};

/// A note for each of these `names` of variables that is unknown.
pub(super) fn notes(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let unknown: BTreeSet<String> =
        names.into_iter().filter(|name| config::is_unknown(name)).collect();
    unknown.iter().map(|name| note(name)).collect()
}

/// How alike two words have to be, from 0 to 1, by the measure that clap uses for options.
const ALIKE: f64 = 0.8;

/// The one of the `known` words that is most like `word`, if one is like it. A letter is like no word.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let measured = known.into_iter().map(|known| (strsim::jaro(word, known), known));
    let alike = measured.filter(|(alike, _)| *alike > ALIKE && word.len() > 1);
    alike.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

fn note(name: &str) -> String {
    let known = SETTINGS.iter().filter_map(|row| row.name.strip_prefix(PREFIX));
    let advice = match nearest(name.strip_prefix(PREFIX).unwrap_or(name), known) {
        Some(meant) => format!("did you mean {PREFIX}{meant}?"),
        None => "mpjrun --help lists those that ranks read".to_owned(),
    };
    format!("unknown variable {} is ignored; {advice}", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_is_noted_once() {
        let names = ["MPJ_WAT", "PATH", "MPJ_GET", "MPJ_X", "MPJ_WAT", "MPJ_BACKND"];
        let expected = [
            "unknown variable MPJ_BACKND is ignored; did you mean MPJ_BACKEND?",
            "unknown variable MPJ_WAT is ignored; did you mean MPJ_WAIT?",
            "unknown variable MPJ_X is ignored; mpjrun --help lists those that ranks read",
        ];
        assert_eq!(notes(names.map(str::to_owned)), expected);
    }
}
