//! MPI_Request_get_status and its forms for lists (MPI-4.1 section 3.7.6): they tell what has ended, and leave all
//! requests as they are.

use super::completion::{Entry, store_all};
use super::copied;
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::p2p::store;
use crate::state;

/// Returns whether there is something to wait for.
fn is_active(handle: MPI_Request) -> Outcome<bool> {
    Ok(!matches!(Entry::of(handle)?, Entry::Idle))
}

/// Returns the outcome of an operation that is complete.
fn outcome(handle: MPI_Request) -> Outcome<Option<Outcome<MPI_Status>>> {
    let Entry::Active(open) = Entry::of(handle)? else { return Ok(Some(Ok(MPI_Status::EMPTY))) };
    let request = copied(handle)?;
    let found = request.comm.device.istatus(&open);
    let found = found.map_err(|error| Fault::from(error).on(&request.comm))?;
    Ok(found.map(|outcome| request.shown(outcome)))
}

/// Returns whether an operation is complete, without asking for its status.
fn is_complete(handle: MPI_Request) -> Outcome<bool> {
    match Entry::of(handle)? {
        Entry::Idle | Entry::Complete => Ok(true),
        Entry::Active(open) => Ok(state::needed()?.device.istatus(&open)?.is_some()),
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
        if !is_active(request)? {
            *flag = 1;
            MPI_Status::store_empty(status);
            return Ok(());
        }
        let found = outcome(request)?;
        *flag = found.is_some().into();
        if let Some(found) = found {
            found?.store(status);
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
        let found: Vec<_> = list.iter().map(|&handle| outcome(handle)).collect::<Outcome<_>>()?;
        let found: Vec<_> = found.into_iter().map(|found| found.unwrap_or(Ok(MPI_Status::EMPTY))).collect();
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
            if is_active(handle)? {
                is_idle = false;
                if let Some(found) = outcome(handle)? {
                    *indx = index as c_int;
                    found?.store(status);
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
            if is_active(handle)? {
                is_idle = false;
                if let Some(found) = outcome(handle)? {
                    places[ended.len()] = index as c_int;
                    ended.push(found);
                }
            }
        }
        *outcount = if is_idle { MPI_UNDEFINED } else { ended.len() as c_int };
        store_found(array_of_statuses, ended)
    }
}
