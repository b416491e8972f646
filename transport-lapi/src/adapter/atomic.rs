//! Read-modify-writes of variables of 32 and 64 bits (LAPI_Rmw), as values.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::memory::region::RecvRegion;

/// A read-modify-write, with operands of type `i32` or `i64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RmwOp<T> {
    /// Adds the operand, modulo 2^32 or 2^64; the result is the value before: FETCH_AND_ADD.
    FetchAndAdd(T),
    /// Combines the bits with those of the operand by *or*; the result is the value before: FETCH_AND_OR.
    FetchAndOr(T),
    /// Likewise by *and*.
    FetchAndAnd(T),
    /// Likewise by *exclusive or*.
    FetchAndXor(T),
    /// Replaces the value by the operand; the result is the value before: SWAP.
    Swap(T),
    /// Replaces the value by `new` if it equals `expected`; the result is 1 if so, otherwise 0: COMPARE_AND_SWAP.
    CompareAndSwap {
        /// The value to be replaced.
        expected: T,
        /// The value to store.
        new: T,
    },
    /// [`RmwOp::CompareAndSwap`] whose result is the value before.
    CompareAndFetch {
        /// The value to be replaced.
        expected: T,
        /// The value to store.
        new: T,
    },
}

/// A read-modify-write of a variable of 32 or 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// LAPI_Rmw.
    Bits32(RmwOp<i32>),
    /// LAPI_Rmw64.
    Bits64(RmwOp<i64>),
}

impl From<RmwOp<i32>> for Operation {
    fn from(op: RmwOp<i32>) -> Self {
        Self::Bits32(op)
    }
}

impl From<RmwOp<i64>> for Operation {
    fn from(op: RmwOp<i64>) -> Self {
        Self::Bits64(op)
    }
}

impl Operation {
    /// Size of the variable in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        match self {
            Self::Bits32(_) => 4,
            Self::Bits64(_) => 8,
        }
    }

    /// Carries the operation out on the variable at `offset` of `memory`. Returns the result, or `None` if there is no
    /// such variable.
    pub fn apply(self, memory: &RecvRegion, offset: u64) -> Option<i64> {
        Some(match self {
            Self::Bits32(op) => op.apply_to(memory.half_word(offset)?),
            Self::Bits64(op) => op.apply_to(memory.word(offset)?),
        })
    }
}

macro_rules! atomically {
    ($signed:ty, $unsigned:ty, $variable:ty) => {
        impl RmwOp<$signed> {
            /// Carries the operation out and returns the result.
            #[inline]
            pub(crate) fn apply_to(self, variable: &$variable) -> i64 {
                const BOTH: Ordering = Ordering::AcqRel;
                let result = match self {
                    Self::FetchAndAdd(value) => variable.fetch_add(value as $unsigned, BOTH),
                    Self::FetchAndOr(value) => variable.fetch_or(value as $unsigned, BOTH),
                    Self::FetchAndAnd(value) => variable.fetch_and(value as $unsigned, BOTH),
                    Self::FetchAndXor(value) => variable.fetch_xor(value as $unsigned, BOTH),
                    Self::Swap(value) => variable.swap(value as $unsigned, BOTH),
                    Self::CompareAndSwap { expected, new } => {
                        let (expected, new) = (expected as $unsigned, new as $unsigned);
                        let swapped =
                            variable.compare_exchange(expected, new, BOTH, Ordering::Acquire);
                        <$unsigned>::from(swapped.is_ok())
                    }
                    Self::CompareAndFetch { expected, new } => {
                        let (expected, new) = (expected as $unsigned, new as $unsigned);
                        let before =
                            variable.compare_exchange(expected, new, BOTH, Ordering::Acquire);
                        before.unwrap_or_else(|other| other)
                    }
                };
                i64::from(result as $signed)
            }
        }
    };
}

atomically!(i32, u32, AtomicU32);
atomically!(i64, u64, AtomicU64);
