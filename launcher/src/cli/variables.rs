//! Notes about unknown variables that begin with `MPJ_`, mostly misspelt ones. Pure.

use std::collections::BTreeSet;

use transport_lapi::config;

/// Returns a note for each unknown variable among `names`.
pub(super) fn notes(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let unknown: BTreeSet<String> =
        names.into_iter().filter(|name| config::is_unknown(name)).collect();
    let note = |name: &String| {
        let name = name.escape_debug();
        format!("unknown variable {name} is ignored; mpjrun --help lists those that ranks read")
    };
    unknown.iter().map(note).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_variable_is_noted_once() {
        let names = ["MPJ_WAT", "PATH", "MPJ_GET", "MPJ_X", "MPJ_WAT", "MPJ_BACKND"];
        let expected = [
            "unknown variable MPJ_BACKND is ignored; mpjrun --help lists those that ranks read",
            "unknown variable MPJ_WAT is ignored; mpjrun --help lists those that ranks read",
            "unknown variable MPJ_X is ignored; mpjrun --help lists those that ranks read",
        ];
        assert_eq!(notes(names.map(str::to_owned)), expected);
    }
}
