//! Finds the system MPIs and starts their jobs.
//!
//! Peers run as they are installed, with two kinds of settings: those that let a job start at all
//! (as root, or with more ranks than processors), and those that keep the launcher from binding
//! ranks. The worker pins itself to its processor, the same way for every library.

mod build;
mod several;

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::io;
use std::path::{self, Path, PathBuf};
use std::process::{Command, Stdio};

use crate::hosts::Hosts;
pub use several::Network;

/// An MPI installed on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Its name in files: `openmpi`, or `openmpi-5.0.11` if the user gave its path.
    pub id: String,
    /// The absolute path of its compiler.
    pub mpicc: PathBuf,
    /// The absolute path of its launcher.
    pub mpiexec: PathBuf,
    /// Which MPI it is.
    pub flavour: Flavour,
    /// Its version, as its launcher reports it.
    pub version: String,
    /// Its name for readers: `Open MPI 4.1.4`.
    pub label: String,
    /// How its ranks reach other hosts.
    pub network: Network,
}

/// The MPIs that the harness supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    /// Open MPI, 4 and 5.
    OpenMpi,
    /// MPICH, with its launcher Hydra.
    Mpich,
    /// Intel MPI.
    Intel,
    /// The C face of this project, as `cargo mpj install` lays it out.
    Libmpi,
}

/// Why a peer cannot take part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// The name is neither a known name nor a path.
    #[error(
        "no MPI '{0}': give openmpi, mpich, impi, libmpi, a folder that has bin/mpicc, or the path of an mpicc"
    )]
    Unknown(String),
    /// The MPI has a known name but is not on PATH.
    #[error("{} is not on PATH, neither as mpicc.{} nor as mpicc: {}", .0.title(), .0.id(), .0.remedy())]
    NotInstalled(Flavour),
    /// The folder has no compiler.
    #[error("no mpicc in {} or its bin: an MPI's development files are needed", .0.display())]
    NoMpicc(PathBuf),
    /// The compiler has no launcher.
    #[error("no mpiexec and no mpirun beside {}: install the MPI's launcher", .0.display())]
    NoLauncher(PathBuf),
    /// The launcher is of no supported MPI.
    #[error(
        "{} is not from Open MPI, MPICH, Intel MPI or libmpi: it calls itself '{said}'",
        mpiexec.display()
    )]
    Unidentified {
        /// The path of the launcher.
        mpiexec: PathBuf,
        /// The first line of its version text.
        said: String,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The path of the program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Cargo could not build the worker for the MPI of this name, and has printed the reason.
    #[error(
        "the worker for {0} cannot be built, cargo's messages say why; without libclang: apt-get \
         install libclang-dev"
    )]
    Build(String),
}

impl Flavour {
    const ALL: [Self; 4] = [Self::OpenMpi, Self::Mpich, Self::Intel, Self::Libmpi];

    /// Returns its name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Intel => "impi",
            Self::Libmpi => "libmpi",
        }
    }

    /// Returns its name for readers.
    pub fn title(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Intel => "Intel MPI",
            Self::Libmpi => "libmpi",
        }
    }

    fn remedy(self) -> &'static str {
        match self {
            Self::OpenMpi => "apt-get install openmpi-bin libopenmpi-dev, or give its folder",
            Self::Mpich => "apt-get install mpich libmpich-dev, or give its folder",
            Self::Intel => "give its folder",
            Self::Libmpi => "cargo mpj install --prefix DIR, and give DIR",
        }
    }
}

/// Finds the peer called `name`: `openmpi`, `mpich`, `impi` or `libmpi` on PATH; or the path of a folder, its
/// `bin`, or an `mpicc`.
///
/// # Errors
/// The peer is missing or incomplete.
pub fn find(name: &str) -> Result<Peer, PeerError> {
    match Flavour::ALL.into_iter().find(|flavour| flavour.id() == name) {
        Some(flavour) => installed(flavour),
        None => at(name),
    }
}

/// The peer on PATH. Debian, which may have several MPIs, appends a dot and a name.
fn installed(flavour: Flavour) -> Result<Peer, PeerError> {
    let names = [format!("mpicc.{}", flavour.id()), "mpicc".to_owned()];
    let found = names.into_iter().flat_map(|name| which::which_all(name).into_iter().flatten());
    let mut peers = found.filter_map(|mpicc| of_compiler(mpicc).ok());
    let peer = peers.find(|peer| peer.flavour == flavour);
    let peer = peer.ok_or(PeerError::NotInstalled(flavour))?;
    Ok(Peer { id: flavour.id().to_owned(), ..peer })
}

/// The peer at a path.
fn at(name: &str) -> Result<Peer, PeerError> {
    let unknown = |_| PeerError::Unknown(name.to_owned());
    let place = path::absolute(name).map_err(unknown)?;
    if place.is_file() {
        return of_compiler(place);
    }
    if !place.is_dir() {
        return Err(PeerError::Unknown(name.to_owned()));
    }
    let places = [place.join("bin/mpicc"), place.join("mpicc")];
    match places.into_iter().find(|place| place.is_file()) {
        Some(mpicc) => of_compiler(mpicc),
        None => Err(PeerError::NoMpicc(place)),
    }
}

/// The peer of a compiler. Its launcher is in the same folder, and identifies the MPI.
fn of_compiler(mpicc: PathBuf) -> Result<Peer, PeerError> {
    let Some(mpiexec) = launchers(&mpicc).into_iter().find(|launcher| launcher.is_file()) else {
        return Err(PeerError::NoLauncher(mpicc));
    };
    let mut command = Command::new(&mpiexec);
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|source| PeerError::Start { program: mpiexec.clone(), source })?;
    let said = String::from_utf8_lossy(&output.stdout);
    let Some((flavour, version)) = identify(&said) else {
        let said = said.lines().next().unwrap_or_default().trim().to_owned();
        return Err(PeerError::Unidentified { mpiexec, said });
    };
    let id = format!("{}-{version}", flavour.id());
    let label = format!("{} {version}", flavour.title());
    Ok(Peer {
        id,
        mpicc,
        mpiexec,
        flavour,
        version: version.to_owned(),
        label,
        network: Network::Libfabric,
    })
}

/// The possible launchers of `mpicc`: `mpiexec.mpich` for `mpicc.mpich`.
fn launchers(mpicc: &Path) -> [PathBuf; 2] {
    let name = mpicc.file_name().unwrap_or_default().to_string_lossy();
    let suffix = name.strip_prefix("mpicc").unwrap_or_default();
    ["mpiexec", "mpirun"].map(|launcher| mpicc.with_file_name(format!("{launcher}{suffix}")))
}

/// Parses flavour and version from the output of a launcher's `--version`.
fn identify(said: &str) -> Option<(Flavour, &str)> {
    let signs = [
        (Flavour::OpenMpi, "(Open MPI)", "(Open MPI)"),
        (Flavour::OpenMpi, "(OpenRTE)", "(OpenRTE)"),
        (Flavour::Intel, "Intel(R) MPI Library", "Version"),
        (Flavour::Mpich, "HYDRA build details", "Version:"),
        (Flavour::Libmpi, "mpjrun ", "mpjrun "),
    ];
    signs.into_iter().find_map(|(flavour, sign, before_version)| {
        let (_, rest) = said.split_once(sign).filter(|_| said.contains(before_version))?;
        let rest = rest.split_once(before_version).map_or(rest, |(_, rest)| rest);
        Some((flavour, rest.split_whitespace().next()?))
    })
}

impl Peer {
    /// Returns the command that starts `ranks` ranks of `worker` on `hosts`; the caller adds the worker's
    /// arguments.
    pub fn command(&self, ranks: usize, hosts: &Hosts, worker: &Path) -> Command {
        let oversubscribed = hosts.is_oversubscribed(ranks);
        let mut command = Command::new(&self.mpiexec);
        command.envs(self.settings()).args(["-n", &ranks.to_string()]);
        if hosts.are_several() {
            self.over(ranks, hosts, &mut command);
        }
        match self.flavour {
            // By default, Open MPI requires one core per rank; with the second option, one
            // processor is enough.
            Flavour::OpenMpi if !oversubscribed => {
                command.args(["--bind-to", "none", "--use-hwthread-cpus"])
            }
            Flavour::OpenMpi => command.args(["--bind-to", "none", "--oversubscribe"]),
            Flavour::Mpich => command.args(["-bind-to", "none"]),
            Flavour::Intel | Flavour::Libmpi => &mut command,
        };
        command.arg(worker);
        command
    }

    /// The environment variables for its compiler and launcher.
    fn settings(&self) -> Vec<(&'static str, OsString)> {
        match self.flavour {
            Flavour::OpenMpi => vec![
                ("OMPI_ALLOW_RUN_AS_ROOT", "1".into()),
                ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
            ],
            Flavour::Mpich | Flavour::Libmpi => Vec::new(),
            Flavour::Intel => {
                let prefix = self.mpicc.parent().and_then(Path::parent);
                let root = prefix.unwrap_or(Path::new("/")).into();
                vec![("I_MPI_ROOT", root), ("I_MPI_PIN", "off".into())]
            }
        }
    }
}
