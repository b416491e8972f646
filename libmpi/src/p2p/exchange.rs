//! A send and a receive in one call (MPI-5.0 sections 3.10 and 3.11).

use mpicore::{ExchangeTypes, PROC_NULL};
use mpjdev::{Sink, Source, Status};

use super::{Peer, not_received, status_on, store, told};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, out};
use crate::comm::{Comm, Owner};
use crate::datatype::{Data, Found};
use crate::handles::OBJECTS;
use crate::request::{Request, Role};

/// The communicator of both messages, the receiver of one with its tag, and the sender of the other with its tag. Either
/// may be nobody.
type Ends = (Owner, (usize, i32), (Option<usize>, Option<i32>));

#[inline(always)]
fn ends(to: Peer, from: Peer) -> Outcome<Ends> {
    let comm = to.comm.find()?;
    let (dest, sendtag) = to.receiver(&comm, "sendtag")?;
    let (source, recvtag) = from.sender(&comm, "recvtag")?;
    let to = (dest.unwrap_or(PROC_NULL), sendtag);
    Ok((comm, to, (source.unwrap_or(Some(PROC_NULL)), recvtag)))
}

fn shown(comm: &Comm, received: Result<Status, mpicore::Error>) -> Outcome<MPI_Status> {
    match received {
        Ok(received) if received.source as usize == PROC_NULL => Ok(MPI_Status::NOBODY),
        Ok(received) => Ok(status_on(comm, received)),
        Err(error) => Err(not_received(comm, error)),
    }
}

/// The data of a buffer, and the place for a message in it, which may replace the data.
unsafe fn both(data: Data) -> Outcome<(Source, Sink)> {
    // SAFETY: FC1. The data are copied before the message is received.
    unsafe { Ok((data.source()?, data.sink()?)) }
}

/// Returns what the elements that are sent and received are.
fn types(of: &[Option<Found>; 2]) -> ExchangeTypes<'_> {
    of.each_ref().map(|found| found.as_deref())
}

/// Refuses messages of which one is received where the other one is sent from, in jobs that find mistakes.
///
/// # Errors
/// MPI_ERR_BUFFER.
unsafe fn check_apart((comm, to, from): &Ends, send: Data, receive: Data) -> Outcome {
    let nobody = to.0 == PROC_NULL || from.0 == Some(PROC_NULL);
    if nobody || !comm.core.is_checked() {
        return Ok(());
    }
    // SAFETY: FC1. Nothing is read or written.
    let ((input, _), (output, _)) = unsafe { (send.input()?, receive.output()?) };
    if input.overlaps(&output) {
        let text = "the receive buffer overlaps the send buffer; MPI_Sendrecv_replace uses one buffer for both";
        return Err(Fault::argument(MPI_ERR_BUFFER, "recvbuf", text));
    }
    Ok(())
}

/// MPI_Sendrecv.
#[inline(always)]
unsafe fn sendrecv(
    send: Data,
    to: Peer,
    receive: Data,
    from: Peer,
    status: *mut MPI_Status,
) -> Outcome {
    let ends = ends(to, from)?;
    // SAFETY: FC1.
    let (data, into) = unsafe {
        check_apart(&ends, send, receive)?;
        (send.source()?, receive.sink()?)
    };
    let (comm, to, from) = ends;
    let of = [send, receive].map(|data| told(&comm, data));
    let received = shown(&comm, comm.core.sendrecv(data, to, into, from, types(&of)));
    // SAFETY: FC1.
    unsafe { store(received, status) }
}

/// MPI_Isendrecv.
#[inline(always)]
unsafe fn isendrecv(
    send: Data,
    to: Peer,
    receive: Data,
    from: Peer,
    request: *mut MPI_Request,
) -> Outcome {
    let ends = ends(to, from)?;
    // SAFETY: FC1.
    let (place, data, into) = unsafe {
        check_apart(&ends, send, receive)?;
        (out::place(request, "request")?, send.source()?, receive.sink()?)
    };
    let (comm, to, from) = ends;
    let of = [send, receive].map(|data| told(&comm, data));
    let slot = OBJECTS.reserve()?;
    let started = comm.core.isendrecv(data, to, into, from, types(&of))?;
    *place = Request::new(comm, Role::Receive, started).keep(slot);
    Ok(())
}

/// MPI_Sendrecv_replace.
unsafe fn sendrecv_replace(data: Data, to: Peer, from: Peer, status: *mut MPI_Status) -> Outcome {
    let (comm, to, from) = ends(to, from)?;
    let of = [told(&comm, data), told(&comm, data)];
    // SAFETY: FC1.
    let (data, into) = unsafe { both(data) }?;
    let received = shown(&comm, comm.core.sendrecv_replace(&data, to, into, from, types(&of)));
    // SAFETY: FC1.
    unsafe { store(received, status) }
}

/// MPI_Isendrecv_replace.
unsafe fn isendrecv_replace(
    data: Data,
    to: Peer,
    from: Peer,
    request: *mut MPI_Request,
) -> Outcome {
    let (comm, to, from) = ends(to, from)?;
    let of = [told(&comm, data), told(&comm, data)];
    // SAFETY: FC1.
    let (place, (data, into)) = unsafe { (out::place(request, "request")?, both(data)?) };
    let slot = OBJECTS.reserve()?;
    let started = comm.core.isendrecv_replace(&data, to, into, from, types(&of))?;
    *place = Request::new(comm, Role::Receive, started).keep(slot);
    Ok(())
}

mpi_bodies! {
    MPI_Sendrecv, MPI_Sendrecv_c => sendrecv();
    MPI_Isendrecv, MPI_Isendrecv_c => isendrecv();
    MPI_Sendrecv_replace, MPI_Sendrecv_replace_c => sendrecv_replace();
    MPI_Isendrecv_replace, MPI_Isendrecv_replace_c => isendrecv_replace();
}
