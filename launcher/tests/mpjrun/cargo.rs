//! `cargo mpj run` builds a package as it is told to, and runs what it built.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

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

#[test]
fn a_package_is_built_as_cargo_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    fs::write(home.join("Cargo.toml"), MANIFEST).expect("a manifest");
    fs::create_dir(home.join("src")).expect("a folder");
    fs::write(home.join("src/main.rs"), PROGRAM).expect("a program");
    run(home, &["--locked"]).assert_code(101).assert_says("--locked");
    let finished = run(home, &["--features", "loud", "--profile", "small", "-q"]).assert_code(0);
    assert_eq!((finished.text().as_str(), finished.err.as_str()), ("true false\ntrue false\n", ""));
    let built = home.join("built/small/speaker");
    assert!(built.is_file(), "{finished:?}");
}

#[test]
fn the_job_has_its_options_and_the_program_its_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    let program = "fn main() { println!(\"{:?}\", std::env::args().skip(1).collect::<Vec<_>>()); std::process::exit(7) }";
    fs::write(home.join("Cargo.toml"), MANIFEST).expect("a manifest");
    fs::create_dir(home.join("src")).expect("a folder");
    fs::write(home.join("src/main.rs"), program).expect("a program");
    let options = ["-q", "-l", "--on-failure", "keep", "--", "-n", ":", "a b"];
    let finished = run(home, &options).assert_code(7);
    let said = "[\"-n\", \":\", \"a b\"]";
    assert_eq!(finished.sorted_lines(), [format!("[0] {said}"), format!("[1] {said}")]);
}

#[test]
fn a_runner_of_the_users_own_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    fs::create_dir(home.join(".cargo")).expect("a folder");
    fs::write(home.join(".cargo/config.toml"), "[target.'cfg(unix)']\nrunner = 'env'\n")
        .expect("a file");
    let refused = |command: &mut Command| {
        command.args(["mpj", "run", "-n", "2"]).current_dir(home).stdin(Stdio::null());
        start(command).finish().assert_code(2)
    };
    let program = env!("CARGO_BIN_EXE_cargo-mpj");
    refused(&mut Command::new(program)).assert_says("config.toml names a runner for this target");
    let mut command = Command::new(program);
    command.env("CARGO_BUILD_TARGET", "some-cpu").env("CARGO_TARGET_SOME_CPU_RUNNER", "env");
    refused(&mut command).assert_says("cargo mpj: CARGO_TARGET_SOME_CPU_RUNNER names a runner");
}
