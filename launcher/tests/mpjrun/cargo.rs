//! `cargo mpj run` builds a package with cargo's options, and runs it as a job.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{Finished, start};

const MANIFEST: &str = "[package]\nname = \"speaker\"\nedition = \"2021\"\n[features]\nloud = []\n\
                        [profile.small]\ninherits = \"release\"\n[workspace]\n";
const PROGRAM: &str = "fn main() {\n    let checked = cfg!(debug_assertions);\n    \
                       println!(\"{} {checked}\", cfg!(feature = \"loud\"));\n}\n";

/// Runs `cargo mpj run` on the package in `folder`, whose programs go into a folder of their own.
#[track_caller]
fn run(folder: &Path, options: &[&str]) -> Finished {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-mpj"));
    command.args(["mpj", "run", "-n", "2", "--offline", "--manifest-path"]);
    command.arg(folder.join("Cargo.toml")).arg("--target-dir").arg(folder.join("built"));
    command.args(options).stdin(Stdio::null()).env("MPJ_TUNING", "none");
    start(&mut command).finish()
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
    run(home, &["--locked"]).assert_code(101).assert_says("--locked");
    let finished = run(home, &["--features", "loud", "--profile", "small", "-q"]).assert_code(0);
    assert_eq!((finished.text().as_str(), finished.err.as_str()), ("true false\ntrue false\n", ""));
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
        let finished = run(folder.path(), &[&options[..], &args].concat()).assert_code(7);
        assert_eq!(finished.sorted_lines(), [format!("[0] {said}"), format!("[1] {said}")]);
    }
}

#[test]
fn a_runner_of_the_users_own_is_refused() {
    let folder = package(PROGRAM);
    let home = folder.path();
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-mpj"));
        command.args(["mpj", "run", "-n", "2", "--offline"]);
        command.current_dir(home).stdin(Stdio::null());
        command
    };
    let mut by_variable = command();
    by_variable.env("CARGO_BUILD_TARGET", "some-cpu").env("CARGO_TARGET_SOME_CPU_RUNNER", "env");
    start(&mut by_variable)
        .finish()
        .assert_code(2)
        .assert_says("cargo mpj: CARGO_TARGET_SOME_CPU_RUNNER names a runner for this target");
    let target = "[target.some-cpu]\nrunner = 'env'\n";
    configure(home, &format!("{target}[build]\ntarget = 'some-cpu'\n"));
    let refusal = "config.toml names a runner for this target";
    start(&mut command()).finish().assert_code(2).assert_says(refusal);
    configure(home, target);
    let mut for_another = command();
    for_another.args(["--target", "some-cpu"]);
    start(&mut for_another).finish().assert_code(2).assert_says(refusal);
    configure(home, "[target.'cfg(unix)']\nrunner = 'env'\n");
    start(&mut command()).finish().assert_code(101).assert_says("cfg(unix)");
}
