//! Checks the source files of the tree against its rules.
//!
//! `CONTRIBUTING.md` states the rules. Each rule is a function from a file to findings. This file applies them to the
//! tree, and `tidy/snippets.rs` to snippets that break them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use labels::Definition;
use source::{Finding, Source};

#[path = "tidy/aliases.rs"]
mod aliases;
#[path = "tidy/labels.rs"]
mod labels;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/snippets.rs"]
mod snippets;
#[path = "tidy/source.rs"]
mod source;

/// Folders of generated files.
const MADE: &[&str] = &["target", ".git", "data", "corpus", "artifacts"];
/// Documents that cite invariants.
const MAINTAINERS: &[&str] = &["ARCHITECTURE.md", "CONTRIBUTING.md"];
/// Kinds of files that the rules for all texts apply to.
const TEXTS: &[&str] = &["rs", "md", "toml", "py", "sh"];

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the package is in a folder of the tree").to_owned()
}

/// The files of the tree that rules apply to: their paths in the tree, and their contents.
static TREE: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let (root, mut files) = (root(), Vec::new());
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the tree is readable") {
            let entry = entry.expect("the tree is readable");
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                continue;
            }
            let path = entry.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            if path.is_dir() && !MADE.contains(&name) {
                folders.push(path);
            } else if path.is_file() && is_text(&path) {
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                let inside = path.strip_prefix(&root).expect("the walk began at the root");
                files.push((inside.to_str().expect("names are UTF-8").to_owned(), text));
            }
        }
    }
    assert!(
        files.iter().any(|(path, _)| path == "tests/tests/tidy.rs"),
        "the walk missed this file"
    );
    files
});

/// The Rust files among them, scanned once for all rules.
static CODE: LazyLock<Vec<Source>> = LazyLock::new(|| sources(|path| path.ends_with(".rs")));
/// The other ones.
static PROSE: LazyLock<Vec<Source>> = LazyLock::new(|| sources(|path| !path.ends_with(".rs")));

fn sources(belongs: impl Fn(&str) -> bool) -> Vec<Source<'static>> {
    let files = TREE.iter().filter(|(path, _)| belongs(path));
    files.map(|(path, text)| Source::new(path, text)).collect()
}

fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|end| TEXTS.contains(&end))
}

#[track_caller]
fn none(findings: Vec<Finding>) {
    let list =
        findings.iter().map(|found| format!("\n{}:{}: {}", found.path, found.line, found.what));
    assert!(findings.is_empty(), "{} findings:{}", findings.len(), list.collect::<String>());
}

#[track_caller]
fn none_in_the_tree(rule: impl Fn(&Source) -> Vec<Finding>) {
    none(CODE.iter().flat_map(rule).collect());
}

#[test]
fn files_are_short() {
    none_in_the_tree(rules::file_length);
}

#[test]
fn files_say_what_they_are() {
    none_in_the_tree(rules::opening);
}

#[test]
fn layers_know_only_what_is_below_them() {
    none_in_the_tree(layers::layering);
}

#[test]
fn rooms_use_only_rooms_below_them() {
    let document = PROSE.iter().find(|source| source.path == "ARCHITECTURE.md");
    let document = document.expect("the tree has its document");
    let plans = rooms::plans(document);
    assert!(!plans.is_empty(), "the table of rooms is missing");
    none(plans.iter().flat_map(|plan| rooms::rooms(plan, document, &CODE)).collect());
}

#[test]
fn fenced_crates_stay_in_their_fences() {
    none_in_the_tree(layers::fences);
}

#[test]
fn names_say_something() {
    none_in_the_tree(rules::names);
}

#[test]
fn nothing_is_unfinished_or_of_one_machine() {
    none(CODE.iter().chain(&*PROSE).flat_map(rules::residue).collect());
}

#[test]
fn comments_stand_by_themselves() {
    none_in_the_tree(rules::issue_numbers);
}

/// The transport publishes codes, and the launcher's reports take names from the ranks.
#[test]
fn only_the_device_and_what_is_above_it_names_calls_of_mpi() {
    let list = CODE.iter().find(|source| source.path == "mpjdev/src/call_names.rs");
    let names = rules::names_of_calls(list.expect("the device lists its calls"));
    assert!(names.len() > 15, "{names:?}");
    none_in_the_tree(|source| rules::calls_of_mpi(source, &names));
}

#[test]
fn names_of_mpi_are_aliases_that_the_documents_list() {
    let document = PROSE.iter().find(|source| source.path == "docs/from-mpi.md");
    let in_mpj = |source: &&Source| source.path.starts_with("mpj/src/");
    let code: Vec<_> = CODE.iter().filter(in_mpj).collect();
    none(aliases::aliases(document.expect("the tree has this page"), &code));
}

#[test]
fn links_lead_somewhere() {
    let documents = sources(|path| path.ends_with(".md"));
    let in_tree = |path: &str| root().join(path).exists();
    none(links::lead_somewhere(&documents, in_tree));
    let file = |wanted: &str| sources(|path| path == wanted).pop().expect("the tree has it");
    let (modules, labels) = (file("mpj/src/guide.rs"), file("mpj/src/guide/links.md"));
    none(links::of_guides(&modules, &labels, &documents));
}

#[test]
fn packages_that_are_published_have_metadata() {
    let manifests = sources(|path| path.ends_with("Cargo.toml"));
    let rule = |manifest| manifests::are_complete(manifest, |path| root().join(path).exists());
    none(manifests.iter().flat_map(rule).collect());
}

#[test]
fn examples_have_names_of_their_own() {
    none(rules::example_names(&CODE));
}

#[test]
fn every_release_has_its_acquire() {
    none(rules::sync_labels(&CODE));
}

#[test]
fn tests_that_documents_name_exist() {
    let names_tests = |source: &&Source| ["docs/lapi.md", "docs/pami.md"].contains(&source.path);
    let documents = PROSE.iter().filter(names_tests);
    let findings: Vec<_> = documents.map(|document| rules::named_tests(document, &CODE)).collect();
    assert_eq!(findings.len(), 2, "a document is missing");
    none(findings.into_iter().flatten().collect());
}

#[test]
fn labels_are_defined_once() {
    none(labels::are_unique(&CODE));
    let for_maintainers = sources(|path| MAINTAINERS.contains(&path));
    none(labels::are_defined(&CODE, &for_maintainers));
}

#[test]
#[ignore = "prints the invariants"]
#[expect(clippy::print_stdout, reason = "its output is what it is for")]
fn register() {
    for Definition { path, line, label, statement } in labels::definitions(&CODE) {
        println!("{label:<5} {path}:{line}  {statement}");
    }
}
