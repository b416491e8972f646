//! `mpjrun` as cargo's runner: a test program with `--list` runs once, without a job, so that `cargo test -- --list`
//! and nextest read one list. Called by `mpjrun`.

use std::os::unix::process::CommandExt;
use std::path::Path;

use transport_lapi::config;

use crate::LaunchError;
use crate::job::spawn;
use crate::job::{App, JobSpec};

/// Digits of the hash in the name of cargo's test programs.
const HASH_DIGITS: usize = 16;

/// Whether `spec` is a test program of cargo that is to list its tests.
pub fn is_listing(spec: &JobSpec) -> bool {
    let under_cargo = || ["CARGO", "NEXTEST"].iter().any(|name| config::inherited(name).is_some());
    match spec.apps.as_slice() {
        [app] => asks_for_list(app) && is_test_program(Path::new(&app.program), under_cargo),
        _ => false,
    }
}

fn asks_for_list(app: &App) -> bool {
    app.args.iter().take_while(|word| *word != "--").any(|word| word == "--list")
}

/// Whether `program` is a test program: in a folder `deps`, or with a hash in its name and started by cargo. A name
/// alone proves little.
fn is_test_program(program: &Path, under_cargo: impl Fn() -> bool) -> bool {
    let folder = program.parent().and_then(Path::file_name);
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_hashed = name.rsplit_once('-').is_some_and(|(_, hash)| {
        hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    folder.is_some_and(|name| name == "deps") || (is_hashed && under_cargo())
}

/// Becomes the program of `spec`, with its arguments, variables and folder. Returns only if that fails.
pub fn become_program(spec: &JobSpec) -> LaunchError {
    let prepared = match spawn::check(spec, (0..spec.ranks()).collect()) {
        Ok(prepared) => prepared,
        Err(error) => return error,
    };
    let (rank, program) = prepared.ranks().next().expect("a job has at least one rank");
    program.spawn_failed(rank, program.command().exec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_listing_of(program: &str, args: &[&str]) -> bool {
        let mut app = App::new(4, program);
        app.args = args.iter().map(Into::into).collect();
        is_listing(&JobSpec::new(vec![app]))
    }

    #[test]
    fn a_test_program_asked_for_its_list_is_no_job() {
        assert!(is_listing_of("target/debug/deps/own-1", &["--list", "--format", "terse"]));
        assert!(is_listing_of("/t/debug/deps/own-0123456789abcdef", &["--ignored", "--list"]));
        assert!(!is_listing_of("target/debug/deps/own-1", &["--exact", "a::test"]));
        assert!(!is_listing_of("target/debug/deps/own-1", &["--", "--list"]));
        assert!(!is_listing_of("target/debug/own", &["--list"]));
        assert!(!is_listing_of("deps", &["--list"]));
    }

    #[test]
    fn elsewhere_the_name_counts_only_under_cargo() {
        let hashed = Path::new("/t/own/out/own-0123456789abcdef");
        assert!(is_test_program(hashed, || true));
        assert!(!is_test_program(hashed, || false));
        assert!(!is_test_program(Path::new("/t/own/out/own-0123456789abcdeg"), || true));
        assert!(!is_test_program(Path::new("/t/own/out/own-12"), || true));
    }
}
