//! A send and a receive in one call (MPI-4.1 sections 3.10 and 3.11).

use std::ffi::{c_int, c_void};

use mpicore::PROC_NULL;
use mpjdev::{Sink, Source, Status};

use super::{check_tag, not_received, status_on, store, wanted_tag};
use crate::abi::*;
use crate::call::{Outcome, mpi_bodies, out};
use crate::comm::Comm;
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

/// The receiver of the message that is sent, and its tag.
fn to(comm: &Comm, dest: c_int, tag: c_int) -> Outcome<(usize, c_int)> {
    check_tag(tag, "sendtag")?;
    Ok((comm.receiver(dest)?.unwrap_or(PROC_NULL), tag))
}

/// The sender of the message that is received, and its tag.
fn from(comm: &Comm, source: c_int, tag: c_int) -> Outcome<(Option<usize>, Option<c_int>)> {
    let tag = wanted_tag(tag, "recvtag")?;
    Ok((comm.sender(source)?.unwrap_or(Some(PROC_NULL)), tag))
}

fn shown(comm: &Comm, received: Result<Status, mpicore::Error>) -> Outcome<MPI_Status> {
    match received {
        Ok(received) if received.source as usize == PROC_NULL => Ok(MPI_Status::NOBODY),
        Ok(received) => Ok(status_on(comm, received)),
        Err(error) => Err(not_received(comm, error)),
    }
}

/// The data of a buffer, and the place for a message in it, which may replace the data.
unsafe fn both(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
) -> Outcome<(Source, Sink)> {
    let count = count.into();
    // SAFETY: FC1. The data are copied before the message is received.
    unsafe { Ok((datatype.source(buf, count)?, datatype.sink(buf, count)?)) }
}

/// MPI_Sendrecv.
unsafe fn sendrecv<C: Into<i64>>(
    sendbuf: *const c_void,
    sendcount: C,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: C,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = comm.find()?;
    // SAFETY: FC1.
    let data = unsafe { sendtype.source(sendbuf, sendcount.into()) }?;
    // SAFETY: FC1.
    let into = unsafe { recvtype.sink(recvbuf, recvcount.into()) }?;
    let (to, from) = (to(&comm, dest, sendtag)?, from(&comm, source, recvtag)?);
    let received = shown(&comm, comm.core.sendrecv(data, to, into, from));
    // SAFETY: FC1.
    unsafe { store(received, status) }
}

/// MPI_Isendrecv.
unsafe fn isendrecv<C: Into<i64>>(
    sendbuf: *const c_void,
    sendcount: C,
    sendtype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: C,
    recvtype: MPI_Datatype,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = comm.find()?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1.
    let data = unsafe { sendtype.source(sendbuf, sendcount.into()) }?;
    // SAFETY: FC1.
    let into = unsafe { recvtype.sink(recvbuf, recvcount.into()) }?;
    let (to, from) = (to(&comm, dest, sendtag)?, from(&comm, source, recvtag)?);
    let slot = OBJECTS.reserve()?;
    let started = comm.core.isendrecv(data, to, into, from)?;
    *place = Request::new(comm, Role::Receive, started).keep(slot);
    Ok(())
}

/// MPI_Sendrecv_replace.
unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = comm.find()?;
    // SAFETY: FC1.
    let (data, into) = unsafe { both(buf, count, datatype) }?;
    let (to, from) = (to(&comm, dest, sendtag)?, from(&comm, source, recvtag)?);
    let received = shown(&comm, comm.core.sendrecv_replace(&data, to, into, from));
    // SAFETY: FC1.
    unsafe { store(received, status) }
}

/// MPI_Isendrecv_replace.
unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = comm.find()?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1.
    let (data, into) = unsafe { both(buf, count, datatype) }?;
    let (to, from) = (to(&comm, dest, sendtag)?, from(&comm, source, recvtag)?);
    let slot = OBJECTS.reserve()?;
    let started = comm.core.isendrecv_replace(&data, to, into, from)?;
    *place = Request::new(comm, Role::Receive, started).keep(slot);
    Ok(())
}

mpi_bodies! {
    MPI_Sendrecv, MPI_Sendrecv_c => sendrecv();
    MPI_Isendrecv, MPI_Isendrecv_c => isendrecv();
    MPI_Sendrecv_replace, MPI_Sendrecv_replace_c => sendrecv_replace();
    MPI_Isendrecv_replace, MPI_Isendrecv_replace_c => isendrecv_replace();
}
