//! The rules that look at one file, or at the comments of all of them.
//!
//! Called by the tests of the tree and, with snippets that break them, by their own tests.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Finding, Source};

/// Longest file, in lines.
pub const MAX_FILE: usize = 600;
/// Longest function, in lines, from `fn` to its closing bracket.
pub const MAX_FUNCTION: usize = 70;
/// Longest module of tests inside the file that it tests.
pub const MAX_INLINE_TESTS: usize = 150;
/// The median function is shorter than this.
pub const MEDIAN_FUNCTION: usize = 10;

/// The files that may contain unsafe code, and that do.
pub const UNSAFE_FILES: &[&str] = &[
    "benches/system-mpi/src/mpi.rs",
    "benches/programs/src/cache_line.rs",
    "mpicore/src/memory.rs",
    "mpicore/src/op/long_double.rs",
    "mpj-macros/src/datatype.rs",
    "mpj/src/buffer.rs",
    "mpj/src/datatype.rs",
    "mpj/src/lent.rs",
    "mpj/src/memory.rs",
    "mpj/src/memory/core.rs",
    "mpj/src/memory/contiguous.rs",
    "mpj/src/memory/grid.rs",
    "mpj/src/memory/strided.rs",
    "mpj/src/op.rs",
    "mpj/src/point_to_point.rs",
    "mpjdev/examples/layouts.rs",
    "mpjdev/src/early_buffer.rs",
    "transport-lapi/examples/layout_speed.rs",
    "transport-lapi/src/adapter.rs",
    "transport-lapi/src/adapters/bulk.rs",
    "transport-lapi/src/adapters/channels.rs",
    "transport-lapi/src/adapters/local.rs",
    "transport-lapi/src/adapters/port.rs",
    "transport-lapi/src/adapters/ring.rs",
    "transport-lapi/src/adapters/segment.rs",
    "transport-lapi/src/adapters/shm/mapping.rs",
    "transport-lapi/src/adapters/shm/peer.rs",
    "transport-lapi/src/adapters/threads.rs",
    "transport-lapi/src/bootstrap/guard.rs",
    "transport-lapi/src/bootstrap/inherit.rs",
    "transport-lapi/src/bootstrap/signals.rs",
    "transport-lapi/src/bootstrap/spawn.rs",
    "transport-lapi/src/fork.rs",
    "transport-lapi/src/layers/fault.rs",
    "transport-lapi/src/lock.rs",
    "transport-lapi/src/region.rs",
    "transport-lapi/src/sys.rs",
    // Tests of calls that take borrowed memory, or that write what a hostile peer would.
    "tests/src/bin/forked.rs",
    "tests/src/conformance/adapter/share.rs",
    "tests/src/conformance/collective/area.rs",
    "tests/src/conformance/device/rank.rs",
    "transport-lapi/src/adapters/port/tests.rs",
    "transport-lapi/src/adapters/share/loom_tests.rs",
    "transport-lapi/src/adapters/shm/tests.rs",
    "transport-lapi/src/adapters/threads/tests.rs",
    "transport-lapi/src/body/tests.rs",
    "transport-lapi/src/context/tests.rs",
    "transport-lapi/src/layout/tests.rs",
    "transport-lapi/tests/support/buffers.rs",
    "transport-lapi/tests/support/flaky.rs",
];

/// The one place that reads the environment.
const ENVIRONMENT: &[&str] = &["transport-lapi/src/config.rs", "transport-lapi/src/config/"];
/// Names that say nothing about what they name.
const EMPTY_NAMES: &[&str] = &["util", "utils", "common", "helper", "helpers", "manager"];
/// What only a program may write to.
const PRINTING: &[&str] = &["println", "eprintln", "print", "eprint", "dbg"];
/// What only a program may call, since it ends the process.
const ENDING: &[&str] = &["exit", "abort"];
/// Where there are programs only, and what they are made of: so are tests of several ranks.
const PROGRAM_FOLDERS: &[&str] = &["/bin/", "benches/system-mpi/", "launcher/src/testing"];
/// Marks of work that is not finished.
const UNFINISHED: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
/// Folders of one particular machine.
const MACHINE_FOLDERS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// No file is longer than [`MAX_FILE`], and none keeps long tests inside.
pub fn file_length(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > MAX_FILE {
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

/// Line and length in lines of every function with a body.
pub fn functions(source: &Source) -> impl Iterator<Item = (usize, usize)> {
    source.find(&["fn"]).filter_map(|at| {
        let start = source.tokens[at].number;
        let name = source.tokens.get(at + 1)?;
        let is_named = name.text.starts_with(|first: char| first.is_alphabetic() || first == '_');
        let end = if is_named { source.end_of_block(at)? } else { return None };
        Some((start, end - start + 1))
    })
}

/// No function is longer than [`MAX_FUNCTION`].
pub fn function_length(source: &Source) -> Vec<Finding> {
    let long = functions(source).filter(|&(_, lines)| lines > MAX_FUNCTION);
    long.map(|(start, lines)| {
        source.finding(start, format!("function of {lines} lines, the limit is {MAX_FUNCTION}"))
    })
    .collect()
}

/// Every file says at its top what it is.
pub fn opening(source: &Source) -> Vec<Finding> {
    let opens = source.text.starts_with("//! ");
    (!opens).then(|| source.finding(1, "does not open with `//!`")).into_iter().collect()
}

/// Unsafe code is in the files of the list, and every file of the list has some.
pub fn unsafe_code(source: &Source) -> Vec<Finding> {
    let listed = UNSAFE_FILES.contains(&source.path);
    let first = source.find(&["unsafe"]).next().map(|at| source.tokens[at].number);
    match first {
        Some(line) if !listed => {
            vec![source.finding(line, "unsafe code in a file not listed for it")]
        }
        None if listed => vec![source.finding(1, "listed for unsafe code, but has none")],
        _ => Vec::new(),
    }
}

/// Only the configuration reads or writes the environment.
pub fn environment(source: &Source) -> Vec<Finding> {
    if ENVIRONMENT.iter().any(|allowed| source.path.starts_with(allowed)) {
        return Vec::new();
    }
    let names = ["var", "vars", "var_os", "vars_os", "set_var", "remove_var"];
    let is_one = |at: &usize| source.tokens.get(at + 2).is_some_and(|t| names.contains(&t.text));
    let direct = source.find(&["env", "::"]).filter(is_one);
    let imported = source.find(&["env", "::", "{"]).chain(source.find(&["env", "::", "*"]));
    direct
        .chain(imported)
        .map(|at| source.finding(source.tokens[at].number, "only config.rs reads the environment"))
        .collect()
}

/// MPI_Abort ends the process by its meaning.
const MAY_END_THE_PROCESS: &str = "mpj/src/abort.rs";

/// Libraries print nothing and end no process.
pub fn program_acts(source: &Source) -> Vec<Finding> {
    let is_program = source.path.ends_with("/main.rs")
        || source.path == MAY_END_THE_PROCESS
        || PROGRAM_FOLDERS.iter().any(|folder| source.path.contains(folder));
    if !source.path.contains("/src/") || is_program {
        return Vec::new();
    }
    let prints = PRINTING.iter().flat_map(|name| places(source, &[name, "!"]));
    let ends = ENDING.iter().flat_map(|name| places(source, &["process", "::", name]));
    prints
        .chain(ends)
        .map(|line| source.finding(line, "only a program prints, or ends the process"))
        .collect()
}

/// The lines where these tokens follow one another.
fn places(source: &Source, wanted: &[&str]) -> Vec<usize> {
    source.find(wanted).map(|at| source.tokens[at].number).collect()
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

/// Comments do not speak of issues by number.
pub fn issue_numbers(source: &Source) -> Vec<Finding> {
    let is_number = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
    let numbered =
        source.comments.iter().filter(|comment| comment.text.split('#').skip(1).any(is_number));
    numbered
        .map(|comment| source.finding(comment.number, "a comment with the number of an issue"))
        .collect()
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

/// An invariant that a SAFETY comment cites is stated in a list at the head of some file.
pub fn citations(sources: &[Source]) -> Vec<Finding> {
    let comments =
        || sources.iter().flat_map(|source| source.comments.iter().map(move |c| (source, c)));
    let stated: BTreeSet<&str> = statements(sources).map(|(.., number)| number).collect();
    let cited = comments().filter(|(_, comment)| comment.text.starts_with("SAFETY:"));
    cited
        .flat_map(|(source, comment)| {
            words(comment.text).map(move |word| (source, comment.number, word))
        })
        .filter(|(_, _, word)| is_invariant(word) && !stated.contains(word))
        .map(|(source, line, word)| {
            source.finding(line, format!("cites {word}, which nothing states"))
        })
        .collect()
}

/// No two files state an invariant under the same number, so that one that is cited is found.
pub fn numbers_are_unique(sources: &[Source]) -> Vec<Finding> {
    let mut stated = BTreeMap::<&str, &Source>::new();
    let mut findings = Vec::new();
    for (source, line, number) in statements(sources) {
        let first = stated.entry(number).or_insert(source);
        if first.path != source.path {
            let path = &first.path;
            findings.push(source.finding(line, format!("states {number}, which {path} does too")));
        }
    }
    findings
}

/// Every invariant that is stated: where, in which line, and under which number.
fn statements<'a>(
    sources: &'a [Source<'a>],
) -> impl Iterator<Item = (&'a Source<'a>, usize, &'a str)> {
    let comments =
        sources.iter().flat_map(|source| source.comments.iter().map(move |c| (source, c)));
    comments.filter_map(|(source, comment)| {
        let (number, _) = comment.text.strip_prefix("- ")?.split_once(':')?;
        is_invariant(number).then_some((source, comment.number, number))
    })
}

/// Whether a word is the number of an invariant: one to three capital letters and digits.
fn is_invariant(word: &str) -> bool {
    let digits = word.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    let letters = word.len() - digits.len();
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (1..=3).contains(&letters)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_')
}
