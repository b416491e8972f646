//! Requests (MPI-4.1 section 3.7): what the C face knows about an operation besides the device's request, and the calls
//! that wait, test, start, cancel and free.
//!
//! A request belongs to one thread at a time: a call takes it out of the table of handles, and another thread that uses
//! it meanwhile, which is wrong, gets MPI_ERR_REQUEST.

use std::ffi::c_int;

use mpjdev::wireup::Native;
use mpjdev::{Call, Device};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::comm::Owner;
use crate::handles::{OBJECTS, Taken};
use crate::p2p::status_on;
use crate::state;

/// The handle of all requests whose operation is complete and has no status: most sends are so when they are started.
/// It lies between the constants and the handles of the table, and costs no place there.
pub(crate) const COMPLETE: MPI_Request = MPI_Request(0x1001);

/// An operation that a program has started, or can start.
pub(crate) struct Request {
    comm: Owner,
    role: Role,
    /// The device's request; `None` for one that is inactive.
    open: Option<mpjdev::Request>,
    /// Starts the operation, if it is persistent.
    start: Option<Starter>,
    /// Runs when the operation ends, with the status that the program will get.
    at_end: Option<AtEnd>,
}

/// Starts a persistent operation.
pub(crate) type Starter = Box<dyn FnMut() -> Outcome<mpjdev::Request> + Send>;
/// Runs at the end of an operation.
pub(crate) type AtEnd = Box<dyn FnMut(&mut MPI_Status) -> Outcome + Send>;

/// What an operation is, as far as its status depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A send, whose status says nothing but whether it was cancelled.
    Send,
    /// A receive.
    Receive,
    /// Anything else.
    Other,
}

impl Request {
    /// Makes the request of an operation that was started on a communicator.
    pub fn new(comm: Owner, role: Role, open: mpjdev::Request) -> Self {
        Self { comm, role, open: Some(open), start: None, at_end: None }
    }

    /// Makes the request of a receive from MPI_PROC_NULL, which is complete.
    pub fn of_nobody(comm: Owner) -> Outcome<Self> {
        let (open, ending) = comm.device.begin(Call::Other, comm.context, 0)?;
        comm.device.end(ending, Ok(mpjdev::Status::new(u32::MAX, MPI_ANY_TAG, 0)));
        Ok(Self::new(comm, Role::Receive, open))
    }

    /// Makes an inactive persistent request.
    #[expect(dead_code, reason = "for the persistent calls of the chapters")]
    pub fn persistent(comm: Owner, role: Role, start: Starter) -> Self {
        Self { comm, role, open: None, start: Some(start), at_end: None }
    }

    /// Sets what runs when the operation ends.
    pub fn at_end(mut self, at_end: AtEnd) -> Self {
        self.at_end = Some(at_end);
        self
    }

    /// Puts it into the table, and returns its handle.
    pub fn keep(self) -> Outcome<MPI_Request> {
        Ok(MPI_Request(OBJECTS.insert(self)?))
    }

    fn begin(&mut self) -> Outcome {
        match (&self.open, &mut self.start) {
            (None, Some(start)) => {
                self.open = Some(start().map_err(|fault| fault.on(&self.comm))?);
                Ok(())
            }
            (Some(_), Some(_)) => Err(wrong("the operation is under way")),
            (_, None) => Err(wrong("the operation is not persistent")),
        }
    }

    /// Returns the status for the program, after the operation has ended.
    fn ended(&mut self, outcome: Result<mpjdev::Status, mpjdev::Error>) -> Outcome<MPI_Status> {
        let status = outcome.map_err(Fault::from).and_then(|status| {
            let mut shown = self.status(status);
            self.at_end.as_mut().map_or(Ok(()), |at_end| at_end(&mut shown))?;
            Ok(shown)
        });
        status.map_err(|fault| fault.on(&self.comm))
    }

    fn status(&self, status: mpjdev::Status) -> MPI_Status {
        let mut shown = match self.role {
            Role::Receive if !status.cancelled => status_on(&self.comm, status),
            _ => MPI_Status::EMPTY,
        };
        shown.set_cancelled(status.cancelled);
        shown
    }
}

#[cold]
fn wrong(why: &str) -> Fault {
    Fault::argument(MPI_ERR_REQUEST, "request", why)
}

/// A request of a list.
enum Entry {
    /// MPI_REQUEST_NULL, or inactive: there is nothing to wait for.
    Idle,
    /// Complete, without a status.
    Complete,
    /// Under way.
    Active(Taken<'static, Request>),
}

impl Entry {
    fn of(handle: MPI_Request) -> Outcome<Self> {
        match handle {
            MPI_REQUEST_NULL => Ok(Self::Idle),
            COMPLETE => Ok(Self::Complete),
            MPI_Request(handle) => {
                let taken =
                    OBJECTS.take::<Request>(handle).map_err(|fault| fault.about("request"))?;
                Ok(if taken.open.is_some() { Self::Active(taken) } else { Self::Idle })
            }
        }
    }

    /// Ends an entry whose operation has this outcome, and frees the handle unless the request is persistent.
    fn end(
        self,
        place: &mut MPI_Request,
        outcome: Result<mpjdev::Status, mpjdev::Error>,
    ) -> Outcome<MPI_Status> {
        let Self::Active(mut taken) = self else {
            *place = MPI_REQUEST_NULL;
            return Ok(MPI_Status::EMPTY);
        };
        let status = taken.ended(outcome);
        if taken.start.is_none() {
            drop(taken.remove());
            *place = MPI_REQUEST_NULL;
        }
        status
    }

    /// Waits for the operation and ends the entry.
    fn wait(mut self, place: &mut MPI_Request) -> Outcome<MPI_Status> {
        let outcome = match &mut self {
            Self::Idle => return Ok(MPI_Status::EMPTY),
            Self::Complete => Ok(mpjdev::Status::new(0, 0, 0)),
            Self::Active(taken) => {
                let open = taken.open.take().expect("an active request is open");
                taken.comm.device.iwait(open)
            }
        };
        self.end(place, outcome)
    }
}

/// The requests of a list, taken for a call.
struct Batch<'a> {
    places: &'a mut [MPI_Request],
    entries: Vec<Entry>,
}

/// An operation of a list that has ended: its place and its status.
type Ended = (usize, Outcome<MPI_Status>);

impl<'a> Batch<'a> {
    unsafe fn of(list: *mut MPI_Request, count: c_int) -> Outcome<Self> {
        // SAFETY: FC1.
        let places = unsafe { out::list_mut(list, count.into(), "array_of_requests") }?;
        let entries = places.iter().map(|&handle| Entry::of(handle)).collect::<Outcome<_>>()?;
        Ok(Self { places, entries })
    }

    fn is_idle(&self) -> bool {
        self.entries.iter().all(|entry| matches!(entry, Entry::Idle))
    }

    /// Ends at most `most` operations that are complete. If none is, `look` waits for one or more, or looks for some.
    fn some(
        &mut self,
        most: usize,
        look: impl FnOnce(
            &Device<Native>,
            &mut [Option<mpjdev::Request>],
            bool,
        ) -> Result<Completions, mpjdev::Error>,
    ) -> Outcome<Vec<Ended>> {
        let is_complete = |entry: &Entry| matches!(entry, Entry::Complete);
        let complete = self.entries.iter().enumerate().filter(|(_, entry)| is_complete(entry));
        let mut ended: Vec<_> =
            complete.map(|(place, _)| (place, Ok(NOTHING))).take(most).collect();
        if ended.len() < most {
            let open = self.entries.iter_mut().map(|entry| match entry {
                Entry::Active(taken) => taken.open.take(),
                Entry::Idle | Entry::Complete => None,
            });
            let mut open: Vec<_> = open.collect();
            let found = look(state::needed()?.device, &mut open, ended.is_empty());
            for (entry, open) in self.entries.iter_mut().zip(open) {
                if let Entry::Active(taken) = entry {
                    taken.open = open;
                }
            }
            ended.extend(found?);
            ended.sort_by_key(|(place, _)| *place);
        }
        Ok(ended.into_iter().map(|(place, outcome)| (place, self.end(place, outcome))).collect())
    }

    fn end(
        &mut self,
        place: usize,
        outcome: Result<mpjdev::Status, mpjdev::Error>,
    ) -> Outcome<MPI_Status> {
        std::mem::replace(&mut self.entries[place], Entry::Idle)
            .end(&mut self.places[place], outcome)
    }
}

type Completions = Vec<(usize, Result<mpjdev::Status, mpjdev::Error>)>;

const NOTHING: mpjdev::Status = mpjdev::Status { source: 0, tag: 0, bytes: 0, cancelled: false };

/// Writes the statuses of several operations. If one has failed, all get error codes, and the call MPI_ERR_IN_STATUS.
unsafe fn store_all(
    statuses: *mut MPI_Status,
    ended: impl Iterator<Item = Outcome<MPI_Status>>,
) -> Outcome {
    let mut first = None;
    for (index, outcome) in ended.enumerate() {
        let (status, code) = match outcome {
            Ok(status) => (status, MPI_SUCCESS),
            Err(fault) => {
                let code = fault.code();
                first.get_or_insert(fault);
                (MPI_Status::EMPTY, code)
            }
        };
        if !statuses.is_null() {
            // SAFETY: FC1: there is a status for each.
            unsafe { statuses.add(index).write(MPI_Status { MPI_ERROR: code, ..status }) };
        }
    }
    first.map_or(Ok(()), |fault| Err(fault.in_status()))
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
    let mut batch = unsafe { Batch::of(list, count) }?;
    let is_idle = batch.is_idle();
    let mut ended = match is_idle {
        true => Vec::new(),
        false => batch.some(1, |device, open, may_wait| {
            let one = if waits && may_wait { device.iwaitany(open) } else { device.itestany(open) };
            one.map(|one| one.into_iter().collect())
        })?,
    };
    let (place, outcome) = match ended.pop() {
        Some((place, outcome)) => (place as c_int, outcome),
        None => (MPI_UNDEFINED, Ok(MPI_Status::EMPTY)),
    };
    let is_answer = is_idle || place != MPI_UNDEFINED;
    // SAFETY: FC1.
    unsafe { out::write(index, "index", place) }?;
    let outcome = outcome?;
    if is_answer {
        // SAFETY: FC1.
        unsafe { outcome.store(status) };
    }
    Ok(is_answer)
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
    let mut batch = unsafe { Batch::of(list, incount) }?;
    if batch.is_idle() {
        // SAFETY: FC1.
        return unsafe { out::write(outcount, "outcount", MPI_UNDEFINED) };
    }
    let ended = batch.some(usize::MAX, |device, open, may_wait| match waits && may_wait {
        true => device.iwaitsome(open),
        false => device.itestsome(open),
    })?;
    // SAFETY: FC1.
    let places = unsafe { out::list_mut(indices, ended.len() as i64, "array_of_indices") }?;
    for (place, (index, _)) in places.iter_mut().zip(&ended) {
        *place = *index as c_int;
    }
    // SAFETY: FC1.
    unsafe {
        out::write(outcount, "outcount", ended.len() as c_int)?;
        store_all(statuses, ended.into_iter().map(|(_, outcome)| outcome))
    }
}

mpi! {
    fn MPI_Wait(request: *mut MPI_Request, status: *mut MPI_Status) -> c_int {
        let place = out::place(request, "request")?;
        Entry::of(*place)?.wait(place)?.store(status);
        Ok(())
    }

    fn MPI_Test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        let place = out::place(request, "request")?;
        let mut entry = Entry::of(*place)?;
        let outcome = match &mut entry {
            Entry::Idle | Entry::Complete => Ok(Some(NOTHING)),
            Entry::Active(taken) => {
                let device = taken.comm.device;
                device.itest(&mut taken.open)
            }
        };
        if let Ok(None) = outcome {
            return out::write(flag, "flag", 0);
        }
        out::write(flag, "flag", 1)?;
        let ended = match entry {
            Entry::Idle => MPI_Status::EMPTY,
            entry => entry.end(place, outcome.map(|status| status.unwrap_or(NOTHING)))?,
        };
        ended.store(status);
        Ok(())
    }

    fn MPI_Waitall(count: c_int, array_of_requests: *mut MPI_Request, array_of_statuses: *mut MPI_Status) -> c_int {
        let Batch { places, entries } = Batch::of(array_of_requests, count)?;
        let ended = places.iter_mut().zip(entries).map(|(place, entry)| entry.wait(place));
        store_all(array_of_statuses, ended)
    }

    fn MPI_Testall(
        count: c_int, array_of_requests: *mut MPI_Request, flag: *mut c_int, array_of_statuses: *mut MPI_Status
    ) -> c_int {
        let Batch { places, entries } = Batch::of(array_of_requests, count)?;
        for entry in &entries {
            if let Entry::Active(taken) = entry {
                let open = taken.open.as_ref().expect("an active request is open");
                if taken.comm.device.istatus(open)?.is_none() {
                    return out::write(flag, "flag", 0);
                }
            }
        }
        out::write(flag, "flag", 1)?;
        let ended = places.iter_mut().zip(entries).map(|(place, entry)| entry.wait(place));
        store_all(array_of_statuses, ended)
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
        out::write(flag, "flag", 1)?;
        let has_ended = any(count, array_of_requests, indx, status, false)?;
        out::write(flag, "flag", has_ended.into())
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

    fn MPI_Request_get_status(request: MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> c_int {
        let found = match Entry::of(request)? {
            Entry::Idle | Entry::Complete => Some(MPI_Status::EMPTY),
            Entry::Active(taken) => {
                let open = taken.open.as_ref().expect("an active request is open");
                let outcome = taken.comm.device.istatus(open)?.transpose();
                outcome.map_err(|error| Fault::from(error).on(&taken.comm))?.map(|status| taken.status(status))
            }
        };
        out::write(flag, "flag", found.is_some().into())?;
        found.into_iter().for_each(|found| found.store(status));
        Ok(())
    }

    fn MPI_Cancel(request: *mut MPI_Request) -> c_int {
        match Entry::of(*out::place(request, "request")?)? {
            Entry::Active(taken) => {
                let open = taken.open.as_ref().expect("an active request is open");
                // A send, or a receive whose message has come, is not cancelled; the status says so.
                taken.comm.device.cancel(open)?;
                Ok(())
            }
            Entry::Complete => Ok(()),
            Entry::Idle => Err(wrong("the request is null or inactive")),
        }
    }

    fn MPI_Request_free(request: *mut MPI_Request) -> c_int {
        let place = out::place(request, "request")?;
        match *place {
            MPI_REQUEST_NULL => return Err(wrong("the request is null")),
            COMPLETE => {}
            MPI_Request(handle) => {
                let mut freed = OBJECTS.take::<Request>(handle).map_err(|fault| fault.about("request"))?.remove();
                if let Some(open) = freed.open.take() {
                    // The operation goes on, and what it needs goes with it.
                    let device = freed.comm.device;
                    device.then(open, move |outcome| drop(freed.ended(outcome)))?;
                }
            }
        }
        *place = MPI_REQUEST_NULL;
        Ok(())
    }

    fn MPI_Start(request: *mut MPI_Request) -> c_int {
        let MPI_Request(handle) = *out::place(request, "request")?;
        OBJECTS.take::<Request>(handle).map_err(|fault| fault.about("request"))?.begin()
    }

    fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) -> c_int {
        for &MPI_Request(handle) in out::list(array_of_requests, count.into(), "array_of_requests")? {
            OBJECTS.take::<Request>(handle).map_err(|fault| fault.about("array_of_requests"))?.begin()?;
        }
        Ok(())
    }
}
