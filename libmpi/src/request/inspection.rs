//! MPI_Request_get_status and its forms for lists (MPI-4.1 section 3.7.6): they tell what has ended, and leave all
//! requests as they are.

use super::completion::{Entry, store_all};
use super::take_active;
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::p2p::store;
use crate::process;

/// What is known of a request.
enum Found {
    /// There is nothing to wait for.
    Idle,
    Pending,
    /// Complete, with the outcome for the program.
    Ended(Outcome<MPI_Status>),
}

/// Looks at a request. Other threads may end a persistent one meanwhile, and start it again.
fn look(handle: MPI_Request) -> Outcome<Found> {
    let device = process::needed()?.device;
    let open = match Entry::of(device, handle)? {
        Entry::Idle => return Ok(Found::Idle),
        Entry::Complete => return Ok(Found::Ended(Ok(MPI_Status::EMPTY))),
        Entry::Active(open) => open,
    };
    let request = take_active(handle)?.copied();
    let found = device.istatus(&open);
    match found.map_err(|error| Fault::from(error).on(&request.comm))? {
        None => Ok(Found::Pending),
        // Another thread has waited for it. A handle that has not ended with that is a persistent request's.
        Some(Err(mpjdev::Error::Request)) => Entry::of(device, handle).map(|_| Found::Idle),
        Some(outcome) => Ok(Found::Ended(request.shown(outcome))),
    }
}

/// Returns whether an operation is complete, without asking for its status.
fn is_complete(handle: MPI_Request) -> Outcome<bool> {
    let device = process::needed()?.device;
    match Entry::of(device, handle)? {
        Entry::Idle | Entry::Complete => Ok(true),
        Entry::Active(open) => Ok(device.istatus(&open)?.is_some()),
    }
}

/// Writes the statuses of several operations that are complete.
unsafe fn store_found(statuses: *mut MPI_Status, found: Vec<Outcome<MPI_Status>>) -> Outcome {
    let (len, mut found) = (found.len(), found.into_iter());
    // SAFETY: FC1: there is a status for each.
    unsafe {
        store_all(statuses, len, |_, status| {
            found.next().map_or(Ok(()), |found| store(found, status))
        })
    }
}

mpi! {
    fn MPI_Request_get_status(request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        let flag = out::place(flag, "flag")?;
        let found = look(request)?;
        *flag = (!matches!(found, Found::Pending)).into();
        match found {
            Found::Idle => MPI_Status::store_empty(status),
            Found::Pending => {}
            Found::Ended(outcome) => outcome?.store(status),
        }
        Ok(())
    }

    fn MPI_Request_get_status_all(
        count: c_int, array_of_requests: *const MPI_Request, flag: *mut c_int, array_of_statuses: *mut MPI_Status
    ) -> c_int {
        let flag = out::place(flag, "flag")?;
        let list = out::list(array_of_requests, count.into(), "array_of_requests")?;
        *flag = 0;
        for &handle in list {
            if !is_complete(handle)? {
                return Ok(());
            }
        }
        *flag = 1;
        let found = list.iter().map(|&handle| match look(handle)? {
            Found::Ended(outcome) => Ok(outcome),
            Found::Idle | Found::Pending => Ok(Ok(MPI_Status::EMPTY)),
        });
        let found: Vec<_> = found.collect::<Outcome<_>>()?;
        store_found(array_of_statuses, found)
    }

    fn MPI_Request_get_status_any(
        count: c_int, array_of_requests: *const MPI_Request, indx: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status
    ) -> c_int {
        let (indx, flag) = (out::place(indx, "indx")?, out::place(flag, "flag")?);
        let list = out::list(array_of_requests, count.into(), "array_of_requests")?;
        (*indx, *flag) = (MPI_UNDEFINED, 1);
        let mut is_idle = true;
        for (index, &handle) in list.iter().enumerate() {
            match look(handle)? {
                Found::Idle => {}
                Found::Pending => is_idle = false,
                Found::Ended(outcome) => {
                    *indx = index as c_int;
                    outcome?.store(status);
                    return Ok(());
                }
            }
        }
        *flag = is_idle.into();
        if is_idle {
            MPI_Status::store_empty(status);
        }
        Ok(())
    }

    fn MPI_Request_get_status_some(
        incount: c_int, array_of_requests: *const MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status
    ) -> c_int {
        let outcount = out::place(outcount, "outcount")?;
        let list = out::list(array_of_requests, incount.into(), "array_of_requests")?;
        let places = out::list_mut(array_of_indices, incount.into(), "array_of_indices")?;
        let (mut ended, mut is_idle) = (Vec::new(), true);
        for (index, &handle) in list.iter().enumerate() {
            match look(handle)? {
                Found::Idle => {}
                Found::Pending => is_idle = false,
                Found::Ended(outcome) => {
                    is_idle = false;
                    places[ended.len()] = index as c_int;
                    ended.push(outcome);
                }
            }
        }
        *outcount = if is_idle { MPI_UNDEFINED } else { ended.len() as c_int };
        store_found(array_of_statuses, ended)
    }
}
