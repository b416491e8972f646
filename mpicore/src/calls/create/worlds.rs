//! Communicators of ranks that had none in common (MPI-4.1 chapter 11): ranks spawn others, and groups meet at ports.
//!
//! The launcher starts what a rank spawns, and keeps the names of ports and services. Everything else is a matter of the
//! ranks: the leaders of two groups make a communicator of their own, by a text that only they have, and with it an
//! intercommunicator of both groups. So the two groups may belong to any worlds of the job.
//! `worlds/ports.rs` has the ports and the names.
//!
//! - MW1: all ranks of a group learn whether their leader has failed, so none waits for it.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use mpjdev::Call;
use transport_lapi::bootstrap::control::agents::HostProgram;
use transport_lapi::bootstrap::control::demand::{Answer, Demand, SpawnProgram};
use transport_lapi::config;

use super::RemoteLeader;
use crate::communicator::Communicator;
use crate::error::{Error, WorldError};
use crate::group::Group;
use crate::process::{Process, fingerprint, job};

mod ports;

pub use ports::{lookup_name, open_port, publish_name, unpublish_name};

/// A program that ranks spawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Its file, or a name that the launcher looks up in `path` and in PATH.
    pub command: Vec<u8>,
    /// Its arguments, without its name.
    pub arguments: Vec<Vec<u8>>,
    /// The number of its ranks.
    pub ranks: u32,
    /// Smaller numbers that will do, in falling order.
    pub or_fewer: Vec<u32>,
    /// The folder that it starts in; that of the root if `None`.
    pub folder: Option<Vec<u8>>,
    /// Folders, with colons between them, where it is looked up first.
    pub path: Vec<u8>,
    /// Variables that it gets beside those of the launcher.
    pub variables: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What [`Communicator::spawn`] has started.
#[derive(Debug)]
pub struct Spawned {
    /// The intercommunicator with the new ranks as remote group.
    pub communicator: Communicator,
    /// For each program, in order: the number of its ranks, and how many were asked for.
    pub counts: Vec<(u64, u64)>,
}

/// How many connections this process has begun.
static CONNECTIONS: AtomicU64 = AtomicU64::new(0);

impl Communicator {
    /// Starts further ranks, and returns the intercommunicator with them when all have joined the job: MPI_Comm_spawn and
    /// MPI_Comm_spawn_multiple. Collective on an intracommunicator. Only `root` uses the programs, or the reason why there
    /// are none, and the number of ranks that the caller has `asked` for of each.
    ///
    /// # Errors
    /// [`Error::Kind`] on an intercommunicator; [`WorldError::Spawn`] on all ranks if they cannot be started; the loss of a
    /// new rank before it has joined; as [`Communicator::create_inter`]. With the error come the numbers of ranks, as in
    /// [`Spawned::counts`].
    pub fn spawn(
        &self,
        root: u32,
        programs: Result<Vec<Program>, String>,
        asked: Vec<u64>,
    ) -> Result<Spawned, (Error, Vec<(u64, u64)>)> {
        self.intra("a spawn").map_err(|error| (error, Vec::new()))?;
        let words = (self.rank() == root).then(|| {
            let started = programs.and_then(|programs| start(&programs));
            let (first, counts, why) = match started {
                Ok((first, counts)) => (first.into(), counts, String::new()),
                Err(why) => (u64::MAX, vec![0; asked.len()], why),
            };
            let counts =
                counts.into_iter().zip(asked).flat_map(|(started, asked)| [started, asked]);
            let counts: Vec<u64> = counts.collect();
            let head = [first, counts.len() as u64];
            head.into_iter().chain(counts).chain(why.bytes().map(u64::from)).collect()
        });
        let words =
            self.tell_all(words.unwrap_or_default(), root).map_err(|error| (error, Vec::new()))?;
        let (counts, why) = words[2..].split_at(words[1] as usize);
        let mut counts: Vec<_> = counts.chunks_exact(2).map(|count| (count[0], count[1])).collect();
        let made = match u32::try_from(words[0]) {
            Ok(first) => self.join(root, || Ok((first, of_world(first)))),
            Err(_) => {
                let why: Vec<u8> = why.iter().map(|byte| *byte as u8).collect();
                Err(WorldError::Spawn { why: String::from_utf8_lossy(&why).into_owned() }.into())
            }
        };
        match made {
            Ok(communicator) => Ok(Spawned { communicator, counts }),
            Err(error) => {
                counts.iter_mut().for_each(|(started, _)| *started = 0);
                Err((error, counts))
            }
        }
    }

    /// Returns the intercommunicator with the ranks that have spawned this world, of which rank `parent` of the job was the
    /// root. Collective on the communicator of the world; each rank calls it once, before anything else.
    ///
    /// # Errors
    /// As [`Communicator::create_inter`].
    pub fn parents(&self, parent: u32) -> Result<Self, Error> {
        self.join(0, || Ok((parent, of_world(self.device().world().start))))
    }

    /// Returns the intercommunicator of this group and the one that another leader calls this for. `other` returns, at
    /// `root`, the job rank of that leader and a text that both have, and no others.
    pub fn join(
        &self,
        root: u32,
        other: impl FnOnce() -> Result<(u32, Vec<u8>), Error>,
    ) -> Result<Self, Error> {
        if self.rank() != root {
            return self.create_inter(root, None);
        }
        self.join_by(root, other().and_then(|(other, text)| self.leaders(other, &text)))
    }

    /// The communicator of this leader and another one, with the rank of that one.
    fn leaders(&self, other: u32, text: &[u8]) -> Result<(Self, u32), Error> {
        let rank = self.job_rank();
        let both = Group::of_ranks([rank.min(other), rank.max(other)])?;
        let peers = Self::create_by_text(self.process(), &both, text)?;
        Ok((peers, u32::from(rank < other)))
    }

    /// Makes the intercommunicator once the leaders have a communicator, or tells the others that they have none (MW1).
    fn join_by(&self, root: u32, leaders: Result<(Self, u32), Error>) -> Result<Self, Error> {
        let other = leaders.as_ref().ok();
        let other = other.map(|(peers, leader)| RemoteLeader { peers, leader: *leader, tag: 0 });
        let made = self.create_inter(root, other);
        leaders.and(made)
    }

    /// Returns the words of `root` on all ranks, whatever their number.
    fn tell_all(&self, words: Vec<u64>, root: u32) -> Result<Vec<u64>, Error> {
        let call = Call::IntercommCreate;
        let len = self.bcast_words(call, vec![words.len() as u64], root)?[0] as usize;
        let words = if self.rank() == root { words } else { vec![0; len] };
        self.bcast_words(call, words, root)
    }
}

/// The text by which the leaders of a world and of its parents meet.
fn of_world(first: u32) -> Vec<u8> {
    format!("world {first}").into_bytes()
}

/// Has the launcher start these programs. Returns the first rank in the job, and the number of each program's ranks.
fn start(programs: &[Program]) -> Result<(u32, Vec<u64>), String> {
    let folder =
        std::env::current_dir().map_err(|error| format!("this folder is gone: {error}"))?;
    let programs = programs.iter().map(|program| of_launcher(program, &folder)).collect();
    match job::demand(Demand::Spawn { programs })? {
        Answer::Spawned { first, counts } => Ok((first, counts)),
        answer => Err(why_not(answer)),
    }
}

/// A program for the launcher, which is in another folder.
fn of_launcher(program: &Program, here: &Path) -> SpawnProgram {
    let path = |bytes: &[u8]| PathBuf::from(std::ffi::OsStr::from_bytes(bytes));
    let bytes = |path: PathBuf| path.into_os_string().into_encoded_bytes();
    let folder =
        program.folder.as_deref().map_or(here.to_owned(), |folder| here.join(path(folder)));
    let command = match program.command.contains(&b'/') {
        true => bytes(here.join(path(&program.command))),
        false => program.command.clone(),
    };
    let program_there = HostProgram {
        ranks: program.ranks.into(),
        program: command,
        args: program.arguments.clone(),
        exports: program.variables.clone(),
        wdir: Some(bytes(folder)),
        path: program.path.clone(),
        copy: None,
    };
    let or_fewer = program.or_fewer.iter().map(|ranks| (*ranks).into()).collect();
    SpawnProgram { program: program_there, or_fewer }
}

fn why_not(answer: Answer) -> String {
    match answer {
        Answer::Refused { why } => why,
        _ => "mpjrun has answered something else".to_owned(),
    }
}

/// Marks what [`greeting`] returns.
const GREETING: u64 = u64::from_be_bytes(*b"MPJ-JOIN");

/// Returns what a rank tells another process to which it has a socket: MPI_Comm_join.
pub fn greeting(process: &Process) -> [u64; 4] {
    let job = config::job().map_or(0, |job| fingerprint(job.bytes()));
    let number = CONNECTIONS.fetch_add(1, Ordering::Relaxed);
    [GREETING, job, process.device().rank().into(), number]
}

/// Returns the rank that has sent the greeting `there`, and a text that both have, for [`Communicator::join`]; `None` if
/// it does not belong to the same job, or is this rank itself.
pub fn acquaintance(here: [u64; 4], there: [u64; 4]) -> Option<(u32, Vec<u8>)> {
    let is_known = here[..2] == there[..2] && here[1] != 0 && here[2] != there[2];
    let rank = u32::try_from(there[2]).ok().filter(|_| is_known)?;
    let (low, high) = if here[2] < there[2] { (here, there) } else { (there, here) };
    let words = low[2..].iter().chain(&high[2..]).flat_map(|word| word.to_le_bytes());
    Some((rank, b"socket ".iter().copied().chain(words).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_socket_find_the_same_text() {
        let greeting = |job, rank, number| [GREETING, job, rank, number];
        let (one, other) = (greeting(7, 3, 40), greeting(7, 5, 2));
        let (here, there) = (acquaintance(one, other).unwrap(), acquaintance(other, one).unwrap());
        assert_eq!((here.0, there.0), (5, 3));
        assert_eq!(here.1, there.1);
        assert_ne!(here.1, acquaintance(greeting(7, 3, 41), other).unwrap().1, "another time");
        let strangers = [greeting(8, 5, 2), greeting(7, 3, 41), greeting(7, 1 << 40, 2), [0; 4]];
        assert!(strangers.iter().all(|there| acquaintance(one, *there).is_none()));
        assert_eq!(acquaintance(greeting(0, 3, 1), greeting(0, 5, 1)), None, "without a launcher");
    }

    #[test]
    fn what_the_launcher_starts_does_not_depend_on_its_folder() {
        let program = |command: &str, folder: Option<&str>| Program {
            command: command.into(),
            folder: folder.map(Into::into),
            ..Program::default()
        };
        let told = |command, folder| {
            let HostProgram { program, wdir, .. } =
                of_launcher(&program(command, folder), Path::new("/here")).program;
            [program, wdir.unwrap()].map(|text| String::from_utf8(text).unwrap())
        };
        assert_eq!(told("a.out", None), ["a.out", "/here"]);
        assert_eq!(told("./a.out", Some("sub")), ["/here/./a.out", "/here/sub"]);
        assert_eq!(told("/bin/a.out", Some("/tmp")), ["/bin/a.out", "/tmp"]);
    }
}
