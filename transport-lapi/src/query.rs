//! LAPI_Qenv: properties of a context and its task.

use crate::adapter::{Adapter, GetKind, TaskId};
use crate::amsend;
use crate::handler::MAX_HANDLERS;
use crate::session::Session;
use crate::wire::MAX_UHDR;

/// A property that [`Session::qenv`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Query {
    /// TASK_ID: this task's number.
    TaskId,
    /// NUM_TASKS: how many tasks the job has.
    NumTasks,
    /// MAX_UHDR_SZ: largest user header, in bytes.
    MaxUhdrSz,
    /// MAX_DATA_SZ: largest `udata`, in bytes.
    MaxDataSz,
    /// MAX_PKT_SZ: most bytes of `udata` that one packet carries.
    MaxPktSz,
    /// LOC_ADDRTBL_SZ: size of the handler table.
    LocAddrtblSz,
}

/// A length up to which (inclusive) messages are sent in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// The length, in bytes.
    pub bytes: usize,
    /// How longer messages are sent.
    pub above: &'static str,
}

impl<A: Adapter, S> Session<A, S> {
    /// Returns a property of the context or its task (LAPI_Qenv).
    pub fn qenv(&self, query: Query) -> u64 {
        match query {
            Query::TaskId => u64::from(self.adapter.task()),
            Query::NumTasks => self.adapter.num_tasks() as u64,
            Query::MaxUhdrSz => MAX_UHDR as u64,
            Query::MaxDataSz => isize::MAX as u64,
            Query::MaxPktSz => self.adapter.caps().max_body as u64,
            Query::LocAddrtblSz => MAX_HANDLERS as u64,
        }
    }

    /// Returns the lengths of `udata`, ascending, above which an amsend with a user header of `uhdr` bytes is sent in
    /// another way.
    pub fn steps(&self, uhdr: usize) -> Vec<Step> {
        amsend::steps(uhdr, &self.adapter.caps(), &self.engine.outbox.pieces)
    }

    /// Returns whether long bodies for `target` are stored past the caches, as far as is known so far. If so, a get is
    /// worth less, since it reads through the caches.
    pub fn stores_past_caches(&mut self, target: TaskId) -> bool {
        self.adapter.stores_past_caches(target)
    }

    /// Returns whether no message to `target` is queued.
    pub fn is_clear(&self, target: TaskId) -> bool {
        self.engine.outbox.lanes[target as usize].queue.is_empty()
    }

    /// Returns the name of the adapter.
    pub fn adapter_name(&self) -> &'static str {
        self.adapter.caps().name
    }

    /// Returns how gets read other tasks' memory; `None` means over active messages.
    pub fn get_kind(&mut self) -> Option<GetKind> {
        self.adapter.one_sided().map(|one_sided| one_sided.kind())
    }
}
