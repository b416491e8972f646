//! `mpj-install`, which `cargo mpj install` builds and becomes: installs what was built into the folder of this program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use mpj_install::{Built, TRACE, install};

/// Installs the library of the C face with mpi.h, mpicc, mpicxx, mpiexec and mpi.pc
#[derive(Debug, Parser)]
#[command(name = "cargo mpj install", version, max_term_width = 100)]
struct Options {
    /// Folder to install into, which gets the folders bin, include and lib; it is made if need be
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

fn main() -> ExitCode {
    let prefix = Options::parse().prefix;
    match installed(&prefix) {
        Ok(()) => {
            let text = format!("installed in {0}; the commands are in {0}/bin", prefix.display());
            let _ = writeln!(std::io::stdout(), "{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cargo mpj install: {error}");
            ExitCode::FAILURE
        }
    }
}

fn installed(prefix: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let own = std::env::current_exe()?;
    let built = |name| own.with_file_name(name);
    let [library, trace, mpjrun] = ["libmpi_abi.so", TRACE, "mpjrun"].map(built);
    let built = Built { library, trace, mpjrun };
    Ok(install(&built, prefix)?)
}
