//! Lays out an installation of the C face, as build systems expect one of MPI. Called by `cargo mpj install`.
//!
//! ```text
//!  PREFIX/lib/       libmpi_abi.so.1, with the links libmpi_abi.so and libmpi.so; libmpj_trace.so
//!         lib/pkgconfig/mpi.pc
//!         include/   mpi.h
//!         bin/       mpicc, mpicxx, mpic++, mpjrun, with the links mpiexec and mpirun
//! ```
//!
//! Everything finds the other parts from its own place, so an installation can be moved as a whole. Programs that were
//! built before still look for the library in the old place.
//!
//! Each file is written under another name first and then renamed, since running programs may have the old one open.

#![forbid(unsafe_code)]

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// The name of the library that programs load, which the standard's binary interface implies (MPI-5.0 chapter 20).
pub const LIBRARY: &str = "libmpi_abi.so.1";

/// The name of the library that records calls, which `mpjrun` looks for beside the other one.
pub const TRACE: &str = "libmpj_trace.so";

/// The script of the compiler wrappers. `@COMPILER@` and `@VARIABLE@` stand for the compiler that is called, and for the
/// variable that names another one.
const WRAPPER: &str = include_str!("wrapper.sh");

/// The description for pkg-config, which itself quotes the name of the file's folder.
const PKG_CONFIG: &str = "\
prefix=${pcfiledir}/../..
includedir=${prefix}/include
libdir=${prefix}/lib

Name: mpi
Description: MPI in Rust over active messages, with the standard's binary interface
Version: @VERSION@
Cflags: -I${includedir}
Libs: -L${libdir} -Wl,-rpath,${libdir} -lmpi_abi
";

/// What is installed and had to be built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The shared library.
    pub library: PathBuf,
    /// The library that records calls.
    pub trace: PathBuf,
    /// The launcher.
    pub mpjrun: PathBuf,
}

/// Why something could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct InstallError {
    /// What was tried.
    action: &'static str,
    /// The file or folder.
    path: PathBuf,
    /// The error of the system.
    source: io::Error,
}

/// Installs the C face under `prefix`, a folder that is made if need be; replaces an older installation there.
///
/// # Errors
/// [`InstallError`], which names the first file or folder that could not be made.
pub fn install(built: &Built, prefix: &Path) -> Result<(), InstallError> {
    let folders @ [lib, pkg_config, include, bin] =
        &["lib", "lib/pkgconfig", "include", "bin"].map(|name| prefix.join(name));
    for folder in folders {
        fs::create_dir_all(folder).map_err(failed("make", folder))?;
    }
    let copied = |from: &Path, to: &Path| replace(to, |new| fs::copy(from, new).map(drop));
    let link = |to: &str, at: &Path| replace(at, |new| symlink(to, new));
    copied(&built.library, &lib.join(LIBRARY))?;
    copied(&built.trace, &lib.join(TRACE))?;
    // The second is for build systems that look for -lmpi.
    for name in ["libmpi_abi.so", "libmpi.so"] {
        link(LIBRARY, &lib.join(name))?;
    }
    let header = mpj_abi::header(&mpj_abi::table());
    replace(&include.join("mpi.h"), |new| fs::write(new, header))?;
    let text = PKG_CONFIG.replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    replace(&pkg_config.join("mpi.pc"), |new| fs::write(new, text))?;
    copied(&built.mpjrun, &bin.join("mpjrun"))?;
    for name in ["mpiexec", "mpirun"] {
        link("mpjrun", &bin.join(name))?;
    }
    for (name, compiler, variable) in [("mpicc", "cc", "MPJ_CC"), ("mpicxx", "c++", "MPJ_CXX")] {
        let script = WRAPPER.replace("@COMPILER@", compiler).replace("@VARIABLE@", variable);
        replace(&bin.join(name), |new| {
            fs::write(new, script)?;
            fs::set_permissions(new, Permissions::from_mode(0o755))
        })?;
    }
    link("mpicxx", &bin.join("mpic++"))
}

/// Makes a file under another name beside it, and renames it.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), InstallError> {
    let new = path.with_extension("new");
    // What an interrupted installation has left.
    let _ = fs::remove_file(&new);
    make(&new).map_err(failed("make", path))?;
    fs::rename(&new, path).map_err(failed("replace", path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> InstallError {
    move |source| InstallError { action, path: path.to_owned(), source }
}
