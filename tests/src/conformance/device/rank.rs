//! One rank of a job under test: its device, with buffers that belong to their requests.
//!
//! The suite and the simulation use it instead of the device's regions, so that no test can free a
//! buffer that is in use.
//!
//! - TD1: a buffer is handed to one operation. A [`Pending`] owns it, marked as in use, until a call
//!   of the same device has reported the end of that operation; dropped before, it leaks the buffer.
//! - TD2: a blocking call borrows its buffer, and returns when the operation has ended or the device
//!   has failed and uses no buffer any more.

#![expect(unsafe_code, reason = "hands buffers of the tests to the device")]

use std::ops::Deref;
use std::sync::Arc;

use mpjdev::{Device, Error, Layout, Message, Mode, RecvRegion, Request, SendRegion, Status};

use crate::conformance::payload;

/// One rank of a job under test.
pub struct Rank {
    device: Arc<Device>,
    context: u32,
}

impl Clone for Rank {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), context: self.context }
    }
}

impl Deref for Rank {
    type Target = Device;

    fn deref(&self) -> &Device {
        &self.device
    }
}

/// An operation under way and the buffer it uses; one that has ended is an empty place in a list.
#[must_use = "the buffer leaks unless the operation is waited for"]
#[derive(Debug)]
pub struct Pending {
    request: Option<Request>,
    buffer: Vec<u8>,
    in_use: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.in_use {
            std::mem::forget(std::mem::take(&mut self.buffer));
        }
    }
}

impl Pending {
    /// An empty place.
    pub fn empty() -> Self {
        Self { request: None, buffer: Vec::new(), in_use: false }
    }

    /// An operation without a buffer.
    pub fn bare(request: Request) -> Self {
        Self { request: Some(request), buffer: Vec::new(), in_use: true }
    }

    /// Whether the end of the operation was reported.
    pub fn has_ended(&self) -> bool {
        !self.in_use
    }

    /// The buffer of an operation that has ended.
    ///
    /// # Panics
    /// When it has not.
    pub fn bytes(&self) -> &[u8] {
        assert!(!self.in_use, "the buffer of a request that was not waited for");
        &self.buffer
    }

    /// The bare request; the buffer leaks.
    ///
    /// # Panics
    /// When the request was waited for.
    pub fn into_request(mut self) -> Request {
        self.request.take().expect("the request was not waited for yet")
    }

    /// Notes what a call reported about this operation (TD1).
    fn note(&mut self, outcome: &Result<Status, Error>) {
        let is_over =
            |error: &Error| matches!(error, Error::Truncate { .. }) || error.lost_rank().is_some();
        self.in_use = outcome.as_ref().is_err_and(|error| !is_over(error));
    }
}

fn send_region(data: &[u8]) -> SendRegion {
    // SAFETY: TD1 or TD2, whichever the caller's way is: the bytes stay until the operation has ended.
    unsafe { SendRegion::new(data.as_ptr(), data.len()) }
}

fn recv_region(buffer: &mut [u8]) -> RecvRegion {
    // SAFETY: as in `send_region`; the owner does not touch the bytes meanwhile.
    unsafe { RecvRegion::new(buffer.as_mut_ptr(), buffer.len()) }
}

impl Rank {
    /// A rank that communicates in context 0.
    pub fn new(device: Arc<Device>) -> Self {
        Self { device, context: 0 }
    }

    /// The same rank, in another context.
    pub fn within(&self, context: u32) -> Self {
        Self { device: self.device.clone(), context }
    }

    /// The number of this rank.
    pub fn me(&self) -> usize {
        self.rank() as usize
    }

    /// Sends and waits.
    ///
    /// # Errors
    /// Those of the device, here and below.
    pub fn send(&self, data: &[u8], dest: usize, tag: i32) -> Result<(), Error> {
        self.device.send(send_region(data), dest, tag, self.context, Mode::Standard)
    }

    /// Sends in synchronous mode and waits.
    ///
    /// # Errors
    /// Those of the device.
    pub fn ssend(&self, data: &[u8], dest: usize, tag: i32) -> Result<(), Error> {
        self.device.send(send_region(data), dest, tag, self.context, Mode::Synchronous)
    }

    /// Receives into `buffer` and waits.
    ///
    /// # Errors
    /// Those of the device.
    pub fn recv(
        &self,
        buffer: &mut [u8],
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Status, Error> {
        self.device.recv(recv_region(buffer), source.into(), tag.into(), self.context)
    }

    /// Starts a send.
    ///
    /// # Errors
    /// Those of the device.
    pub fn isend(&self, data: Vec<u8>, dest: usize, tag: i32) -> Result<Pending, Error> {
        self.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts a send in synchronous mode.
    ///
    /// # Errors
    /// Those of the device.
    pub fn issend(&self, data: Vec<u8>, dest: usize, tag: i32) -> Result<Pending, Error> {
        self.start_send(data, dest, tag, Mode::Synchronous)
    }

    fn start_send(
        &self,
        buffer: Vec<u8>,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<Pending, Error> {
        let request = self.device.isend(send_region(&buffer), dest, tag, self.context, mode)?;
        Ok(Pending { request: Some(request), buffer, in_use: true })
    }

    /// Starts a receive of at most `capacity` bytes.
    ///
    /// # Errors
    /// Those of the device.
    pub fn irecv(
        &self,
        capacity: usize,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Pending, Error> {
        let mut buffer = vec![0; capacity];
        let into = recv_region(&mut buffer);
        let request = self.device.irecv(into, source.into(), tag.into(), self.context)?;
        Ok(Pending { request: Some(request), buffer, in_use: true })
    }

    /// Starts a send of what `layout` describes in `memory`.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// # Panics
    /// When a byte of the layout is outside of the memory.
    pub fn isend_layout(
        &self,
        memory: Vec<u8>,
        layout: &Layout,
        dest: usize,
        tag: i32,
    ) -> Result<Pending, Error> {
        let source = layout.to_send(send_region(&memory), 0).expect("the memory is long enough");
        let request = self.device.isend(source, dest, tag, self.context, Mode::Standard)?;
        Ok(Pending { request: Some(request), buffer: memory, in_use: true })
    }

    /// Starts a receive into what `layout` describes in memory that is 0.
    ///
    /// # Errors
    /// Those of the device.
    pub fn irecv_layout(
        &self,
        layout: &Layout,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Pending, Error> {
        let mut memory = vec![0; layout.bounds().1.unsigned_abs()];
        let into = layout.to_receive(recv_region(&mut memory), 0).expect("it is long enough");
        let request = self.device.irecv(into, source.into(), tag.into(), self.context)?;
        Ok(Pending { request: Some(request), buffer: memory, in_use: true })
    }

    /// Starts to receive a message that a matched probe took.
    ///
    /// # Errors
    /// Those of the device.
    pub fn imrecv(&self, message: Message, capacity: usize) -> Result<Pending, Error> {
        let mut buffer = vec![0; capacity];
        let request = self.device.imrecv(message, recv_region(&mut buffer))?;
        Ok(Pending { request: Some(request), buffer, in_use: true })
    }

    /// Waits; gives the outcome and the buffer, which is empty if it cannot be given back.
    pub fn wait(&self, mut pending: Pending) -> (Result<Status, Error>, Vec<u8>) {
        let request = pending.request.take().expect("the request was not waited for yet");
        let outcome = self.device.iwait(request);
        pending.note(&outcome);
        let buffer = if pending.in_use { Vec::new() } else { std::mem::take(&mut pending.buffer) };
        (outcome, buffer)
    }

    /// Tests once.
    ///
    /// # Errors
    /// Those of the device, and the outcome of the operation.
    pub fn test(&self, pending: &mut Pending) -> Result<Option<Status>, Error> {
        let outcome = self.device.itest(&mut pending.request);
        if let Some(outcome) = outcome.clone().transpose() {
            pending.note(&outcome);
        }
        outcome
    }

    /// Cancels.
    ///
    /// # Errors
    /// Those of the device.
    pub fn cancel(&self, pending: &Pending) -> Result<bool, Error> {
        pending.request.as_ref().map_or(Ok(false), |request| self.device.cancel(request))
    }

    /// Withdraws.
    ///
    /// # Errors
    /// Those of the device.
    pub fn withdraw(&self, pending: &Pending, because: Error) -> Result<(), Error> {
        let request = pending.request.as_ref();
        request.map_or(Ok(()), |request| self.device.withdraw(request, because))
    }

    /// Looks for the outcome, and leaves the request as it is.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// # Panics
    /// When the request was waited for.
    pub fn status(&self, pending: &Pending) -> Result<Option<Result<Status, Error>>, Error> {
        self.device.istatus(pending.request.as_ref().expect("it was not waited for yet"))
    }

    /// Gives an operation up, together with its buffer.
    pub fn detach(&self, mut pending: Pending) {
        pending.in_use = false;
        if let Some(request) = pending.request.take() {
            self.device.detach(request, Box::new(std::mem::take(&mut pending.buffer)));
        }
    }

    /// Waits for one of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn wait_any(&self, list: &mut [Pending]) -> Result<Option<Completion>, Error> {
        self.on_list(list, |requests| self.device.iwaitany(requests), Option::as_slice)
    }

    /// Waits for some of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn wait_some(&self, list: &mut [Pending]) -> Result<Vec<Completion>, Error> {
        self.on_list(list, |requests| self.device.iwaitsome(requests), Vec::as_slice)
    }

    /// Tests for one of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn test_any(&self, list: &mut [Pending]) -> Result<Option<Completion>, Error> {
        self.on_list(list, |requests| self.device.itestany(requests), Option::as_slice)
    }

    /// Tests for some of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn test_some(&self, list: &mut [Pending]) -> Result<Vec<Completion>, Error> {
        self.on_list(list, |requests| self.device.itestsome(requests), Vec::as_slice)
    }

    /// Waits for all of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn wait_all(&self, list: &mut [Pending]) -> Result<Outcomes, Error> {
        let outcomes =
            self.on_whole_list(list, |requests| self.device.iwaitall(requests).map(Some))?;
        Ok(outcomes.expect("they were waited for"))
    }

    /// Tests for all of a list.
    ///
    /// # Errors
    /// Those of the device.
    pub fn test_all(&self, list: &mut [Pending]) -> Result<Option<Outcomes>, Error> {
        self.on_whole_list(list, |requests| self.device.itestall(requests))
    }

    /// A call that takes all of a list, or nothing.
    fn on_whole_list(
        &self,
        list: &mut [Pending],
        call: impl FnOnce(&mut [Option<Request>]) -> Result<Option<Outcomes>, Error>,
    ) -> Result<Option<Outcomes>, Error> {
        let open = |list: &[Pending]| -> Vec<_> {
            (0..list.len()).filter(|&place| list[place].request.is_some()).collect()
        };
        let places = open(list);
        let outcomes = self.on_list(list, call, |_| &[])?;
        let Some(outcomes) = outcomes else {
            assert_eq!(open(list), places, "something was taken");
            return Ok(None);
        };
        assert!(open(list).is_empty(), "a place is not empty");
        assert_eq!(outcomes.len(), places.len());
        for (place, outcome) in places.into_iter().zip(&outcomes) {
            list[place].note(outcome);
        }
        Ok(Some(outcomes))
    }

    /// Waits for all of a list, none of which may fail; gives their statuses.
    ///
    /// # Panics
    /// When one fails.
    #[track_caller]
    pub fn complete(&self, list: &mut [Pending]) -> Vec<Status> {
        let outcomes = self.wait_all(list).expect("the device works");
        outcomes.into_iter().map(|outcome| outcome.expect("the operation ends well")).collect()
    }

    fn on_list<R>(
        &self,
        list: &mut [Pending],
        call: impl FnOnce(&mut [Option<Request>]) -> Result<R, Error>,
        reported: impl FnOnce(&R) -> &[Completion],
    ) -> Result<R, Error> {
        let mut requests: Vec<_> = list.iter_mut().map(|pending| pending.request.take()).collect();
        let answer = call(&mut requests);
        for (pending, request) in list.iter_mut().zip(requests) {
            pending.request = request;
        }
        let answer = answer?;
        for (place, outcome) in reported(&answer) {
            assert!(list[*place].request.is_none(), "the place of a completion is not empty");
            list[*place].note(outcome);
        }
        Ok(answer)
    }

    /// Looks for a message.
    ///
    /// # Errors
    /// Those of the device, here and below.
    pub fn iprobe(
        &self,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Option<Status>, Error> {
        self.device.iprobe(source.into(), tag.into(), self.context)
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// Those of the device.
    pub fn probe(
        &self,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Status, Error> {
        self.device.probe(source.into(), tag.into(), self.context)
    }

    /// Looks for a message and takes it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn improbe(
        &self,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Option<Message>, Error> {
        self.device.improbe(source.into(), tag.into(), self.context)
    }

    /// Waits for a message and takes it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn mprobe(
        &self,
        source: impl Into<Option<usize>>,
        tag: impl Into<Option<i32>>,
    ) -> Result<Message, Error> {
        self.device.mprobe(source.into(), tag.into(), self.context)
    }
}

/// Place and outcome of one completed request of a list.
pub type Completion = (usize, Result<Status, Error>);

/// The outcomes of the requests of a list, in their order.
pub type Outcomes = Vec<Result<Status, Error>>;

/// Fails unless `bytes` are the payload of `seed`; says where they differ.
///
/// # Panics
/// Then.
#[track_caller]
pub fn check(bytes: &[u8], seed: u64) {
    let expected = payload(seed, bytes.len());
    if bytes != expected {
        let place = bytes.iter().zip(&expected).position(|(is, should)| is != should);
        panic!("message {seed} of {} bytes is wrong at byte {place:?}", bytes.len());
    }
}
