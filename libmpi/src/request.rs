//! Requests and statuses (MPI-5.0 sections 3.7 and 3.2.5): what the C face knows about an operation besides the
//! device's request, and the calls that start, cancel and free one.
//!
//! A call that waits leaves its requests in the table of handles, where their words (HT5) name the device's requests.
//! So other threads may cancel them meanwhile, or ask for their statuses. Whoever has waited for an operation takes its
//! request out of the table at the end. A thread that uses a request which another one has ended, which is wrong, gets
//! MPI_ERR_REQUEST. Requests of which several threads use more have a part for that in `shared.rs`.
//!
//! - `completion.rs`: the calls that wait and test.
//! - `inspection.rs`: MPI_Request_get_status and its forms for lists.
//! - `status.rs`: what is known of an operation that has ended.
//! - `generalized.rs`: generalized requests (section 13.2).

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use mpicore::PROC_NULL;
use mpjdev::Call;

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::comm::{Comm, Owner};
use crate::handles::{OBJECTS, Reserved, Taken};
use crate::p2p::{not_received, status_on};

mod completion;
mod generalized;
mod inspection;
pub(crate) mod shared;
pub(crate) mod status;

use generalized::Generalized;
use shared::Shared;

/// The handle of all requests whose operation is complete and has no status: most sends are so when they are started.
/// It lies between the constants and the handles of the table, and costs no place there.
pub(crate) const COMPLETE: MPI_Request = MPI_Request(0x1001);

/// The word of an inactive request: no number of the device's requests.
const INACTIVE: u64 = 1;

/// An operation that a program has started, or can start.
pub(crate) struct Request {
    comm: Owner,
    /// The number of the device's request, or [`INACTIVE`].
    number: u64,
    /// What most requests lack.
    more: Option<Box<More>>,
    role: Role,
}

#[derive(Default)]
struct More {
    /// Starts the operation, if it is persistent.
    start: Option<Starter>,
    /// Runs when the operation ends, with the status that the program will get.
    at_end: Option<AtEnd>,
    /// What several threads may use at once.
    shared: Option<Shared>,
    /// The window of an operation on one.
    window: Option<MPI_Win>,
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
    /// An access to a file, whose status says how many bytes were moved.
    Access,
    /// Anything else.
    Other,
}

impl Role {
    /// Returns the status for the program of an operation of ours that has succeeded.
    #[inline(always)]
    fn status(self, comm: &Comm, ended: &mpjdev::Status) -> MPI_Status {
        match self {
            _ if ended.cancelled => MPI_Status::CANCELLED,
            Self::Receive if ended.source == PROC_NULL as u32 => MPI_Status::NOBODY,
            Self::Receive => status_on(comm, *ended),
            Self::Access => MPI_Status::new(MPI_ANY_SOURCE, MPI_ANY_TAG, ended.bytes as u64),
            Self::Send | Self::Other => MPI_Status::EMPTY,
        }
    }
}

impl Request {
    /// Makes the request of an operation that was started on a communicator.
    #[inline(always)]
    pub fn new(comm: Owner, role: Role, open: mpjdev::Request) -> Self {
        Self { comm, number: open.number(), more: None, role }
    }

    /// Makes the request of a receive from MPI_PROC_NULL, which is complete.
    pub fn of_nobody(comm: Owner) -> Outcome<Self> {
        let (open, ending) = comm.device.begin(Call::Other, comm.context, 0)?;
        comm.device.end(ending, Ok(mpjdev::Status::new(PROC_NULL as u32, MPI_ANY_TAG, 0)));
        Ok(Self::new(comm, Role::Receive, open))
    }

    /// Makes an inactive persistent request.
    pub fn persistent(comm: Owner, role: Role, start: Starter) -> Self {
        let more = More { start: Some(start), ..More::default() };
        Self { comm, number: INACTIVE, more: Some(Box::new(more)), role }
    }

    /// Sets what runs when the operation ends.
    pub fn at_end(mut self, at_end: AtEnd) -> Self {
        self.more.get_or_insert_default().at_end = Some(at_end);
        self
    }

    /// States that the operation is on a window.
    pub fn on_window(mut self, window: MPI_Win) -> Self {
        self.more.get_or_insert_default().window = Some(window);
        self
    }

    /// Adds the part that several threads may use at once.
    pub fn sharing(mut self, shared: Shared) -> Self {
        self.more.get_or_insert_default().shared = Some(shared);
        self
    }

    /// Puts it into a slot of the table, and returns its handle. For the request of most receives, `slot.fill` does the
    /// same, and makes it in the slot.
    pub fn keep(self, slot: Reserved<'static>) -> MPI_Request {
        let shared = self.shared().map(|shared| (Arc::clone(&self.comm), shared.clone()));
        let handle = MPI_Request(slot.fill(self));
        if let Some((comm, shared)) = shared {
            shared.publish(handle, comm);
        }
        handle
    }

    /// Returns its word: the number of the device's request, or [`INACTIVE`].
    #[inline(always)]
    pub fn word(&self) -> u64 {
        self.number
    }

    /// Returns the device's request, unless this one is inactive.
    fn open(&self) -> Option<mpjdev::Request> {
        (self.number != INACTIVE).then(|| self.comm.device.request_of(self.number))
    }

    /// Returns a request of the same operation that can tell its status and cancel it.
    fn copied(&self) -> Self {
        let shared = self.shared().cloned();
        let more = shared.map(|shared| Box::new(More { shared: Some(shared), ..More::default() }));
        Self { comm: self.comm.clone(), number: self.number, more, role: self.role }
    }

    /// Takes a request out of the table, whose handle ends.
    fn discard(taken: Taken<'_, Self>, handle: MPI_Request) -> Self {
        if taken.shared().is_some() {
            Shared::withdraw(handle);
        }
        taken.remove()
    }

    fn is_persistent(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.start.is_some())
    }

    fn shared(&self) -> Option<&Shared> {
        self.more.as_ref()?.shared.as_ref()
    }

    fn generalized(&self) -> Option<&Generalized> {
        match self.shared()? {
            Shared::Generalized(generalized) => Some(generalized),
            Shared::Send(_) | Shared::Receive(_) => None,
        }
    }

    /// Returns what starts the operation.
    ///
    /// # Errors
    /// MPI_ERR_REQUEST if the operation is under way or is not persistent.
    fn starter(&mut self) -> Outcome<&mut Starter> {
        let start = self.more.as_mut().and_then(|more| more.start.as_mut());
        match (self.number, start) {
            (INACTIVE, Some(start)) => Ok(start),
            (_, Some(_)) => Err(wrong("the operation is under way").on(&self.comm)),
            (_, None) => Err(wrong("the operation is not persistent").on(&self.comm)),
        }
    }

    fn begin(&mut self) -> Outcome {
        let started = self.starter()?();
        self.number = started.map_err(|fault| fault.on(&self.comm))?.number();
        Ok(())
    }

    /// Returns the status for the program, after the operation has ended, and finishes what belongs to it.
    fn ended(&mut self, outcome: Result<mpjdev::Status, mpjdev::Error>) -> Outcome<MPI_Status> {
        let mut status = self.shown(outcome);
        if let Some(generalized) = self.generalized() {
            let freed = generalized.free();
            return status.and_then(|status| freed.map(|()| status));
        }
        let at_end = self.more.as_mut().and_then(|more| more.at_end.as_mut());
        if let (Ok(shown), Some(at_end)) = (&mut status, at_end) {
            at_end(shown).map_err(|fault| fault.on(&self.comm))?;
        }
        status
    }

    /// Returns the status for the program of an operation that is complete.
    fn shown(&self, outcome: Result<mpjdev::Status, mpjdev::Error>) -> Outcome<MPI_Status> {
        match (outcome, self.generalized()) {
            (Err(error), _) => self.failed(error),
            (Ok(_), Some(generalized)) => generalized.query(),
            (Ok(ended), None) => Ok(self.role.status(&self.comm, &ended)),
        }
    }

    /// Returns the error of an operation that has failed. A send that was withdrawn has been cancelled.
    #[cold]
    fn failed(&self, error: mpjdev::Error) -> Outcome<MPI_Status> {
        let window = self.more.as_ref().and_then(|more| more.window);
        match (self.role, window) {
            (_, Some(window)) => Err(Fault::from(error).on_window(window)),
            _ if is_cancelled(&error) => Ok(MPI_Status::CANCELLED),
            (Role::Receive, _) => Err(not_received(&self.comm, error).on(&self.comm)),
            (Role::Send | Role::Access | Role::Other, _) => Err(Fault::from(error).on(&self.comm)),
        }
    }

    /// Cancels the operation, if that is possible; its status will say so. A receive that has no message is cancelled
    /// at once. A send is withdrawn: it is cancelled if its receiver, when it learns of this, has no receive for it. A
    /// send to the own rank learns of it here, so that a program need not wait to see whether it was cancelled.
    fn cancel(&self) -> Outcome {
        let Some(open) = &self.open() else {
            return Err(wrong("the request is inactive").on(&self.comm));
        };
        if let Some(generalized) = self.generalized() {
            return generalized.cancel();
        }
        let device = self.comm.device;
        let cancelled = match self.role {
            Role::Receive => device.cancel(open).map(drop),
            Role::Send => {
                let because = mpjdev::Error::Client(Arc::new(Cancelled));
                device
                    .withdraw(open, because)
                    .and_then(|()| (0..ROUNDS).try_for_each(|_| device.istatus(open).map(drop)))
            }
            Role::Access | Role::Other => Ok(()),
        };
        cancelled.map_err(|error| Fault::from(error).on(&self.comm))
    }
}

/// Rounds of progress in which a rank tells itself that it withdraws a send, and answers.
const ROUNDS: usize = 4;

/// The reason why a send has failed that was cancelled.
#[derive(Debug)]
struct Cancelled;

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the send was cancelled")
    }
}

impl StdError for Cancelled {}

fn is_cancelled(error: &mpjdev::Error) -> bool {
    matches!(error, mpjdev::Error::Client(reason) if reason.is::<Cancelled>())
}

#[cold]
fn wrong(why: &str) -> Fault {
    Fault::argument(MPI_ERR_REQUEST, "request", why)
}

/// Takes the request of a handle of the table.
#[inline(always)]
fn take(handle: MPI_Request) -> Outcome<Taken<'static, Request>> {
    OBJECTS.take(handle.0).map_err(|fault| fault.about("request"))
}

/// Takes a request that is active, also if another thread has it for a moment.
#[inline(always)]
fn take_active(handle: MPI_Request) -> Outcome<Taken<'static, Request>> {
    OBJECTS.take_in_turn(handle.0).map_err(|fault| fault.about("request"))
}

/// Takes a request in order to start it, also if another thread, which looks at it, has it for a moment. This thread
/// has those that stand before it in the same list; they are not waited for.
fn take_to_start(handle: MPI_Request, before: &[MPI_Request]) -> Outcome<Taken<'static, Request>> {
    take(handle)
        .or_else(|fault| if before.contains(&handle) { Err(fault) } else { take_active(handle) })
}

/// Copies a request, for calls that leave it as it is. Another thread may wait for it.
fn copied(handle: MPI_Request) -> Outcome<Request> {
    // What starts a request has it for as long as that lasts, and may run functions of the program.
    let is_inactive = OBJECTS.word::<Request>(handle.0) == Some(INACTIVE);
    Ok(if is_inactive { take(handle)? } else { take_active(handle)? }.copied())
}

mpi! {
    fn MPI_Cancel(request: *mut MPI_Request) -> c_int {
        let handle = *out::place(request, "request")?;
        match handle {
            MPI_REQUEST_NULL => Err(wrong("the request is null")),
            COMPLETE => Ok(()),
            _ => copied(handle)?.cancel(),
        }
    }

    fn MPI_Request_free(request: *mut MPI_Request) -> c_int {
        let place = out::place(request, "request")?;
        let handle = *place;
        match handle {
            MPI_REQUEST_NULL => return Err(wrong("the request is null")),
            COMPLETE => {
                *place = MPI_REQUEST_NULL;
                return Ok(());
            }
            _ => {}
        }
        let taken = take(handle)?;
        if let Some(generalized) = taken.generalized().cloned() {
            let open = taken.remove().open();
            *place = MPI_REQUEST_NULL;
            return generalized.release(handle, open);
        }
        let mut freed = Request::discard(taken, handle);
        *place = MPI_REQUEST_NULL;
        let Some(open) = freed.open() else { return Ok(()) };
        let device = freed.comm.device;
        // The operation goes on, and what it needs goes with it.
        Ok(device.then(open, move |outcome| drop(freed.ended(outcome)))?)
    }

    fn MPI_Start(request: *mut MPI_Request) -> c_int {
        take_to_start(*out::place(request, "request")?, &[])?.begin()
    }

    fn MPI_Startall(count: c_int, array_of_requests: *mut MPI_Request) -> c_int {
        let list = out::list(array_of_requests, count.into(), "array_of_requests")?;
        // A list with a request that cannot be started, or that is there twice, starts none.
        let taken = list.iter().enumerate().map(|(at, &handle)| take_to_start(handle, &list[..at]));
        let mut taken = taken.collect::<Outcome<Vec<_>>>()?;
        taken.iter_mut().try_for_each(|request| request.starter().map(drop))?;
        taken.iter_mut().try_for_each(|request| request.begin())
    }
}
