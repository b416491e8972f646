//! Starts further ranks while the job runs (MPI-4.1 section 11.8).
//!
//! Ranks that are spawned have a [`World`](crate::World) of their own, and an intercommunicator with those that have spawned
//! them: [`World::parents`](crate::World::parents). The launcher starts them. By default a job of one host has room for 512 of
//! them; `mpjrun --universe N` states the number of all ranks that it can have.
//!
//! ```no_run
//! use mpj::spawn::Command;
//! let world = mpj::init()?;
//! match world.parents() {
//!     None => {
//!         // All ranks call it; the arguments of rank 0 count.
//!         let program = std::env::current_exe().expect("a program has a file");
//!         let workers = Command::new(program).ranks(4).spawn(&world, 0)?;
//!         assert_eq!(workers.remote_size(), 4);
//!         workers.barrier()?;
//!     }
//!     Some(parents) => parents.barrier()?,
//! }
//! # Ok::<(), mpj::Error>(())
//! ```

use std::ffi::OsStr;
use std::path::Path;

use mpicore::worlds::Program;

use super::{Communicator, InterCommunicator};
use crate::error::Error;
use crate::group::narrowed;

/// A program that ranks start as further ranks of their job, in the manner of [`std::process::Command`].
///
/// ```
/// use mpj::spawn::Command;
/// let mut solver = Command::new("solver");
/// solver.args(["--tolerance", "1e-9"]).env("THREADS", "1").current_dir("/tmp").ranks(4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    program: Program,
    /// The least number of ranks, if fewer will do.
    least: Option<u32>,
}

/// The most ranks of a job on one host, so that more are never spawned.
const MOST: u32 = 256;

fn bytes(text: &OsStr) -> Vec<u8> {
    text.as_encoded_bytes().to_vec()
}

impl Command {
    /// Names the program: by a path, or by a name that the launcher looks up in its PATH. It gets one rank, no arguments,
    /// and the launcher's environment, and starts in the folder of the rank that spawns it.
    ///
    /// ```
    /// let worker = mpj::spawn::Command::new("./worker");
    /// ```
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let command = bytes(program.as_ref());
        Self { program: Program { command, ranks: 1, ..Program::default() }, least: None }
    }

    /// Adds an argument.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").arg("--quiet");
    /// ```
    pub fn arg(&mut self, argument: impl AsRef<OsStr>) -> &mut Self {
        self.program.arguments.push(bytes(argument.as_ref()));
        self
    }

    /// Adds arguments.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").args(["--depth", "3"]);
    /// ```
    pub fn args(&mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        arguments.into_iter().for_each(|argument| {
            self.arg(argument);
        });
        self
    }

    /// Sets a variable in the environment of the new ranks.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").env("RUST_BACKTRACE", "1");
    /// ```
    pub fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.program.variables.push((bytes(name.as_ref()), bytes(value.as_ref())));
        self
    }

    /// Sets the folder that the new ranks start in.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").current_dir("/tmp");
    /// ```
    pub fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.program.folder = Some(bytes(folder.as_ref().as_os_str()));
        self
    }

    /// Sets the number of ranks; 1 if this is not called.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").ranks(8);
    /// ```
    pub fn ranks(&mut self, ranks: usize) -> &mut Self {
        self.program.ranks = narrowed(ranks);
        self
    }

    /// Allows fewer ranks, down to `least`, where the job has no room for all: the `soft` hint of MPI.
    /// [`InterCommunicator::remote_size`] tells how many there are.
    ///
    /// ```
    /// mpj::spawn::Command::new("worker").ranks(8).at_least(2);
    /// ```
    pub fn at_least(&mut self, least: usize) -> &mut Self {
        self.least = Some(narrowed(least.max(1)));
        self
    }

    /// Starts the ranks, and returns the intercommunicator with them when they have joined the job (MPI_Comm_spawn). All
    /// ranks of `comm` call it; what rank `root` gives counts.
    ///
    /// # Errors
    /// [`ErrorClass::Spawn`](crate::ErrorClass::Spawn) on all ranks: there is no such program; the job has no room for the
    /// ranks, or runs on several hosts; `mpjrun` has not started it. As [`Communicator::create_inter`].
    ///
    /// ```no_run
    /// # let world = mpj::init()?;
    /// let workers = mpj::spawn::Command::new("worker").ranks(2).spawn(&world, 0)?;
    /// workers.send(&[1.5], 0, 0)?;
    /// # Ok::<(), mpj::Error>(())
    /// ```
    #[doc(alias = "MPI_Comm_spawn")]
    pub fn spawn(&self, comm: &Communicator, root: usize) -> Result<InterCommunicator, Error> {
        spawn_all(std::slice::from_ref(self), comm, root)
    }
}

/// Starts several programs as one world (MPI_Comm_spawn_multiple): their ranks are numbered through them in this order. All
/// ranks of `comm` call it; what rank `root` gives counts.
///
/// # Errors
/// As [`Command::spawn`].
///
/// ```no_run
/// use mpj::spawn::{Command, spawn_all};
/// # let world = mpj::init()?;
/// let others = spawn_all(&[Command::new("reader"), Command::new("writer")], &world, 0)?;
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias = "MPI_Comm_spawn_multiple")]
pub fn spawn_all(
    commands: &[Command],
    comm: &Communicator,
    root: usize,
) -> Result<InterCommunicator, Error> {
    let program = |Command { program, least }: &Command| Program {
        or_fewer: least
            .map_or(Vec::new(), |least| (least..program.ranks.min(MOST + 1)).rev().collect()),
        ..program.clone()
    };
    let programs: Vec<_> = commands.iter().map(program).collect();
    let asked = programs.iter().map(|program| program.ranks.into()).collect();
    let spawned = comm.core.spawn(narrowed(root), Ok(programs), asked);
    let made = spawned.map(|spawned| spawned.communicator).map_err(|(error, _)| error);
    comm.made(made).map(|communicator| InterCommunicator { communicator })
}
