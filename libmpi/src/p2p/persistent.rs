//! Persistent sends and receives (MPI-5.0 section 3.9): made with all arguments, and started by MPI_Start.

use mpicore::datatype::Datatype;
use mpicore::{PROC_NULL, PersistentTransfer, SendMode};

use super::{Peer, told};
use crate::abi::*;
use crate::call::{Outcome, mpi_bodies, out};
use crate::comm::Owner;
use crate::datatype::Data;
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

fn keep(
    owner: Owner,
    role: Role,
    data: Data,
    mut transfer: PersistentTransfer,
) -> Outcome<MPI_Request> {
    let slot = OBJECTS.reserve()?;
    // The program may free its datatype.
    let told = told(&owner, data).map(|found| (owner.core.clone(), Datatype::clone(&found)));
    let start = move || {
        let _said = told.as_ref().map(|(core, datatype)| core.describe(Some(datatype), None));
        Ok(transfer.start()?)
    };
    Ok(Request::persistent(owner, role, Box::new(start)).keep(slot))
}

/// MPI_Send_init, MPI_Bsend_init, MPI_Ssend_init and MPI_Rsend_init.
unsafe fn send_init(data: Data, to: Peer, request: *mut MPI_Request, mode: SendMode) -> Outcome {
    let comm = to.comm.find()?;
    let (dest, tag) = to.receiver(&comm, "tag")?;
    // SAFETY: FC1: the elements stay as they are while a started operation lasts.
    let (place, (input, count)) = unsafe { (out::place(request, "request")?, data.input()?) };
    let dest = dest.unwrap_or(PROC_NULL);
    let transfer = comm.core.send_init(input, count, dest, tag, mode)?;
    *place = keep(comm, Role::Send, data, transfer)?;
    Ok(())
}

/// MPI_Recv_init.
unsafe fn recv_init(data: Data, from: Peer, request: *mut MPI_Request) -> Outcome {
    let comm = from.comm.find()?;
    let (source, tag) = from.sender(&comm, "tag")?;
    // SAFETY: FC1: nobody else uses the elements while a started operation lasts.
    let (place, (output, count)) = unsafe { (out::place(request, "request")?, data.output()?) };
    let source = source.unwrap_or(Some(PROC_NULL));
    let transfer = comm.core.recv_init(output, count, source, tag)?;
    *place = keep(comm, Role::Receive, data, transfer)?;
    Ok(())
}

mpi_bodies! {
    MPI_Send_init, MPI_Send_init_c => send_init(SendMode::Standard);
    MPI_Bsend_init, MPI_Bsend_init_c => send_init(SendMode::Buffered);
    MPI_Ssend_init, MPI_Ssend_init_c => send_init(SendMode::Synchronous);
    MPI_Rsend_init, MPI_Rsend_init_c => send_init(SendMode::Ready);
    MPI_Recv_init, MPI_Recv_init_c => recv_init();
}
