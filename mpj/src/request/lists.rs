//! Waits and tests for several requests (MPI-4.1 section 3.7.5). The requests of a list may belong to different
//! communicators, but all to the same context of the rank.

use super::Request;
use crate::datatype::Datatype;
use crate::envelope::Status;
use crate::error::Error;
use crate::rank_device::RankDevice;

/// The buffer of a completed operation, with its status.
pub type Completed<T> = (Vec<T>, Status);

/// A completed request of a list: the index that it had there, and its buffer and status.
pub type Completion<T> = (usize, Result<Completed<T>, Error>);

/// Waits for all requests (MPI_Waitall) and returns their buffers in order.
///
/// # Errors
/// The first error in the order of the list, after all requests were waited for.
///
/// ```
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let requests = [
///         world.irecv(vec![0], other, 1).unwrap(),
///         world.isend(vec![world.rank()], other, 1).unwrap(),
///     ];
///     let buffers = mpj::wait_all(requests).unwrap();
///     assert_eq!((&*buffers[0].0, &*buffers[1].0), (&[other][..], &[world.rank()][..]));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn wait_all<T: Datatype>(
    requests: impl IntoIterator<Item = Request<T>>,
) -> Result<Vec<Completed<T>>, Error> {
    // Every request is waited for before the first error is returned.
    let outcomes: Vec<_> = requests.into_iter().map(Request::wait).collect();
    outcomes.into_iter().collect()
}

/// Waits until one of the requests is complete (MPI_Waitany), removes it from the list, and returns the index that it
/// had and its buffer. Returns `None` for an empty list.
///
/// # Errors
/// As [`Request::wait`], after which the request is no longer in the list; [`Error::Mixed`] for requests of several
/// worlds or contexts.
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = vec![
///         world.irecv(vec![0], 0, 1).unwrap(),
///         world.irecv(vec![0], 0, 2).unwrap(),
///     ];
///     world.send(&[7], 0, 2).unwrap();
///     let (place, buffer, status) = mpj::wait_any(&mut requests).unwrap().expect("two requests");
///     assert_eq!((place, buffer, status.tag, requests.len()), (1, vec![7], 2, 1));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn wait_any<T: Datatype>(
    requests: &mut Vec<Request<T>>,
) -> Result<Option<(usize, Vec<T>, Status)>, Error> {
    one(call(requests, |device, open| Ok(device.iwaitany(open)?.into_iter().collect()))?)
}

/// Waits until at least one of the requests is complete (MPI_Waitsome), and removes all complete ones from the list.
/// Returns nothing for an empty list.
///
/// # Errors
/// [`Error::Mixed`]; the device has failed. Errors of the requests are in the result.
///
/// ```
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let mut receives: Vec<_> =
///         (0..3).map(|tag| world.irecv(vec![0], other, tag).unwrap()).collect();
///     for tag in 0..3 {
///         world.send(&[tag], other, tag).unwrap();
///     }
///     let mut sum = 0;
///     while !receives.is_empty() {
///         for (_place, outcome) in mpj::wait_some(&mut receives).unwrap() {
///             sum += outcome.unwrap().0[0];
///         }
///     }
///     assert_eq!(sum, 3);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn wait_some<T: Datatype>(requests: &mut Vec<Request<T>>) -> Result<Vec<Completion<T>>, Error> {
    call(requests, |device, open| device.iwaitsome(open))
}

/// Tests whether one of the requests is complete (MPI_Testany). If so, removes it from the list and returns the index
/// that it had and its buffer. Returns `None` if none is complete or the list is empty.
///
/// # Errors
/// As [`wait_any`].
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = vec![
///         world.irecv(vec![0u8], 0, 1).unwrap(),
///         world.irecv(vec![0u8], 0, 2).unwrap(),
///     ];
///     assert!(mpj::test_any(&mut requests).unwrap().is_none());
///     world.send(&[7u8], 0, 2).unwrap();
///     let (place, buffer, _) = mpj::test_any(&mut requests).unwrap().expect("it has come");
///     assert_eq!((place, buffer, requests.len()), (1, vec![7], 1));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn test_any<T: Datatype>(
    requests: &mut Vec<Request<T>>,
) -> Result<Option<(usize, Vec<T>, Status)>, Error> {
    one(call(requests, |device, open| Ok(device.itestany(open)?.into_iter().collect()))?)
}

/// Tests which of the requests are complete (MPI_Testsome), and removes these from the list.
///
/// # Errors
/// As [`wait_some`].
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = vec![world.irecv(vec![0u8], 0, 1).unwrap()];
///     assert!(mpj::test_some(&mut requests).unwrap().is_empty());
///     world.send(&[7u8], 0, 1).unwrap();
///     let complete = mpj::test_some(&mut requests).unwrap();
///     assert_eq!((complete.len(), requests.len()), (1, 0));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn test_some<T: Datatype>(requests: &mut Vec<Request<T>>) -> Result<Vec<Completion<T>>, Error> {
    call(requests, |device, open| device.itestsome(open))
}

/// Tests whether all requests are complete (MPI_Testall). If so, returns their buffers in order and empties the list;
/// otherwise returns `None` and leaves the list unchanged.
///
/// # Errors
/// The first error in the order of the list, which is then empty; [`Error::Mixed`]; the device has failed.
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = vec![
///         world.irecv(vec![0u8], 0, 1).unwrap(),
///         world.isend(vec![7u8], 0, 2).unwrap(),
///     ];
///     assert!(mpj::test_all(&mut requests).unwrap().is_none());
///     world.send(&[8u8], 0, 1).unwrap();
///     world.recv(&mut [0u8], 0, 2).unwrap();
///     let buffers = mpj::test_all(&mut requests).unwrap().expect("all are complete");
///     assert_eq!((&*buffers[0].0, &*buffers[1].0), (&[8][..], &[7][..]));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn test_all<T: Datatype>(
    requests: &mut Vec<Request<T>>,
) -> Result<Option<Vec<Completed<T>>>, Error> {
    let is_empty = requests.is_empty();
    let complete = call(requests, |device, open| {
        Ok(device.itestall(open)?.unwrap_or_default().into_iter().enumerate().collect())
    })?;
    if complete.is_empty() && !is_empty {
        return Ok(None);
    }
    complete.into_iter().map(|(_, outcome)| outcome).collect::<Result<_, _>>().map(Some)
}

/// An index in a list of the device, and the outcome of the request there.
type Outcome = (usize, Result<mpjdev::Status, mpjdev::Error>);

/// Returns the only completion of a call that asks for one.
fn one<T: Datatype>(
    complete: Vec<Completion<T>>,
) -> Result<Option<(usize, Vec<T>, Status)>, Error> {
    let Some((place, outcome)) = complete.into_iter().next() else { return Ok(None) };
    outcome.map(|(buffer, status)| Some((place, buffer, status)))
}

/// The requests of a list, taken out for a call of the device. When this is dropped, those that are still open return
/// to their places, so that each stays with its buffer (Q1).
struct Opened<'a, T: Datatype> {
    requests: &'a mut [Request<T>],
    open: Vec<Option<mpjdev::Request>>,
}

impl<T: Datatype> Drop for Opened<'_, T> {
    fn drop(&mut self) {
        for (request, open) in self.requests.iter_mut().zip(self.open.drain(..)) {
            request.open = open;
        }
    }
}

/// Makes a call of the device with the requests of a list, and removes from the list those that are complete.
fn call<T: Datatype>(
    requests: &mut Vec<Request<T>>,
    call: impl FnOnce(
        &RankDevice,
        &mut [Option<mpjdev::Request>],
    ) -> Result<Vec<Outcome>, mpjdev::Error>,
) -> Result<Vec<Completion<T>>, Error> {
    let Some(first) = requests.first() else {
        return Ok(Vec::new());
    };
    let communicator = first.communicator.clone();
    let device = &communicator.device;
    if requests.iter().any(|request| !request.communicator.device.is(device)) {
        return communicator.answer(Err(Error::Mixed));
    }
    let open = requests.iter_mut().map(|request| request.open.take()).collect();
    let mut opened = Opened { requests, open };
    let outcome = call(device, &mut opened.open);
    drop(opened);
    let ended = communicator
        .answer_look(outcome.map(|ended| Some(ended).filter(|ended| !ended.is_empty())))?;
    let complete = ended.unwrap_or_default().into_iter().map(|(place, outcome)| {
        let request = &mut requests[place];
        // The first error counts as that of the last call, whatever follows.
        let outcome = match outcome {
            Ok(status) => Ok(request.ended(status)),
            Err(error) => request.communicator.answer(Err(error)),
        };
        (place, outcome)
    });
    let complete = complete.collect();
    requests.retain(|request| request.open.is_some());
    Ok(complete)
}
