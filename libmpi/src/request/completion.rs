//! The calls that wait for operations and test them (MPI-4.1 sections 3.7.3 and 3.7.5).
//!
//! A call that ends several operations waits for all of them even if one has failed, so it never leaves one behind with
//! MPI_ERR_PENDING.

use std::ffi::c_int;
use std::mem;

use super::{COMPLETE, INACTIVE, Request, take_active};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::handles::kind::Kind;
use crate::handles::{OBJECTS, Taken};
use crate::p2p::store;
use crate::process;
use mpjdev::Device;

/// A request that a call uses.
pub(super) enum Entry {
    /// MPI_REQUEST_NULL, or inactive: there is nothing to wait for.
    Idle,
    /// Complete, without a status.
    Complete,
    /// Under way. The request stays in the table.
    Active(mpjdev::Request),
}

impl Entry {
    #[inline(always)]
    pub fn of(device: &Device, handle: MPI_Request) -> Outcome<Self> {
        match handle {
            MPI_REQUEST_NULL => Ok(Self::Idle),
            COMPLETE => Ok(Self::Complete),
            _ => match OBJECTS.word::<Request>(handle.0) {
                None => Err(Request::invalid().about("request")),
                Some(INACTIVE) => Ok(Self::Idle),
                Some(number) => Ok(Self::Active(device.request_of(number))),
            },
        }
    }
}

/// Ends a request whose operation has this outcome, writes its status, and frees the handle unless the request is
/// persistent. No reference to the program's memory lasts while a function of the program runs.
///
/// # Safety
/// FC1: the place is that of the request's handle, and as [`MPI_Status::store`].
#[inline(always)]
unsafe fn end(
    place: *mut MPI_Request,
    handle: MPI_Request,
    outcome: &mut DeviceOutcome,
    status: *mut MPI_Status,
) -> Outcome {
    if handle == COMPLETE {
        // SAFETY: the caller's promise.
        unsafe { place.write(MPI_REQUEST_NULL) };
    }
    if handle == COMPLETE || handle == MPI_REQUEST_NULL {
        // SAFETY: the caller's promise.
        unsafe { MPI_Status::EMPTY.store(status) };
        return Ok(());
    }
    let taken = take_active(handle)?;
    match outcome {
        Ok(ended) if taken.more.is_none() => {
            let Request { comm, more, role, .. } = taken.remove();
            // There is nothing to drop; this tells the compiler so.
            mem::forget(more);
            // SAFETY: the caller's promise.
            unsafe {
                place.write(MPI_REQUEST_NULL);
                role.status(&comm, ended).store(status);
            }
            Ok(())
        }
        _ => {
            let outcome = mem::replace(outcome, Ok(NOTHING));
            // SAFETY: the caller's promise.
            unsafe { end_other(place, handle, taken, outcome, status) }
        }
    }
}

/// [`end`] for requests that have more than most, and for operations that have failed.
#[inline(never)]
unsafe fn end_other(
    place: *mut MPI_Request,
    handle: MPI_Request,
    mut taken: Taken<'_, Request>,
    outcome: DeviceOutcome,
    status: *mut MPI_Status,
) -> Outcome {
    taken.number = INACTIVE;
    let ended = if taken.is_persistent() {
        taken.ended(outcome)
    } else {
        // SAFETY: the caller's promise.
        unsafe { place.write(MPI_REQUEST_NULL) };
        Request::discard(taken, handle).ended(outcome)
    };
    // SAFETY: the caller's promise.
    unsafe { store(ended, status) }
}

/// The requests of a list. The program may read the list while the call waits, so there is no reference to it.
struct Batch {
    list: *mut MPI_Request,
    /// The handles; MPI_REQUEST_NULL for requests that are inactive.
    handles: Vec<MPI_Request>,
    /// The device's requests of those that are under way.
    open: Vec<Option<mpjdev::Request>>,
}

type DeviceOutcome = Result<mpjdev::Status, mpjdev::Error>;
type Completions = Vec<(usize, DeviceOutcome)>;

/// The device's status of an operation that has none.
const NOTHING: mpjdev::Status = mpjdev::Status { source: 0, tag: 0, bytes: 0, cancelled: false };

impl Batch {
    unsafe fn of(list: *mut MPI_Request, count: c_int) -> Outcome<Self> {
        // SAFETY: FC1.
        let handles = unsafe { out::list(list, count.into(), "array_of_requests") }?;
        let (mut handles, mut open) = (handles.to_vec(), Vec::with_capacity(handles.len()));
        let device = process::needed()?.device;
        for handle in &mut handles {
            open.push(match Entry::of(device, *handle)? {
                Entry::Active(request) => Some(request),
                Entry::Complete => None,
                Entry::Idle => {
                    *handle = MPI_REQUEST_NULL;
                    None
                }
            });
        }
        Ok(Self { list, handles, open })
    }

    fn is_idle(&self) -> bool {
        self.handles.iter().all(|handle| *handle == MPI_REQUEST_NULL)
    }

    /// Finds at most `most` operations that are complete. If none is, `look` waits for one or more, or looks for some.
    fn some(
        &mut self,
        most: usize,
        look: impl FnOnce(
            &Device,
            &mut [Option<mpjdev::Request>],
            bool,
        ) -> Result<Completions, mpjdev::Error>,
    ) -> Outcome<Completions> {
        let complete = self.handles.iter().enumerate().filter(|(_, handle)| **handle == COMPLETE);
        let mut ended: Vec<_> =
            complete.map(|(place, _)| (place, Ok(NOTHING))).take(most).collect();
        if ended.len() < most {
            let is_none = ended.is_empty();
            ended.extend(look(process::needed()?.device, &mut self.open, is_none)?);
            ended.sort_by_key(|(place, _)| *place);
        }
        Ok(ended)
    }

    /// Ends the operation at a place of the list, and writes its status.
    ///
    /// # Safety
    /// As [`MPI_Status::store`].
    #[inline(always)]
    unsafe fn end(
        &self,
        place: usize,
        outcome: &mut DeviceOutcome,
        status: *mut MPI_Status,
    ) -> Outcome {
        // SAFETY: FC1: the list has a place for each handle. The caller's promise.
        unsafe { end(self.list.add(place), self.handles[place], outcome, status) }
    }

    /// Ends all operations, of which those under way have ended with these outcomes, in order, and writes their
    /// statuses.
    unsafe fn end_all(
        self,
        mut outcomes: Vec<DeviceOutcome>,
        statuses: *mut MPI_Status,
    ) -> Outcome {
        let (mut outcomes, mut nothing) = (outcomes.iter_mut(), Ok(NOTHING));
        let end = |index, status| {
            let outcome = match self.handles[index] {
                MPI_REQUEST_NULL | COMPLETE => &mut nothing,
                _ => outcomes.next().unwrap_or(&mut nothing),
            };
            // SAFETY: the caller's promise.
            unsafe { self.end(index, outcome, status) }
        };
        // SAFETY: the caller's promise.
        unsafe { store_all(statuses, self.handles.len(), end) }
    }
}

/// Has `store` write the statuses of `len` operations. If one has failed, all get error codes, and the call gets
/// MPI_ERR_IN_STATUS; otherwise the fields for error codes stay as they are.
///
/// # Safety
/// FC1: there is a status for each, unless the program ignores them.
#[inline(always)]
pub(super) unsafe fn store_all(
    statuses: *mut MPI_Status,
    len: usize,
    mut store: impl FnMut(usize, *mut MPI_Status) -> Outcome,
) -> Outcome {
    let mut failed = Vec::new();
    for index in 0..len {
        // SAFETY: the caller's promise.
        let status = if statuses.is_null() { statuses } else { unsafe { statuses.add(index) } };
        if let Err(fault) = store(index, status) {
            failed.push((index, fault));
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { store_errors(statuses, len, failed) }
}

/// Writes the error codes of several operations, of which some have failed. Returns the first error, for the call.
#[cold]
#[inline(never)]
unsafe fn store_errors(
    statuses: *mut MPI_Status,
    len: usize,
    mut failed: Vec<(usize, Fault)>,
) -> Outcome {
    if !statuses.is_null() {
        // SAFETY: FC1: there is a status for each.
        let statuses = unsafe { std::slice::from_raw_parts_mut(statuses, len) };
        statuses.iter_mut().for_each(|status| status.MPI_ERROR = MPI_SUCCESS);
        for (index, fault) in &failed {
            let status = &mut statuses[*index];
            if fault.status().is_none() {
                *status = MPI_Status::EMPTY;
            }
            status.MPI_ERROR = fault.code();
        }
    }
    Err(failed.swap_remove(0).1.in_status())
}

/// MPI_Waitany and MPI_Testany: ends one operation. Returns whether there is an answer.
unsafe fn any(
    count: c_int,
    list: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
    waits: bool,
) -> Outcome<bool> {
    // SAFETY: FC1.
    let (index, mut batch) = unsafe { (out::place(index, "indx")?, Batch::of(list, count)?) };
    let is_idle = batch.is_idle();
    let mut ended = match is_idle {
        true => Vec::new(),
        false => batch.some(1, |device, open, may_wait| {
            let one = if waits && may_wait { device.iwaitany(open) } else { device.itestany(open) };
            one.map(|one| one.into_iter().collect())
        })?,
    };
    match ended.pop() {
        Some((place, mut outcome)) => {
            *index = place as c_int;
            // SAFETY: FC1.
            unsafe { batch.end(place, &mut outcome, status) }?;
            Ok(true)
        }
        None => {
            *index = MPI_UNDEFINED;
            if is_idle {
                // SAFETY: FC1.
                unsafe { MPI_Status::store_empty(status) };
            }
            Ok(is_idle)
        }
    }
}

/// MPI_Waitsome and MPI_Testsome: ends all operations that are complete.
unsafe fn some(
    incount: c_int,
    list: *mut MPI_Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
    waits: bool,
) -> Outcome {
    // SAFETY: FC1.
    let outcount = unsafe { out::place(outcount, "outcount") }?;
    // SAFETY: FC1: there is room for all indices.
    let places = unsafe { out::list_mut(indices, incount.into(), "array_of_indices") }?;
    // SAFETY: FC1.
    let mut batch = unsafe { Batch::of(list, incount) }?;
    if batch.is_idle() {
        *outcount = MPI_UNDEFINED;
        return Ok(());
    }
    let ended = batch.some(usize::MAX, |device, open, may_wait| match waits && may_wait {
        true => device.iwaitsome(open),
        false => device.itestsome(open),
    })?;
    for (place, (index, _)) in places.iter_mut().zip(&ended) {
        *place = *index as c_int;
    }
    *outcount = ended.len() as c_int;
    let (len, mut ended) = (ended.len(), ended.into_iter());
    let end = |_, status| match ended.next() {
        // SAFETY: FC1.
        Some((place, mut outcome)) => unsafe { batch.end(place, &mut outcome, status) },
        None => Ok(()),
    };
    // SAFETY: FC1.
    unsafe { store_all(statuses, len, end) }
}

mpi! {
    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int {
        let (handle, device) = (*out::place(request, "request")?, process::needed()?.device);
        let mut outcome = match Entry::of(device, handle)? {
            Entry::Idle => {
                MPI_Status::store_empty(status);
                return Ok(());
            }
            Entry::Complete => Ok(NOTHING),
            Entry::Active(open) => device.iwait(open),
        };
        end(request, handle, &mut outcome, status)
    }

    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        let (handle, flag) = (*out::place(request, "request")?, out::place(flag, "flag")?);
        let device = process::needed()?.device;
        let entry = Entry::of(device, handle)?;
        *flag = 1;
        let mut outcome = match entry {
            Entry::Idle => {
                MPI_Status::store_empty(status);
                return Ok(());
            }
            Entry::Complete => Ok(NOTHING),
            Entry::Active(open) => match device.itest(&mut Some(open)).transpose() {
                Some(outcome) => outcome,
                None => {
                    *flag = 0;
                    return Ok(());
                }
            },
        };
        end(request, handle, &mut outcome, status)
    }

    fn MPI_Waitall(count: c_int, array_of_requests: *mut MPI_Request, array_of_statuses: *mut MPI_Status) -> c_int {
        let mut batch = Batch::of(array_of_requests, count)?;
        let mut outcomes = Vec::with_capacity(batch.open.len());
        process::needed()?.device.iwaiteach(&mut batch.open, |outcome| outcomes.push(outcome))?;
        batch.end_all(outcomes, array_of_statuses)
    }

    fn MPI_Testall(
        count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int, array_of_statuses: *mut MPI_Status
    ) -> c_int {
        let flag = out::place(flag, "flag")?;
        let mut batch = Batch::of(array_of_requests, count)?;
        match process::needed()?.device.itestall(&mut batch.open)? {
            Some(outcomes) => {
                *flag = 1;
                batch.end_all(outcomes, array_of_statuses)
            }
            None => {
                *flag = 0;
                Ok(())
            }
        }
    }

    fn MPI_Waitany(
        count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int, status: *mut MPI_Status
    ) -> c_int {
        any(count, array_of_requests, indx, status, true).map(drop)
    }

    fn MPI_Testany(
        count: c_int, array_of_requests: *mut MPI_Request, indx: *mut c_int, flag: *mut c_int,
        status: *mut MPI_Status
    ) -> c_int {
        let flag = out::place(flag, "flag")?;
        // An operation that has failed is complete, too.
        *flag = 1;
        *flag = any(count, array_of_requests, indx, status, false)?.into();
        Ok(())
    }

    fn MPI_Waitsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status
    ) -> c_int {
        some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, true)
    }

    fn MPI_Testsome(
        incount: c_int, array_of_requests: *mut MPI_Request, outcount: *mut c_int, array_of_indices: *mut c_int,
        array_of_statuses: *mut MPI_Status
    ) -> c_int {
        some(incount, array_of_requests, outcount, array_of_indices, array_of_statuses, false)
    }
}
