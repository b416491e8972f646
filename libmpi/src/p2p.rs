//! Point-to-point communication (MPI-5.0 chapter 3): sends, receives and probes. Each is one function, for all arguments.
//! The part that most calls pass is in line; the part for elements with gaps and for MPI_PROC_NULL is out of line.
//!
//! - `peer.rs`: the rank, tag and communicator of a message.
//! - `buffered.rs`: buffered sends and their buffers.
//! - `matched.rs`: matched probes and the receives that follow them.
//! - `exchange.rs`: a send and a receive in one call.
//! - `persistent.rs`, `partitioned.rs`: operations that are started many times; the latter are chapter 4.

use std::ffi::c_int;

use mpjdev::{Mode, Status};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, out, out_of_line};
use crate::comm::Comm;
use crate::datatype::Data;
use crate::handles::OBJECTS;
use crate::request::{COMPLETE, Request, Role};

mod buffered;
mod exchange;
pub(crate) mod matched;
mod partitioned;
mod peer;
mod persistent;

pub(crate) use peer::{Peer, checked_tag};

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

/// MPI_Send, MPI_Rsend and MPI_Ssend.
#[inline(always)]
unsafe fn send(data: Data, to: Peer, mode: Mode) -> Outcome {
    let comm = to.comm.find()?;
    let (dest, tag) = to.receiver(&comm)?;
    // SAFETY: FC1: the elements stay as they are during the call.
    match (dest, unsafe { data.dense_source() }?) {
        (Some(dest), Some(data)) => Ok(comm.device.send(data, dest, tag, comm.context, mode)?),
        (dest, _) => {
            let comm: &Comm = &comm;
            out_of_line(move || {
                // SAFETY: FC1.
                let data = unsafe { data.source() }?;
                match dest {
                    Some(dest) => Ok(comm.device.send(data, dest, tag, comm.context, mode)?),
                    None => Ok(()),
                }
            })
        }
    }
}

/// MPI_Isend, MPI_Irsend and MPI_Issend. Most messages are complete at once, and need no request in the table.
#[inline(always)]
unsafe fn isend(data: Data, to: Peer, request: *mut MPI_Request, mode: Mode) -> Outcome {
    let comm = to.comm.find()?;
    let (dest, tag) = to.receiver(&comm)?;
    // SAFETY: FC1: the elements stay as they are until the operation has ended.
    let (place, dense) = unsafe { (out::place(request, "request")?, data.dense_source()?) };
    *place = match (dest, dense, mode) {
        (Some(dest), Some(data), Mode::Standard)
            if comm.device.try_send(data, dest, tag, comm.context) =>
        {
            COMPLETE
        }
        _ => out_of_line(move || {
            // SAFETY: FC1.
            let (data, slot) = (unsafe { data.source() }?, OBJECTS.reserve()?);
            let Some(dest) = dest else { return Ok(COMPLETE) };
            let started = comm.device.isend(data, dest, tag, comm.context, mode)?;
            match started.completed() {
                Some(_) => Ok(COMPLETE),
                None => Ok(Request::new(comm, Role::Send, started).keep(slot)),
            }
        })?,
    };
    Ok(())
}

/// MPI_Recv.
#[inline(always)]
unsafe fn recv(data: Data, from: Peer, status: *mut MPI_Status) -> Outcome {
    let comm = from.comm.find()?;
    let (source, tag) = from.sender(&comm)?;
    // SAFETY: FC1: nobody else uses the place during the call.
    match (source, unsafe { data.dense_sink() }?) {
        (Some(source), Some(into)) => {
            let outcome = comm.device.recv(into, source, tag, comm.context);
            // SAFETY: FC1.
            unsafe { store(received(&comm, outcome), status) }
        }
        (source, _) => {
            let comm: &Comm = &comm;
            out_of_line(move || {
                // SAFETY: FC1.
                let into = unsafe { data.sink() }?;
                let outcome = source
                    .map(|source| comm.device.recv(into, source, tag, comm.context))
                    .map_or(Ok(MPI_Status::NOBODY), |outcome| received(comm, outcome));
                // SAFETY: FC1.
                unsafe { store(outcome, status) }
            })
        }
    }
}

/// MPI_Irecv.
#[inline(always)]
unsafe fn irecv(data: Data, from: Peer, request: *mut MPI_Request) -> Outcome {
    let comm = from.comm.find()?;
    let (source, tag) = from.sender(&comm)?;
    // SAFETY: FC1: nobody else uses the place until the operation has ended.
    let (place, dense) = unsafe { (out::place(request, "request")?, data.dense_sink()?) };
    let slot = OBJECTS.reserve()?;
    *place = match (source, dense) {
        (Some(source), Some(into)) => {
            let started = comm.device.irecv(into, source, tag, comm.context)?;
            MPI_Request(slot.fill(Request::new(comm, Role::Receive, started)))
        }
        (source, _) => out_of_line(move || {
            // SAFETY: FC1.
            let into = unsafe { data.sink() }?;
            let made = match source {
                Some(source) => {
                    let started = comm.device.irecv(into, source, tag, comm.context)?;
                    Request::new(comm, Role::Receive, started)
                }
                None => Request::of_nobody(comm)?,
            };
            Ok(made.keep(slot))
        })?,
    };
    Ok(())
}

/// MPI_Probe.
unsafe fn probe(from: Peer, status: *mut MPI_Status) -> Outcome {
    let comm = from.comm.find()?;
    let found = match from.sender(&comm)? {
        (Some(source), tag) => status_on(&comm, comm.device.probe(source, tag, comm.context)?),
        (None, _) => MPI_Status::NOBODY,
    };
    // SAFETY: FC1.
    unsafe { found.store(status) };
    Ok(())
}

/// MPI_Iprobe.
unsafe fn iprobe(from: Peer, flag: *mut c_int, status: *mut MPI_Status) -> Outcome {
    let comm = from.comm.find()?;
    let found = match from.sender(&comm)? {
        (Some(source), tag) => {
            let found = comm.device.iprobe(source, tag, comm.context)?;
            found.map(|found| status_on(&comm, found))
        }
        (None, _) => Some(MPI_Status::NOBODY),
    };
    // SAFETY: FC1.
    unsafe {
        found.into_iter().for_each(|found| found.store(status));
        out::write(flag, "flag", found.is_some().into())
    }
}

mpi_bodies! {
    MPI_Send, MPI_Send_c => send(Mode::Standard);
    // A ready send is a standard send whose receiver is ready.
    MPI_Rsend, MPI_Rsend_c => send(Mode::Standard);
    MPI_Ssend, MPI_Ssend_c => send(Mode::Synchronous);
    MPI_Isend, MPI_Isend_c => isend(Mode::Standard);
    MPI_Irsend, MPI_Irsend_c => isend(Mode::Standard);
    MPI_Issend, MPI_Issend_c => isend(Mode::Synchronous);
    MPI_Recv, MPI_Recv_c => recv();
    MPI_Irecv, MPI_Irecv_c => irecv();
    MPI_Probe => probe();
    MPI_Iprobe => iprobe();
}
