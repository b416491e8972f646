//! Non-blocking calls that own their buffer, and waiting for them (MPI-4 section 3.7).
//!
//! - Q1: a request keeps its buffer untouched until its operation has ended or the device has
//!   failed; moving a `Vec` does not move its elements, and no reference to them is made meanwhile: the `Vec`
//!   holds a pointer. A request that is dropped before leaves the
//!   buffer with the device; one that is leaked leaks it.

use std::sync::Arc;

use mpjdev::Mode;

use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{bytes, bytes_mut, sink, source};
use crate::point_to_point::{recv_region, send_region};
use crate::rank_device::RankDevice;
use crate::selector::{Source, Tag};
use crate::status::Status;

/// A send or receive under way, together with its buffer.
///
/// Dropping it does not block: a receive that has not met its message is cancelled, anything else
/// goes on, and the buffer is freed when it is done.
#[must_use = "the buffer comes back from `wait`"]
pub struct Request<T: Datatype> {
    device: Arc<RankDevice>,
    /// `None` once it was waited for.
    open: Option<mpjdev::Request>,
    buffer: Vec<T>,
}

impl<T: Datatype> Request<T> {
    /// Waits until the operation is complete and gives the buffer back (MPI_Wait). For a receive,
    /// the status says how much of the buffer was filled.
    ///
    /// # Errors
    /// A message longer than the buffer; the device has failed.
    pub fn wait(mut self) -> Result<(Vec<T>, Status), Error> {
        match self.open.take() {
            Some(request) => {
                let status = self.device.answer(self.device.iwait(request))?;
                Ok((std::mem::take(&mut self.buffer), status.into()))
            }
            None => Err(mpjdev::Error::Request.into()),
        }
    }

    /// Tests whether the operation is complete (MPI_Test): gives the buffer back, or the request.
    ///
    /// # Errors
    /// As [`Request::wait`].
    pub fn test(mut self) -> Result<Result<(Vec<T>, Status), Self>, Error> {
        let device = self.device.clone();
        match device.answer_look(device.itest(&mut self.open))? {
            Some(status) => Ok(Ok((std::mem::take(&mut self.buffer), status.into()))),
            None => Ok(Err(self)),
        }
    }

    /// Cancels a receive that has not met its message yet (MPI_Cancel); returns whether it did. The
    /// request is to be waited for in either case.
    ///
    /// # Errors
    /// The device has failed.
    pub fn cancel(&self) -> Result<bool, Error> {
        match &self.open {
            Some(request) => self.device.answer(self.device.cancel(request)),
            None => Ok(false),
        }
    }
}

impl<T: Datatype> Drop for Request<T> {
    fn drop(&mut self) {
        if let Some(request) = self.open.take() {
            self.device.detach(request, Box::new(std::mem::take(&mut self.buffer)));
        }
    }
}

impl Communicator {
    /// Starts to send `data` (MPI_Isend).
    ///
    /// # Errors
    /// As [`Communicator::send`]; `data` is dropped then.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = 1 - world.rank();
    ///     let send = world.isend(vec![world.rank() as u64; 1000], other, 3).unwrap();
    ///     let receive = world.irecv(vec![0u64; 1000], other, 3).unwrap();
    ///     let (data, status) = receive.wait().unwrap();
    ///     assert_eq!((data[999], status.source), (other as u64, other));
    ///     let (_sent, _) = send.wait().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn isend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.start_send(data, dest, tag, Mode::Standard)
    }

    /// Starts to send `data`; complete only when the receive has begun (MPI_Issend).
    ///
    /// # Errors
    /// As [`Communicator::isend`].
    pub fn issend<T: Datatype>(
        &self,
        data: Vec<T>,
        dest: usize,
        tag: i32,
    ) -> Result<Request<T>, Error> {
        self.start_send(data, dest, tag, Mode::Synchronous)
    }

    fn start_send<T: Datatype>(
        &self,
        buffer: Vec<T>,
        dest: usize,
        tag: i32,
        mode: Mode,
    ) -> Result<Request<T>, Error> {
        let (device, context) = (&self.device, self.context);
        let open = match bytes(&buffer) {
            Some(data) => device.isend(send_region(data), dest, tag, context, mode),
            None => device.isend(device.answer(source(&buffer))?, dest, tag, context, mode),
        };
        let open = device.answer(open)?;
        Ok(Request { device: self.device.clone(), open: Some(open), buffer })
    }

    /// Starts to receive into `buffer`, as many elements as it has (MPI_Irecv).
    ///
    /// # Errors
    /// No such rank, a negative tag; the device has failed.
    pub fn irecv<T: Datatype>(
        &self,
        mut buffer: Vec<T>,
        source: impl Into<Source>,
        tag: impl Into<Tag>,
    ) -> Result<Request<T>, Error> {
        let (source, tag) = (source.into().rank(), tag.into().value());
        let (device, context) = (&self.device, self.context);
        let open = match bytes_mut(&mut buffer) {
            Some(into) => device.irecv(recv_region(into), source, tag, context),
            None => device.irecv(device.answer(sink(&mut buffer))?, source, tag, context),
        };
        let open = device.answer(open)?;
        Ok(Request { device: self.device.clone(), open: Some(open), buffer })
    }
}

/// Waits for all requests (MPI_Waitall) and gives their buffers back in order.
///
/// # Errors
/// The first error in the order of the list, after all requests were waited for.
pub fn wait_all<T: Datatype>(
    requests: impl IntoIterator<Item = Request<T>>,
) -> Result<Vec<(Vec<T>, Status)>, Error> {
    // Collected twice: every request is waited for before the first error is given.
    let outcomes: Vec<_> = requests.into_iter().map(Request::wait).collect();
    outcomes.into_iter().collect()
}

/// Waits until one of the requests is complete (MPI_Waitany), takes it out of the list, and gives
/// its former place and its buffer. `None` for an empty list.
///
/// # Errors
/// As [`Request::wait`], the request is then out of the list; [`Error::Mixed`] for requests of
/// several worlds or contexts.
pub fn wait_any<T: Datatype>(
    requests: &mut Vec<Request<T>>,
) -> Result<Option<(usize, Vec<T>, Status)>, Error> {
    let Some(first) = requests.first() else {
        return Ok(None);
    };
    let device = first.device.clone();
    if requests.iter().any(|request| !Arc::ptr_eq(&request.device, &device)) {
        return Err(Error::Mixed);
    }
    let mut open: Vec<_> = requests.iter_mut().map(|request| request.open.take()).collect();
    let outcome = device.iwaitany(&mut open);
    for (request, open) in requests.iter_mut().zip(open) {
        request.open = open;
    }
    let Some((place, outcome)) = outcome? else {
        return Ok(None);
    };
    let buffer = std::mem::take(&mut requests.remove(place).buffer);
    let status = device.answer(outcome)?;
    Ok(Some((place, buffer, status.into())))
}
