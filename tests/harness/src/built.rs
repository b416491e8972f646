//! Builds the programs under test on first use, once per test process, with the profile and into the target folder of
//! the running test. Cargo does not hold its lock while tests run.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the launcher, which is built if need be.
///
/// # Panics
/// When it cannot be built.
pub fn mpjrun_path() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "mpj-launcher", "--bins"]));
    profile_folder().join("mpjrun")
}

/// The path of an example program of `mpj`, which is built if need be.
///
/// # Panics
/// When the examples cannot be built, or there is none of this name.
pub fn example(name: &str) -> PathBuf {
    // With the features of mpj that the tests use, so that nothing is compiled twice.
    example_of(&["--package", "mpj", "--features", "ndarray,test", "--examples"], name)
}

/// [`example`] of a package that has no features. A test process asks for the examples of one package only.
///
/// # Panics
/// As there.
pub fn example_of_package(package: &str, name: &str) -> PathBuf {
    example_of(&["--package", package, "--examples"], name)
}

fn example_of(selection: &[&str], name: &str) -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(selection));
    let path = profile_folder().join("examples").join(name);
    assert!(path.is_file(), "there is no example {name}: {} is missing", path.display());
    path
}

/// The path of the C face's shared library, which is built if need be.
///
/// # Panics
/// When it cannot be built.
pub fn libmpi() -> PathBuf {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| build(&["--package", "mpj-libmpi"]));
    profile_folder().join("libmpi_abi.so")
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
    command.current_dir(workspace()).args(["build", "--quiet", "--profile", profile]);
    command.arg("--target-dir").arg(target).args(selection);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{messages}");
}

/// The folder of the running test's profile: tests are built into its `deps`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a running test knows its own path");
    let deps = test.parent().expect("a program lies in a folder");
    deps.parent().expect("deps lies in the folder of the profile").to_owned()
}
