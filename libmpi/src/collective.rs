//! Collective communication (MPI-4.1 chapter 6).

use std::ffi::c_void;

use mpicore::op::Predefined;
use mpicore::{Operand, Reduction};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, out};
use crate::comm::Owner;
use crate::request::{Request, Role};

/// Returns whether a buffer argument is MPI_IN_PLACE.
#[inline]
pub(crate) fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == MPI_IN_PLACE
}

impl MPI_Op {
    /// Returns the predefined operation.
    ///
    /// # Errors
    /// MPI_ERR_OP.
    pub fn predefined(self) -> Outcome<Predefined> {
        Ok(match self {
            MPI_SUM => Predefined::Sum,
            MPI_MIN => Predefined::Min,
            MPI_MAX => Predefined::Max,
            MPI_PROD => Predefined::Prod,
            MPI_BAND => Predefined::Band,
            MPI_BOR => Predefined::Bor,
            MPI_BXOR => Predefined::Bxor,
            MPI_LAND => Predefined::Land,
            MPI_LOR => Predefined::Lor,
            MPI_LXOR => Predefined::Lxor,
            MPI_MINLOC => Predefined::MinLoc,
            MPI_MAXLOC => Predefined::MaxLoc,
            MPI_REPLACE => Predefined::Replace,
            MPI_NO_OP => Predefined::NoOp,
            _ => return Err(Fault::argument(MPI_ERR_OP, "op", "the handle names no operation")),
        })
    }
}

/// Returns the reduction of elements of a datatype.
///
/// # Errors
/// MPI_ERR_OP, MPI_ERR_TYPE.
fn reduction(op: MPI_Op, datatype: MPI_Datatype) -> Outcome<Reduction> {
    let op = op.predefined()?;
    match datatype.kind() {
        Some(kind) => Ok(Reduction { op: op.into(), operand: Operand::Kind(kind) }),
        None => {
            let found = datatype.find()?;
            let text = format!("{op} is not defined on elements of {}", *found);
            Err(Fault::argument(MPI_ERR_OP, "op", text))
        }
    }
}

/// MPI_Allreduce.
unsafe fn allreduce(
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    op: MPI_Op,
    comm: MPI_Comm,
) -> Outcome {
    let (comm, count) = (comm.find()?, count.into());
    let reduction = reduction(op, datatype)?;
    // SAFETY: FC1.
    let output = unsafe { datatype.output(recvbuf, count) }?;
    let input = match is_in_place(sendbuf) {
        true => None,
        // SAFETY: FC1.
        false => Some(unsafe { datatype.input(sendbuf, count) }?),
    };
    Ok(comm.core.allreduce(input, output, count as u64, reduction)?.run()?)
}

mpi_bodies! {
    MPI_Allreduce, MPI_Allreduce_c => allreduce();
}

mpi! {
    fn MPI_Ibarrier(comm: MPI_Comm, request: *mut MPI_Request) -> c_int {
        let place = out::place(request, "request")?;
        let comm = comm.find()?;
        let plan = if comm.core.is_inter() { comm.core.inter_barrier()? } else { comm.core.barrier()? };
        *place = Request::new(Owner::of(&comm), Role::Other, plan.start()?).keep()?;
        Ok(())
    }

    fn MPI_Barrier(comm: MPI_Comm) -> c_int {
        let comm = comm.find()?;
        match comm.core.is_inter() {
            false => Ok(comm.core.run_barrier()?),
            true => Ok(comm.core.inter_barrier()?.run()?),
        }
    }
}
