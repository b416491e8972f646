//! A client of PMI-2, which `srun --mpi=pmi2` speaks, and newer ones of hydra.
//!
//! The first record is a line of PMI-1, all others are counted. What was put before a fence is found after it, whoever
//! has put it.

use std::os::fd::OwnedFd;

use super::line::Line;
use super::record::{Form, Record};
use super::{ExchangeError, Job, KeyValueSpace, LONGEST_VALUE, MAPPING, Manager};
use crate::adapter::TaskId;

/// A rank's connection to Slurm.
#[derive(Debug)]
pub(super) struct Pmi2 {
    line: Line,
    job: String,
}

impl Pmi2 {
    /// Joins the job called `job` as `rank` of `size` over the socket that the manager has passed.
    pub(super) fn join(
        socket: OwnedFd,
        job: &str,
        rank: TaskId,
        size: usize,
    ) -> Result<(Self, Job), ExchangeError> {
        let to = "join the job";
        let mut client = Self { line: Line::new(Manager::Pmi2, socket), job: job.to_owned() };
        let hello = Record::new("init").with("pmi_version", 2).with("pmi_subversion", 0);
        client.line.ask(&hello, "response_to_init", to)?;
        client.line.form = Form::Counted;
        let hello = Record::new("fullinit").with("pmijobid", job).with("pmirank", rank);
        client.line.ask(&hello.with("threaded", "FALSE"), "fullinit-response", to)?;
        let question = Record::new("info-getjobattr").with("key", MAPPING);
        let mapping = client.find(&question, "info-getjobattr-response")?;
        Ok((client, Job { rank, size, longest_value: LONGEST_VALUE, mapping, hosts: None }))
    }

    /// Asks for a value. For one that does not exist Slurm answers without an error, and hydra with one.
    fn find(&mut self, question: &Record, answer: &str) -> Result<Option<String>, ExchangeError> {
        let found = self.line.ask_anything(question, answer, "find a value")?;
        let is_there = found.number("rc").unwrap_or(0) == 0 && found.get("found") != Some("FALSE");
        Ok(found.get("value").filter(|_| is_there).map(str::to_owned))
    }
}

impl KeyValueSpace for Pmi2 {
    fn put(&mut self, key: &str, value: &str) -> Result<(), ExchangeError> {
        let put = Record::new("kvs-put").with("key", key).with("value", value);
        self.line.ask(&put, "kvs-put-response", "keep a value").map(drop)
    }

    fn fence(&mut self) -> Result<(), ExchangeError> {
        let to = "wait for the other ranks";
        self.line.ask(&Record::new("kvs-fence"), "kvs-fence-response", to).map(drop)
    }

    fn get(&mut self, _owner: TaskId, key: &str) -> Result<Option<String>, ExchangeError> {
        let get = Record::new("kvs-get").with("jobid", &self.job).with("srcid", -1);
        self.find(&get.with("key", key), "kvs-get-response")
    }

    fn abort(&mut self, code: i32, why: &str) -> Result<(), ExchangeError> {
        let abort = Record::new("abort").with("isworld", "TRUE").with("exitcode", code);
        self.line.tell(&abort.with("msg", why), "end the job")
    }

    fn finalize(&mut self) -> Result<(), ExchangeError> {
        let to = "let this rank leave";
        self.line.ask(&Record::new("finalize"), "finalize-response", to).map(drop)
    }
}
