//! Buffered sends (MPI-4.1 section 3.6). A buffer that a program attaches is a limit for the bytes that may be under
//! way; nothing is stored in it.

use std::ffi::c_void;
use std::ptr;

use mpicore::{AttachedBuffer, SendBuffer};

use super::{Peer, describe};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, mpi_bodies, negative, out};
use crate::datatype::Data;
use crate::handles::{Held, OBJECTS};
use crate::process;
use crate::request::{COMPLETE, Request, Role};

/// MPI_Bsend.
unsafe fn bsend(data: Data, to: Peer) -> Outcome {
    let comm = to.comm.find()?;
    let (dest, tag) = to.receiver(&comm, "tag")?;
    // SAFETY: FC1.
    let source = unsafe { data.source() }?;
    if let Some(dest) = dest {
        let _said = describe(&comm, data);
        comm.core.bsend(&source, dest, tag)?;
    }
    Ok(())
}

/// MPI_Ibsend. The data are copied, so the request is complete.
unsafe fn ibsend(data: Data, to: Peer, request: *mut MPI_Request) -> Outcome {
    // SAFETY: FC1.
    unsafe {
        let place = out::place(request, "request")?;
        bsend(data, to)?;
        *place = COMPLETE;
    }
    Ok(())
}

/// Attaches a buffer.
fn attach(to: SendBuffer<'_>, buffer: *mut c_void, size: impl Into<i64>) -> Outcome {
    let (address, size) = (buffer.expose_provenance(), size.into());
    let len = match (address, usize::try_from(size)) {
        (MPI_BUFFER_AUTOMATIC, _) => None,
        (_, Err(_)) => return Err(negative(MPI_ERR_ARG, "size", size)),
        (0, Ok(1..)) => {
            return Err(Fault::argument(MPI_ERR_BUFFER, "buffer", "the buffer is null"));
        }
        (_, Ok(len)) => Some(len),
    };
    Ok(to.attach(AttachedBuffer { len, address })?)
}

/// Detaches the buffer and returns its address and length: null and 0 if there was none, and 0 for a buffer that grows
/// by itself.
unsafe fn detach<N: TryFrom<usize>>(
    from: SendBuffer<'_>,
    buffer_addr: *mut c_void,
    size: *mut N,
) -> Outcome {
    // SAFETY: FC1: the place is one for an address.
    let address = unsafe { out::place(buffer_addr.cast::<*mut c_void>(), "buffer_addr") }?;
    // SAFETY: FC1.
    let size = unsafe { out::place(size, "size") }?;
    let buffer = from.detach()?.unwrap_or(AttachedBuffer { len: None, address: 0 });
    *address = ptr::with_exposed_provenance_mut(buffer.address);
    let len = buffer.len.unwrap_or(0);
    *size = N::try_from(len).map_err(|_| {
        let text = format!(
            "the buffer, which is detached, has {len} bytes: use the form for large counts"
        );
        Fault::argument(MPI_ERR_VALUE_TOO_LARGE, "size", text)
    })?;
    Ok(())
}

/// MPI_Buffer_attach.
unsafe fn attach_to_rank(buffer: *mut c_void, size: impl Into<i64>) -> Outcome {
    attach(process::needed()?.world.core.rank_buffer(), buffer, size)
}

/// MPI_Comm_attach_buffer.
unsafe fn attach_to_comm(comm: MPI_Comm, buffer: *mut c_void, size: impl Into<i64>) -> Outcome {
    attach(comm.find()?.core.own_buffer(), buffer, size)
}

/// MPI_Session_attach_buffer.
unsafe fn attach_to_session(
    session: MPI_Session,
    buffer: *mut c_void,
    size: impl Into<i64>,
) -> Outcome {
    attach(session.find()?.buffer.place(), buffer, size)
}

/// MPI_Buffer_detach.
unsafe fn detach_from_rank<N: TryFrom<usize>>(buffer_addr: *mut c_void, size: *mut N) -> Outcome {
    // SAFETY: FC1.
    unsafe { detach(process::needed()?.world.core.rank_buffer(), buffer_addr, size) }
}

/// MPI_Comm_detach_buffer.
unsafe fn detach_from_comm<N: TryFrom<usize>>(
    comm: MPI_Comm,
    buffer_addr: *mut c_void,
    size: *mut N,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { detach(comm.find()?.core.own_buffer(), buffer_addr, size) }
}

/// MPI_Session_detach_buffer.
unsafe fn detach_from_session<N: TryFrom<usize>>(
    session: MPI_Session,
    buffer_addr: *mut c_void,
    size: *mut N,
) -> Outcome {
    // SAFETY: FC1.
    unsafe { detach(session.find()?.buffer.place(), buffer_addr, size) }
}

mpi_bodies! {
    MPI_Bsend, MPI_Bsend_c => bsend();
    MPI_Ibsend, MPI_Ibsend_c => ibsend();
    MPI_Buffer_attach, MPI_Buffer_attach_c => attach_to_rank();
    MPI_Buffer_detach, MPI_Buffer_detach_c => detach_from_rank();
    MPI_Comm_attach_buffer, MPI_Comm_attach_buffer_c => attach_to_comm();
    MPI_Comm_detach_buffer, MPI_Comm_detach_buffer_c => detach_from_comm();
    MPI_Session_attach_buffer, MPI_Session_attach_buffer_c => attach_to_session();
    MPI_Session_detach_buffer, MPI_Session_detach_buffer_c => detach_from_session();
}

mpi! {
    fn MPI_Buffer_flush() -> c_int {
        Ok(process::needed()?.world.core.rank_buffer().flush()?)
    }

    fn MPI_Buffer_iflush(request: *mut MPI_Request) -> c_int {
        let place = out::place(request, "request")?;
        let (world, slot) = (&process::needed()?.world, OBJECTS.reserve()?);
        let started = world.core.rank_buffer().start_flush()?;
        *place = Request::new(Held::forever(world), Role::Other, started).keep(slot);
        Ok(())
    }

    fn MPI_Comm_flush_buffer(comm: MPI_Comm) -> c_int {
        Ok(comm.find()?.core.own_buffer().flush()?)
    }

    fn MPI_Comm_iflush_buffer(comm: MPI_Comm, request: *mut MPI_Request) -> c_int {
        let comm = comm.find()?;
        let (place, slot) = (out::place(request, "request")?, OBJECTS.reserve()?);
        let started = comm.core.own_buffer().start_flush()?;
        *place = Request::new(comm, Role::Other, started).keep(slot);
        Ok(())
    }

    fn MPI_Session_flush_buffer(session: MPI_Session) -> c_int {
        Ok(session.find()?.buffer.place().flush()?)
    }

    fn MPI_Session_iflush_buffer(session: MPI_Session, request: *mut MPI_Request) -> c_int {
        let session = session.find()?;
        let (place, slot) = (out::place(request, "request")?, OBJECTS.reserve()?);
        let started = session.buffer.place().start_flush()?;
        *place = Request::new(Held::forever(&process::needed()?.world), Role::Other, started).keep(slot);
        Ok(())
    }
}
