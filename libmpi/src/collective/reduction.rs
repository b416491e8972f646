//! Collectives that combine data (MPI-5.0 sections 6.9 to 6.11), and MPI_Reduce_local.

use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use mpicore::collective::inter;
use mpicore::op::{Op, reduce_local as combine};
use mpicore::{Error, Input, Output, Reduction};

use super::buffer::{check_apart, list_of_counts};
use super::operation::{Described, Found, kind_for};
use super::{Collective, Root, collectives, short};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, negative_count};
use crate::datatype::{Data, Number, is_in_place};

/// What a reduction combines, without the number of elements, as a program gives it.
#[derive(Clone, Copy)]
pub(crate) struct Operands {
    pub sendbuf: *const c_void,
    pub recvbuf: *mut c_void,
    pub datatype: MPI_Datatype,
    pub op: MPI_Op,
}

impl Operands {
    /// Puts the arguments of a function together.
    #[inline(always)]
    pub fn new(
        sendbuf: *const c_void,
        recvbuf: *mut c_void,
        datatype: MPI_Datatype,
        op: MPI_Op,
    ) -> Self {
        Self { sendbuf, recvbuf, datatype, op }
    }

    /// Returns the operation on elements of the datatype.
    fn reduction(&self) -> Outcome<Reduction> {
        self.op.reduction(self.datatype)
    }

    /// Returns `count` operands of the send buffer; `None` if it is MPI_IN_PLACE, where that is allowed.
    #[inline]
    unsafe fn input(&self, count: i64, may_be_in_place: bool) -> Outcome<Option<Input>> {
        if may_be_in_place && is_in_place(self.sendbuf) {
            return Ok(None);
        }
        check_apart(self.sendbuf, self.recvbuf, count)?;
        // SAFETY: FC1.
        Ok(Some(unsafe { self.sent(count).input() }?.0))
    }

    /// Returns the place of `count` results.
    #[inline]
    unsafe fn output(&self, count: i64) -> Outcome<Output> {
        // SAFETY: FC1.
        Ok(unsafe { self.received(count).output() }?.0)
    }

    /// Returns `total` operands, and the place of the `own` results that this rank gets of them. In place, the receive
    /// buffer has the operands.
    unsafe fn scattered(
        &self,
        total: i64,
        own: i64,
        may_be_in_place: bool,
    ) -> Outcome<(Option<Input>, Output)> {
        // SAFETY: FC1.
        unsafe {
            let input = self.input(total, may_be_in_place)?;
            let output = self.output(if input.is_none() { total } else { own })?;
            Ok((input, output))
        }
    }

    /// Describes `count` elements of the send buffer.
    #[inline(always)]
    pub(super) fn sent(&self, count: i64) -> Data {
        Data { buffer: self.sendbuf, count, datatype: self.datatype }
    }

    /// Describes `count` elements of the receive buffer.
    #[inline(always)]
    pub(super) fn received(&self, count: i64) -> Data {
        Data { buffer: self.recvbuf, count, datatype: self.datatype }
    }
}

/// MPI_Reduce.
#[inline(always)]
unsafe fn reduce(
    operands: Operands,
    count: impl Into<i64>,
    root: c_int,
    call: Collective,
) -> Outcome {
    let (root, count) = (call.root(root)?, count.into());
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::reduce(&call, root, operands, count) } {
        return done;
    }
    let reduction = match root {
        // All other arguments of a rank beside the root mean nothing.
        Root::Between(inter::Root::Beside) => MPI_SUM.reduction(MPI_INT)?,
        _ => operands.reduction()?,
    };
    // Only the root has a receive buffer.
    let recvbuf = if root.is_here() { operands.recvbuf } else { ptr::null_mut() };
    let operands = Operands { recvbuf, ..operands };
    let output = match root.is_here() {
        // SAFETY: FC1.
        true => unsafe { operands.output(count) }?,
        false => Output::none(),
    };
    let input = match root.is_served() {
        // SAFETY: FC1.
        true => unsafe { operands.input(count, matches!(root, Root::Within(_, true))) }?,
        false => Some(Input::none()),
    };
    let core = &call.comm.core;
    let plan = match root {
        Root::Within(root, _) => core.reduce(input, output, count as u64, reduction, root)?,
        Root::Between(root) => {
            // A rank beside the root has no count.
            let count = if root == inter::Root::Beside { 0 } else { count as u64 };
            core.inter_reduce(input.unwrap_or_else(Input::none), output, count, reduction, root)?
        }
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Allreduce.
#[inline(always)]
unsafe fn allreduce(operands: Operands, count: impl Into<i64>, call: Collective) -> Outcome {
    let (core, count) = (&call.comm.core, count.into());
    // SAFETY: FC1.
    if let Some(done) = unsafe { short::allreduce(&call, operands, count) } {
        return done;
    }
    let reduction = operands.reduction()?;
    // SAFETY: FC1.
    let (output, input) =
        unsafe { (operands.output(count)?, operands.input(count, !core.is_inter())?) };
    let plan = match input {
        Some(input) if core.is_inter() => {
            core.inter_allreduce(input, output, count as u64, reduction)?
        }
        input => core.allreduce(input, output, count as u64, reduction)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Reduce_scatter_block.
unsafe fn reduce_scatter_block(
    operands: Operands,
    count: impl Into<i64>,
    call: Collective,
) -> Outcome {
    let (reduction, count) = (operands.reduction()?, count.into());
    let core = &call.comm.core;
    if count < 0 {
        return Err(negative_count("recvcount", count));
    }
    let Some(total) = count.checked_mul(core.size().into()) else {
        let text = format!("{count} elements for each rank exceed the memory");
        return Err(Fault::argument(MPI_ERR_COUNT, "recvcount", text));
    };
    // SAFETY: FC1.
    let (input, output) = unsafe { operands.scattered(total, count, !core.is_inter()) }?;
    let plan = match input {
        Some(input) if core.is_inter() => {
            let counts = vec![count as u64; core.size() as usize];
            core.inter_reduce_scatter(input, output, &counts, reduction)?
        }
        input => core.reduce_scatter_block(input, output, count as u64, reduction)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Reduce_scatter.
unsafe fn reduce_scatter(
    operands: Operands,
    recvcounts: *const impl Number,
    call: Collective,
) -> Outcome {
    let (reduction, core) = (operands.reduction()?, &call.comm.core);
    // SAFETY: FC1.
    let counts = unsafe { list_of_counts(core.size(), recvcounts) }?;
    let total = counts.iter().try_fold(0_i64, |total, count| total.checked_add_unsigned(*count));
    let Some(total) = total else {
        let text = "the sum of all counts exceeds the memory";
        return Err(Fault::argument(MPI_ERR_COUNT, "recvcounts", text));
    };
    let own = counts[core.rank() as usize] as i64;
    // SAFETY: FC1.
    let (input, output) = unsafe { operands.scattered(total, own, !core.is_inter()) }?;
    let plan = match input {
        Some(input) if core.is_inter() => {
            core.inter_reduce_scatter(input, output, &counts, reduction)?
        }
        input => core.reduce_scatter(input, output, &counts, reduction)?,
    };
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Scan.
unsafe fn scan(operands: Operands, count: impl Into<i64>, call: Collective) -> Outcome {
    let (reduction, count) = (operands.reduction()?, count.into());
    // SAFETY: FC1.
    let (output, input) = unsafe { (operands.output(count)?, operands.input(count, true)?) };
    let plan = call.comm.core.scan(input, output, count as u64, reduction)?;
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Exscan.
unsafe fn exscan(operands: Operands, count: impl Into<i64>, call: Collective) -> Outcome {
    let (reduction, count) = (operands.reduction()?, count.into());
    let core = &call.comm.core;
    // The first rank uses its receive buffer only in place.
    let is_unused = core.rank() == 0 && !is_in_place(operands.sendbuf);
    let recvbuf = if is_unused { ptr::null_mut() } else { operands.recvbuf };
    let operands = Operands { recvbuf, ..operands };
    let output = match is_unused {
        true => Output::none(),
        // SAFETY: FC1.
        false => unsafe { operands.output(count) }?,
    };
    // SAFETY: FC1.
    let input = unsafe { operands.input(count, true) }?;
    let plan = core.exscan(input, output, count as u64, reduction)?;
    // SAFETY: FC1.
    unsafe { call.finish(plan) }
}

/// MPI_Reduce_local.
unsafe fn reduce_local(operands: Operands, count: impl Into<i64>) -> Outcome {
    let Operands { sendbuf: inbuf, recvbuf: inoutbuf, datatype, op } = operands;
    let (op, count) = (op.find()?, count.into());
    // This only checks the arguments.
    operands.sent(count).elements()?;
    operands.received(count).elements()?;
    check_apart(inbuf, inoutbuf, count)?;
    match op {
        Found::Made(made) => {
            let (function, described) = (made.function(), Described::new(datatype)?);
            // The function may free the operation.
            drop(made);
            // SAFETY: FC1.
            unsafe { function.apply(inbuf.cast(), inoutbuf.cast(), count as usize, &described) };
        }
        Found::Predefined(op) if !op.reduces() => return Err(Error::NotForReductions { op }.into()),
        Found::Predefined(op) => {
            let kind = kind_for(op, datatype)?;
            let len = count as usize * kind.extent();
            if len > 0 {
                // SAFETY: FC1; the elements have no null address, and are two separate buffers.
                let (input, inout) = unsafe {
                    (
                        slice::from_raw_parts(inbuf.cast(), len),
                        slice::from_raw_parts_mut(inoutbuf.cast(), len),
                    )
                };
                combine(&op.into(), kind, input, inout)?;
            } else {
                Op::from(op).check(kind)?;
            }
        }
    }
    Ok(())
}

mpi_bodies! {
    MPI_Reduce_local, MPI_Reduce_local_c => reduce_local();
}

collectives! {
    MPI_Reduce, MPI_Reduce_c, MPI_Ireduce, MPI_Ireduce_c, MPI_Reduce_init, MPI_Reduce_init_c => reduce;
    MPI_Allreduce, MPI_Allreduce_c, MPI_Iallreduce, MPI_Iallreduce_c, MPI_Allreduce_init, MPI_Allreduce_init_c
        => allreduce;
    MPI_Reduce_scatter_block, MPI_Reduce_scatter_block_c, MPI_Ireduce_scatter_block, MPI_Ireduce_scatter_block_c,
    MPI_Reduce_scatter_block_init, MPI_Reduce_scatter_block_init_c => reduce_scatter_block;
    MPI_Reduce_scatter, MPI_Reduce_scatter_c, MPI_Ireduce_scatter, MPI_Ireduce_scatter_c, MPI_Reduce_scatter_init,
    MPI_Reduce_scatter_init_c => reduce_scatter;
    MPI_Scan, MPI_Scan_c, MPI_Iscan, MPI_Iscan_c, MPI_Scan_init, MPI_Scan_init_c => scan;
    MPI_Exscan, MPI_Exscan_c, MPI_Iexscan, MPI_Iexscan_c, MPI_Exscan_init, MPI_Exscan_init_c => exscan;
}
