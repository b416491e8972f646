//! Point-to-point communication (MPI-4.1 chapter 3): sends, receives and probes. Further files of `p2p/`:
//!
//! - `buffered.rs`: buffered sends and their buffers.
//! - `matched.rs`: matched probes and the receives that follow them.
//! - `exchange.rs`: a send and a receive in one call.
//! - `persistent.rs`, `partitioned.rs`: operations that are started many times.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use mpjdev::{Mode, RecvRegion, SendRegion, Status};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, out};
use crate::comm::Comm;
use crate::handles::{Held, OBJECTS};
use crate::request::{COMPLETE, Request, Role};

mod buffered;
mod exchange;
pub(crate) mod matched;
mod partitioned;
mod persistent;

/// Refuses what is no tag of a message.
#[inline(always)]
pub(crate) fn check_tag(tag: c_int, argument: &'static str) -> Outcome {
    if tag >= 0 { Ok(()) } else { Err(bad_tag(tag, argument)) }
}

/// Returns the tag that a receive asks for; `None` for MPI_ANY_TAG.
#[inline(always)]
pub(crate) fn wanted_tag(tag: c_int, argument: &'static str) -> Outcome<Option<c_int>> {
    match tag {
        0.. => Ok(Some(tag)),
        MPI_ANY_TAG => Ok(None),
        _ => Err(bad_tag(tag, argument)),
    }
}

#[cold]
fn bad_tag(tag: c_int, argument: &'static str) -> Fault {
    Fault::argument(MPI_ERR_TAG, argument, format!("{tag} is no tag: tags are 0 to {}", c_int::MAX))
}

/// Returns the status of a message of a communicator, for programs.
#[inline(always)]
pub(crate) fn status_on(comm: &Comm, status: Status) -> MPI_Status {
    MPI_Status::new(comm.rank_of(status.source), status.tag, status.bytes as u64)
}

/// Returns the status of a receive on a communicator, for programs.
#[inline(always)]
fn received(comm: &Comm, outcome: Result<Status, mpjdev::Error>) -> Outcome<MPI_Status> {
    match outcome {
        Ok(status) => Ok(status_on(comm, status)),
        Err(error) => Err(not_received(comm, error)),
    }
}

/// Returns the error of a receive on a communicator. That of a message that was too long has the status of the message,
/// with the bytes that fitted.
#[cold]
pub(crate) fn not_received(comm: &Comm, error: impl Into<mpicore::Error>) -> Fault {
    let error = error.into();
    let status = match &error {
        mpicore::Error::Device(mpjdev::Error::Truncate { source_rank, tag, capacity, .. }) => {
            Some(MPI_Status::new(comm.rank_of(*source_rank), *tag, *capacity as u64))
        }
        _ => None,
    };
    Fault::from(error).with_status(status)
}

/// Writes the status of an operation that has ended, also of one that has failed if it has a status.
///
/// # Safety
/// As [`MPI_Status::store`].
#[inline(always)]
pub(crate) unsafe fn store(ended: Outcome<MPI_Status>, place: *mut MPI_Status) -> Outcome {
    match ended {
        Ok(status) => {
            // SAFETY: the caller's promise.
            unsafe { status.store(place) };
            Ok(())
        }
        Err(fault) => {
            if let Some(status) = fault.status() {
                // SAFETY: the caller's promise.
                unsafe { status.store(place) };
            }
            Err(fault)
        }
    }
}

/// Returns the communicator, the peer's job rank and the length in bytes, if a message may take the short way: on a
/// predefined communicator, with one of its ranks, of elements that lie side by side. `None` for all others and for errors.
#[inline(always)]
fn plain(
    (buf, count, datatype): (*const c_void, i64, MPI_Datatype),
    peer: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Option<(&'static Arc<Comm>, usize, usize)> {
    let (comm, len) = (comm.predefined()?, datatype.plain_len(buf, count)?);
    let peer = comm.same_rank(peer)?;
    (tag >= 0).then_some((comm, peer, len))
}

/// MPI_Send. Most messages take a short way, see [`plain`]; for others [`any_send`] does the work.
///
/// Not inlined: where panics are caught, the compiler passes the arguments of a long body through memory.
#[inline(never)]
unsafe fn send(
    buf: *const c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
) -> Outcome {
    let count = count.into();
    match plain((buf, count, datatype), dest, tag, comm) {
        Some((comm, dest, len)) => {
            // SAFETY: FC1: the elements stay as they are during the call.
            let data = unsafe { SendRegion::new(buf.cast(), len) };
            Ok(comm.device.send(data, dest, tag, comm.context, Mode::Standard)?)
        }
        // SAFETY: FC1.
        _ => unsafe { any_send(buf, count, datatype, dest, tag, comm, Mode::Standard) },
    }
}

/// MPI_Ssend, and [`send`] for all arguments.
#[inline(never)]
unsafe fn any_send(
    buf: *const c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    mode: Mode,
) -> Outcome {
    let (comm, count) = (comm.find()?, count.into());
    check_tag(tag, "tag")?;
    // SAFETY: FC1.
    let dense = unsafe { datatype.dense_source(buf, count) }?;
    match (comm.receiver(dest)?, dense) {
        (Some(dest), Some(data)) => Ok(comm.device.send(data, dest, tag, comm.context, mode)?),
        (None, Some(_)) => Ok(()),
        (dest, None) => {
            // SAFETY: FC1.
            let data = unsafe { datatype.source(buf, count) }?;
            match dest {
                Some(dest) => Ok(comm.device.send(data, dest, tag, comm.context, mode)?),
                None => Ok(()),
            }
        }
    }
}

/// MPI_Isend. Most messages are complete at once, and need no request in the table.
#[inline(never)]
unsafe fn isend(
    buf: *const c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let count = count.into();
    if let Some((comm, dest, len)) = plain((buf, count, datatype), dest, tag, comm) {
        // SAFETY: FC1: the elements stay as they are during the call.
        let data = unsafe { SendRegion::new(buf.cast(), len) };
        if !request.is_null() && comm.device.try_send(data, dest, tag, comm.context) {
            // SAFETY: FC1.
            unsafe { request.write(COMPLETE) };
            return Ok(());
        }
    }
    // SAFETY: FC1.
    unsafe { any_isend(buf, count, datatype, dest, tag, comm, request, Mode::Standard) }
}

/// MPI_Issend, and [`isend`] for all arguments.
#[inline(never)]
unsafe fn any_isend(
    buf: *const c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
    mode: Mode,
) -> Outcome {
    let (comm, count) = (comm.find()?, count.into());
    check_tag(tag, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1.
    let dense = unsafe { datatype.dense_source(buf, count) }?;
    let (device, context, slot) = (comm.device, comm.context, OBJECTS.reserve()?);
    let started = match (comm.receiver(dest)?, dense) {
        (Some(dest), Some(data)) => Some(device.isend(data, dest, tag, context, mode)?),
        (None, Some(_)) => None,
        (dest, None) => {
            // SAFETY: FC1.
            let data = unsafe { datatype.source(buf, count) }?;
            dest.map(|dest| device.isend(data, dest, tag, context, mode)).transpose()?
        }
    };
    *place = match started {
        Some(started) if started.completed().is_none() => {
            Request::new(comm, Role::Send, started).keep(slot)
        }
        _ => COMPLETE,
    };
    Ok(())
}

/// MPI_Recv. Most receives take a short way, as in [`send`]; [`any_recv`] is for all others.
#[inline(never)]
unsafe fn recv(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let count = count.into();
    match plain((buf, count, datatype), source, tag, comm) {
        Some((comm, source, len)) => {
            // SAFETY: FC1: nobody else uses the place during the call.
            let into = unsafe { RecvRegion::new(buf.cast(), len) };
            match comm.device.recv(into, Some(source), Some(tag), comm.context) {
                Ok(received) => {
                    // SAFETY: FC1.
                    unsafe { status_on(comm, received).store(status) };
                    Ok(())
                }
                // SAFETY: FC1.
                Err(error) => unsafe { store(Err(not_received(comm, error)), status) },
            }
        }
        // SAFETY: FC1.
        _ => unsafe { any_recv(buf, count, datatype, source, tag, comm, status) },
    }
}

/// [`recv`] for all arguments.
#[inline(never)]
unsafe fn any_recv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = comm.find()?;
    let tag = wanted_tag(tag, "tag")?;
    // SAFETY: FC1.
    let dense = unsafe { datatype.dense_sink(buf, count) }?;
    let outcome = match (comm.sender(source)?, dense) {
        (Some(source), Some(into)) => {
            received(&comm, comm.device.recv(into, source, tag, comm.context))
        }
        (None, Some(_)) => Ok(MPI_Status::NOBODY),
        (source, None) => {
            // SAFETY: FC1.
            let into = unsafe { datatype.sink(buf, count) }?;
            match source {
                Some(source) => received(&comm, comm.device.recv(into, source, tag, comm.context)),
                None => Ok(MPI_Status::NOBODY),
            }
        }
    };
    // SAFETY: FC1.
    unsafe { store(outcome, status) }
}

/// MPI_Irecv. Most receives take a short way, as in [`send`]; [`any_irecv`] is for all others.
#[inline(never)]
unsafe fn irecv(
    buf: *mut c_void,
    count: impl Into<i64>,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let count = count.into();
    match plain((buf, count, datatype), source, tag, comm) {
        Some((comm, source, len)) if !request.is_null() => {
            let slot = OBJECTS.reserve()?;
            // SAFETY: FC1: nobody else uses the place until the operation has ended.
            let into = unsafe { RecvRegion::new(buf.cast(), len) };
            let started = comm.device.irecv(into, Some(source), Some(tag), comm.context)?;
            let made = slot.fill(Request::new(Held::forever(comm), Role::Receive, started));
            // SAFETY: FC1.
            unsafe { request.write(MPI_Request(made)) };
            Ok(())
        }
        // SAFETY: FC1.
        _ => unsafe { any_irecv(buf, count, datatype, source, tag, comm, request) },
    }
}

/// [`irecv`] for all arguments.
#[inline(never)]
unsafe fn any_irecv(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    let comm = comm.find()?;
    let tag = wanted_tag(tag, "tag")?;
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    // SAFETY: FC1.
    let dense = unsafe { datatype.dense_sink(buf, count) }?;
    let (device, context, slot) = (comm.device, comm.context, OBJECTS.reserve()?);
    let started = match (comm.sender(source)?, dense) {
        (Some(source), Some(into)) => Some(device.irecv(into, source, tag, context)?),
        (None, Some(_)) => None,
        (source, None) => {
            // SAFETY: FC1.
            let into = unsafe { datatype.sink(buf, count) }?;
            source.map(|source| device.irecv(into, source, tag, context)).transpose()?
        }
    };
    let made = match started {
        Some(started) => Request::new(comm, Role::Receive, started),
        None => Request::of_nobody(comm)?,
    };
    *place = made.keep(slot);
    Ok(())
}

mpi_bodies! {
    MPI_Send, MPI_Send_c => send();
    // A ready send is a standard send whose receiver is ready.
    MPI_Rsend, MPI_Rsend_c => send();
    MPI_Ssend, MPI_Ssend_c => any_send(Mode::Synchronous);
    MPI_Isend, MPI_Isend_c => isend();
    MPI_Irsend, MPI_Irsend_c => isend();
    MPI_Issend, MPI_Issend_c => any_isend(Mode::Synchronous);
    MPI_Recv, MPI_Recv_c => recv();
    MPI_Irecv, MPI_Irecv_c => irecv();
}

mpi! {
    fn MPI_Probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> c_int {
        let comm = comm.find()?;
        let tag = wanted_tag(tag, "tag")?;
        let found = match comm.sender(source)? {
            Some(source) => status_on(&comm, comm.device.probe(source, tag, comm.context)?),
            None => MPI_Status::NOBODY,
        };
        found.store(status);
        Ok(())
    }

    fn MPI_Iprobe(source: c_int, tag: c_int, comm: MPI_Comm, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        let comm = comm.find()?;
        let tag = wanted_tag(tag, "tag")?;
        let found = match comm.sender(source)? {
            Some(source) => {
                let found = comm.device.iprobe(source, tag, comm.context)?;
                found.map(|found| status_on(&comm, found))
            }
            None => Some(MPI_Status::NOBODY),
        };
        found.into_iter().for_each(|found| found.store(status));
        out::write(flag, "flag", found.is_some().into())
    }
}
