//! Joins a job that a process manager has started, and makes among the ranks what a launcher would pass to them. Called
//! only by [`super`] and, in the launcher's place, by [`super::control`].
//!
//! The first rank of each host makes the segment and, in a job of several hosts, the table; the others open them
//! (`exchange/handover.rs`). The table gets the names of the hosts, the secret that rank 0 has made, and, once all ranks
//! have put them, the addresses of their endpoints. That takes three fences, or one on a single host. The segment says
//! that the job goes on without lost tasks, since process managers reap a rank while others still run, so that its
//! process number may be used again.
//!
//! A rank that exits without having left its job has failed. Not every manager then ends the others, which may wait for
//! it, so it asks for that at its exit, when the program has said why.
//!
//! - MG1: the function that runs at exit never panics and waits for no lock, since other threads may still run.

#![expect(unsafe_code, reason = "a function that runs at exit")]

use std::ffi::{c_int, c_void};
use std::os::fd::OwnedFd;
use std::ptr;
use std::sync::OnceLock;

use super::control::{ControlMessage, Endpoints};
use super::exchange::Exchange;
use super::hosts::{
    HostPlan, MAX_ADDRESS, SECRET_BYTES, TableWriter, estrangement, understand_each_other,
};
use super::waits::JobView;
use super::{
    BootstrapError, Control, ExchangeError, Membership, TAKEN, contexts, inherit, take_once,
};
use crate::adapter::{AdapterError, TaskId};
use crate::adapters::shm::{World, create_segment};
use crate::job::config::{self, Start};
use crate::platform::{offer, sys};

/// What the values are called that the ranks put.
const SEGMENT: &str = "segment";
const TABLE: &str = "job table";
const HOST: &str = "host";
const SECRET: &str = "secret";
const ENDPOINTS: &str = "endpoints";

/// The job that this process has joined.
static JOINED: OnceLock<Exchange> = OnceLock::new();

/// Joins the job of the process manager that `start` describes. If the ranks of this host do not find each other, the
/// manager ends the job when this process exits, so that no rank of another host waits for them.
pub(super) fn join(start: Start) -> Result<Membership, BootstrapError> {
    let contexts = contexts(&config::environment)?;
    let exchange = connect(start)?;
    let exchange = JOINED.get_or_init(|| exchange);
    // SAFETY: MG1. If there is no room for another function, a rank that fails leaves it to the manager to notice.
    let _ = unsafe { on_exit(at_exit, ptr::null_mut()) };
    meet(exchange, contexts)
}

/// Has the manager end the job if this process exits with `code` without having left it (MG1).
extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    JOINED.get().into_iter().for_each(|exchange| exchange.abandon(code));
}

unsafe extern "C" {
    /// Like `atexit`, for a function that wants to know the exit code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

fn connect(start: Start) -> Result<Exchange, BootstrapError> {
    let take = |descriptor| take_once(&TAKEN, || inherit::take_manager(descriptor));
    Ok(match start {
        Start::Pmi1 { descriptor, rank, size } => {
            Exchange::pmi1(take(descriptor)?, rank, size as usize)?
        }
        Start::Pmi2 { descriptor, job, rank, size } => {
            Exchange::pmi2(take(descriptor)?, &job, rank, size as usize)?
        }
        Start::Pmi1Port { address, id } => {
            take_once(&TAKEN, || Ok(()))?;
            Exchange::pmi1_by_port(&address, &id)?
        }
        Start::Pmix { prefix } => {
            take_once(&TAKEN, || Ok(()))?;
            Exchange::pmix(prefix.as_deref())?
        }
        Start::Alone | Start::Foreign(_) => unreachable!("these are no process managers"),
    })
}

/// Makes the segment and the table of this host, or gets them from the rank that makes them.
fn meet(exchange: &Exchange, contexts: usize) -> Result<Membership, BootstrapError> {
    let (rank, num_tasks) = (exchange.rank(), exchange.size());
    if rank == 0 {
        exchange.put(SECRET, &random::<SECRET_BYTES>()?)?;
    }
    let (segment, table, made) = if rank == exchange.first_of_host() {
        let (segment, made) = make(exchange, contexts)?;
        let table = made.as_ref().map(|table| table.offered.try_clone()).transpose();
        (segment, table.map_err(|source| BootstrapError::Table { source })?, made)
    } else {
        exchange.fence()?;
        let segment = exchange.take(SEGMENT)?;
        let has_table = exchange.hosts() > 1;
        if has_table {
            exchange.fence()?;
        }
        (segment, has_table.then(|| exchange.take(TABLE)).transpose()?, None)
    };
    let job = ManagedJob { exchange: exchange.clone(), table: made };
    let control = Control::to_manager(rank, job);
    let world = World::whole(rank, num_tasks);
    Ok(Membership { world, contexts, segment, table, control })
}

/// Makes the segment of this host and, in a job of several hosts, the table, and offers both: what the first rank of a
/// host does while the others wait at the fences.
fn make(exchange: &Exchange, contexts: usize) -> Result<(OwnedFd, Option<Table>), BootstrapError> {
    let here = exchange.ranks_of(exchange.host()).count();
    let segment = create_segment(&random_name()?, here, contexts)?;
    JobView::open(&segment)?.goes_on();
    exchange.put(HOST, rustix::system::uname().nodename().to_bytes())?;
    exchange.offer(SEGMENT, &segment)?;
    exchange.fence()?;
    let hosts = exchange.hosts();
    if hosts == 1 {
        return Ok((segment, None));
    }
    let name = |host| {
        let first = exchange.ranks_of(host).next().expect("a host has a rank");
        Ok(String::from_utf8_lossy(&exchange.get(first, HOST)?).into_owned())
    };
    let names = (0..hosts as u32).map(name).collect::<Result<_, ExchangeError>>()?;
    let plan = HostPlan { names, host_of: exchange.host_of().to_vec() };
    let (name, manager) = (SECRET.to_owned(), exchange.manager());
    let secret = exchange.get(0, SECRET)?.try_into();
    let secret = secret.map_err(|_| ExchangeError::Missing { manager, owner: 0, name })?;
    let host = exchange.host() as usize;
    let (writer, offered) = TableWriter::create(&random_name()?, &plan, host, contexts, secret)?;
    exchange.offer(TABLE, &offered)?;
    exchange.fence()?;
    Ok((segment, Some(Table { writer, offered })))
}

/// A name that nobody can guess, for a memfd that will be offered.
fn random_name() -> Result<String, BootstrapError> {
    offer::secret_name().map_err(|source| BootstrapError::Random { source })
}

fn random<const N: usize>() -> Result<[u8; N], BootstrapError> {
    sys::random().map_err(|source| BootstrapError::Random { source })
}

/// What takes the place of a rank's launcher.
pub(super) struct ManagedJob {
    exchange: Exchange,
    /// The table of this host, if this is the first rank of one of several.
    table: Option<Table>,
}

/// The table that this rank has made.
struct Table {
    writer: TableWriter,
    /// Stays open for the other ranks of this host, which open it at their own pace.
    offered: OwnedFd,
}

impl ManagedJob {
    /// Tells the manager what it can be told: that the rank has left the job, or ends it. Returns whether it was.
    pub(super) fn tell(&self, message: &ControlMessage) -> bool {
        match message {
            ControlMessage::Finished => self.exchange.finalize().is_ok(),
            ControlMessage::Aborted { code, .. } => {
                let why = "the program asked for the end of the job";
                self.exchange.abort(*code, why).is_ok()
            }
            ControlMessage::Unreachable { why, .. } => {
                // Not every manager shows it.
                self.say(why);
                let why = format!("rank {} {why}", self.exchange.rank());
                self.exchange.abort(1, &why).is_ok()
            }
            ControlMessage::Mistaken { message, .. } => {
                self.say(&format!("has found a mistake: {message}"));
                true
            }
            _ => false,
        }
    }

    /// Says something about this rank on standard error.
    #[expect(clippy::print_stderr, reason = "a job that cannot go on says why")]
    pub(super) fn say(&self, what: &str) {
        eprintln!("rank {} {what}", self.exchange.rank());
    }

    /// Tells all ranks the addresses of the contexts of a client, and waits until they have told theirs. The first rank of
    /// each host then enters them into the table.
    pub(super) fn endpoints(&self, endpoints: &Endpoints) -> Result<(), BootstrapError> {
        let (rank, first) = (self.exchange.rank(), endpoints.first as usize);
        let name = match first {
            0 => ENDPOINTS.to_owned(),
            context => format!("{ENDPOINTS} from {context}"),
        };
        self.exchange.put(&name, &encode(rank, endpoints)?)?;
        self.exchange.fence()?;
        let Some(Table { writer, .. }) = &self.table else { return Ok(()) };
        let contexts = endpoints.addresses.len();
        let mut networks = Vec::new();
        for owner in 0..self.exchange.size() as TaskId {
            let manager = self.exchange.manager();
            let missing = || ExchangeError::Missing { manager, owner, name: name.clone() };
            let told = self.exchange.get(owner, &name)?;
            let told = decode(&told).filter(|list| list.len() >= 2).ok_or_else(missing)?;
            let text = |at: usize| String::from_utf8_lossy(told[at]).into_owned();
            if (text(1), told.len() - 2) != (endpoints.client.clone(), contexts) {
                let (first, expected) = (rank, endpoints.client.clone());
                let client = text(1);
                return Err(
                    AdapterError::OtherClient { task: owner, client, first, expected }.into()
                );
            }
            networks.push(text(0));
            for (context, address) in (first..).zip(&told[2..]) {
                writer.set_address(owner, context, address)?;
            }
        }
        let is_stranger = |network: &String| !understand_each_other(network, &networks[0]);
        if let Some(stranger) = networks.iter().position(is_stranger) {
            let host = |rank| writer.table().host_name(writer.table().host_of(rank));
            let rank = stranger as TaskId;
            let why = estrangement((&host(rank), &networks[stranger]), (0, &host(0), &networks[0]));
            return Err(BootstrapError::Estranged { rank, why });
        }
        writer.complete(first + contexts);
        Ok(())
    }
}

/// Writes a rank's network, its client, and the addresses of the client's contexts, each behind its length.
fn encode(task: TaskId, endpoints: &Endpoints) -> Result<Vec<u8>, AdapterError> {
    let Endpoints { network, client, first, addresses } = endpoints;
    let mut bytes = Vec::new();
    for text in [network, client] {
        let text = &text.as_bytes()[..text.len().min(MAX_ADDRESS)];
        bytes.push(text.len() as u8);
        bytes.extend(text);
    }
    for (context, address) in (*first as usize..).zip(addresses) {
        let len = address.len();
        if len > MAX_ADDRESS {
            return Err(AdapterError::BadAddress { task, context, len });
        }
        bytes.push(len as u8);
        bytes.extend(address);
    }
    Ok(bytes)
}

/// Reads what [`encode`] has written: the network, the client, and then the addresses.
fn decode(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut addresses = Vec::new();
    while let Some((&len, rest)) = bytes.split_first() {
        let (address, rest) = rest.split_at_checked(len.into())?;
        addresses.push(address);
        bytes = rest;
    }
    Some(addresses)
}

#[cfg(test)]
mod tests;
