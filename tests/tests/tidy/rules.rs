//! The rules that look at one file, or at the comments of all of them.
//!
//! Called by the tests of the tree and, with snippets that break them, by their own tests.

use std::collections::BTreeMap;

use crate::source::{Finding, Source};

/// Longest file, in lines.
pub const MAX_FILE: usize = 600;
/// Files that a program has written, which nobody reads from end to end.
const GENERATED: &[&str] = &["transport-lapi/src/adapters/ofi/bindings.rs"];
/// Longest module of tests inside the file that it tests.
pub const MAX_INLINE_TESTS: usize = 150;
/// Names that say nothing about what they name.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager"];
/// Marks of work that is not finished.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Names of MPI's calls that are also words for something else.
const PLAIN_WORDS: &[&str] = &[
    "send", "recv", "probe", "wait", "finish", "barrier", "dup", "gather", "scatter", "reduce",
    "scan", "split", "create", "progress",
];
/// Folders of one particular machine.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// No file is longer than [`MAX_FILE`] unless it is generated, and none keeps long tests inside.
pub fn file_length(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > MAX_FILE && !GENERATED.contains(&source.path) {
        findings.push(source.finding(lines, format!("{lines} lines, the limit is {MAX_FILE}")));
    }
    for at in source.find(&["mod", "tests", "{"]) {
        let start = source.tokens[at].number;
        let lines = source.end_of_block(at).map_or(0, |end| end - start + 1);
        if lines > MAX_INLINE_TESTS {
            let what =
                format!("{lines} lines of tests; over {MAX_INLINE_TESTS} they move to a file");
            findings.push(source.finding(start, what));
        }
    }
    findings
}

/// Every file says at its top what it is.
pub fn opening(source: &Source) -> Vec<Finding> {
    let opens = source.text.starts_with("//! ");
    (!opens).then(|| source.finding(1, "does not open with `//!`")).into_iter().collect()
}

/// No file, folder or module has a name that says nothing.
pub fn names(source: &Source) -> Vec<Finding> {
    let stem = source.path.strip_suffix(".rs").unwrap_or(source.path);
    let in_path = stem.split('/').filter(|name| EMPTY_NAMES.contains(name)).map(|name| (1, name));
    let modules = source.find(&["mod"]).filter_map(|at| source.tokens.get(at + 1));
    let in_text = modules.map(|name| (name.number, name.text));
    in_path
        .chain(in_text.filter(|(_, name)| EMPTY_NAMES.contains(name)))
        .map(|(line, name)| source.finding(line, format!("`{name}` names nothing")))
        .collect()
}

/// No file, of whatever kind, has marks of unfinished work or folders of one machine.
pub fn residue(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let marks = UNFINISHED.iter().filter(|mark| line.contains(**mark));
        for mark in marks.filter(|mark| words(line).any(|word| word == **mark)) {
            findings.push(source.finding(index + 1, format!("unfinished: {mark}")));
        }
        for folder in MACHINE_FOLDERS.iter().filter(|folder| line.contains(**folder)) {
            findings.push(source.finding(index + 1, format!("folder of one machine: {folder}")));
        }
    }
    findings
}

/// Comments mention no issue numbers.
pub fn issue_numbers(source: &Source) -> Vec<Finding> {
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let numbered =
        source.comments.iter().filter(|comment| comment.text.split('#').skip(1).any(is_number));
    numbered
        .map(|comment| source.finding(comment.number, "a comment with the number of an issue"))
        .collect()
}

/// The names in the device's list of calls that mean nothing but a call of MPI, without underscores.
pub fn names_of_calls(list: &Source) -> Vec<String> {
    let rows = list.text.lines().filter_map(|line| line.split_once(" = (\""));
    let names = rows.filter_map(|(_, rest)| rest.split_once('"')).map(|(name, _)| name);
    names.filter(|name| !PLAIN_WORDS.contains(name)).map(|name| name.replace('_', "")).collect()
}

/// What is below the device and beside it names no such call in code and texts, outside of tests.
pub fn calls_of_mpi(source: &Source, names: &[String]) -> Vec<Finding> {
    let is_meant =
        ["transport-lapi/src/", "launcher/src/"].iter().any(|it| source.path.starts_with(it));
    let is_test = source.path.contains("/tests/") || source.path.ends_with("tests.rs");
    if !is_meant || is_test {
        return Vec::new();
    }
    let end = source.find(&["mod", "tests", "{"]).next().map(|at| source.tokens[at].number);
    let lines = (1..).zip(source.text.lines()).take_while(|(line, _)| end != Some(*line));
    let code = lines.map(|(line, text)| (line, text.split("//").next().unwrap_or("")));
    let words = code.flat_map(|(line, text)| words(text).map(move |word| (line, word)));
    let is_name = |word: &str| names.contains(&word.to_lowercase().replace('_', ""));
    words
        .filter(|(_, word)| is_name(word))
        .map(|(line, word)| source.finding(line, format!("`{word}` is a call of MPI")))
        .collect()
}

/// Every test that the tables of a document name, as `file::test`, exists in a file of that name.
pub fn named_tests(document: &Source, code: &[Source]) -> Vec<Finding> {
    let is_name = |text: &str| {
        let is_part = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
        !text.is_empty() && text.bytes().all(is_part)
    };
    let exists = |file: &str, test: &str| {
        let of_file = |source: &&Source| {
            let name = source.path.rsplit('/').next().unwrap_or("");
            name.strip_suffix(".rs") == Some(file)
        };
        code.iter().filter(of_file).any(|source| source.find(&["fn", test]).next().is_some())
    };
    let mut findings = Vec::new();
    for (line, text) in (1..).zip(document.text.lines()).filter(|(_, text)| text.starts_with('|')) {
        for span in text.split('`').skip(1).step_by(2) {
            let Some((file, test)) = span.split_once("::") else { continue };
            if is_name(file) && is_name(test) && !exists(file, test) {
                findings.push(document.finding(line, format!("there is no test `{span}`")));
            }
        }
    }
    findings
}

/// Examples of all packages have different names, since their programs land in one folder.
pub fn example_names(sources: &[Source]) -> Vec<Finding> {
    let mut places: BTreeMap<&str, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in sources {
        let Some((_, file)) = source.path.split_once("/examples/") else { continue };
        let Some(name) = file.strip_suffix("/main.rs").or(file.strip_suffix(".rs")) else {
            continue;
        };
        if name.contains('/') {
            continue;
        }
        if let Some(other) = places.insert(name, source.path) {
            findings.push(source.finding(1, format!("{other} is an example of the same name")));
        }
    }
    findings
}

/// Every `SYNC:` label stands where something is released and where it is acquired.
pub fn sync_labels(sources: &[Source]) -> Vec<Finding> {
    let mut ends: BTreeMap<&str, Ends> = BTreeMap::new();
    for source in sources {
        for comment in &source.comments {
            let Some(label) = comment.text.strip_prefix("SYNC: ") else { continue };
            let end = ends.entry(label).or_insert_with(|| Ends::first(source, comment.number));
            let orderings: Vec<_> = source.tokens_on(comment.number).collect();
            let both = orderings.contains(&"AcqRel");
            end.lines += 1;
            end.acquired |= both || orderings.contains(&"Acquire");
            end.released |= both || orderings.contains(&"Release");
        }
    }
    let lonely = ends.iter().filter(|(_, end)| end.lines < 2 || !end.acquired || !end.released);
    lonely
        .map(|(label, end)| end.at.finding(end.line, format!("`SYNC: {label}` lacks its partner")))
        .collect()
}

/// Where a label was seen.
struct Ends<'a> {
    at: &'a Source<'a>,
    line: usize,
    lines: usize,
    acquired: bool,
    released: bool,
}

impl<'a> Ends<'a> {
    fn first(at: &'a Source<'a>, line: usize) -> Self {
        Self { at, line, lines: 0, acquired: false, released: false }
    }
}

/// The words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
}
