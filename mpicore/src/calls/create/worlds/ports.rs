//! Groups that meet at ports (MPI-5.0 section 11.9), and names of services.
//!
//! The launcher knows which ports are open, and who has begun to connect to each.
//!
//! - MW2: a port serves one connection at a time. The process that has opened it, and each one that connects, has a lock
//!   for it from the first message to the communicator of the leaders. So the messages of two connections do not mix.
//! - MW3: each rank that the launcher lets connect to a port sends a message to it at once, and gets one answer. When the
//!   port is closed, the launcher tells who they are, and the process that closes it answers those that it has not
//!   accepted. A process closes its ports before it leaves the job.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mpjdev::Call;
use transport_lapi::bootstrap::control::demand::{Answer, Demand, Name};
use transport_lapi::config;

use super::super::inter::swap;
use super::{CONNECTIONS, why_not};
use crate::communicator::Communicator;
use crate::error::{Error, WorldError};
use crate::group::Group;
use crate::plan::{Route, Tag};
use crate::process::{Process, job, lock, place_of_text};

/// What a process gets instead of the number of a connection if the port was closed.
const CLOSED: u64 = u64::MAX;
/// How many ports this process has opened.
static OPENED: AtomicU64 = AtomicU64::new(0);
/// The ports that it has opened or is connecting to.
static PORTS: Mutex<BTreeMap<Vec<u8>, Arc<Port>>> = Mutex::new(BTreeMap::new());

/// A port that this process has opened or is connecting to.
#[derive(Default)]
struct Port {
    /// How many messages of each rank were answered. Locked during a connection (MW2).
    answered: Mutex<BTreeMap<u32, u64>>,
    /// Once the port is closed: how many messages each rank has sent, or is about to send (MW3).
    sent: OnceLock<Vec<(u32, u64)>>,
}

impl Communicator {
    /// Waits for a group that connects to a port of `root`, and returns the intercommunicator with it: MPI_Comm_accept.
    /// Collective on an intracommunicator; only `root` uses the port.
    ///
    /// # Errors
    /// [`WorldError::Port`] at `root` if it has not opened the port, and [`Error::Leader`] on the other ranks; as
    /// [`Communicator::create_inter`].
    pub fn accept(&self, name: &[u8], root: u32) -> Result<Self, Error> {
        self.meet(root, || {
            let is_own = owner(name)? == self.job_rank();
            let port = lock(&PORTS).get(name).cloned().filter(|_| is_own);
            let port =
                port.ok_or_else(|| refused(name, "this process has no open port of this name"))?;
            let mut answered = lock(&port.answered);
            let (context, tag) = place_of_port(name);
            let leaders = self.device().probe(None, Some(tag), context).map_err(Error::from);
            let leaders = leaders.and_then(|status| {
                let caller = status.source;
                *answered.entry(caller).or_default() += 1;
                let [here, there] = self.greet(name, caller, next_number())?;
                self.leaders(caller, &text(name, there, here))
            });
            drop(answered);
            self.turn_away(name, &port);
            leaders
        })
    }

    /// Connects to a port, and returns the intercommunicator with the group that accepts this one: MPI_Comm_connect. It
    /// waits for that. Collective on an intracommunicator; only `root` uses the port.
    ///
    /// # Errors
    /// [`WorldError::Port`] at `root` if there is no such port in this job, if it is closed before the group is accepted, or
    /// if this process has opened it, and [`Error::Leader`] on the other ranks; as [`Communicator::create_inter`].
    pub fn connect(&self, name: &[u8], root: u32) -> Result<Self, Error> {
        self.meet(root, || {
            let owner = owner(name)?;
            if owner == self.job_rank() {
                return Err(refused(
                    name,
                    "this process has opened it, and cannot connect to itself",
                ));
            }
            let port = lock(&PORTS).entry(name.to_vec()).or_default().clone();
            let one_at_a_time = lock(&port.answered);
            let asked = ask(Demand::Connect { port: name.to_vec() });
            let leaders = asked.map_err(|_| refused(name, "it is not open")).and_then(|()| {
                let [here, there] = self.greet(name, owner, next_number())?;
                match there {
                    CLOSED => Err(refused(name, "it was closed")),
                    _ => self.leaders(owner, &text(name, here, there)),
                }
            });
            drop(one_at_a_time);
            let mut ports = lock(&PORTS);
            // No other thread connects to it: clones are made under the lock of the map.
            if Arc::strong_count(&port) == 2 {
                ports.remove(name);
            }
            leaders
        })
    }

    /// Meets a group at a port. `leaders` returns, at `root`, the communicator with the leader of the other group, and the
    /// rank of that one.
    fn meet(
        &self,
        root: u32,
        leaders: impl FnOnce() -> Result<(Self, u32), Error>,
    ) -> Result<Self, Error> {
        self.intra("a connection")?;
        if self.rank() != root {
            return self.create_inter(root, None);
        }
        self.join_by(root, leaders())
    }

    /// Exchanges a number with the process at the other side of a port, and returns both.
    fn greet(&self, name: &[u8], other: u32, number: u64) -> Result<[u64; 2], Error> {
        let (context, tag) = place_of_port(name);
        let peers = Some(Box::new(Group::of_ranks([other])?));
        let route = Route { peers, context, tag: Tag::own(tag) };
        Ok([number, swap(self, Call::IntercommCreate, route, vec![number], 1)?[0]])
    }

    /// Closes a port that this rank has opened, and tells those that wait to connect to it: MPI_Close_port. Local, but for
    /// messages of ranks that have just begun to connect.
    ///
    /// # Errors
    /// [`WorldError::Port`] if it has not opened the port.
    pub fn close_port(&self, name: &[u8]) -> Result<(), Error> {
        let answer = job::demand(Demand::Unpublish { name: Name::Port(name.to_vec()) });
        let sent = match answer.map_err(|why| refused(name, &why))? {
            Answer::Forgotten { callers } => callers,
            answer => return Err(refused(name, &why_not(answer))),
        };
        let port = lock(&PORTS).remove(name);
        if let Some(port) = port {
            port.sent.get_or_init(|| sent);
            self.turn_away(name, &port);
        }
        Ok(())
    }

    /// Closes the ports of this process, which is about to leave the job (MW3).
    pub fn close_ports(&self) {
        let names: Vec<_> = lock(&PORTS).keys().cloned().collect();
        // Nobody is left to whom a failure could be told.
        names.iter().for_each(|name| drop(self.close_port(name)));
    }

    /// Tells the ranks that connect to a closed port, and were not accepted. A thread that is accepting somebody at the
    /// port does it afterwards instead.
    fn turn_away(&self, name: &[u8], port: &Port) {
        let Some(sent) = port.sent.get() else { return };
        let Ok(mut answered) = port.answered.try_lock() else { return };
        for (rank, sent) in sent {
            let answered = answered.entry(*rank).or_default();
            while *answered < *sent {
                *answered += 1;
                // A rank that was lost needs no answer.
                let _ = self.greet(name, *rank, CLOSED);
            }
        }
    }
}

fn next_number() -> u64 {
    CONNECTIONS.fetch_add(1, Ordering::Relaxed)
}

/// Where the first messages to a port are.
fn place_of_port(name: &[u8]) -> (u32, i32) {
    place_of_text(&[b"port ", name].concat())
}

/// The text by which two leaders meet, whose numbers these are.
fn text(name: &[u8], connecting: u64, accepting: u64) -> Vec<u8> {
    [b"port ", name, &connecting.to_le_bytes(), &accepting.to_le_bytes()].concat()
}

/// Demands something of which only a refusal is of interest.
fn ask(demand: Demand) -> Result<(), String> {
    match job::demand(demand)? {
        Answer::Done | Answer::Forgotten { .. } => Ok(()),
        answer => Err(why_not(answer)),
    }
}

/// Returns the rank of the job that has opened a port.
fn owner(port: &[u8]) -> Result<u32, Error> {
    let text = std::str::from_utf8(port).ok();
    let mut parts = text.into_iter().flat_map(|text| text.split(':'));
    let is_port = parts.next() == Some("mpj");
    match (parts.next(), parts.next().and_then(|rank| rank.parse().ok())) {
        (Some(job), Some(rank)) if is_port && Some(job) == config::job().as_deref() => Ok(rank),
        (Some(_), Some(_)) if is_port => Err(refused(
            port,
            "it belongs to another job; only ranks of one job can connect: start both programs by one mpjrun, with \
             a colon between them, or let one spawn the other",
        )),
        _ => Err(refused(port, "it is no name that MPI_Open_port has returned")),
    }
}

fn refused(port: &[u8], why: &str) -> Error {
    let name = String::from_utf8_lossy(port).into_owned();
    WorldError::Port { name, why: why.to_owned() }.into()
}

/// Opens a port of this rank, and returns its name: MPI_Open_port.
///
/// # Errors
/// [`WorldError::Port`] if no launcher has started the job.
pub fn open_port(process: &Process) -> Result<String, Error> {
    let (number, rank) = (OPENED.fetch_add(1, Ordering::Relaxed), process.device().rank());
    let port = format!("mpj:{}:{rank}:{number}", config::job().unwrap_or_default());
    let name = port.clone().into_bytes();
    ask(Demand::Publish { name: Name::Port(name.clone()), value: Vec::new() })
        .map_err(|why| refused(&name, &why))?;
    lock(&PORTS).entry(name).or_default();
    Ok(port)
}

/// Publishes the name of a port as that of a service: MPI_Publish_name.
///
/// # Errors
/// [`WorldError::Service`] if a rank has published a service of this name.
pub fn publish_name(service: &[u8], port: &[u8]) -> Result<(), Error> {
    let name = Name::Service(service.to_vec());
    ask(Demand::Publish { name, value: port.to_vec() })
        .map_err(|why| WorldError::service(service, why))
}

/// Takes back what this rank has published: MPI_Unpublish_name.
///
/// # Errors
/// [`WorldError::Service`] if it has not.
pub fn unpublish_name(service: &[u8]) -> Result<(), Error> {
    let name = Name::Service(service.to_vec());
    ask(Demand::Unpublish { name }).map_err(|why| WorldError::service(service, why))
}

/// Returns the name of the port that was published for a service: MPI_Lookup_name.
///
/// # Errors
/// [`WorldError::Name`] if none was.
pub fn lookup_name(service: &[u8]) -> Result<Vec<u8>, Error> {
    let answer = job::demand(Demand::Lookup { name: Name::Service(service.to_vec()) });
    let why = match answer {
        Ok(Answer::Value(port)) => return Ok(port),
        Ok(answer) => why_not(answer),
        Err(why) => why,
    };
    let name = String::from_utf8_lossy(service).into_owned();
    Err(WorldError::Name { name, why }.into())
}
