//! Tests of the rules, with snippets that break them, and of the scanner, with texts that are hard to scan.

use crate::aliases;
use crate::labels;
use crate::layers::{fences, layering, names};
use crate::links;
use crate::manifests;
use crate::rooms;
use crate::rules;
use crate::source::{Finding, Source};

fn source(text: &str) -> Source<'_> {
    Source::new("mpjdev/src/device.rs", text)
}

fn tokens(text: &str) -> Vec<&str> {
    source(text).tokens.into_iter().map(|token| token.text).collect()
}

/// Lines of the findings.
fn lines(findings: &[Finding]) -> Vec<usize> {
    findings.iter().map(|finding| finding.line).collect()
}

#[test]
fn comments_and_literals_are_no_code() {
    assert_eq!(tokens("a // b\nc /* d /* e */ f\n */ g"), ["a", "c", "g"]);
    assert_eq!(tokens(r#"f("x \" fn", 'y', '\'', b"z")"#).concat(), r#"f(",",",b")"#);
    assert_eq!(tokens("r##\"fn \"# mod\"## + br\"\\\" + cr#\"x\"#").concat(), r#""+"+""#);
    assert_eq!(tokens("&'a str, for\"x\"").concat(), "&'astr,for\"");
    assert_eq!(tokens("'ü' r#use::b ö").concat(), "\"r#use::bö");
}

#[test]
fn unfinished_literals_and_comments_end_with_the_file() {
    for text in ["\"a", "r#\"a", "/* a", "'\\", "//", "'", "r"] {
        assert!(tokens(&format!("x {text}")).len() <= 2, "{text}");
    }
}

#[test]
fn comments_keep_their_lines() {
    let found = source("//! a\n\nx; // b\n/* c\n * d */ y").comments;
    let found: Vec<_> = found.iter().map(|comment| (comment.number, comment.text)).collect();
    assert_eq!(found, [(1, "a"), (3, "b"), (4, "c"), (5, "d")]);
    let text = "\"a\nb\"\n/*\n*/ z";
    assert_eq!(source(text).tokens.last().map(|token| token.number), Some(4));
}

#[test]
fn names_of_mpi_without_alias_or_row_are_found() {
    let page = "| MPI | mpj | |\n|---|---|---|\n| `MPI_Send` | `c.send` | |\n| `MPI_Bcast`, `MPI_Old` | `b` | |\n\
                | `MPI_Pack` | - | |\n";
    let code = "/// Sends (MPI_Send).\n///\n/// Not MPI_Other.\n#[doc(alias = \"MPI_Send\")]\npub fn send() {\n\
                /// Private, MPI_Own.\nfn p() {}\n/// No MPI_Word.\n#[doc(alias(\n\"MPI_Ibcast\",\n\
                \"MPI_Bcast_init\"\n))]\n#[inline]\npub const fn b() {}\n#[doc(alias = \"MPI_Op\")]\npub struct S;\n";
    let (page, code) = (Source::new("docs/p.md", page), Source::new("mpj/src/a.rs", code));
    let found: Vec<_> =
        aliases::aliases(&page, &[&code]).into_iter().map(|found| found.what).collect();
    assert_eq!(
        found,
        [
            "`b` lacks the alias MPI_Word",
            "no item of this row has the alias MPI_Bcast",
            "no item of this row has the alias MPI_Old",
        ]
    );
    let unlisted = Source::new("mpj/src/a.rs", "/// A.\n#[doc(alias = \"MPI_New\")]\npub A,\n");
    let found = aliases::aliases(&page, &[&code, &unlisted]);
    assert!(found.iter().any(|found| found.what == "MPI_New is missing in docs/p.md"), "{found:?}");
}

#[test]
fn names_of_calls_are_found_below_the_device() {
    let list = source("    Send = (\"send\", SOME);\n    Exscan = (\"ex_scan\", ALL);\n");
    let names = rules::names_of_calls(&list);
    assert_eq!(names, ["exscan"]);
    let text = "a(\"ex_scan: send\"); // exscan\nb(Call::ExScan, Send);\nmod tests {\n exscan }";
    let found = |path| lines(&rules::calls_of_mpi(&Source::new(path, text), &names));
    assert_eq!(found("launcher/src/report.rs"), [1, 2]);
    assert_eq!(found("transport-lapi/src/wire.rs"), [1, 2]);
    for path in ["launcher/src/report/tests.rs", "launcher/tests/a.rs", "mpjdev/src/call_names.rs"]
    {
        assert_eq!(found(path), [0_usize; 0]);
    }
}

#[test]
fn a_long_file_is_found() {
    let line = "//! x\n";
    assert!(rules::file_length(&source(&line.repeat(rules::MAX_FILE))).is_empty());
    assert_eq!(rules::file_length(&source(&line.repeat(rules::MAX_FILE + 1))).len(), 1);
}

#[test]
fn long_tests_inside_a_file_are_found() {
    let tests = |lines| format!("\nmod tests {{\n{}}}\n", "use a;\n".repeat(lines));
    assert!(rules::file_length(&source(&tests(rules::MAX_INLINE_TESTS - 2))).is_empty());
    let findings = rules::file_length(&source(&tests(rules::MAX_INLINE_TESTS - 1)));
    assert_eq!(lines(&findings), [2]);
}

#[test]
fn a_file_that_does_not_say_what_it_is_is_found() {
    assert!(rules::opening(&source("//! What it is.\n")).is_empty());
    for text in
        ["", "\n//! Late.", "// Not for the reader of documents.", "/// Of an item.", "//!\n"]
    {
        assert_eq!(rules::opening(&source(text)).len(), 1, "{text:?}");
    }
}

#[test]
fn names_that_say_nothing_are_found() {
    for path in ["mpj/src/util.rs", "mpj/src/common/ring.rs", "mpj/helper/ring.rs"] {
        assert_eq!(rules::names(&Source::new(path, "")).len(), 1, "{path}");
    }
    assert_eq!(lines(&rules::names(&source("x\npub mod manager;"))), [2]);
    assert!(rules::names(&source("mod utility; let common = 1;")).is_empty());
}

#[test]
fn unfinished_work_and_folders_of_a_machine_are_found() {
    for text in [concat!("// TO", "DO: more"), concat!("\"/wo", "rk/x\""), concat!("# FIX", "ME")] {
        assert_eq!(lines(&rules::residue(&source(&format!("\n{text}")))), [2], "{text}");
    }
    assert!(rules::residue(&source("autodo, network/x, /usr/bin")).is_empty());
}

#[test]
fn numbers_of_issues_in_comments_are_found() {
    assert_eq!(lines(&rules::issue_numbers(&source("\n// see #12"))), [2]);
    assert!(rules::issue_numbers(&source("// #[cfg] # 8 bytes\nlet a = \"#1\";")).is_empty());
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let text = "# The Top\n[a](b.md#its-one) [b](../c.md) [c](#the-top)\n[d](b.md#x), [e](d.md)\n[f](#no)\n\
                [l]: ../d/b.md#other\n```text\n[g](none.md)\n```\n[h](a::b) [i](https://h/x.md)\n\
                [j][l] `a[i][k]`\n[k][m]\n";
    let other = Source::new("d/b.md", "text\n## Its `one`\n```\n# other\n```\n");
    let documents = [Source::new("d/a.md", text), other, Source::new("c.md", "")];
    let exists = |path: &str| ["d/a.md", "d/b.md", "c.md"].contains(&path);
    assert_eq!(lines(&links::lead_somewhere(&documents, exists)), [11, 3, 3, 4, 5]);
}

#[test]
fn links_of_guides_that_rustdoc_cannot_follow_are_found() {
    let modules =
        source("#[doc = include_str!(\"../d/to-b.md\")]\n#[doc = include_str!(\"../d/a.md\")]");
    let labels =
        source("[b]: crate::guide::to_b\n[h]: crate::guide::to_b#h\n[x]: crate::guide::to_b#y\n");
    let text = "[t](to-b.md)\n[t](#h)\n[b]: to-b.md\n[h]: to-b.md#h\n[x]: to-b.md#x\n[o]: o.md\n";
    let documents = [Source::new("d/a.md", text), Source::new("d/o.md", "[t](a.md)")];
    assert_eq!(lines(&links::of_guides(&modules, &labels, &documents)), [1, 5, 6]);
}

#[test]
fn manifests_of_published_packages_that_lack_something_are_found() {
    let missing = |text: &str| {
        manifests::are_complete(&Source::new("p/Cargo.toml", text), |path| path == "p/LICENSE-MIT")
            .len()
    };
    assert_eq!(
        missing("[package]\nname = \"p\"\nversion.workspace = true\n\n[features]\nreadme = []\n"),
        9
    );
    assert_eq!(missing("[package]\nname = \"p\"\npublish.workspace = true\n"), 0);
    assert_eq!(missing("[workspace]\nmembers = []\n"), 0);
}

#[test]
fn a_test_that_does_not_exist_is_found() {
    let code = [Source::new("a/calls/get.rs", "#[test]\nfn it_gets() {}\n// fn it_puts()")];
    let document =
        "`get::it_puts`\n| a | `get::it_gets`, `get::it_puts` |\n| `put::it_gets` | `Get::new` |\n";
    let found = rules::named_tests(&Source::new("docs/lapi.md", document), &code);
    assert_eq!(lines(&found), [2, 3]);
}

#[test]
fn an_example_with_the_name_of_another_one_is_found() {
    let paths =
        ["a/examples/ping.rs", "b/examples/ping/main.rs", "b/examples/ping/words.rs", "c/ping.rs"];
    let sources = paths.map(|path| Source::new(path, ""));
    let found = rules::example_names(&sources);
    assert_eq!(found.iter().map(|finding| &*finding.path).collect::<Vec<_>>(), [paths[1]]);
}

#[test]
fn a_sync_label_without_partner_is_found() {
    let release = "a.store(1, Release); // SYNC: frame\n";
    let acquire = "a.load(Acquire); // SYNC: frame\n";
    let both = "a.swap(1, AcqRel); // SYNC: frame\n";
    let check = |text: &str| lines(&rules::sync_labels(&[source("x"), source(text)]));
    assert_eq!(check(release), [1]);
    assert_eq!(check(both), [1]);
    assert_eq!(check(&format!("{release}{release}")), [1]);
    assert_eq!(check(&format!("{release}a.load(Acquire); // SYNC: other\n")), [1, 2]);
    assert!(check(&format!("{release}{acquire}")).is_empty());
    assert!(check(&format!("{both}{acquire}")).is_empty());
    assert!(rules::sync_labels(&[source(release), source(acquire)]).is_empty());
}

#[test]
fn definitions_of_labels_end_with_their_items() {
    let text = "//! - QX1: holds\n//!   always.\n//! - QX2: too.\n//!\n//! Text.\n//! - Note: it.\n//! QX3: no item.";
    let file = [source(text)];
    let found = labels::definitions(&file);
    let found: Vec<_> =
        found.iter().map(|found| (found.line, found.label, &*found.statement)).collect();
    assert_eq!(found, [(1, "QX1", "holds always."), (3, "QX2", "too.")]);
}

#[test]
fn a_label_that_nothing_defines_is_found() {
    let defining = "//! - Q7: holds.\n//! - R12: too.\n//! - U8: no less.\n";
    let check = |text: &str, code: &[Source]| {
        lines(&labels::are_defined(code, &[Source::new("a.md", text)]))
    };
    for citing in
        ["\n// SAFETY: by Q7 and\n// R12; U8 x86.\n", "\n// SAFETY: a\n\n// SAFETY: Q7 R12 U8"]
    {
        assert_eq!(check("", &[source(citing)]).len(), 3, "{citing}");
        assert!(check("", &[source(citing), source(defining)]).is_empty());
    }
    assert_eq!(check("", &[source("\n// Q6 U16 V1"), source(defining)]), [2]);
    assert_eq!(check("Q7\nU9, C11", &[source(defining)]), [2]);
}

#[test]
fn a_label_that_is_defined_twice_is_found() {
    let one = Source::new("a.rs", "//! - QX1: holds.\n//! - QX2: too.\n//! - QX1: again.");
    let other = Source::new("b.rs", "//! Head.\n//! - QX2: something else.");
    assert_eq!(lines(&labels::are_unique(&[other, one])), [3, 2]);
}

#[test]
fn an_arrow_that_does_not_run_down_is_found() {
    let table =
        "| rooms of | floors |\n|---|---|\n| `p` | `a` / `b`, `c` + `d` / `e` |\n\n| x | y |";
    let document = Source::new("ARCHITECTURE.md", table);
    let check = |path: &str, text: &str| {
        let root = "mod a; mod b; pub use a::Top; pub use e::{Low, deep::Name as Lower};";
        let files = ["p/src/a.rs", "p/src/b/x.rs", "p/src/c.rs", "p/src/d.rs", "p/src/e.rs"];
        let mut code = vec![Source::new("p/src/lib.rs", root), Source::new(path, text)];
        code.extend(files.map(|file| Source::new(file, "")));
        let plans = rooms::plans(&document);
        assert_eq!(plans.len(), 1);
        lines(&rooms::rooms(&plans[0], &document, &code))
    };
    let upward = [
        ("p/src/b.rs", "use crate::a;"),
        ("p/src/b/y.rs", "use super::super::c::C;"),
        ("p/src/b.rs", "use crate::Top;"),
        ("p/src/e/z.rs", "fn f(x: crate::d::X) {}"),
        ("p/src/e.rs", "mod tests { }\nuse super::b;"),
    ];
    for (path, text) in upward {
        assert_eq!(check(path, text).len(), 1, "{path}: {text}");
    }
    let downward = [
        ("p/src/a.rs", "use crate::{b, c::C, Low, own};"),
        ("p/src/b.rs", "use super::e::E; use crate::b::B; use std::a;"),
        ("p/src/c.rs", "use crate::d; use crate::Lower;"),
        ("p/src/e.rs", "mod tests { use crate::a; }"),
        ("p/src/e/tests.rs", "use crate::a;"),
        ("p/src/e/tests/long.rs", "use crate::a;"),
        ("p/src/main.rs", "use p::a;"),
        ("q/src/e.rs", "use crate::a;"),
    ];
    for (path, text) in downward {
        assert!(check(path, text).is_empty(), "{path}: {text}");
    }
    assert_eq!(check("p/src/f/g.rs", ""), [3]);
    let less = [Source::new("p/src/a.rs", "")];
    assert_eq!(rooms::rooms(&rooms::plans(&document)[0], &document, &less).len(), 4);
}

#[test]
fn names_come_from_trees_and_paths() {
    let text = "pub use a::{self, b::{C, D as E}, f::*};\nlet x = g::h::<u8>::i(j) + k;\nuse l;";
    let names = names(&source(text));
    let found: Vec<_> = names.iter().map(|name| (name.line, &*name.path, name.imported)).collect();
    let imported = ["a", "a::b::C", "a::b::D", "a::f"].map(|path| (1, path, true));
    assert_eq!(found[..4], imported);
    assert_eq!(found[4..], [(2, "g::h", false), (3, "l", true)]);
}

#[test]
fn what_only_looks_like_an_import_is_none() {
    assert!(names(&source("fn f() -> impl Sized + use<'_> { a }\nlet b = c;")).is_empty());
    assert_eq!(names(&source("use {")).len(), 0);
}

#[test]
fn a_name_of_a_forbidden_layer_is_found() {
    let forbidden = [
        ("mpjdev/src/device.rs", "use transport_lapi::adapters::threads;"),
        ("mpjdev/src/device.rs", "use transport_lapi::{Context,\n adapters::shm};"),
        ("mpjdev/src/device.rs", "use transport_lapi::*;"),
        ("mpjdev/src/device.rs", "use transport_lapi as lapi;"),
        ("mpjdev/src/device.rs", "let x = transport_lapi::adapters::threads::job(1);"),
        ("mpjdev/src/matching/index.rs", "use std::time::Instant;"),
        ("mpjdev/src/matching.rs", "use crate::backend::Backend;"),
        ("mpicore/src/group.rs", "use mpjdev::Device;"),
        ("mpicore/src/group/members.rs", "use crate::topology::Cartesian;"),
        ("mpj/examples/ring.rs", "use mpjdev::Device;"),
        ("launcher/src/job.rs", "use transport_lapi::Context;"),
        ("launcher/src/job.rs", "use transport_lapi::adapters::threads;"),
        ("transport-lapi/src/adapters/threads.rs", "use super::shm::ShmAdapter;"),
        ("transport-lapi/src/adapters/shm/wireup.rs", "use crate::adapters::{threads, ring};"),
        ("transport-lapi/src/adapters/shm/wireup.rs", "use super::super::threads;"),
        ("mpj/src/world/testing.rs", "use mpj_launcher::job::run;"),
        ("mpj-macros/src/expansion.rs", "quote!(::mpj::World)"),
    ];
    for (path, text) in forbidden {
        assert_eq!(layering(&Source::new(path, text)).len(), 1, "{path}: {text}");
    }
}

#[test]
fn a_fenced_crate_outside_its_fence_is_found() {
    let text = "\nuse bincode::Encode;\nbincode::encode_to_vec(x);";
    assert_eq!(lines(&fences(&source(text))), [2, 3]);
    assert!(fences(&Source::new("transport-lapi/src/job/bootstrap/control.rs", text)).is_empty());
}

#[test]
fn names_of_allowed_layers_pass() {
    let allowed = [
        ("mpjdev/src/device.rs", "use transport_lapi::{Context, adapter::Adapter};"),
        (
            "mpjdev/src/device.rs",
            "// transport_lapi::adapters\nlet x = \"transport_lapi::adapters\";",
        ),
        ("mpjdev/src/matching/index.rs", "use super::entries; impl std::hash::Hash for Key {}"),
        ("launcher/src/job.rs", "use transport_lapi::adapters::shm::create_segment;"),
        ("launcher/src/job.rs", "use transport_lapi::bootstrap::{control::Control, spawn};"),
        (
            "transport-lapi/src/adapters/threads.rs",
            "use crate::adapters::port; pub(crate) fn f() {}",
        ),
        ("transport-lapi/src/adapters/shm/wireup.rs", "pub(in crate::adapters) fn f() {}"),
        ("transport-lapi/src/adapters/shm/wireup.rs", "mod tests { use super::*; }"),
        ("transport-lapi/src/adapters/shm.rs", "use super::{ring, segment::Segment};"),
        ("mpicore/src/group/range.rs", "use super::GroupError;"),
        ("mpj/src/world.rs", "use mpjdev::Device;"),
        ("mpj/src/world/testing.rs", "use mpj_launcher::testing::Case;"),
    ];
    for (path, text) in allowed {
        assert_eq!(layering(&Source::new(path, text)), [], "{path}: {text}");
    }
}
