//! What several threads may do with a request at once: declare partitions ready, ask which ones have arrived, complete
//! or cancel a generalized request, also while another thread waits for the request and so has it for itself.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use mpicore::{PartitionedReceive, PartitionedSend};

use super::generalized::Generalized;
use crate::abi::MPI_Request;
use crate::comm::Comm;

/// The part of a request that several threads may use at once. Clones are the same operation.
#[derive(Clone)]
pub(crate) enum Shared {
    /// An operation of the program's own.
    Generalized(Generalized),
    /// A send in partitions.
    Send(PartitionedSend),
    /// A receive in partitions.
    Receive(PartitionedReceive),
}

/// The shared parts by the handles of their requests, each with its communicator.
static PUBLISHED: RwLock<BTreeMap<usize, (Arc<Comm>, Shared)>> = RwLock::new(BTreeMap::new());

impl Shared {
    /// Finds the shared part of a request.
    pub fn find(handle: MPI_Request) -> Option<(Arc<Comm>, Self)> {
        PUBLISHED.read().unwrap_or_else(PoisonError::into_inner).get(&handle.0).cloned()
    }

    /// Makes it known under the handle of its request.
    pub fn publish(self, handle: MPI_Request, comm: Arc<Comm>) {
        let mut published = PUBLISHED.write().unwrap_or_else(PoisonError::into_inner);
        published.insert(handle.0, (comm, self));
    }

    /// Forgets it, when the handle ends.
    pub fn withdraw(handle: MPI_Request) {
        let removed = PUBLISHED.write().unwrap_or_else(PoisonError::into_inner).remove(&handle.0);
        // It is dropped when the lock is free, since the end of a communicator runs callbacks of the program.
        drop(removed);
    }
}
