//! The memory that tasks of channels have registered, as the network cards access it: one access after another, under
//! a lock.
//!
//! - TM1: a region is in the table from its registration until the owner ends it or detaches, so its memory may be
//!   read, and written if it is [`Registered::Writable`] (A11).

use std::io;

use transport_lapi::adapter::{AdapterError, Registered, TaskId};
use transport_lapi::{
    ForeignBytes, Operation, RecvRegion, RemoteKey, RemoteRegion, SendRegion, Source,
};

use crate::numbers::Numbers;

/// The regions of all tasks.
pub(super) struct Memory {
    regions: Vec<Region>,
    /// Whether each task has detached.
    detached: Vec<bool>,
    keys: Numbers,
}

struct Region {
    owner: TaskId,
    key: RemoteKey,
    bytes: Registered,
}

impl Memory {
    pub fn new(num_tasks: usize) -> Self {
        Self { regions: Vec::new(), detached: vec![false; num_tasks], keys: Numbers(7) }
    }

    /// Adds a region under a key of any length from 9 bytes on that leaves room for the key of a host.
    pub fn register(&mut self, owner: TaskId, bytes: Registered) -> RemoteKey {
        let len = 9 + self.keys.below(RemoteKey::MOST - 17);
        let key = RemoteKey::new(&self.keys.bytes(len));
        self.regions.push(Region { owner, key, bytes });
        key
    }

    pub fn deregister(&mut self, owner: TaskId, key: RemoteKey) {
        self.regions.retain(|region| region.owner != owner || region.key != key);
    }

    pub fn detach(&mut self, owner: TaskId) {
        self.detached[owner as usize] = true;
        self.regions.retain(|region| region.owner != owner);
    }

    /// Reads registered memory.
    pub fn read(
        &mut self,
        target: TaskId,
        remote: &RemoteRegion,
        offset: u64,
        len: usize,
    ) -> Result<Vec<u8>, AdapterError> {
        let region = match self.find(target, remote, offset, len)? {
            Registered::Constant(region) => *region,
            Registered::Writable(region) => {
                // SAFETY: TM1.
                unsafe { SendRegion::new(region.as_mut_ptr(), region.len()) }
            }
        };
        Ok(Source::from(region).piece(offset as usize, len).to_vec())
    }

    /// Returns memory that may be written.
    pub fn writable(
        &mut self,
        target: TaskId,
        remote: &RemoteRegion,
        offset: u64,
        len: usize,
    ) -> Result<&mut RecvRegion, AdapterError> {
        match self.find(target, remote, offset, len)? {
            Registered::Writable(region) => Ok(region),
            Registered::Constant(_) => Err(refused(target, len, "the memory is constant")),
        }
    }

    /// Stores to writable memory.
    pub fn write(
        &mut self,
        target: TaskId,
        remote: &RemoteRegion,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), AdapterError> {
        let region = self.writable(target, remote, offset, bytes.len())?;
        region.store(offset as usize, ForeignBytes::from_slice(bytes));
        Ok(())
    }

    /// Carries out an atomic operation on writable memory.
    pub fn modify(
        &mut self,
        target: TaskId,
        remote: &RemoteRegion,
        offset: u64,
        operation: Operation,
    ) -> Result<i64, AdapterError> {
        let len = operation.size() as usize;
        let region = self.writable(target, remote, offset, len)?;
        operation.apply(region, offset).ok_or_else(|| refused(target, len, "it is not aligned"))
    }

    fn find(
        &mut self,
        target: TaskId,
        remote: &RemoteRegion,
        offset: u64,
        len: usize,
    ) -> Result<&mut Registered, AdapterError> {
        if self.detached[target as usize] {
            return Err(AdapterError::PeerLost { task: target });
        }
        let mut regions = self.regions.iter_mut();
        let region = regions.find(|region| region.owner == target && region.key == remote.direct);
        let region = region.ok_or_else(|| refused(target, len, "no region has this key"))?;
        let whole = match &region.bytes {
            Registered::Constant(region) => region.len(),
            Registered::Writable(region) => region.len(),
        };
        match offset.checked_add(len as u64) {
            Some(end) if end <= whole as u64 => Ok(&mut region.bytes),
            _ => Err(refused(target, len, "the range does not lie inside")),
        }
    }
}

fn refused(target: TaskId, len: usize, reason: &'static str) -> AdapterError {
    let reason = io::Error::new(io::ErrorKind::InvalidInput, reason);
    AdapterError::AccessFailed { target, len, reason }
}
