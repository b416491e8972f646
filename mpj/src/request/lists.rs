//! Waits and tests for several requests (MPI-4.1 section 3.7.5): of any types, and of any calls. The requests of a list
//! may belong to different communicators, but all to the same context of the rank.

use std::panic::Location;

use mpjdev::{CallKind, Device, Recorded};

use crate::communicator::PointToPoint;
use crate::communicator::operation::{Internal, Listed};
use crate::error::Error;

/// A request of any type, in a list of requests: a [`Request`](crate::Request) of a message or a collective call, a
/// [`ScopedRequest`](crate::ScopedRequest), a [`PersistentRequest`](crate::PersistentRequest), a
/// [`PendingCommunicator`](crate::PendingCommunicator) or a call of a service.
///
/// Calls for lists of requests, such as [`wait_any`], say which requests are complete. The request's own `wait`, which
/// then returns at once, gives what came of it. A list skips a request whose completion an earlier call has reported, and
/// one that was waited for, as MPI's lists skip inactive requests.
///
/// ```
/// use mpj::{AnyRequest, Op, collective};
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let mut word = world.irecv(vec![0u8; 5], other, 0).unwrap();
///     let mut sum = world.start(collective::all_reduce(vec![1.5], Op::Sum)).unwrap();
///     world.send(b"hello", other, 0).unwrap();
///
///     mpj::wait_all([&mut word as &mut dyn AnyRequest, &mut sum]).unwrap();
///     assert_eq!((word.wait().unwrap().0, sum.wait().unwrap().0), (b"hello".to_vec(), vec![3.0]));
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub trait AnyRequest: Listed {}

impl<R: Listed + ?Sized> AnyRequest for R {}

/// Waits for all requests (MPI_Waitall).
///
/// # Errors
/// The first error in the order of the list, after all requests were waited for. The wait of a request returns its own
/// outcome.
///
/// ```
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let mut receives: Vec<_> = (0..3).map(|tag| world.irecv(vec![0], other, tag).unwrap()).collect();
///     for tag in 0..3 {
///         world.send(&[tag], other, tag).unwrap();
///     }
///     mpj::wait_all(&mut receives).unwrap();
///     let numbers: Vec<_> = receives.into_iter().map(|receive| receive.wait().unwrap().0[0]).collect();
///     assert_eq!(numbers, [0, 1, 2]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Waitall")]
#[track_caller]
pub fn wait_all<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<(), Error> {
    let (mut first, mut recorded) = (Ok(()), None);
    let place = Location::caller();
    for request in requests {
        let Some(open) = request.take_open(Internal(())) else { continue };
        let communicator = request.communicator(Internal(()));
        if recorded.is_none() && open.completed().is_none() {
            recorded = recorded_at("wait_all", &communicator.device, place);
        }
        let outcome = communicator.device.iwait(open);
        if first.is_ok() {
            first = communicator.answer(outcome.clone()).map(drop);
        }
        request.end(outcome.map_err(Box::new), Internal(()));
    }
    first
}

/// Waits until one of the requests is complete (MPI_Waitany), and returns its index. Returns `None` if there is none
/// that was not yet complete or waited for.
///
/// # Errors
/// [`Error::Mixed`] for requests of several worlds or contexts; the device has failed. An error of the operation is
/// returned by the wait of its request.
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests: Vec<_> = (0..3).map(|tag| world.irecv(vec![0], 0, tag).unwrap()).collect();
///     for tag in [2, 0, 1] {
///         world.send(&[tag], 0, tag).unwrap();
///         let place = mpj::wait_any(&mut requests).unwrap().expect("some are open");
///         let (number, status) = requests.remove(place).wait().unwrap();
///         assert_eq!((number, status.tag), (vec![tag], tag));
///     }
///     assert_eq!(mpj::wait_any(&mut requests).unwrap(), None);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Waitany")]
#[track_caller]
pub fn wait_any<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<Option<usize>, Error> {
    let wait = |device: &Device, open: &mut [_]| Ok(device.iwaitany(open)?.into_iter().collect());
    let done = call("wait_any", requests, wait)?;
    Ok(done.first().copied())
}

/// Waits until at least one of the requests is complete (MPI_Waitsome), and returns the indices of all that are, in order.
/// Returns nothing if there is none that was not yet complete or waited for.
///
/// # Errors
/// As [`wait_any`].
///
/// ```
/// use mpj::{AnyRequest, Op, collective};
/// mpj::local::run(2, |world| {
///     let other = 1 - world.rank();
///     let (mut theirs, mut sum) = ([0; 2], [world.rank()]);
///     world.scope(|scope| {
///         let mut receive = scope.irecv(&mut theirs, other, 0)?;
///         let mut sum = scope.start(collective::all_reduce(&mut sum, Op::Sum))?;
///         scope.isend(&[7, 8], other, 0)?;
///         let mut complete = 0;
///         while complete < 2 {
///             complete += mpj::wait_some([&mut receive as &mut dyn AnyRequest, &mut sum])?.len();
///         }
///         assert_eq!(receive.wait()?.0, &[7, 8]);
///         assert_eq!(sum.wait()?.0, &[1]);
///         Ok(())
///     })
///     .unwrap();
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Waitsome")]
#[track_caller]
pub fn wait_some<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<Vec<usize>, Error> {
    call("wait_some", requests, |device, open| device.iwaitsome(open))
}

/// Tests whether one of the requests is complete (MPI_Testany), and returns its index. Returns `None` if none is that was
/// not yet complete or waited for.
///
/// # Errors
/// As [`wait_any`].
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = [world.irecv(vec![0], 0, 1).unwrap(), world.irecv(vec![0], 0, 2).unwrap()];
///     assert_eq!(mpj::test_any(&mut requests).unwrap(), None);
///     world.send(&[7], 0, 2).unwrap();
///     assert_eq!(mpj::test_any(&mut requests).unwrap(), Some(1));
///     assert_eq!(mpj::test_any(&mut requests).unwrap(), None);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Testany")]
#[track_caller]
pub fn test_any<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<Option<usize>, Error> {
    let test = |device: &Device, open: &mut [_]| Ok(device.itestany(open)?.into_iter().collect());
    let done = call("test_any", requests, test)?;
    Ok(done.first().copied())
}

/// Tests which of the requests are complete (MPI_Testsome), and returns their indices, in order. Leaves out those that
/// were complete or waited for before.
///
/// # Errors
/// As [`wait_any`].
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = vec![world.irecv(vec![0], 0, 1).unwrap(), world.irecv(vec![0], 0, 2).unwrap()];
///     world.send(&[8], 0, 2).unwrap();
///     world.send(&[7], 0, 1).unwrap();
///     assert_eq!(mpj::test_some(&mut requests).unwrap(), [0, 1]);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Testsome")]
#[track_caller]
pub fn test_some<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<Vec<usize>, Error> {
    call("test_some", requests, |device, open| device.itestsome(open))
}

/// Tests whether all requests are complete (MPI_Testall).
///
/// # Errors
/// As [`wait_all`], if all are complete; [`Error::Mixed`]; the device has failed.
///
/// ```
/// mpj::local::run(1, |world| {
///     let mut requests = [world.irecv(vec![0], 0, 1).unwrap(), world.issend(vec![7], 0, 2).unwrap()];
///     assert!(!mpj::test_all(&mut requests).unwrap());
///     world.send(&[8], 0, 1).unwrap();
///     world.recv(&mut [0], 0, 2).unwrap();
///     assert!(mpj::test_all(&mut requests).unwrap());
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Testall")]
#[track_caller]
pub fn test_all<'r, R: AnyRequest + ?Sized + 'r>(
    requests: impl IntoIterator<Item = &'r mut R>,
) -> Result<bool, Error> {
    let mut list: Vec<_> = requests.into_iter().collect();
    let (mut are_done, mut failed) = (true, None);
    call("test_all", list.iter_mut(), |device, open| {
        let places = (0..open.len()).filter(|&place| open[place].is_some()).collect::<Vec<_>>();
        let Some(outcomes) = device.itestall(open)? else {
            are_done = false;
            return Ok(Vec::new());
        };
        failed = outcomes.iter().find_map(|outcome| outcome.as_ref().err().cloned());
        Ok(places.into_iter().zip(outcomes).collect())
    })?;
    match (failed, list.first()) {
        (Some(error), Some(request)) => request.communicator(Internal(())).answer(Err(error)),
        _ => Ok(are_done),
    }
}

/// A place in a list of the device, and the outcome of the request there.
type Completion = (usize, Result<mpjdev::Status, mpjdev::Error>);

/// The requests of a list, taken out for a call of the device. When this is dropped, those that are still open return
/// to their places, so that each stays with its buffer (Q1, Z1).
struct Opened<'a, 'r, R: Listed + ?Sized> {
    requests: &'a mut [&'r mut R],
    open: Vec<Option<mpjdev::Request>>,
}

impl<R: Listed + ?Sized> Drop for Opened<'_, '_, R> {
    fn drop(&mut self) {
        for (request, open) in self.requests.iter_mut().zip(self.open.drain(..)) {
            open.into_iter().for_each(|open| request.put_back(open, Internal(())));
        }
    }
}

/// Begins the record of a call for requests of this device, where calls are recorded.
fn recorded_at(
    name: &'static str,
    device: &Device,
    place: &'static Location<'static>,
) -> Option<Recorded> {
    let recorded = || Recorded::begin(name, CallKind::Wait, Some(place), None);
    device.records().then(recorded).flatten()
}

/// Makes a call of the device with the requests of a list, and returns the places of those that it has completed. If it has
/// completed none, it is not recorded.
#[track_caller]
fn call<'r, R: AnyRequest + ?Sized + 'r>(
    name: &'static str,
    requests: impl IntoIterator<Item = &'r mut R>,
    call: impl FnOnce(&Device, &mut [Option<mpjdev::Request>]) -> Result<Vec<Completion>, mpjdev::Error>,
) -> Result<Vec<usize>, Error> {
    let mut requests: Vec<_> = requests.into_iter().collect();
    let Some(first) = requests.first() else {
        return Ok(Vec::new());
    };
    let communicator = PointToPoint::clone(first.communicator(Internal(())));
    let device = &communicator.device;
    if requests.iter().any(|request| !request.communicator(Internal(())).device.is(device)) {
        return communicator.answer(Err(Error::Mixed));
    }
    let open = requests.iter_mut().map(|request| request.take_open(Internal(()))).collect();
    let mut opened = Opened { requests: &mut requests, open };
    let recorded = recorded_at(name, device, Location::caller());
    let ended = call(device, &mut opened.open);
    if matches!(&ended, Ok(ended) if ended.is_empty()) {
        recorded.into_iter().for_each(Recorded::forget);
    } else {
        drop(recorded);
    }
    drop(opened);
    let ended = ended.map(|ended| Some(ended).filter(|ended| !ended.is_empty()));
    let ended = communicator.answer_look(ended)?.unwrap_or_default();
    let places = ended.into_iter().map(|(place, outcome)| {
        requests[place].end(outcome.map_err(Box::new), Internal(()));
        place
    });
    Ok(places.collect())
}
