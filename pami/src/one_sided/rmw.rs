//! Read-modify-writes.

use std::sync::Arc;

use transport_lapi::{Operation as LapiOperation, Rmw, RmwOp};

use crate::RemoteMemory;
use crate::context::{CallbackOf, Section};
use crate::error::Error;
use crate::state::{End, Operation, at_end};
use crate::types::{Endpoint, Value};

/// How a variable is modified. All operations fetch, too: the value before is the result (PAMI_ATOMIC_FETCH).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modify {
    /// Replaces the value: PAMI_ATOMIC_SET.
    Set,
    /// Adds, and wraps around: PAMI_ATOMIC_ADD.
    Add,
    /// PAMI_ATOMIC_OR.
    Or,
    /// PAMI_ATOMIC_AND.
    And,
    /// PAMI_ATOMIC_XOR.
    Xor,
}

impl Modify {
    /// The value after `value` was applied to `before`.
    fn apply(self, before: i64, value: i64) -> i64 {
        match self {
            Self::Set => value,
            Self::Add => before.wrapping_add(value),
            Self::Or => before | value,
            Self::And => before & value,
            Self::Xor => before ^ value,
        }
    }
}

/// What gets the result of a read-modify-write: the value before.
pub type ValueCallback = CallbackOf<Value>;

/// The parameters of PAMI_Rmw.
pub struct RmwCall {
    /// The endpoint that has created the memory; may be the caller's.
    pub dest: Endpoint,
    /// The memory.
    pub remote: RemoteMemory,
    /// Where the variable is, in bytes of that memory.
    pub offset: u64,
    /// How it is modified.
    pub modify: Modify,
    /// The operand, which has the type of the variable.
    pub value: Value,
    /// If given, the variable is modified only if it has this value (PAMI_ATOMIC_COMPARE), taken as of the type of `value`.
    pub test: Option<Value>,
    /// Called with the value before.
    pub on_done: Option<ValueCallback>,
}

impl RmwCall {
    /// An unconditional operation, whose result nobody needs.
    pub fn new(
        dest: Endpoint,
        remote: RemoteMemory,
        offset: u64,
        modify: Modify,
        value: Value,
    ) -> Self {
        Self { dest, remote, offset, modify, value, test: None, on_done: None }
    }

    fn operation(&self) -> LapiOperation {
        fn of<T: Copy>(modify: Modify, value: T, test: Option<(T, T)>) -> RmwOp<T> {
            match (test, modify) {
                // If the test succeeds, the value before is known, and so is that after.
                (Some((expected, new)), _) => RmwOp::CompareAndFetch { expected, new },
                (None, Modify::Set) => RmwOp::Swap(value),
                (None, Modify::Add) => RmwOp::FetchAndAdd(value),
                (None, Modify::Or) => RmwOp::FetchAndOr(value),
                (None, Modify::And) => RmwOp::FetchAndAnd(value),
                (None, Modify::Xor) => RmwOp::FetchAndXor(value),
            }
        }
        let (modify, value) = (self.modify, self.value.bits());
        let test = self.test.map(|test| (test.bits(), modify.apply(test.bits(), value)));
        match self.value.size() {
            4 => of(modify, value as i32, test.map(|(test, new)| (test as i32, new as i32))).into(),
            _ => of(modify, value, test).into(),
        }
    }
}

impl Section<'_> {
    /// Modifies a variable in memory of another task (PAMI_Rmw). Never blocks. It is atomic with respect to other
    /// read-modify-writes of the variable, not to puts and writes, and ordered with nothing.
    ///
    /// # Errors
    /// [`Error::Unaligned`], [`Error::NoEndpoint`], [`Error::NoContext`]. What the transport refuses, such as a variable
    /// that does not lie in the memory, and a lost task, are told to the callback, or by the call if there is none.
    #[inline]
    pub fn rmw(&mut self, call: RmwCall) -> Result<(), Error> {
        self.core.check_endpoint(call.dest)?;
        let size = call.value.size();
        if call.offset % size != 0 {
            return Err(Error::Unaligned { offset: call.offset, size });
        }
        if self.is_here(call.dest) {
            return self.rmw_here(call);
        }
        let call = RmwCall { on_done: call.on_done.map(|one| self.at_home(one)), ..call };
        self.post_toward(call.dest, move |section| section.rmw_here(call))
    }

    #[inline]
    fn rmw_here(&mut self, call: RmwCall) -> Result<(), Error> {
        let operation = call.operation();
        let RmwCall { dest, remote, offset, value, on_done, .. } = call;
        let (target, rmw) = (dest.task(), Rmw::new(dest.task(), remote, offset, operation));
        let Some(callback) = on_done else {
            return self.session.rmw(rmw).map(drop).map_err(|cause| self.failed(cause));
        };
        if remote.is_in_area() {
            // The result is here when the call returns.
            let before = self.session.rmw(rmw).map_err(|cause| self.failed(cause));
            let before = before.map(|bits| value.with(bits.unwrap_or(0)));
            let (value, result) = match before {
                Ok(before) => (before, Ok(())),
                Err(error) => (value, Err(error)),
            };
            self.session.state.due.push_back((End::Value(callback, value, None), result));
            return Ok(());
        }
        let bits = self.session.state.free_results.pop().unwrap_or_default();
        let prev = Some(Arc::clone(&bits));
        let on_end = End::Value(callback, value, Some(bits));
        let operation = Operation { target, awaits_target: false, on_end };
        let number = Some(self.session.state.begin(operation));
        let begun = self.session.rmw(Rmw { prev, next: at_end(number), ..rmw });
        begun.map(drop).or_else(|cause| self.fail([number], cause))
    }
}
