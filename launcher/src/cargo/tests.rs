//! Parsing, and choosing among the targets of a workspace.

use serde_json::{Value, json};

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn metadata() -> Value {
    json!({ "packages": [
        {
            "name": "one", "manifest_path": "/w/one/Cargo.toml", "default_run": null,
            "targets": [
                { "name": "one", "kind": ["lib"] },
                { "name": "shared", "kind": ["example"] },
                { "name": "hello", "kind": ["example"] },
            ],
        },
        {
            "name": "two", "manifest_path": "/w/two/Cargo.toml", "default_run": "main",
            "targets": [
                { "name": "main", "kind": ["bin"] },
                { "name": "side", "kind": ["bin"] },
                { "name": "shared", "kind": ["example"] },
            ],
        },
        {
            "name": "three", "manifest_path": "/w/three/Cargo.toml", "default_run": null,
            "targets": [
                { "name": "left", "kind": ["bin"] },
                { "name": "right", "kind": ["bin"] },
            ],
        },
    ] })
}

fn choice(folder: &str, selection: Selection) -> Result<String, CargoError> {
    let targets = Target::all_of(&metadata(), Path::new(folder)).expect("well-formed");
    choose(&targets, &selection).map(|target| target.to_string())
}

fn named(bin: Option<&str>, example: Option<&str>, package: Option<&str>) -> Selection {
    let text = |word: Option<&str>| word.map(str::to_owned);
    let (bin, example, package) = (text(bin), text(example), text(package));
    Selection { bin, example, package, ..Selection::default() }
}

#[test]
fn the_words_after_bench_are_passed_on() {
    let line = "cargo-mpj mpj bench latency -np 2 --help -- x";
    let Request::Bench("mpj-bench", passed) = parse(words(line)).expect("legal") else {
        panic!("the subcommand is bench");
    };
    assert_eq!(passed, words("latency -np 2 --help -- x"));
}

#[test]
fn the_words_after_tune_are_passed_on() {
    let parsed = parse(words("cargo-mpj mpj tune --dry-run --help")).expect("legal");
    let Request::Bench("mpj-tune", passed) = parsed else { panic!("the subcommand is tune") };
    assert_eq!(passed, words("--dry-run --help"));
}

fn run(line: &str) -> RunRequest {
    match parse(words(&format!("cargo-mpj mpj run {line}"))) {
        Ok(Request::Run(request)) => request,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn options_of_the_job_are_told_from_those_of_cargo() {
    let request = run(
        "-np 3 -vv --mca a b -F one --features two,three -j 2 --release -ppn 4 --example matmul -q \
                       --backend eager -l -Z unstable -genv A b -n4 -- --size 9 -np : --locked",
    );
    assert_eq!(request.selection, named(None, Some("matmul"), None));
    let job = "--np 3 --mca a b --ppn 4 --backend eager -l --genv=A=b -n4";
    let cargo = "-vv -F one --features two,three -j 2 --release -q -Z unstable";
    assert_eq!((request.job, request.cargo), (words(job), words(cargo)));
    assert_eq!(request.args, words("--size 9 -np : --locked"));
}

#[test]
fn a_selection_may_be_spelt_in_many_ways() {
    let expected = Selection {
        manifest_path: Some("d/Cargo.toml".into()),
        target: Some("t".to_owned()),
        ..named(Some("x"), None, Some("two"))
    };
    for line in [
        "--bin x -p two --manifest-path d/Cargo.toml --target t",
        "--bin=x -ptwo --manifest-path=d/Cargo.toml --target=t",
    ] {
        assert_eq!(run(line).selection, expected, "{line}");
    }
}

#[test]
fn what_cargo_starts_is_mpjrun() {
    let line = "cargo-mpj as-mpjrun --np 2 --label d/program a : -n 3 b";
    let Ok(Request::Mpjrun(cli::Request::Run(spec))) = parse(words(line)) else {
        panic!("it is a job")
    };
    assert_eq!((spec.ranks(), spec.output.tag, spec.apps.len()), (2, true, 1));
    assert_eq!(spec.apps[0].args, words("a : -n 3 b"));
}

#[test]
fn wrong_command_lines_are_refused() {
    for line in [
        "cargo-mpj",
        "cargo-mpj mpj",
        "cargo-mpj mpj walk",
        "cargo-mpj mpj run --bin a --example b",
        "cargo-mpj mpj run -n 0",
        "cargo-mpj mpj run -n 4 -N 2",
        "cargo-mpj mpj run -n 1 --bin x : -n 1 --bin y",
    ] {
        parse(words(line)).expect_err(line);
    }
}

#[test]
fn an_example_is_found_from_the_root_without_its_package() {
    let found = choice("/w", named(None, Some("hello"), None)).expect("only one has it");
    assert_eq!(found, "--example hello -p one");
}

#[test]
fn the_package_of_the_folder_comes_first() {
    let shared = || named(None, Some("shared"), None);
    assert_eq!(choice("/w/two/src", shared()).expect("two's"), "--example shared -p two");
    assert_eq!(choice("/w/one", shared()).expect("one's"), "--example shared -p one");
    let error = choice("/w", shared()).expect_err("two packages have it");
    let CargoError::Ambiguous { candidates } = error else { panic!("{error}") };
    assert_eq!(candidates, "--example shared -p one, --example shared -p two");
    let found = choice("/w/two", named(None, Some("hello"), None)).expect("another package's");
    assert_eq!(found, "--example hello -p one");
}

#[test]
fn the_default_or_only_binary_needs_no_name() {
    let package = |name| named(None, None, Some(name));
    assert_eq!(choice("/w", package("two")).expect("its default"), "--bin main -p two");
    assert_eq!(choice("/w/two", named(None, None, None)).expect("default"), "--bin main -p two");
    let error = choice("/w", package("three")).expect_err("neither default nor only");
    let CargoError::Ambiguous { candidates } = error else { panic!("{error}") };
    assert_eq!(candidates, "--bin left -p three, --bin right -p three");
    let error = choice("/w", named(None, None, None)).expect_err("binaries of two packages");
    let CargoError::Ambiguous { candidates } = error else { panic!("{error}") };
    assert!(candidates.starts_with("--bin left -p three, --bin main -p two"), "{candidates}");
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let error = choice("/w", named(None, Some("matmull"), None)).expect_err("misspelt");
    let text = error.to_string();
    assert!(text.starts_with("no example matmull here; there are: --example hello"), "{text}");
    let error = choice("/w", named(Some("x"), None, Some("one"))).expect_err("no binaries");
    assert_eq!(error.to_string(), "no bin x here; there are: none");
    let error = choice("/w", named(None, None, Some("four"))).expect_err("no package");
    assert_eq!(error.to_string(), "no package four in this workspace; there are: one, three, two");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn what_is_not_metadata_is_refused() {
    assert_eq!(Target::all_of(&json!({}), Path::new("/w")), None);
    assert_eq!(Target::all_of(&json!({ "packages": [{}] }), Path::new("/w")), None);
}
