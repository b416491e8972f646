//! Links of the documents. Guides are modules of mpj's documentation too, where the path of a file leads nowhere, so
//! they refer to each other by labels: each guide defines those that it uses, and `mpj/src/guide/links.md` all of them
//! for rustdoc.

use std::collections::BTreeSet;

use super::source::{Finding, Source};

/// A link in a document.
struct Link<'a> {
    line: usize,
    /// The label, if this is a definition.
    label: Option<&'a str>,
    target: &'a str,
}

/// The lines of a document outside blocks of code.
fn prose<'a>(document: &Source<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    let mut is_code = false;
    (1..).zip(document.text.lines()).filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The links of a document to files of the tree and to headings.
fn links<'a>(document: &Source<'a>) -> Vec<Link<'a>> {
    let mut found = Vec::new();
    for (line, text) in prose(document) {
        let definition = text.strip_prefix('[').and_then(|text| text.split_once("]: "));
        if let Some((label, target)) = definition {
            found.push(Link { line, label: Some(label), target });
        }
        let inline = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        found.extend(inline.map(|(target, _)| Link { line, label: None, target }));
    }
    found.retain(|link| !link.target.contains(':'));
    found
}

/// The labels to which a document refers.
fn references<'a>(document: &Source<'a>) -> impl Iterator<Item = (usize, &'a str)> {
    prose(document).flat_map(|(line, text)| {
        let outside_code = text.split('`').step_by(2);
        let labels = outside_code.flat_map(|text| text.split("][").skip(1));
        labels.filter_map(move |rest| Some((line, rest.split_once(']')?.0)))
    })
}

/// What a link to a heading is called: its letters and digits in lower case, with `-` for each space.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|char| char.is_alphanumeric() || "-_ ".contains(*char));
    kept.map(|char| if char == ' ' { '-' } else { char.to_ascii_lowercase() }).collect()
}

fn anchors(document: &Source) -> BTreeSet<String> {
    let headings = prose(document).filter_map(|(_, line)| {
        line.trim_start_matches('#').strip_prefix(' ').filter(|_| line.starts_with('#'))
    });
    headings.map(anchor).collect()
}

/// The path in the tree that `path` means in a document: `..` is the folder above.
fn resolved(document: &Source, path: &str) -> String {
    let mut parts: Vec<&str> = document.path.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

/// Every relative link leads to a file or a folder that `exists`, and to a heading if it names one; and every label has a
/// definition.
pub fn lead_somewhere(documents: &[Source], exists: impl Fn(&str) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for document in documents {
        let starts = |label: &str| format!("[{label}]: ");
        for (line, label) in references(document) {
            if !document.text.lines().any(|line| line.starts_with(&starts(label))) {
                findings.push(document.finding(line, format!("the label {label} is not defined")));
            }
        }
        for Link { line, target, .. } in links(document) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let path =
                if path.is_empty() { document.path.to_owned() } else { resolved(document, path) };
            let there = documents.iter().find(|document| document.path == path);
            let is_heading = |there: &Source| anchors(there).contains(heading);
            if !exists(&path) {
                findings.push(document.finding(line, format!("{path} does not exist")));
            } else if !heading.is_empty() && !there.is_some_and(is_heading) {
                findings.push(document.finding(line, format!("{path} has no heading #{heading}")));
            }
        }
    }
    findings
}

/// The guides that `guide.rs` includes, and the names of their modules.
fn guides(modules: &Source) -> Vec<(String, String)> {
    let included = modules.text.split("include_str!(\"../").skip(1);
    let paths = included.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path);
    let stem = |path: &str| path.rsplit('/').next().unwrap_or(path).replace(".md", "");
    paths.map(|path| (path.to_owned(), stem(path).to_lowercase().replace('-', "_"))).collect()
}

/// A guide links to files only by labels, and `labels` defines each of them as the same place in `modules`.
pub fn of_guides(modules: &Source, labels: &Source, documents: &[Source]) -> Vec<Finding> {
    let guides = guides(modules);
    let defined: BTreeSet<&str> = labels.text.lines().collect();
    let mut findings = Vec::new();
    for document in
        documents.iter().filter(|document| guides.iter().any(|(path, _)| path == document.path))
    {
        for Link { line, label, target } in links(document) {
            let (path, heading) = target.split_at(target.find('#').unwrap_or(target.len()));
            let path = resolved(document, path);
            let module = guides.iter().find(|(guide, _)| *guide == path).map(|(_, module)| module);
            let what = match (label, module) {
                (None, _) if target.starts_with('#') => continue,
                (None, _) => format!("a guide refers to {target} by a label"),
                // Pictures are for readers of the files; in rustdoc their descriptions are shown.
                (Some(_), None) if path.ends_with(".png") => continue,
                (Some(_), None) => format!("{target} is no guide"),
                (Some(label), Some(module)) => {
                    let wanted = format!("[{label}]: crate::guide::{module}{heading}");
                    if defined.contains(&*wanted) {
                        continue;
                    }
                    format!("{} lacks {wanted}", labels.path)
                }
            };
            findings.push(document.finding(line, what));
        }
    }
    findings
}
