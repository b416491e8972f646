//! LAPI_Qenv and LAPI_Senv: properties of a context and its task, and the few that can be set at run time.
//!
//! Some keys of LAPI describe what this transport does not have: retransmission, acknowledgements, UDP ports, RDMA.
//! They answer 0. Keys whose answer is not a number are refused, and a call of their own answers them.

use std::time::Duration;

use crate::adapter::{Stats, TaskId};
use crate::error::LapiError;
use crate::progress::outbox::SendQueue;
use crate::progress::session::Session;
use crate::wire::{MAX_HANDLERS, MAX_UHDR};

/// A property of a context or its task, for [`Session::qenv`] and [`crate::Context::senv`]. The discriminants are
/// LAPI's numbers of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum Query {
    /// TASK_ID: this task's number.
    TaskId = 0,
    /// NUM_TASKS: how many tasks the job has.
    NumTasks = 1,
    /// MAX_UHDR_SZ: largest user header, in bytes.
    MaxUhdrSz = 2,
    /// MAX_DATA_SZ: largest `udata`, in bytes.
    MaxDataSz = 3,
    /// ERROR_CHK: whether parameters are checked; can be set to 0 or 1. The value is only kept: parameters are always
    /// checked, because the safety of memory depends on every check. LAPI's default is 0, ours is 1.
    ErrorChk = 4,
    /// TIMEOUT: after how many seconds without progress of a queued message the condition [`LapiError::Timeout`] is
    /// reported; can be set to a value between the next two, or to 0. At first it is 0: never.
    Timeout = 5,
    /// MIN_TIMEOUT: the shortest TIMEOUT, in seconds.
    MinTimeout = 6,
    /// MAX_TIMEOUT: the longest TIMEOUT, in seconds.
    MaxTimeout = 7,
    /// INTERRUPT_SET: 1 in interrupt mode, 0 in polling mode; can be set. LAPI begins with 1, this transport with 0.
    InterruptSet = 8,
    /// MAX_PORTS: 0, since there are no ports.
    MaxPorts = 9,
    /// MAX_PKT_SZ: most bytes of `udata` that one packet carries.
    MaxPktSz = 10,
    /// NUM_REX_BUFS: 0, since nothing is retransmitted.
    NumRexBufs = 11,
    /// REX_BUF_SZ: 0, since nothing is retransmitted.
    RexBufSz = 12,
    /// LOC_ADDRTBL_SZ: size of the handler table.
    LocAddrtblSz = 13,
    /// EPOCH_NUM: 0, since a job has a segment of its own, where no packet of another job can be.
    EpochNum = 14,
    /// USE_THRESH: 0, since no threshold decides when to interrupt.
    UseThresh = 15,
    /// RCV_FIFO_SIZE: 0, since there is no queue that all origins share.
    RcvFifoSize = 16,
    /// MAX_ATOM_SIZE: most bytes that are never divided between packets; the same as MAX_PKT_SZ.
    MaxAtomSize = 17,
    /// BUF_CP_SIZE: messages of up to so many bytes of `udata` are copied when they leave at once, so that the origin's
    /// buffer is reusable when the call returns. This does not hold for data that stays in place.
    BufCpSize = 18,
    /// MAX_PKTS_OUT: 0, since the number of queued packets has no limit.
    MaxPktsOut = 19,
    /// ACK_THRESHOLD: packets to receive before an acknowledgement; can be set to 1 to 30. The value is only kept,
    /// since packets are not acknowledged. At first it is 30.
    AckThreshold = 20,
    /// QUERY_SHM_ENABLED: 1 if tasks read each other's memory, else 0.
    ShmEnabled = 21,
    /// QUERY_SHM_NUM_TASKS: how many tasks do that.
    ShmNumTasks = 22,
    /// QUERY_SHM_TASKS: which tasks do that; not a number, so the call is [`Session::shm_tasks`].
    ShmTasks = 23,
    /// QUERY_STATISTICS: not a number, so the call is [`Session::statistics`].
    Statistics = 24,
    /// PRINT_STATISTICS: refused, since a library does not print.
    PrintStatistics = 25,
    /// QUERY_SHM_STATISTICS: not a number; there is one kind of statistics, [`Session::statistics`].
    ShmStatistics = 26,
    /// QUERY_LOCAL_SEND_STATISTICS: likewise.
    LocalSendStatistics = 27,
    /// BULK_XFER: 0, since there is no RDMA.
    BulkXfer = 28,
    /// BULK_MIN_MSG_SIZE: 0, likewise.
    BulkMinMsgSize = 29,
}

/// The shortest and the longest TIMEOUT, in seconds.
const TIMEOUTS: (i64, i64) = (1, 86_400);

/// The values that can be set.
#[derive(Debug, Clone, Copy)]
pub(super) struct Environment {
    checks: bool,
    ack_threshold: i64,
    /// After how long a message that does not move is reported.
    pub timeout: Option<Duration>,
}

impl Default for Environment {
    fn default() -> Self {
        Self { checks: true, ack_threshold: 30, timeout: None }
    }
}

impl Environment {
    /// Sets one of the values that this structure has.
    fn set(&mut self, query: Query, value: i64) -> Result<(), LapiError> {
        match query {
            Query::ErrorChk => self.checks = check_range(query, value, 0, 1)? == 1,
            Query::AckThreshold => self.ack_threshold = check_range(query, value, 1, 30)?,
            Query::Timeout if value == 0 => self.timeout = None,
            Query::Timeout => {
                let seconds = check_range(query, value, TIMEOUTS.0, TIMEOUTS.1)?;
                self.timeout = Some(Duration::from_secs(seconds.unsigned_abs()));
            }
            _ => return Err(LapiError::QueryType { key: query.key() }),
        }
        Ok(())
    }
}

/// Returns `value` if it is legal.
pub(crate) fn check_range(
    query: Query,
    value: i64,
    least: i64,
    most: i64,
) -> Result<i64, LapiError> {
    match (least..=most).contains(&value) {
        true => Ok(value),
        false => Err(LapiError::SetVal { key: query.key(), value, least, most }),
    }
}

impl Query {
    /// Every key, in the order of the numbers.
    pub const ALL: [Self; 30] = [
        Self::TaskId,
        Self::NumTasks,
        Self::MaxUhdrSz,
        Self::MaxDataSz,
        Self::ErrorChk,
        Self::Timeout,
        Self::MinTimeout,
        Self::MaxTimeout,
        Self::InterruptSet,
        Self::MaxPorts,
        Self::MaxPktSz,
        Self::NumRexBufs,
        Self::RexBufSz,
        Self::LocAddrtblSz,
        Self::EpochNum,
        Self::UseThresh,
        Self::RcvFifoSize,
        Self::MaxAtomSize,
        Self::BufCpSize,
        Self::MaxPktsOut,
        Self::AckThreshold,
        Self::ShmEnabled,
        Self::ShmNumTasks,
        Self::ShmTasks,
        Self::Statistics,
        Self::PrintStatistics,
        Self::ShmStatistics,
        Self::LocalSendStatistics,
        Self::BulkXfer,
        Self::BulkMinMsgSize,
    ];

    /// Returns LAPI's number of the key.
    pub fn key(self) -> u32 {
        self as u32
    }

    /// Returns the property with this key.
    ///
    /// # Errors
    /// [`LapiError::QueryType`] if there is none, also for LAPI's keys from 30 on, which are about RDMA.
    pub fn of_key(key: u32) -> Result<Self, LapiError> {
        let query = usize::try_from(key).ok().and_then(|key| Self::ALL.get(key));
        query.copied().ok_or(LapiError::QueryType { key })
    }
}

/// What a context has sent and received ([`Session::statistics`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Packets that this task has sent to all tasks, itself included.
    pub packets_sent: u64,
    /// Packets that it has received.
    pub packets_received: u64,
    /// Messages of a network that were dropped, since they were not of this job, or not the next ones of their origin.
    pub dropped: u64,
}

impl<S> Session<S> {
    /// Returns a property of the context or its task (LAPI_Qenv).
    ///
    /// # Errors
    /// [`LapiError::QueryType`] for the keys whose answer is not a number; see [`Query`].
    pub fn qenv(&self, query: Query) -> Result<u64, LapiError> {
        let own = self.engine.task;
        let set = self.periphery().map(|periphery| periphery.environment);
        let Environment { checks, ack_threshold, timeout } = set.unwrap_or_default();
        Ok(match query {
            Query::TaskId => u64::from(own),
            Query::NumTasks => self.engine.outbox.send_queues.num_tasks() as u64,
            Query::MaxUhdrSz => MAX_UHDR as u64,
            Query::MaxDataSz => isize::MAX as u64,
            Query::ErrorChk => u64::from(checks),
            Query::Timeout => timeout.map_or(0, |timeout| timeout.as_secs()),
            Query::MinTimeout => TIMEOUTS.0.unsigned_abs(),
            Query::MaxTimeout => TIMEOUTS.1.unsigned_abs(),
            Query::InterruptSet => u64::from(self.is_notified()),
            Query::MaxPktSz | Query::MaxAtomSize => self.adapter.caps(own).max_body as u64,
            Query::LocAddrtblSz => MAX_HANDLERS as u64,
            Query::BufCpSize => self.own_send_queue().at_once.saturating_sub(1) as u64,
            Query::AckThreshold => ack_threshold.unsigned_abs(),
            Query::ShmEnabled => u64::from(!self.shm_tasks().is_empty()),
            Query::ShmNumTasks => self.shm_tasks().len() as u64,
            Query::MaxPorts
            | Query::NumRexBufs
            | Query::RexBufSz
            | Query::EpochNum
            | Query::UseThresh
            | Query::RcvFifoSize
            | Query::MaxPktsOut
            | Query::BulkXfer
            | Query::BulkMinMsgSize => 0,
            Query::ShmTasks
            | Query::Statistics
            | Query::PrintStatistics
            | Query::ShmStatistics
            | Query::LocalSendStatistics => {
                return Err(LapiError::QueryType { key: query.key() });
            }
        })
    }

    /// The part of [`crate::Context::senv`] that concerns the session alone.
    pub(crate) fn set_environment(&mut self, query: Query, value: i64) -> Result<(), LapiError> {
        self.periphery_mut().environment.set(query, value)
    }

    /// Returns the tasks whose memory this task reads directly (LAPI_Qenv of QUERY_SHM_TASKS).
    pub fn shm_tasks(&self) -> Vec<TaskId> {
        let tasks = 0..self.engine.outbox.send_queues.num_tasks() as TaskId;
        tasks.filter(|task| self.adapter.caps(*task).gets.is_some()).collect()
    }

    fn own_send_queue(&self) -> &SendQueue {
        &self.engine.outbox.send_queues[self.engine.task]
    }

    /// Returns what this context has sent and received (LAPI_Qenv of QUERY_STATISTICS); `None` if the adapter does not
    /// count. On one host the numbers are those that the rings have anyway, modulo 2^32 for each peer, so nothing is
    /// counted on the path of messages. For the same reason bytes are not counted.
    pub fn statistics(&self) -> Option<Statistics> {
        let Stats { frames_sent, frames_received, dropped } = self.adapter.stats()?;
        let (packets_sent, packets_received) = (frames_sent, frames_received);
        Some(Statistics { packets_sent, packets_received, dropped })
    }
}
