//! Builds the programs under test on first use, once per test process, with the profile and into the target folder of
//! the running test. Cargo does not hold its lock while tests run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// The path of the launcher, which is built if need be.
///
/// # Panics
/// When it cannot be built.
pub fn mpjrun_path() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--bin", "mpjrun", "--bin", "cargo-mpj"]));
    profile_folder().join("mpjrun")
}

/// The path of an example program of any package, which is built if need be.
///
/// # Panics
/// When it cannot be built, or there is none of this name.
pub fn example(name: &str) -> PathBuf {
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().expect("the examples before it could be built");
    if built.insert(name.to_owned()) {
        build(&["--example", name]);
    }
    profile_folder().join("examples").join(name)
}

/// The path of the C face's shared library, which is built if need be.
///
/// # Panics
/// When it cannot be built.
pub fn libmpi() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    // A macro package that is built for itself, and not for a library, differs in what it has for debuggers.
    BUILT.get_or_init(|| build(&["--exclude", "mpj-macros", "--lib"]));
    profile_folder().join("libmpi_abi.so")
}

/// The path of the library that records the calls of programs in C, which is built if need be.
///
/// # Panics
/// When it cannot be built.
pub fn libmpi_trace() -> PathBuf {
    libmpi().with_file_name("libmpj_trace.so")
}

/// Root of the workspace.
pub fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().and_then(Path::parent).expect("the package lies two folders deep")
}

fn build(selection: &[&str]) {
    let folder = profile_folder();
    let target = folder.parent().expect("the profile has a folder inside the target folder");
    // Only the folder `debug` is not named after its profile.
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        None | Some("debug") => "dev",
        Some(name) => name,
    };
    let mut command = Command::new(env!("CARGO"));
    // Of the whole workspace, since the features of its dependencies follow from what is selected: so
    // `cargo test --workspace` has compiled them already.
    command.current_dir(workspace()).args([
        "build",
        "--workspace",
        "--quiet",
        "--profile",
        profile,
    ]);
    command.arg("--target-dir").arg(target).args(selection);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
}

/// The folder of the running test's profile: tests are built into its `deps`.
pub(crate) fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test knows its own path");
    let deps = test.parent().expect("a program lies in a folder");
    deps.parent().expect("deps lies in the folder of the profile").to_owned()
}
