//! Parsing, and choosing among the targets of a workspace.

use serde_json::json;

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
    let Request::Bench(passed) = parse(words(line)).expect("legal") else {
        panic!("the subcommand is bench");
    };
    assert_eq!(passed, words("latency -np 2 --help -- x"));
}

#[test]
fn the_words_after_tune_are_passed_on() {
    let parsed = parse(words("cargo-mpj mpj tune --dry-run --help")).expect("legal");
    let Request::Tune(passed) = parsed else { panic!("the subcommand is tune") };
    assert_eq!(passed, words("--dry-run --help"));
}

#[test]
fn the_command_line_of_cargo() {
    let line = "cargo-mpj mpj run -np 3 --mca a b --release --example matmul --backend eager -l -- --size 9 -np";
    let Request::Run(request) = parse(words(line)).expect("legal") else {
        panic!("the subcommand is run");
    };
    let expected = Selection { release: true, ..named(None, Some("matmul"), None) };
    assert_eq!(request.selection, expected);
    assert_eq!(request.args, words("--size 9 -np"));
    let spec = request.options.one_program("prog".into(), request.args, request.notes);
    let spec = spec.expect("legal");
    assert_eq!((spec.ranks(), spec.output.tag), (3, true));
    assert_eq!(spec.notes, ["--mca a b is not needed"]);
}

#[test]
fn options_of_cargo_build_are_passed_on() {
    let line = "cargo-mpj mpj run -vv -q --offline --mca a b -F one --features two,three -n 2 -j 2 \
                --profile small --manifest-path /w/two/Cargo.toml --bin=x -Z unstable -- --locked";
    let Request::Run(request) = parse(words(line)).expect("legal") else {
        panic!("the subcommand is run");
    };
    let to_build = "--features=one --features=two,three --profile=small --jobs=2 --verbose --verbose \
                    --quiet --manifest-path=/w/two/Cargo.toml --offline -Zunstable";
    let to_metadata = "--manifest-path=/w/two/Cargo.toml --offline -Zunstable";
    let PassedOn { to_build: built, to_metadata: asked, .. } = &request.selection.passed_on;
    assert_eq!((built, asked), (&words(to_build), &words(to_metadata)));
    let folder = request.selection.passed_on.folder(Path::new("/elsewhere"));
    assert_eq!((folder, request.args), (PathBuf::from("/w/two"), words("--locked")));
}

#[test]
fn the_folder_is_that_of_the_manifest() {
    let folder = |line: &str| {
        let parsed = parse(words(&format!("cargo-mpj mpj run {line}")));
        let Ok(Request::Run(request)) = parsed else { panic!("{line} is legal") };
        request.selection.passed_on.folder(Path::new("/w"))
    };
    assert_eq!(folder("--release"), Path::new("/w"));
    assert_eq!(folder("--manifest-path one/Cargo.toml"), Path::new("/w/one"));
    assert_eq!(folder("--manifest-path Cargo.toml"), Path::new("/w"));
    assert_eq!(folder("--manifest-path=/v/Cargo.toml"), Path::new("/v"));
}

#[test]
fn a_misspelt_option_gets_a_hint() {
    for (word, meant) in [("--ofline", "'--offline'"), ("--bakend", "'--backend'")] {
        let line = format!("cargo-mpj mpj run {word}");
        let text = parse(words(&line)).expect_err(word).to_string();
        assert!(text.contains(meant), "{text}");
    }
}

#[test]
fn a_word_that_is_no_option_gets_another_hint() {
    for (line, hint) in [
        ("-n 2 --release hello", "its arguments follow `--`"),
        ("-n 1 --bin x : -n 1 --bin y", "several programs in one job are for mpjrun"),
    ] {
        let error = parse(words(&format!("cargo-mpj mpj run {line}"))).expect_err(line);
        let text = error.to_string();
        assert!(text.contains(hint) && !text.contains("similar"), "{text}");
    }
}

#[test]
fn a_colon_among_the_arguments_is_noted() {
    let notes = |line: &str| {
        let parsed = parse(words(&format!("cargo-mpj mpj run {line}")));
        let Ok(Request::Run(request)) = parsed else { panic!("{line} is legal") };
        request.notes
    };
    let noted = notes("-n 1 --bin x -- hello : -n 1 --bin x -- hello");
    assert!(noted.len() == 1 && noted[0].contains("mpjrun -n N A : -n M B"), "{noted:?}");
    assert_eq!(notes("-n 1 --bin x -- a:b"), [""; 0]);
}

#[test]
fn wrong_command_lines_are_refused() {
    for line in [
        "cargo-mpj",
        "cargo-mpj mpj",
        "cargo-mpj mpj walk",
        "cargo-mpj mpj run --bin a --example b",
        "cargo-mpj mpj run -n 0",
        "cargo-mpj mpj run --exampel hello",
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
fn the_executable_is_read_from_cargos_messages() {
    let target = Target {
        package: "one".to_owned(),
        kind: Kind::Example,
        name: "hello".to_owned(),
        is_default: false,
        is_here: false,
    };
    let line = |name, kind, executable: Value| {
        let target = json!({ "name": name, "kind": [kind] });
        json!({ "reason": "compiler-artifact", "target": target, "executable": executable })
            .to_string()
    };
    let found = executable_in(&line("hello", "example", json!("/t/hello")), &target);
    assert_eq!(found, Some(PathBuf::from("/t/hello")));
    for other in [
        line("hello", "bin", json!("/t/hello")),
        line("other", "example", json!("/t/other")),
        line("hello", "example", Value::Null),
        "not json".to_owned(),
        "{}".to_owned(),
    ] {
        assert_eq!(executable_in(&other, &target), None, "{other}");
    }
}

#[test]
fn what_is_not_metadata_is_refused() {
    assert_eq!(Target::all_of(&json!({}), Path::new("/w")), None);
    assert_eq!(Target::all_of(&json!({ "packages": [{}] }), Path::new("/w")), None);
}
