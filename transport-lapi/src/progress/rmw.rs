//! LAPI_Rmw: atomic operations on variables in other tasks' registered memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::adapter::TaskId;
use crate::adapter::atomic::{Operation, RmwOp};
use crate::error::{LapiError, Violation};
use crate::memory::region::RemoteRegion;
use crate::progress::access::AtomicAccess;
use crate::progress::amsend::Outgoing;
use crate::progress::handler::Next;
use crate::progress::outbox::Outbox;
use crate::wire::Packet;

/// Added to the number of an operation in a packet if the variable has 64 bits.
const WIDE: u8 = 8;

impl Operation {
    /// Number and operands for the target.
    pub(crate) fn encode(self) -> (u8, [u64; 2]) {
        fn parts<T: Into<i64>>(op: RmwOp<T>) -> (u8, [u64; 2]) {
            let bits = |value: T| value.into() as u64;
            match op {
                RmwOp::FetchAndAdd(value) => (0, [bits(value), 0]),
                RmwOp::FetchAndOr(value) => (1, [bits(value), 0]),
                RmwOp::Swap(value) => (2, [bits(value), 0]),
                RmwOp::CompareAndSwap { expected, new } => (3, [bits(expected), bits(new)]),
                RmwOp::FetchAndAnd(value) => (4, [bits(value), 0]),
                RmwOp::FetchAndXor(value) => (5, [bits(value), 0]),
                RmwOp::CompareAndFetch { expected, new } => (6, [bits(expected), bits(new)]),
            }
        }
        match self {
            Self::Bits32(op) => parts(op),
            Self::Bits64(op) => {
                let (number, operands) = parts(op);
                (number | WIDE, operands)
            }
        }
    }

    /// Decodes what a peer asks for.
    fn decode(number: u8, operands: [u64; 2]) -> Option<Self> {
        fn whole<T>(number: u8, [first, second]: [T; 2]) -> Option<RmwOp<T>> {
            Some(match number {
                0 => RmwOp::FetchAndAdd(first),
                1 => RmwOp::FetchAndOr(first),
                2 => RmwOp::Swap(first),
                3 => RmwOp::CompareAndSwap { expected: first, new: second },
                4 => RmwOp::FetchAndAnd(first),
                5 => RmwOp::FetchAndXor(first),
                6 => RmwOp::CompareAndFetch { expected: first, new: second },
                _ => return None,
            })
        }
        match number & WIDE {
            0 => whole(number, operands.map(|bits| bits as i32)).map(Self::Bits32),
            _ => whole(number & !WIDE, operands.map(|bits| bits as i64)).map(Self::Bits64),
        }
    }
}

/// The parameters of LAPI_Rmw.
pub struct Rmw<S> {
    /// The task that owns the variable; may be the caller.
    pub target: TaskId,
    /// The target's memory.
    pub remote: RemoteRegion,
    /// Offset of the variable in that memory, in bytes.
    pub offset: u64,
    /// What happens to the variable.
    pub operation: Operation,
    /// Where the result is stored before `next` is performed: LAPI's `prev_val`. A result of 32 bits is extended with
    /// its sign.
    pub prev: Option<Arc<AtomicI64>>,
    /// The action when the result has arrived: LAPI's `org_cntr` or send completion handler.
    pub next: Next<S>,
}

impl<S> Rmw<S> {
    /// Makes the parameters of a read-modify-write whose result nobody needs.
    #[inline]
    pub fn new(
        target: TaskId,
        remote: RemoteRegion,
        offset: u64,
        operation: impl Into<Operation>,
    ) -> Self {
        let (operation, prev, next) = (operation.into(), None, Next::Nothing);
        Self { target, remote, offset, operation, prev, next }
    }
}

impl<S> Outbox<S> {
    /// Checks a read-modify-write. Returns its result and what follows, if it is done: in a shared area. Otherwise
    /// queues it.
    pub(crate) fn begin_rmw(&mut self, call: Rmw<S>) -> Result<Option<(i64, Next<S>)>, LapiError> {
        let Rmw { target, remote, offset, operation, prev, next } = call;
        self.check_operation(target, &next)?;
        let size = operation.size();
        if remote.addr == 0 {
            return Err(LapiError::TgtVarNull);
        }
        remote.check(offset, size)?;
        if remote.addr != RemoteRegion::NO_ADDRESS && remote.addr.wrapping_add(offset) % size != 0 {
            return Err(LapiError::Unaligned { offset, size });
        }
        if let Some(place) = remote.area_place(offset) {
            let result = self.rmw_shared(target, place, operation)?;
            if let Some(prev) = prev {
                prev.store(result, Ordering::Relaxed);
            }
            return Ok(Some((result, next)));
        }
        self.queue_atomic(target, AtomicAccess { remote, offset, operation, prev, next });
        Ok(None)
    }

    /// Carries out a peer's read-modify-write and queues the answer.
    pub(crate) fn serve_rmw(
        &mut self,
        origin: TaskId,
        ticket: u32,
        operation: (u8, [u64; 2]),
        key: u64,
        offset: u64,
    ) -> Result<(), Violation> {
        let (number, operands) = operation;
        let result = Operation::decode(number, operands)
            .and_then(|operation| operation.apply(&self.regions.hold(key, 0, 0)?, offset));
        let answer = match result {
            Some(value) => Packet::RmwDone { ticket, value: value as u64 },
            None => Packet::RmwRefused { ticket },
        };
        self.push(origin, Outgoing::Control(answer));
        result.map(drop).ok_or(Violation::UnregisteredRmw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::region::RecvRegion;
    use proptest::prelude::*;

    fn operations() -> impl Strategy<Value = Operation> {
        fn of<T: Clone + std::fmt::Debug>(kind: u8, first: T, second: T) -> RmwOp<T> {
            match kind {
                0 => RmwOp::FetchAndAdd(first),
                1 => RmwOp::FetchAndOr(first),
                2 => RmwOp::Swap(first),
                3 => RmwOp::FetchAndAnd(first),
                4 => RmwOp::FetchAndXor(first),
                5 => RmwOp::CompareAndSwap { expected: first, new: second },
                _ => RmwOp::CompareAndFetch { expected: first, new: second },
            }
        }
        prop_oneof![
            (0_u8..7, any::<[i32; 2]>()).prop_map(|(kind, [a, b])| of(kind, a, b).into()),
            (0_u8..7, any::<[i64; 2]>()).prop_map(|(kind, [a, b])| of(kind, a, b).into()),
        ]
    }

    /// What the operation does to a value, computed without atomics.
    fn expected(operation: Operation, before: i64) -> (i64, i64) {
        match operation {
            Operation::Bits64(RmwOp::FetchAndAdd(value)) => (before.wrapping_add(value), before),
            Operation::Bits64(RmwOp::FetchAndOr(value)) => (before | value, before),
            Operation::Bits64(RmwOp::FetchAndAnd(value)) => (before & value, before),
            Operation::Bits64(RmwOp::FetchAndXor(value)) => (before ^ value, before),
            Operation::Bits64(RmwOp::Swap(value)) => (value, before),
            Operation::Bits64(RmwOp::CompareAndFetch { expected, new }) => {
                (if before == expected { new } else { before }, before)
            }
            Operation::Bits64(RmwOp::CompareAndSwap { expected, new }) => {
                match before == expected {
                    true => (new, 1),
                    false => (before, 0),
                }
            }
            Operation::Bits32(op) => {
                let wide = |value: i32| i64::from(value);
                let before = before as i32;
                let (after, result) = match op {
                    RmwOp::FetchAndAdd(value) => (before.wrapping_add(value), wide(before)),
                    RmwOp::FetchAndOr(value) => (before | value, wide(before)),
                    RmwOp::FetchAndAnd(value) => (before & value, wide(before)),
                    RmwOp::FetchAndXor(value) => (before ^ value, wide(before)),
                    RmwOp::Swap(value) => (value, wide(before)),
                    RmwOp::CompareAndFetch { expected, new } if before == expected => {
                        (new, wide(before))
                    }
                    RmwOp::CompareAndFetch { .. } => (before, wide(before)),
                    RmwOp::CompareAndSwap { expected, new } if before == expected => (new, 1),
                    RmwOp::CompareAndSwap { .. } => (before, 0),
                };
                (wide(after), result)
            }
        }
    }

    proptest! {
        #[test]
        fn operations_round_trip(operation in operations()) {
            let (number, operands) = operation.encode();
            prop_assert_eq!(Operation::decode(number, operands), Some(operation));
        }

        #[test]
        fn unknown_operations_are_refused(number in 16_u8.., operands: [u64; 2]) {
            prop_assert_eq!(Operation::decode(number, operands), None);
        }

        #[test]
        fn each_operation_does_what_it_says(
            operation in operations(), before: i64, matches: bool,
        ) {
            let operation = match operation {
                Operation::Bits64(RmwOp::CompareAndSwap { new, .. }) if matches => {
                    Operation::Bits64(RmwOp::CompareAndSwap { expected: before, new })
                }
                Operation::Bits64(RmwOp::CompareAndFetch { new, .. }) if matches => {
                    Operation::Bits64(RmwOp::CompareAndFetch { expected: before, new })
                }
                other => other,
            };
            let mut memory = [7, before, 7];
            #[expect(unsafe_code, reason = "describes an array as a region")]
            // SAFETY: the array outlives the region, and nobody else uses it meanwhile.
            let region = unsafe { RecvRegion::new(memory.as_mut_ptr().cast(), 24) };
            let result = operation.apply(&region, 8);
            let (after, expected) = expected(operation, before);
            prop_assert_eq!(result, Some(expected));
            let size = operation.size() as usize;
            prop_assert_eq!(&memory[1].to_le_bytes()[..size], &after.to_le_bytes()[..size]);
            prop_assert_eq!(&memory[1].to_le_bytes()[size..], &before.to_le_bytes()[size..]);
            prop_assert_eq!([memory[0], memory[2]], [7, 7]);
            for offset in [1, 6, 17, 24, u64::MAX - 3] {
                let region = RecvRegion::EMPTY;
                prop_assert_eq!(operation.apply(&region, offset), None);
            }
        }
    }
}
