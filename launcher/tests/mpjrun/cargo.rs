//! `cargo mpj run` builds a package as it is told to, and runs what it built.

use std::fs;
use std::path::Path;

use mpj_harness::{Launch, Outcome, command};

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

#[test]
fn a_package_is_built_as_cargo_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = folder.path();
    fs::write(home.join("Cargo.toml"), MANIFEST).expect("a manifest");
    fs::create_dir(home.join("src")).expect("a folder");
    fs::write(home.join("src/main.rs"), PROGRAM).expect("a program");
    run(home, &["--locked"]).expect(101).says("--locked");
    let finished = run(home, &["--features", "loud", "--profile", "small", "-q"]).expect(0);
    assert_eq!(
        (finished.stdout.as_str(), finished.stderr.as_str()),
        ("true false\ntrue false\n", "")
    );
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
    let finished = run(home, &options).expect(7);
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
    let refused = || cargo_mpj().args(["run", "-n", "2"]).set(|command| command.current_dir(home));
    refused().expect(2).says("config.toml names a runner for this target");
    let refused = refused().env("CARGO_BUILD_TARGET", "some-cpu");
    let refused = refused.env("CARGO_TARGET_SOME_CPU_RUNNER", "env").expect(2);
    refused.says("cargo mpj: CARGO_TARGET_SOME_CPU_RUNNER names a runner");
}
