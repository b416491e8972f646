//! Point-to-point communication (MPI-5.0 chapter 3): sends, receives and probes.
//!
//! - `peer.rs`: the rank, tag and communicator of a message.
//! - `buffered.rs`: buffered sends and their buffers.
//! - `matched.rs`: matched probes and the receives that follow them.
//! - `exchange.rs`: a send and a receive in one call.
//! - `persistent.rs`, `partitioned.rs`: operations that are started many times; the latter are chapter 4.

use std::ffi::c_int;

use mpjdev::{Described, Mode, RecvRegion, SendRegion, Source, Status};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, out, out_of_line};
use crate::comm::{Comm, Owner};
use crate::datatype::{Data, Found};
use crate::handles::{Held, OBJECTS};
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

/// Returns the communicator, the peer's job rank and the length in bytes of a message that needs no other look: on a
/// predefined communicator, with one of its ranks, of elements that lie side by side. `None` for all others, and for errors.
#[inline(always)]
fn plain(data: Data, peer: Peer) -> Option<(Owner, usize, usize)> {
    let (comm, len) = (peer.comm.predefined()?, data.plain_len()?);
    let rank = comm.same_rank(peer.rank)?;
    (peer.tag >= 0).then(|| (Held::forever(comm), rank, len))
}

/// Checks the message of a call that sends, and evaluates an expression with what was made of it: the communicator, the
/// data, and the receiver's job rank, which is `None` for MPI_PROC_NULL. The expression is compiled three times: in line for
/// plain messages, where most is known and little is left of it, and out of line for other dense data and for all other
/// data. `benches/calls --count` shows what that saves in each call: 21 instructions on MPI_COMM_WORLD, and 40 on a
/// duplicate of it.
macro_rules! sending {
    ($data:ident, $to:ident, |$comm:ident, $source:ident, $dest:ident| $send:expr) => {
        match plain($data, $to) {
            Some(($comm, dest, len)) => {
                // SAFETY: FC1: the elements stay as they are until the operation has ended.
                let $source = unsafe { SendRegion::new($data.buffer.cast(), len) };
                let $dest = Some(dest);
                $send
            }
            None => out_of_line(move || {
                let $comm = $to.comm.find()?;
                let ($dest, _) = $to.receiver(&$comm, "tag")?;
                // SAFETY: FC1, as above.
                if let Some($source) = unsafe { $data.dense_source() }? {
                    return $send;
                }
                // SAFETY: FC1, as above.
                let $source = unsafe { $data.source() }?;
                $send
            }),
        }
    };
}

/// The same for a call that receives: the communicator, the place, and the sender's job rank and the tag as
/// [`Peer::sender`] returns them.
macro_rules! receiving {
    ($data:ident, $from:ident, |$comm:ident, $sink:ident, $source:ident, $tag:ident| $receive:expr) => {
        match plain($data, $from) {
            Some(($comm, source, len)) => {
                // SAFETY: FC1: nobody else uses the place until the operation has ended.
                let $sink = unsafe { RecvRegion::new($data.buffer.cast_mut().cast(), len) };
                let ($source, $tag) = (Some(Some(source)), Some($from.tag));
                $receive
            }
            None => out_of_line(move || {
                let $comm = $from.comm.find()?;
                let ($source, $tag) = $from.sender(&$comm, "tag")?;
                // SAFETY: FC1, as above.
                if let Some($sink) = unsafe { $data.dense_sink() }? {
                    return $receive;
                }
                // SAFETY: FC1, as above.
                let $sink = unsafe { $data.sink() }?;
                $receive
            }),
        }
    };
}

/// Returns the datatype of a message's elements, in jobs that find mistakes between ranks.
fn told(comm: &Comm, data: Data) -> Option<Found> {
    comm.core.is_checked().then(|| data.datatype.find().ok())?
}

/// Says of the message that this thread sends or receives next on the communicator which elements it has, in jobs that
/// find mistakes between ranks.
#[inline(never)]
fn describe(comm: &Comm, data: Data) -> Option<Described> {
    Some(comm.core.describe(Some(&*told(comm, data)?), None))
}

/// MPI_Send, MPI_Rsend and MPI_Ssend.
#[inline(always)]
unsafe fn send(data: Data, to: Peer, mode: Mode) -> Outcome {
    sending!(data, to, |comm, source, dest| match dest {
        Some(dest) => {
            let to = (dest, to.tag, comm.context);
            Ok(comm.device.send_described(source, to, mode, || describe(&comm, data))?)
        }
        None => Ok(()),
    })
}

/// MPI_Isend, MPI_Irsend and MPI_Issend.
#[expect(clippy::useless_conversion, reason = "in one of the copies, the data are a source")]
#[inline(always)]
unsafe fn isend(data: Data, to: Peer, request: *mut MPI_Request, mode: Mode) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    *place = sending!(data, to, |comm, source, dest| match (dest, Source::from(source), mode) {
        (None, ..) => Ok(COMPLETE),
        // Most messages are complete at once, and need no request in the table.
        (Some(dest), Source::Span(span), Mode::Standard)
            if comm.device.try_send(span, dest, to.tag, comm.context) =>
        {
            Ok(COMPLETE)
        }
        (Some(dest), source, _) => start_send(comm, (source, data), dest, to.tag, mode),
    })?;
    Ok(())
}

/// Starts a send, of data in two forms, that may need a request.
#[inline(never)]
fn start_send(
    comm: Owner,
    (source, data): (Source, Data),
    dest: usize,
    tag: c_int,
    mode: Mode,
) -> Outcome<MPI_Request> {
    let slot = OBJECTS.reserve()?;
    let to = (dest, tag, comm.context);
    let started = comm.device.isend_described(source, to, mode, || describe(&comm, data))?;
    match started.completed() {
        Some(_) => Ok(COMPLETE),
        None => Ok(Request::new(comm, Role::Send, started).keep(slot)),
    }
}

/// MPI_Recv.
#[inline(always)]
unsafe fn recv(data: Data, from: Peer, status: *mut MPI_Status) -> Outcome {
    receiving!(data, from, |comm, into, source, tag| match source {
        Some(source) => {
            let (device, said) = (comm.device, || describe(&comm, data));
            let outcome = device.recv_described(into, source, tag, comm.context, said);
            // SAFETY: FC1.
            unsafe { store(received(&comm, outcome), status) }
        }
        // SAFETY: FC1.
        None => unsafe { store(Ok(MPI_Status::NOBODY), status) },
    })
}

/// MPI_Irecv.
#[inline(always)]
unsafe fn irecv(data: Data, from: Peer, request: *mut MPI_Request) -> Outcome {
    // SAFETY: FC1.
    let place = unsafe { out::place(request, "request") }?;
    *place = receiving!(data, from, |comm, into, source, tag| {
        let slot = OBJECTS.reserve()?;
        let made = match source {
            Some(source) => {
                let (device, said) = (comm.device, || describe(&comm, data));
                let started = device.irecv_described(into, source, tag, comm.context, said)?;
                Request::new(comm, Role::Receive, started)
            }
            None => Request::of_nobody(comm)?,
        };
        Ok(MPI_Request(slot.fill(made)))
    })?;
    Ok(())
}

/// MPI_Probe.
unsafe fn probe(from: Peer, status: *mut MPI_Status) -> Outcome {
    let comm = from.comm.find()?;
    let found = match from.sender(&comm, "tag")? {
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
    let found = match from.sender(&comm, "tag")? {
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
