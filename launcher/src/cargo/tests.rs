//! What the command line of `cargo mpj` accepts and refuses.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

#[test]
fn the_words_after_the_name_of_a_tool_are_passed_on() {
    let tools =
        [("bench", BENCH, "latency -np 2 --help -- x"), ("install", INSTALL, "--prefix d --help")];
    for (name, tool, words_behind) in tools {
        let parsed = parse(words(&format!("cargo-mpj mpj {name} {words_behind}")));
        let Ok(Request::Become(found, passed)) = parsed else { panic!("{name} is a tool") };
        assert_eq!((found, passed), (tool, words(words_behind)));
    }
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
    let job = "--np 3 --mca a b --ppn 4 --backend eager -l --genv=A=b -n4";
    let cargo = "-vv -F one --features two,three -j 2 --release --example matmul -q -Z unstable";
    assert_eq!((request.job, request.cargo), (words(job), words(cargo)));
    assert_eq!(request.args, words("--size 9 -np : --locked"));
}

/// Both have this option: with the name of a profile, it is cargo's.
#[test]
fn a_profile_of_cargo_is_told_from_that_of_the_job() {
    for (line, job, cargo) in [
        ("--profile small -q", "", "--profile small -q"),
        ("-q --profile=small", "", "--profile=small -q"),
        ("--profile --release", "--profile", "--release"),
        ("--release --profile", "--profile", "--release"),
        ("--profile=p.html --profile small", "--profile=p.html", "--profile small"),
    ] {
        let request = run(line);
        assert_eq!((request.job, request.cargo), (words(job), words(cargo)), "{line}");
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
        "cargo-mpj mpj run -n 0",
        "cargo-mpj mpj run -n 4 -N 2",
        "cargo-mpj mpj run -n 1 --bin x : -n 1 --bin y",
    ] {
        parse(words(line)).expect_err(line);
    }
}
