//! Calls that make and free communicators (MPI-5.0 sections 7.4 and 7.6).

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use mpicore::{Attributes, Communicator, Info, Process, RemoteLeader, SplitKey};

use super::Comm;
use super::group::Members;
use crate::abi::*;
use crate::call::{Fault, Outcome, failed, mpi, out};
use crate::error::handler::{Kind, Place};
use crate::handles::{OBJECTS, Reserved};
use crate::p2p::checked_tag;
use crate::process;
use crate::process::session::{OWN, WORLD, is_set};
use crate::request::{Request, Role};

/// The attributes for a duplicate, copied when the call began.
struct Copied {
    attributes: Attributes<MPI_Comm>,
    failure: Option<Fault>,
}

impl Comm {
    /// Copies the attributes for a duplicate.
    fn copied(&self) -> Copied {
        let (attributes, failure) = self.attributes.copy(&self.handle());
        Copied { attributes, failure: failure.map(failed) }
    }

    /// Makes a duplicate of this communicator, and returns its handle. If a copy callback has failed, the duplicate is
    /// made and ended, so that the attributes that were copied are deleted.
    fn duplicate(
        &self,
        core: Result<Communicator, mpicore::Error>,
        copied: Copied,
        hints: &Info,
        slot: Outcome<Reserved<'static>>,
    ) -> Outcome<MPI_Comm> {
        let made = core.map_err(Fault::from).and_then(|core| Ok((core, slot?)));
        let (core, slot) = made.inspect_err(|_| copied.attributes.end(&self.handle(), |_| ()))?;
        let mut made = Self::new(core, self.device, Place::new(self.handler.get()));
        made.attributes = copied.attributes;
        let hints = made.set_hints(hints);
        let handle = made.keep_in(slot);
        match copied.failure.map_or(hints, Err) {
            Ok(()) => Ok(handle),
            Err(fault) => {
                handle.find()?.attributes.end(&handle, |_| ());
                OBJECTS.free::<Arc<Self>>(handle.0)?;
                Err(fault)
            }
        }
    }
}

/// MPI_Comm_dup.
unsafe fn dup(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm) -> Outcome {
    if newcomm.is_null() {
        return Err(out::null("newcomm"));
    }
    let comm = comm.find()?;
    let (hints, copied) = (info.copied()?, comm.copied());
    // The other ranks wait for this one also if it has no room.
    let made = comm.duplicate(comm.core.dup(), copied, &hints, OBJECTS.reserve());
    // SAFETY: FC1. No reference to the place was kept while callbacks ran, which may use it.
    unsafe { newcomm.write(*made.as_ref().unwrap_or(&MPI_COMM_NULL)) };
    made.map(drop)
}

/// MPI_Comm_idup. The handle is written when the request ends; the program may not use it before.
unsafe fn idup(
    comm: MPI_Comm,
    info: MPI_Info,
    newcomm: *mut MPI_Comm,
    request: *mut MPI_Request,
) -> Outcome {
    /// The place of the new handle.
    struct NewComm(*mut MPI_Comm);
    // SAFETY: FC1: the program leaves the place alone until the request has ended.
    unsafe impl Send for NewComm {}
    impl NewComm {
        fn set(&self, handle: MPI_Comm) {
            // SAFETY: FC1, as above.
            unsafe { self.0.write(handle) };
        }
    }

    for (is_null, name) in [(newcomm.is_null(), "newcomm"), (request.is_null(), "request")] {
        if is_null {
            return Err(out::null(name));
        }
    }
    let comm = comm.find()?;
    let hints = info.copied()?;
    let (slot, of_comm) = (OBJECTS.reserve()?, OBJECTS.reserve()?);
    let copied = comm.copied();
    let (open, created) = comm.core.idup()?.into_request();
    let (parent, place) = (Arc::clone(&comm), NewComm(newcomm));
    let mut made = Some((copied, of_comm));
    let at_end = move |_: &mut MPI_Status| {
        let Some((copied, slot)) = made.take() else { return Ok(()) };
        let made = parent.duplicate(created.take(), copied, &hints, Ok(slot));
        place.set(*made.as_ref().unwrap_or(&MPI_COMM_NULL));
        made.map(drop)
    };
    let made = Request::new(comm, Role::Other, open).at_end(Box::new(at_end));
    // SAFETY: FC1, as in `dup`.
    unsafe { request.write(made.keep(slot)) };
    Ok(())
}

/// Returns the place of a new communicator, with MPI_COMM_NULL in it: what the program finds there if the call fails.
///
/// # Safety
/// FC1.
pub(crate) unsafe fn place_of_new<'a>(
    newcomm: *mut MPI_Comm,
    argument: &'static str,
) -> Outcome<&'a mut MPI_Comm> {
    // SAFETY: the caller's promise.
    let place = unsafe { out::place(newcomm, argument) }?;
    *place = MPI_COMM_NULL;
    Ok(place)
}

/// Returns the color and key of a call that divides a communicator.
fn split_key(color: c_int, key: c_int) -> Outcome<SplitKey> {
    let color = match (color, u32::try_from(color)) {
        (MPI_UNDEFINED, _) => None,
        (_, Ok(color)) => Some(color),
        (_, Err(_)) => {
            let text = format!("color {color} is negative, and not MPI_UNDEFINED");
            return Err(Fault::argument(MPI_ERR_ARG, "color", text));
        }
    };
    Ok(SplitKey { color, key })
}

/// Returns the color of this rank in MPI_Comm_split_type. No smaller part of a host is known.
fn type_color(comm: &Comm, split_type: c_int, info: MPI_Info) -> Outcome<Option<u32>> {
    let hints = info.copied()?;
    Ok(match split_type {
        MPI_COMM_TYPE_SHARED => Some(comm.core.device().host()),
        MPI_COMM_TYPE_HW_GUIDED | MPI_COMM_TYPE_RESOURCE_GUIDED => {
            let may_be_set = split_type == MPI_COMM_TYPE_RESOURCE_GUIDED;
            let set = hints.get(b"mpi_pset_name").filter(|_| may_be_set);
            match (hints.get(b"mpi_hw_resource_type"), set) {
                (Some(SHARED), _) => Some(comm.core.device().host()),
                (None, Some(set)) if is_set(set, WORLD) => Some(0),
                (None, Some(set)) if is_set(set, OWN) => Some(comm.core.rank()),
                _ => None,
            }
        }
        MPI_COMM_TYPE_HW_UNGUIDED | MPI_UNDEFINED => None,
        other => {
            let text = format!("{other} is no type of a division");
            return Err(Fault::argument(MPI_ERR_ARG, "split_type", text));
        }
    })
}

/// The type of resource that all processes of a host share.
pub(crate) const SHARED: &[u8] = b"mpi_shared_memory";

/// Ends a communicator: deletes its attributes, then the handle. Operations that are under way keep the rest. Callbacks
/// may write to the place of the handle.
unsafe fn free(place: *mut MPI_Comm, before: impl FnOnce(&Comm) -> Outcome) -> Outcome {
    // SAFETY: FC1.
    let handle = *unsafe { out::place(place, "comm") }?;
    if matches!(handle, MPI_COMM_WORLD | MPI_COMM_SELF) {
        return Err(Fault::argument(
            MPI_ERR_COMM,
            "comm",
            "a predefined communicator cannot be freed",
        ));
    }
    let comm = handle.find()?;
    before(&comm).map_err(|fault| fault.on(&comm))?;
    comm.attributes.delete_all(&handle).map_err(|error| failed(error).on(&comm))?;
    drop(comm);
    OBJECTS.free::<Arc<Comm>>(handle.0).map_err(|fault| fault.about("comm"))?;
    // SAFETY: FC1, as above.
    unsafe { place.write(MPI_COMM_NULL) };
    Ok(())
}

/// Checks the rank of a leader.
pub(crate) fn leader(rank: c_int, size: u32, argument: &'static str) -> Outcome<u32> {
    u32::try_from(rank).ok().filter(|rank| *rank < size).ok_or_else(|| {
        let text = format!("rank {rank} is out of range: there are {size} ranks");
        Fault::argument(MPI_ERR_RANK, argument, text)
    })
}

/// Lets a communicator that was made of a group come from the same session.
fn of_session(made: Communicator, group: &Members) -> Communicator {
    if let Some(session) = &group.session {
        made.share_buffer(session.clone());
    }
    made
}

/// Makes a communicator without a parent, by a function that gets the program's text. All errors go to the handler for
/// it.
unsafe fn from_groups(
    stringtag: *const c_char,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    (newcomm, argument): (*mut MPI_Comm, &'static str),
    make: impl FnOnce(&Arc<Process>, &[u8]) -> Outcome<Option<Communicator>>,
) -> Outcome {
    let handler = errhandler.find(Kind::Comm)?;
    let made = || {
        // SAFETY: FC1.
        let place = unsafe { place_of_new(newcomm, argument) }?;
        // SAFETY: FC1.
        let text = unsafe { out::bytes(stringtag, MPI_ERR_ARG, "stringtag") }?;
        if text.len() >= MPI_MAX_STRINGTAG_LEN as usize {
            let text = format!(
                "the text has {} bytes; give less than {MPI_MAX_STRINGTAG_LEN}",
                text.len()
            );
            return Err(Fault::argument(MPI_ERR_ARG, "stringtag", text));
        }
        let running = process::needed()?;
        if let Some(core) = make(running.world.core.process(), text)? {
            let made = Comm::new(core, running.device, Place::new(handler.clone()));
            made.set_hints(&info.copied()?)?;
            *place = made.keep()?;
        }
        Ok(())
    };
    made().map_err(|fault: Fault| fault.handled_by(&handler))
}

mpi! {
    fn MPI_Comm_dup(comm: MPI_Comm, newcomm: *mut MPI_Comm) -> c_int {
        dup(comm, MPI_INFO_NULL, newcomm)
    }

    fn MPI_Comm_dup_with_info(comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm) -> c_int {
        dup(comm, info, newcomm)
    }

    fn MPI_Comm_idup(comm: MPI_Comm, newcomm: *mut MPI_Comm, request: *mut MPI_Request) -> c_int {
        idup(comm, MPI_INFO_NULL, newcomm, request)
    }

    fn MPI_Comm_idup_with_info(
        comm: MPI_Comm, info: MPI_Info, newcomm: *mut MPI_Comm, request: *mut MPI_Request
    ) -> c_int {
        idup(comm, info, newcomm, request)
    }

    fn MPI_Comm_create(comm: MPI_Comm, group: MPI_Group, newcomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(newcomm, "newcomm")?;
        let (comm, group) = (comm.find()?, group.find()?);
        *place = comm.child_or_null(comm.core.create(&group)?)?;
        Ok(())
    }

    fn MPI_Comm_create_group(comm: MPI_Comm, group: MPI_Group, tag: c_int, newcomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(newcomm, "newcomm")?;
        let (comm, group) = (comm.find()?, group.find()?);
        let tag = checked_tag(tag, "tag")?;
        // Ranks outside the group need not make the call.
        *place = match group.rank_of(comm.device.rank()) {
            Some(_) => comm.child(comm.core.create_group(&group, tag)?)?,
            None => MPI_COMM_NULL,
        };
        Ok(())
    }

    fn MPI_Comm_split(comm: MPI_Comm, color: c_int, key: c_int, newcomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(newcomm, "newcomm")?;
        let comm = comm.find()?;
        *place = comm.child_or_null(comm.core.split(split_key(color, key)?)?)?;
        Ok(())
    }

    fn MPI_Comm_split_type(
        comm: MPI_Comm, split_type: c_int, key: c_int, info: MPI_Info, newcomm: *mut MPI_Comm
    ) -> c_int {
        let place = place_of_new(newcomm, "newcomm")?;
        let comm = comm.find()?;
        let color = type_color(&comm, split_type, info)?;
        *place = comm.child_or_null(comm.core.split(SplitKey { color, key })?)?;
        Ok(())
    }

    fn MPI_Comm_free(comm: *mut MPI_Comm) -> c_int {
        free(comm, |_| Ok(()))
    }

    // The members wait for each other, so what they have sent has been received.
    fn MPI_Comm_disconnect(comm: *mut MPI_Comm) -> c_int {
        free(comm, |comm| match comm.core.is_inter() {
            false => Ok(comm.core.run_barrier()?),
            true => Ok(comm.core.inter_barrier()?.run()?),
        })
    }

    fn MPI_Intercomm_create(
        local_comm: MPI_Comm, local_leader: c_int, peer_comm: MPI_Comm, remote_leader: c_int, tag: c_int,
        newintercomm: *mut MPI_Comm
    ) -> c_int {
        let place = place_of_new(newintercomm, "newintercomm")?;
        let comm = local_comm.find().map_err(|fault| fault.about("local_comm"))?;
        let own = leader(local_leader, comm.core.size(), "local_leader")?;
        let tag = checked_tag(tag, "tag")?;
        if comm.core.rank() != own {
            *place = comm.child(comm.core.create_inter(own, None)?)?;
            return Ok(());
        }
        // The other arguments count at the leader only.
        let other = peer_comm.find().map_err(|fault| fault.about("peer_comm")).and_then(|peers| {
            let other = leader(remote_leader, peers.core.peers().size(), "remote_leader")?;
            Ok((peers, other))
        });
        let (peers, leader) = other.map_err(|fault| {
            // The other ranks of the group wait for the leader, and learn that it has failed.
            let _ = comm.core.create_inter(own, None);
            fault.on(&comm)
        })?;
        let other = RemoteLeader { peers: &peers.core, leader, tag };
        *place = comm.child(comm.core.create_inter(own, Some(other))?)?;
        Ok(())
    }

    fn MPI_Intercomm_merge(intercomm: MPI_Comm, high: c_int, newintracomm: *mut MPI_Comm) -> c_int {
        let place = place_of_new(newintracomm, "newintracomm")?;
        let comm = intercomm.find()?;
        *place = comm.child(comm.core.merge(high != 0)?)?;
        Ok(())
    }

    fn MPI_Comm_create_from_group(
        group: MPI_Group, stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler, newcomm: *mut MPI_Comm
    ) -> c_int {
        from_groups(stringtag, info, errhandler, (newcomm, "newcomm"), |host, text| {
            let group = group.find()?;
            match group.is_empty() {
                true => Ok(None),
                false => {
                    let made = Communicator::create_from_group(host, &group, text)?;
                    Ok(Some(of_session(made, &group)))
                }
            }
        })
    }

    fn MPI_Intercomm_create_from_groups(
        local_group: MPI_Group, local_leader: c_int, remote_group: MPI_Group, remote_leader: c_int,
        stringtag: *const c_char, info: MPI_Info, errhandler: MPI_Errhandler, newintercomm: *mut MPI_Comm
    ) -> c_int {
        from_groups(stringtag, info, errhandler, (newintercomm, "newintercomm"), |host, text| {
            let group = local_group.find().map_err(|fault| fault.about("local_group"))?;
            let own = leader(local_leader, group.size(), "local_leader")?;
            let here = (&**group, own);
            // The other group counts at the leader only.
            if group.rank_of(process::needed()?.device.rank()) != Some(own) {
                let made = Communicator::create_inter_from_groups(host, here, None, text)?;
                return Ok(Some(of_session(made, &group)));
            }
            let there = remote_group.find().map_err(|fault| fault.about("remote_group"))?;
            let there = (&**there, leader(remote_leader, there.size(), "remote_leader")?);
            let made = Communicator::create_inter_from_groups(host, here, Some(there), text)?;
            Ok(Some(of_session(made, &group)))
        })
    }
}
