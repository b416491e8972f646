//! Cuts a command line into sections, one for each program of the job: at `:`, or by the lines of `--configfile`.
//! Pure; called by the parser of `mpjrun`.

use std::ffi::OsString;

/// The words of one program: its options, its name and its arguments.
pub(super) type Section = Vec<OsString>;

/// A section in a file, with the number of its first line.
pub(super) type Line = (usize, Section);

/// Returns the sections of a command line without the launcher's own name. Every word `:` ends one, as for MPI's
/// `mpiexec`.
pub(super) fn split(words: impl IntoIterator<Item = OsString>) -> Vec<Section> {
    let words: Section = words.into_iter().collect();
    words.split(|word| word == ":").map(<[OsString]>::to_vec).collect()
}

/// Returns the sections in the text of a file: one per line, with words quoted as in a shell. Empty lines and lines
/// that begin with `#` are skipped; a `\` at the end of a line joins it with the next one. A `:` has no special meaning.
///
/// # Errors
/// The number of a line with an open quote or a NUL character, or that there is no section.
pub(super) fn read(text: &str) -> Result<Vec<Line>, String> {
    let mut sections = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        let mut whole = line.to_owned();
        while let Some(begun) = whole.strip_suffix('\\') {
            let next = lines.next().map_or("", |(line, _)| line);
            whole = format!("{begun} {next}");
        }
        let whole = whole.trim();
        if whole.is_empty() || whole.starts_with('#') {
            continue;
        }
        if whole.contains('\0') {
            return Err(format!(
                "line {number}: it has a NUL character, which no program can be given"
            ));
        }
        let words = shell_words::split(whole)
            .map_err(|_| format!("line {number}: a quote is not closed"))?;
        sections.push((number, words.into_iter().map(OsString::from).collect()));
    }
    if sections.is_empty() {
        return Err("no line names a program".to_owned());
    }
    Ok(sections)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Section {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn a_colon_begins_the_next_program() {
        let sections = split(words("-n 2 a x:y : -n 3 b : c"));
        assert_eq!(sections, [words("-n 2 a x:y"), words("-n 3 b"), words("c")]);
        assert_eq!(split(words("a :")), [words("a"), words("")]);
        assert_eq!(split(words("")), [words("")]);
    }

    #[test]
    fn a_line_of_a_file_is_a_program() {
        let text = "# first\n-n 2 a 'one word' \"$HOME\"\n\n  # second\n-n 1 \\\n  b :\\\n";
        let first: Section =
            ["-n", "2", "a", "one word", "$HOME"].iter().map(OsString::from).collect();
        assert_eq!(read(text), Ok(vec![(2, first), (5, words("-n 1 b :"))]));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        assert_eq!(read("a\nb \"c\n"), Err("line 2: a quote is not closed".to_owned()));
        let nul = "line 2: it has a NUL character, which no program can be given";
        assert_eq!(read("a\nb 'c\0'\n"), Err(nul.to_owned()));
        assert_eq!(read("\n# a\n"), Err("no line names a program".to_owned()));
    }
}
