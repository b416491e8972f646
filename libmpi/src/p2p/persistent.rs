//! Persistent sends and receives (MPI-4.1 section 3.9): made with all arguments, and started by MPI_Start.

use std::ffi::{c_int, c_void};

use mpicore::{PROC_NULL, PersistentTransfer, SendMode};

use super::{check_tag, wanted_tag};
use crate::abi::*;
use crate::call::{Outcome, mpi_bodies, out};
use crate::comm::Owner;
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

fn keep(owner: Owner, role: Role, mut transfer: PersistentTransfer) -> Outcome<MPI_Request> {
    let slot = OBJECTS.reserve()?;
    Ok(Request::persistent(owner, role, Box::new(move || Ok(transfer.start()?))).keep(slot))
}

/// MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init and MPI_Rsend_init.
unsafe fn send_init(
    buf: *const c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    mode: SendMode,
) -> Outcome {
    let (comm, count) = (comm.find()?, count.into());
    check_tag(tag, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1: the elements stay as they are while a started operation lasts.
    let data = unsafe { datatype.input(buf, count) }?;
    let dest = comm.receiver(dest)?.unwrap_or(PROC_NULL);
    let transfer = comm.core.send_init(data, count as u64, dest, tag, mode)?;
    *place = keep(comm, Role::Send, transfer)?;
    Ok(())
}

/// MPI_Recv_init.
unsafe fn recv_init(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let (comm, count) = (comm.find()?, count.into());
    let tag = wanted_tag(tag, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1: nobody else uses the elements while a started operation lasts.
    let into = unsafe { datatype.output(buf, count) }?;
    let source = comm.sender(source)?.unwrap_or(Some(PROC_NULL));
    let transfer = comm.core.recv_init(into, count as u64, source, tag)?;
    *place = keep(comm, Role::Receive, transfer)?;
    Ok(())
}

mpi_bodies! {
    MPI_Send_init, MPI_Send_init_c => send_init(SendMode::Standard);
    MPI_Bsend_init, MPI_Bsend_init_c => send_init(SendMode::Buffered);
    MPI_Ssend_init, MPI_Ssend_init_c => send_init(SendMode::Synchronous);
    MPI_Rsend_init, MPI_Rsend_init_c => send_init(SendMode::Ready);
    MPI_Recv_init, MPI_Recv_init_c => recv_init();
}
