//! The labels of invariants, such as the one of `- PL2: a rank whose ...`: each is defined in one place, beside the
//! code that keeps it, and cited where code relies on it.
//!
//! A definition is an item of a list in a comment. Called by the tests of the tree, one of which prints all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::rules::words;
use crate::source::{Finding, Line, Source};

/// Larger numbers after capital letters are sizes of types and years of standards.
const LAST: u32 = 15;

/// The definition of a label.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Definition<'a> {
    pub path: &'a str,
    pub line: usize,
    pub label: &'a str,
    /// What holds: the item without the label.
    pub statement: String,
}

/// Every definition, by file and line.
pub fn definitions<'a>(sources: &'a [Source<'a>]) -> Vec<Definition<'a>> {
    let mut found: Vec<_> = sources.iter().flat_map(of_file).collect();
    found.sort_unstable();
    found
}

fn of_file<'a>(source: &'a Source<'a>) -> impl Iterator<Item = Definition<'a>> {
    let comments = source.comments.iter().enumerate();
    comments.filter_map(|(at, comment)| {
        let (label, first) = comment.text.strip_prefix("- ")?.split_once(':')?;
        is_label(label).then(|| {
            let rest = following(&source.comments, at).take_while(|line| !line.starts_with("- "));
            let lines: Vec<_> = std::iter::once(first.trim()).chain(rest).collect();
            let (path, line) = (source.path, comment.number);
            Definition { path, line, label, statement: lines.join(" ").trim().to_owned() }
        })
    })
}

/// The lines of the same paragraph after comment `at`.
fn following<'a>(comments: &'a [Line<'a>], at: usize) -> impl Iterator<Item = &'a str> {
    let number = comments[at].number;
    let rest = (number + 1..).zip(&comments[at + 1..]);
    rest.take_while(|(next, line)| line.number == *next && !line.text.is_empty())
        .map(|(_, line)| line.text)
}

/// Each label is defined once, so that each citation is unambiguous.
pub fn are_unique(sources: &[Source]) -> Vec<Finding> {
    let mut first = BTreeMap::new();
    let mut findings = Vec::new();
    for Definition { path, line, label, .. } in definitions(sources) {
        let (other, at) = *first.entry(label).or_insert((path, line));
        if (other, at) != (path, line) {
            let what = format!("defines {label}, which {other}:{at} does too");
            findings.push(Finding { path: path.to_owned(), line, what });
        }
    }
    findings
}

/// Each label that is cited is defined. A SAFETY comment cites every word that looks like a label, all other comments
/// and `documents` those with the letters of a label that is defined.
pub fn are_defined(sources: &[Source], documents: &[Source]) -> Vec<Finding> {
    let defined: BTreeSet<_> = definitions(sources).into_iter().map(|found| found.label).collect();
    let letters: BTreeSet<_> = defined.iter().map(|label| split(label).0).collect();
    let is_cited = |word: &str| {
        let (own, number) = split(word);
        letters.contains(own) && number.parse().is_ok_and(|number: u32| number <= LAST)
    };
    let in_code = sources.iter().flat_map(|source| {
        let lines = source.comments.iter().enumerate();
        lines.flat_map(move |(at, line)| {
            let safety = begins_with_safety(&source.comments, at);
            words(line.text)
                .filter(move |word| is_label(word) && (safety || is_cited(word)))
                .map(move |word| (source, line.number, word))
        })
    });
    let in_documents = documents.iter().flat_map(|document| {
        let lines = (1..).zip(document.text.lines());
        let words = lines.flat_map(|(line, text)| words(text).map(move |word| (line, word)));
        words
            .filter(|(_, word)| is_label(word) && is_cited(word))
            .map(move |(line, word)| (document, line, word))
    });
    let cited = in_code.chain(in_documents).filter(|(.., word)| !defined.contains(word));
    cited
        .map(|(file, line, word)| {
            file.finding(line, format!("cites {word}, which nothing defines"))
        })
        .collect()
}

/// Whether comment `at` is a line of a SAFETY comment.
fn begins_with_safety(comments: &[Line], at: usize) -> bool {
    let mut number = comments[at].number + 1;
    let before = comments[..=at].iter().rev().take_while(|line| {
        number -= 1;
        line.number == number
    });
    before.into_iter().any(|line| line.text.starts_with("SAFETY:"))
}

/// Whether a word has the form of a label: one to three capital letters and digits.
fn is_label(word: &str) -> bool {
    let (letters, digits) = split(word);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && (1..=3).contains(&letters.len())
}

/// The capital letters that a word begins with, and the rest.
fn split(word: &str) -> (&str, &str) {
    let rest = word.trim_start_matches(|letter: char| letter.is_ascii_uppercase());
    word.split_at(word.len() - rest.len())
}
