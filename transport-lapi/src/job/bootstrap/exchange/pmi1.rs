//! A client of PMI-1, which hydra speaks: `mpiexec` of MPICH and of Intel MPI.
//!
//! Its key-value space has a name and is the same for all ranks. What was put before a barrier is found after it.

use std::net::TcpStream;
use std::os::fd::OwnedFd;

use super::line::Line;
use super::record::Record;
use super::{ExchangeError, Job, KeyValueSpace, LONGEST_VALUE, MAPPING, Manager};
use crate::adapter::TaskId;

/// A rank's connection to hydra.
#[derive(Debug)]
pub(super) struct Pmi1 {
    line: Line,
    space: String,
}

impl Pmi1 {
    /// Joins as `rank` of `size` over the socket that the manager has passed.
    pub(super) fn join(
        socket: OwnedFd,
        rank: TaskId,
        size: usize,
    ) -> Result<(Self, Job), ExchangeError> {
        Self::join_over(Line::new(Manager::Pmi1, socket), rank, size)
    }

    fn join_over(line: Line, rank: TaskId, size: usize) -> Result<(Self, Job), ExchangeError> {
        let mut client = Self { line, space: String::new() };
        let hello = Record::new("init").with("pmi_version", 1).with("pmi_subversion", 1);
        client.line.ask(&hello, "response_to_init", "join the job")?;
        let maxes = client.line.ask(&Record::new("get_maxes"), "maxes", "tell its limits")?;
        let longest = maxes.number("vallen_max").and_then(|most| usize::try_from(most).ok());
        let longest_value = longest.unwrap_or(LONGEST_VALUE);
        let to = "name its key-value space";
        let named = client.line.ask(&Record::new("get_my_kvsname"), "my_kvsname", to)?;
        client.space = named.get("kvsname").unwrap_or_default().to_owned();
        let mapping = client.get(rank, MAPPING)?;
        Ok((client, Job { rank, size, longest_value, mapping, hosts: None }))
    }

    /// Joins through the port of a manager that passes no descriptor: hydra's option `-pmi-port`.
    pub(super) fn join_by_port(address: &str, id: &str) -> Result<(Self, Job), ExchangeError> {
        let manager = Manager::Pmi1;
        let to = "take this rank's connection";
        let socket = TcpStream::connect(address).map_err(|source| ExchangeError::Connection {
            manager,
            to,
            source,
        })?;
        let _ = socket.set_nodelay(true);
        let mut line = Line::new(manager, socket.into());
        let hello = Record::new("initack").with("pmiid", id);
        line.ask(&hello, "initack", to)?;
        let mut told = |name: &str| {
            let record = line.hear("set", to)?;
            let number = record.number(name).and_then(|number| usize::try_from(number).ok());
            number.ok_or_else(|| line.refused(&record, to))
        };
        let size = told("size")?;
        let rank = told("rank")?;
        told("debug")?;
        Self::join_over(line, rank as TaskId, size)
    }

    fn about(&self, cmd: &str, key: &str) -> Record {
        Record::new(cmd).with("kvsname", &self.space).with("key", key)
    }
}

impl KeyValueSpace for Pmi1 {
    fn put(&mut self, key: &str, value: &str) -> Result<(), ExchangeError> {
        let put = self.about("put", key).with("value", value);
        self.line.ask(&put, "put_result", "keep a value").map(drop)
    }

    fn fence(&mut self) -> Result<(), ExchangeError> {
        self.line
            .ask(&Record::new("barrier_in"), "barrier_out", "wait for the other ranks")
            .map(drop)
    }

    /// A missing key is any answer with an error: MPICH answers 1, Intel MPI -1.
    fn get(&mut self, _owner: TaskId, key: &str) -> Result<Option<String>, ExchangeError> {
        let get = self.about("get", key);
        let found = self.line.ask_anything(&get, "get_result", "find a value")?;
        let value = found.get("value").filter(|_| found.number("rc").unwrap_or(0) == 0);
        Ok(value.map(str::to_owned))
    }

    fn abort(&mut self, code: i32, why: &str) -> Result<(), ExchangeError> {
        let abort = Record::new("abort").with("exitcode", code).with("message", why);
        self.line.tell(&abort, "end the job")
    }

    fn finalize(&mut self) -> Result<(), ExchangeError> {
        self.line.ask(&Record::new("finalize"), "finalize_ack", "let this rank leave").map(drop)
    }
}
