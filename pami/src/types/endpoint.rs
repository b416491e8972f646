//! Addresses: a task of the client and one of its contexts.

use std::fmt;

use transport_lapi::TaskId;

/// A context of a task, as a value of 32 bits that may be kept in memory which several tasks share. It means something
/// within its client only (PAMI_Endpoint_create).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint(u32);

/// Bits of the task; those above are the offset of the context.
const TASK_BITS: u32 = 23;

impl Endpoint {
    /// The endpoint of a task that the job has, and of a context that its client may have.
    pub(crate) fn new(task: TaskId, offset: usize) -> Self {
        Self((offset as u32) << TASK_BITS | task)
    }

    /// One that may not exist: numbers that no client has are lowered to others that no client has.
    pub(crate) fn any(task: TaskId, offset: usize) -> Self {
        let most = (1 << (u32::BITS - TASK_BITS)) - 1;
        Self::new(task.min((1 << TASK_BITS) - 1), offset.min(most))
    }

    /// Returns the task.
    pub fn task(self) -> TaskId {
        self.0 & ((1 << TASK_BITS) - 1)
    }

    /// Returns the offset of the context among those of its client.
    pub fn offset(self) -> usize {
        (self.0 >> TASK_BITS) as usize
    }

    /// Returns the value.
    pub fn to_bits(self) -> u32 {
        self.0
    }

    /// The endpoint with this value. Calls refuse one that the client does not have.
    pub fn from_bits(bits: u32) -> Self {
        Self(bits)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "endpoint ({}, {})", self.task(), self.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_fit_into_32_bits() {
        for (task, offset) in [(0, 0), (1, 0), (0, 1), ((1 << 20) - 1, 6)] {
            let endpoint = Endpoint::new(task, offset);
            assert_eq!((endpoint.task(), endpoint.offset()), (task, offset));
            assert_eq!(Endpoint::from_bits(endpoint.to_bits()), endpoint);
        }
    }
}
