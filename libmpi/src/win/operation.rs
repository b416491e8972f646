//! Puts, gets and accumulates (MPI-5.0 section 12.3), with their forms for requests and large counts.

use std::ffi::{c_int, c_void};

use mpicore::op::Predefined;
use mpicore::{Error, Target};
use mpjdev::Source;

use super::Win;
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, negative_count, out};
use crate::datatype::Data;
use crate::handles::OBJECTS;
use crate::request::{COMPLETE, Request, Role};

/// The elements that an operation accesses at a rank, as a program gives them.
#[derive(Clone, Copy)]
pub(crate) struct Remote {
    pub rank: c_int,
    pub displacement: MPI_Aint,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Remote {
    /// Puts the arguments of a function together.
    pub fn new(
        rank: c_int,
        displacement: MPI_Aint,
        count: impl Into<i64>,
        datatype: MPI_Datatype,
    ) -> Self {
        Self { rank, displacement, count: count.into(), datatype }
    }

    /// Returns the rank and the length in bytes of elements of a predefined datatype without padding, if there are any.
    #[inline(always)]
    fn plain(self) -> Option<(u32, usize)> {
        let Self { rank, count, datatype, .. } = self;
        let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
        Some((u32::try_from(rank).ok()?, datatype.dense_size()?.checked_mul(count)?))
    }

    /// Calls an operation on these elements; does nothing, and returns `None`, for MPI_PROC_NULL.
    fn access<R>(
        self,
        win: &Win,
        operation: impl FnOnce(Target<'_>) -> Result<R, Error>,
    ) -> Outcome<Option<R>> {
        let Self { displacement, count, .. } = self;
        let Some(rank) = win.rank(self.rank).map_err(|fault| fault.about("target_rank"))? else {
            return Ok(None);
        };
        if count < 0 {
            return Err(negative_count("target_count", count));
        }
        let datatype = &*self.datatype.of_elements(count != 0).committed()?;
        let target = Target { rank, displacement: displacement as i64, count, datatype };
        Ok(Some(operation(target)?))
    }
}

/// Starts an operation on elements at a rank, and writes the handle of its request; for MPI_PROC_NULL, that of a complete
/// one.
///
/// # Safety
/// FC1.
unsafe fn start(
    to: Remote,
    (win, handle): (&Win, MPI_Win),
    request: *mut MPI_Request,
    operation: impl FnOnce(Target<'_>) -> Result<mpjdev::Request, Error>,
) -> Outcome {
    // SAFETY: the caller's promise.
    let (place, slot) = (unsafe { out::place(request, "request") }?, OBJECTS.reserve()?);
    *place = to.access(win, operation)?.map_or(COMPLETE, |started| {
        let request = Request::new(win.comm.clone(), Role::Other, started);
        request.on_window(handle).keep(slot)
    });
    Ok(())
}

/// Returns the operation of an accumulate.
fn op_of(op: MPI_Op) -> Outcome<Predefined> {
    op.predefined()
        .ok_or_else(|| Fault::argument(MPI_ERR_OP, "op", "accumulates need a predefined operation"))
}

/// Returns the origin's elements, unless the operation does not use them.
///
/// # Safety
/// As [`Data::source`].
unsafe fn operands(data: Data, op: Predefined) -> Outcome<Source> {
    // SAFETY: the caller's promise.
    if op == Predefined::NoOp { Ok(Source::EMPTY) } else { unsafe { data.source() } }
}

/// Combines elements of one predefined datatype by the short path; `None` if another path must decide.
///
/// # Safety
/// As [`Data::source`] and [`Data::sink`].
#[inline(always)]
unsafe fn combine_plain(
    win: &Win,
    (data, result): (Data, Option<Data>),
    to: Remote,
    op: Predefined,
) -> Option<Result<(), Error>> {
    let (rank, len) = to.plain()?;
    let kind = to.datatype.kind()?;
    let is_same = |data: &Data| data.datatype == to.datatype && data.plain_len() == Some(len);
    let from = match op {
        Predefined::NoOp => None,
        // SAFETY: the caller's promise.
        _ => Some(unsafe { data.dense_source() }.ok()?.filter(|_| is_same(&data))?),
    };
    let into = match result {
        // SAFETY: as above.
        Some(result) => Some(unsafe { result.dense_sink() }.ok()?.filter(|_| is_same(&result))?),
        None => None,
    };
    win.core.combine_plain((from, into), (op, kind), rank, to.displacement as i64)
}

/// MPI_Put.
unsafe fn put(data: Data, to: Remote, win: MPI_Win) -> Outcome {
    let win = win.find()?;
    // SAFETY: FC1.
    if let (Some(from), Some((rank, len))) = (unsafe { data.dense_source() }?, to.plain()) {
        if from.len() == len && win.core.put_plain(from, rank, to.displacement as i64) {
            return Ok(());
        }
    }
    // SAFETY: FC1.
    let from = unsafe { data.source() }?;
    to.access(&win, |target| win.core.put(from, target)).map(drop)
}

/// MPI_Rput.
unsafe fn rput(data: Data, to: Remote, handle: MPI_Win, request: *mut MPI_Request) -> Outcome {
    let win = handle.find()?;
    // SAFETY: FC1.
    unsafe {
        let from = data.source()?;
        start(to, (&win, handle), request, |target| win.core.rput(from, target))
    }
}

/// MPI_Get.
unsafe fn get(data: Data, from: Remote, win: MPI_Win) -> Outcome {
    let win = win.find()?;
    // SAFETY: FC1.
    if let (Some(into), Some((rank, len))) = (unsafe { data.dense_sink() }?, from.plain()) {
        if into.len() == len && win.core.get_plain(into, rank, from.displacement as i64) {
            return Ok(());
        }
    }
    // SAFETY: FC1.
    let into = unsafe { data.sink() }?;
    from.access(&win, |target| win.core.get(into, target)).map(drop)
}

/// MPI_Rget.
unsafe fn rget(data: Data, from: Remote, handle: MPI_Win, request: *mut MPI_Request) -> Outcome {
    let win = handle.find()?;
    // SAFETY: FC1.
    unsafe {
        let into = data.sink()?;
        start(from, (&win, handle), request, |target| win.core.rget(into, target))
    }
}

/// MPI_Accumulate.
unsafe fn accumulate(data: Data, to: Remote, op: MPI_Op, win: MPI_Win) -> Outcome {
    let (win, op) = (win.find()?, op_of(op)?);
    // SAFETY: FC1.
    if let Some(done) = unsafe { combine_plain(&win, (data, None), to, op) } {
        return Ok(done?);
    }
    // SAFETY: FC1.
    let from = unsafe { operands(data, op) }?;
    to.access(&win, |target| win.core.accumulate(from, op, target)).map(drop)
}

/// MPI_Raccumulate.
unsafe fn raccumulate(
    data: Data,
    to: Remote,
    op: MPI_Op,
    handle: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    let (win, op) = (handle.find()?, op_of(op)?);
    // SAFETY: FC1.
    unsafe {
        let from = operands(data, op)?;
        start(to, (&win, handle), request, |target| win.core.raccumulate(from, op, target))
    }
}

/// MPI_Get_accumulate.
unsafe fn get_accumulate(
    data: Data,
    result: Data,
    to: Remote,
    op: MPI_Op,
    win: MPI_Win,
) -> Outcome {
    let (win, op) = (win.find()?, op_of(op)?);
    // SAFETY: FC1.
    if let Some(done) = unsafe { combine_plain(&win, (data, Some(result)), to, op) } {
        return Ok(done?);
    }
    // SAFETY: FC1.
    let (from, into) = unsafe { (operands(data, op)?, result.sink()?) };
    to.access(&win, |target| win.core.get_accumulate(from, into, op, target)).map(drop)
}

/// MPI_Rget_accumulate.
unsafe fn rget_accumulate(
    data: Data,
    result: Data,
    to: Remote,
    op: MPI_Op,
    handle: MPI_Win,
    request: *mut MPI_Request,
) -> Outcome {
    let (win, op) = (handle.find()?, op_of(op)?);
    // SAFETY: FC1.
    unsafe {
        let (from, into) = (operands(data, op)?, result.sink()?);
        let begin = |target: Target<'_>| win.core.rget_accumulate(from, into, op, target);
        start(to, (&win, handle), request, begin)
    }
}

/// Replaces an element of a predefined datatype by the short path; `None` if another path must decide.
///
/// # Safety
/// As [`Data::source`] and [`Data::sink`].
#[inline(always)]
unsafe fn swap_plain(
    win: &Win,
    (from, compare, into): (Data, Data, Data),
    (rank, displacement): (c_int, MPI_Aint),
) -> Option<Result<(), Error>> {
    let kind = from.datatype.kind()?;
    let rank = u32::try_from(rank).ok()?;
    // SAFETY: the caller's promise.
    let buffers = unsafe {
        (from.dense_source().ok()??, compare.dense_source().ok()??, into.dense_sink().ok()??)
    };
    win.core.swap_plain(buffers, kind, rank, displacement as i64)
}

/// Returns one element as an origin has it.
fn one(buffer: *const c_void, datatype: MPI_Datatype) -> Data {
    Data::new(buffer, 1, datatype)
}

mpi_bodies! {
    MPI_Put, MPI_Put_c => put();
    MPI_Rput, MPI_Rput_c => rput();
    MPI_Get, MPI_Get_c => get();
    MPI_Rget, MPI_Rget_c => rget();
    MPI_Accumulate, MPI_Accumulate_c => accumulate();
    MPI_Raccumulate, MPI_Raccumulate_c => raccumulate();
    MPI_Get_accumulate, MPI_Get_accumulate_c => get_accumulate();
    MPI_Rget_accumulate, MPI_Rget_accumulate_c => rget_accumulate();
}

mpi! {
    fn MPI_Fetch_and_op(
        origin_addr: *const c_void, result_addr: *mut c_void, datatype: MPI_Datatype, target_rank: c_int,
        target_disp: MPI_Aint, op: MPI_Op, win: MPI_Win
    ) -> c_int {
        let to = Remote::new(target_rank, target_disp, 1, datatype);
        get_accumulate(one(origin_addr, datatype), one(result_addr, datatype), to, op, win)
    }

    fn MPI_Compare_and_swap(
        origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void, datatype: MPI_Datatype,
        target_rank: c_int, target_disp: MPI_Aint, win: MPI_Win
    ) -> c_int {
        let win = win.find()?;
        let [from, other, into] = [origin_addr, compare_addr, result_addr].map(|buffer| one(buffer, datatype));
        if let Some(done) = swap_plain(&win, (from, other, into), (target_rank, target_disp)) {
            return Ok(done?);
        }
        let [origin, compare] = [origin_addr, compare_addr].map(|buffer| one(buffer, datatype).source());
        let (from, compare, into) = (origin?, compare?, one(result_addr, datatype).sink()?);
        let to = Remote::new(target_rank, target_disp, 1, datatype);
        to.access(&win, |target| win.core.compare_and_swap(from, compare, into, target)).map(drop)
    }
}
