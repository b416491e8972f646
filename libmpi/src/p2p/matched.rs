//! Matched probes (MPI-4.1 section 3.8.2): they take a message, which only the holder of its handle can receive.

use std::ffi::c_int;

use super::{Peer, describe, received, status_on, store};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_bodies, out};
use crate::comm::Owner;
use crate::datatype::Data;
use crate::handles::{Held, OBJECTS, Reserved, Taken};
use crate::process;
use crate::request::{Request, Role};

/// A message that a matched probe has taken.
pub(crate) struct Message {
    comm: Owner,
    message: mpjdev::Message,
}

impl Message {
    /// Keeps a message in a slot, and returns its handle and its status.
    fn keep(
        comm: Owner,
        message: mpjdev::Message,
        slot: Reserved<'static>,
    ) -> (MPI_Message, MPI_Status) {
        let status = status_on(&comm, message.status());
        (MPI_Message(slot.fill(Box::new(Self { comm, message }))), status)
    }
}

/// Finds the message of a handle; `None` for that of MPI_PROC_NULL.
fn find(message: MPI_Message) -> Outcome<Option<Taken<'static, Box<Message>>>> {
    match message {
        MPI_MESSAGE_NO_PROC => Ok(None),
        MPI_Message(handle) => {
            OBJECTS.take(handle).map(Some).map_err(|fault| fault.about("message"))
        }
    }
}

/// MPI_Mrecv.
unsafe fn mrecv(data: Data, message: *mut MPI_Message, status: *mut MPI_Status) -> Outcome {
    // SAFETY: FC1.
    let (place, into) = unsafe { (out::place(message, "message")?, data.sink()) };
    let outcome = match find(*place)? {
        Some(taken) => {
            let into = into.map_err(|fault| fault.on(&taken.comm))?;
            let Message { comm, message } = *taken.remove();
            *place = MPI_MESSAGE_NULL;
            let said = describe(&comm, data);
            let started = comm.device.imrecv(message, into);
            drop(said);
            let ended = started.and_then(|started| comm.device.iwait(started));
            received(&comm, ended).map_err(|fault| fault.on(&comm))
        }
        None => {
            into?;
            *place = MPI_MESSAGE_NULL;
            Ok(MPI_Status::NOBODY)
        }
    };
    // SAFETY: FC1.
    unsafe { store(outcome, status) }
}

/// MPI_Imrecv.
unsafe fn imrecv(data: Data, message: *mut MPI_Message, request: *mut MPI_Request) -> Outcome {
    // SAFETY: FC1.
    let (place, made, into) =
        unsafe { (out::place(message, "message")?, out::place(request, "request")?, data.sink()) };
    let (found, slot) = (find(*place)?, OBJECTS.reserve()?);
    let receiving = match found {
        Some(taken) => {
            let into = into.map_err(|fault| fault.on(&taken.comm))?;
            let Message { comm, message } = *taken.remove();
            *place = MPI_MESSAGE_NULL;
            let said = describe(&comm, data);
            let started = comm.device.imrecv(message, into);
            drop(said);
            let started = started.map_err(|error| Fault::from(error).on(&comm))?;
            Request::new(comm, Role::Receive, started)
        }
        None => {
            into?;
            *place = MPI_MESSAGE_NULL;
            Request::of_nobody(Held::forever(&process::needed()?.world))?
        }
    };
    *made = receiving.keep(slot);
    Ok(())
}

/// MPI_Mprobe.
unsafe fn mprobe(from: Peer, message: *mut MPI_Message, status: *mut MPI_Status) -> Outcome {
    let comm = from.comm.find()?;
    // SAFETY: FC1.
    let (sender, place) = (from.sender(&comm, "tag")?, unsafe { out::place(message, "message") }?);
    let found = match sender {
        (Some(source), tag) => {
            let slot = OBJECTS.reserve()?;
            let found = comm.device.mprobe(source, tag, comm.context)?;
            Message::keep(comm, found, slot)
        }
        (None, _) => (MPI_MESSAGE_NO_PROC, MPI_Status::NOBODY),
    };
    *place = found.0;
    // SAFETY: FC1.
    unsafe { found.1.store(status) };
    Ok(())
}

/// MPI_Improbe.
unsafe fn improbe(
    from: Peer,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Outcome {
    let comm = from.comm.find()?;
    let sender = from.sender(&comm, "tag")?;
    // SAFETY: FC1.
    let (flag, place) = unsafe { (out::place(flag, "flag")?, out::place(message, "message")?) };
    let found = match sender {
        (Some(source), tag) => {
            let slot = OBJECTS.reserve()?;
            let message = comm.device.improbe(source, tag, comm.context)?;
            message.map(|message| Message::keep(comm, message, slot))
        }
        (None, _) => Some((MPI_MESSAGE_NO_PROC, MPI_Status::NOBODY)),
    };
    *flag = found.is_some().into();
    if let Some((handle, found)) = found {
        *place = handle;
        // SAFETY: FC1.
        unsafe { found.store(status) };
    }
    Ok(())
}

mpi_bodies! {
    MPI_Mrecv, MPI_Mrecv_c => mrecv();
    MPI_Imrecv, MPI_Imrecv_c => imrecv();
    MPI_Mprobe => mprobe();
    MPI_Improbe => improbe();
}
