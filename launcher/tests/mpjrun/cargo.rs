//! `cargo mpj run` builds a package with cargo's options, and runs it as a job.

use std::fs;
use std::path::Path;

use mpj_harness::{Launch, Outcome, command};
use tempfile::TempDir;

const MANIFEST: &str = "[package]\nname = \"speaker\"\nedition = \"2021\"\n[features]\nloud = []\n\
                        [profile.small]\ninherits = \"release\"\n[workspace]\n";
const PROGRAM: &str = "fn main() {\n    let checked = cfg!(debug_assertions);\n    \
                       println!(\"{} {checked}\", cfg!(feature = \"loud\"));\n}\n";

fn cargo_mpj() -> Launch {
    command(env!("CARGO_BIN_EXE_cargo-mpj")).args(["mpj"])
}

/// Runs `cargo mpj run` on the package in `folder`, whose programs go into a folder of their own.
#[track_caller]
fn run(folder: &Path, options: &[&str]) -> Outcome {
    let run = cargo_mpj().args(["run", "-n", "2", "--offline", "--manifest-path"]);
    let run = run.args([folder.join("Cargo.toml")]).args(["--target-dir"]);
    run.args([folder.join("built")]).args(options).run()
}

/// A package in a folder of its own, with this program.
fn package(program: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("Cargo.toml"), MANIFEST).expect("a manifest");
    fs::create_dir(folder.path().join("src")).expect("a folder");
    fs::write(folder.path().join("src/main.rs"), program).expect("a program");
    folder
}

/// Writes the configuration of cargo for `folder`.
fn configure(folder: &Path, text: &str) {
    fs::create_dir_all(folder.join(".cargo")).expect("a folder");
    fs::write(folder.join(".cargo/config.toml"), text).expect("a file");
}

#[test]
fn a_package_is_built_as_cargo_is_told() {
    let folder = package(PROGRAM);
    let home = folder.path();
    run(home, &["--locked"]).expect(101).says("--locked");
    let finished = run(home, &["--features", "loud", "--profile", "small", "-q"]).expect(0);
    let said = (finished.stdout.as_str(), finished.stderr.as_str());
    assert_eq!(said, ("true false\ntrue false\n", ""));
    let built = home.join("built/small/speaker");
    assert!(built.is_file(), "{finished:?}");
}

#[test]
fn the_job_has_its_options_and_the_program_its_arguments() {
    let folder = package(
        "fn main() { println!(\"{:?}\", std::env::args().skip(1).collect::<Vec<_>>()); std::process::exit(7) }",
    );
    let options = ["-q", "-l", "--on-failure", "keep"];
    // As with `cargo run`, arguments may also stand without dashes before them.
    for (args, said) in [
        (["--", "-n", ":", "a b"], "[\"-n\", \":\", \"a b\"]"),
        (["a b", "c", "-n", "2"], "[\"a b\", \"c\"]"),
    ] {
        let finished = run(folder.path(), &[&options[..], &args].concat()).expect(7);
        assert_eq!(finished.sorted_lines(), [format!("[0] {said}"), format!("[1] {said}")]);
    }
}

#[test]
fn a_runner_of_the_users_own_is_refused() {
    let folder = package(PROGRAM);
    let home = folder.path();
    let command = || {
        let command = cargo_mpj().args(["run", "-n", "2", "--offline"]);
        command.set(|command| command.current_dir(home))
    };
    let refused = |command: Launch, place: &str| {
        command.expect(2).says(&format!("cargo mpj: {place} names a runner, but"));
    };
    let variable = "CARGO_TARGET_SOME_CPU_RUNNER";
    let by_variable = command().env("CARGO_BUILD_TARGET", "some-cpu").env(variable, "env");
    refused(by_variable, variable);
    let file = home.join(".cargo/config.toml");
    let file = file.to_str().expect("it is text");
    let (target, build) = ("[target.some-cpu]\nrunner = 'env'\n", "build.target = ['some-cpu']\n");
    let in_file = format!("target.some-cpu in {file}");
    configure(home, &format!("{build}{target}"));
    refused(command(), &in_file);
    configure(home, target);
    refused(command().args(["--target", "some-cpu"]), &in_file);
    refused(command().args(["--config", build]), &in_file);
    configure(home, "[target.'cfg(unix)']\nrunner = ['env']\n");
    let in_file = "target.cfg(unix) in";
    refused(command(), &format!("{in_file} {file}"));
    fs::rename(file, home.join("other.toml")).expect("it is there");
    refused(command().args(["--config=other.toml"]), &format!("{in_file} --config other.toml"));
    let word = "target.some-cpu.runner='env'";
    let by_word = command().args(["--target=some-cpu", "--config", word]);
    refused(by_word, &format!("target.some-cpu in --config {word}"));
}

#[test]
fn words_of_the_program_and_runners_of_other_targets_do_not_matter() {
    let folder = package(PROGRAM);
    let home = folder.path();
    configure(home, "[target.some-cpu]\nrunner = 'env'\n");
    // Cargo takes all words behind the first one for the program's.
    let finished = run(home, &["-q", "word", "--target", "other-cpu"]).expect(0);
    assert_eq!(finished.stdout, "false true\nfalse true\n");
}
