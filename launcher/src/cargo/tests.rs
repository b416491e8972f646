//! What the command line of `cargo mpj` accepts and refuses.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
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
    let job = "--np 3 --mca a b --ppn 4 --backend eager -l --genv=A=b -n4";
    let cargo = "-vv -F one --features two,three -j 2 --release --example matmul -q -Z unstable";
    assert_eq!((request.job, request.cargo), (words(job), words(cargo)));
    assert_eq!(request.args, words("--size 9 -np : --locked"));
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
