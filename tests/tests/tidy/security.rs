//! The rule that keeps the list of unsafe code in `SECURITY.md` true.
//!
//! A file has a section, `### ` and its path in backquotes, whose entries begin with `- ` and a name in
//! backquotes: the function, or the trait and the type. Each `unsafe` of the file's code is one entry,
//! whether it opens a block or stands before an `impl`, an `fn`, the type of one, or an `extern`.

use std::collections::BTreeMap;

use crate::source::{Finding, Source};

/// Where the list is.
pub const PAGE: &str = "SECURITY.md";

/// A line of the list.
struct Entry<'a> {
    line: usize,
    /// What stands in its first backquotes.
    name: &'a str,
}

/// One file's entries, and where they begin.
#[derive(Default)]
struct Section<'a> {
    line: usize,
    entries: Vec<Entry<'a>>,
}

/// Every file with unsafe code has as many entries as it has of it, all of them about something that is
/// there, and no other file has any.
pub fn unsafe_list(page: &Source, sources: &[Source]) -> Vec<Finding> {
    let mut sections = sections(page.text);
    let mut findings = Vec::new();
    for source in sources {
        let found = source.find(&["unsafe"]).count();
        let section = sections.remove(source.path).unwrap_or_default();
        if found != section.entries.len() {
            let (path, listed) = (source.path, section.entries.len());
            let what = format!("{listed} entries for {path}, which says unsafe {found} times");
            findings.push(page.finding(section.line, what));
        }
        let unknown = section.entries.iter().filter(|entry| !is_in(source, entry.name));
        findings.extend(unknown.map(|entry| {
            page.finding(entry.line, format!("`{}` is not in {}", entry.name, source.path))
        }));
    }
    let gone = sections.iter();
    findings.extend(gone.map(|(path, at)| page.finding(at.line, format!("there is no {path}"))));
    findings
}

/// The sections of the page by the paths that they are about.
fn sections(text: &str) -> BTreeMap<&str, Section<'_>> {
    let mut sections: BTreeMap<&str, Section<'_>> = BTreeMap::new();
    let mut open = None;
    for (index, text) in text.lines().enumerate() {
        let line = index + 1;
        if text.starts_with('#') {
            open = text.strip_prefix("### ").and_then(quoted);
            if let Some(path) = open {
                sections.entry(path).or_default().line = line;
            }
        } else if let (Some(path), Some(entry)) = (open, text.strip_prefix("- ")) {
            let name = quoted(entry).unwrap_or(entry);
            sections.entry(path).or_default().entries.push(Entry { line, name });
        }
    }
    sections
}

/// What stands in the backquotes that a text begins with.
fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('`')?.split_once('`').map(|(quoted, _)| quoted)
}

/// Whether the code of a file has every word of a name.
fn is_in(source: &Source, name: &str) -> bool {
    let words = name.split(|char: char| !char.is_alphanumeric() && char != '_');
    words.filter(|word| !word.is_empty()).all(|word| source.find(&[word]).next().is_some())
}
