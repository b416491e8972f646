//! Services: functions that the ranks of a communicator register, and that other ranks call. The core runs them; here
//! requests and answers get types. They travel in the codec of `mpjdev::buffer::codec`, as objects do.

use std::any::type_name;
use std::fmt::Display;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use mpicore::{Answer, Refusal, Services};
use mpjdev::buffer::codec::{self, CodecError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::communicator::operation::{CallPlace, Operation, listed};
use crate::communicator::{Await, Communicator, Completion, PointToPoint};
use crate::error::{Error, ObjectError};

/// A function that all ranks of a communicator have registered by [`Communicator::serve`], and that any of them can call
/// on any rank. Clones are the same service.
///
/// The service of a rank may be called until the world ends, on all communicators that have services, even if the rank
/// has dropped its handle. Before a world that is dropped or finished leaves the job, it waits until the calls of all
/// ranks have been carried out, those that functions make on other communicators and in other contexts, too, if one of
/// the communicators with services has all ranks of the world.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// mpj::local::run(3, |world| {
///     // Each rank has a counter, to which the others can add.
///     let counter = AtomicU64::new(0);
///     let add = world.serve(move |caller, by: u64| counter.fetch_add(by, Ordering::Relaxed) + by)?;
///     if world.rank() != 0 {
///         let sum = add.call(0, &10)?;
///         assert!(sum == 10 || sum == 20);
///     }
///     world.barrier()?;
///     assert_eq!(add.call(0, &0)?, 20);
///     world.finish()
/// })?
/// .into_iter()
/// .collect::<Result<(), mpj::Error>>()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Service<Q, A> {
    communicator: PointToPoint,
    services: Arc<Services>,
    number: u32,
    types: PhantomData<fn(Q) -> A>,
}

impl<Q, A> Clone for Service<Q, A> {
    fn clone(&self) -> Self {
        let (communicator, services) = (self.communicator.clone(), self.services.clone());
        Self { communicator, services, number: self.number, types: PhantomData }
    }
}

/// # Remote calls
impl Communicator {
    /// Registers a function that other ranks call (collective): it gets the rank of the caller and its request, and
    /// returns the answer. All ranks register their services in the same order. The function of each rank is its own, and
    /// may keep data of that rank. No call comes before all ranks have registered it.
    ///
    /// # When and where it runs
    /// In any call of the rank that waits or polls, also at the end of the world, in the thread of that call; beside
    /// computation only if the rank has a progress thread ([`World::progress_thread`](crate::World::progress_thread)).
    /// Several threads may run it at once. So:
    ///
    /// * Hold no lock that the function needs while you make a call of this library.
    /// * The function may communicate, and call services, also of ranks that wait for this one. While it waits, its thread
    ///   runs others on top of it: those of calls that functions have made on a deeper level of a chain of calls, and up to
    ///   three more of its own level; the rest waits until it returns. A chain has at most 16 levels. So a thread runs at
    ///   most 64 functions at a time, and calls of services of one context never block each other for ever. With
    ///   several contexts this needs a progress thread in each.
    /// * A function goes on only after those on top of it have returned. So one that waits for a message must know that the
    ///   sender does not need this rank before.
    ///
    /// # Errors
    /// As [`Communicator::barrier`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let upper = world.serve(|caller, text: String| format!("{caller}: {}", text.to_uppercase())).unwrap();
    ///     let other = 1 - world.rank();
    ///     assert_eq!(upper.call(other, &"hello".to_owned()).unwrap(), format!("{}: HELLO", world.rank()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn serve<Q, A>(
        &self,
        handler: impl Fn(usize, Q) -> A + Send + Sync + 'static,
    ) -> Result<Service<Q, A>, Error>
    where
        Q: Serialize + DeserializeOwned,
        A: Serialize + DeserializeOwned,
    {
        self.register(move |caller, request| Ok(handler(caller, request)), |_| ())
    }

    /// Registers a function like [`Communicator::serve`], which gets its own service, too, and so can call itself on other
    /// ranks.
    ///
    /// # Errors
    /// As [`Communicator::serve`].
    ///
    /// ```
    /// use mpj::Service;
    /// mpj::local::run(3, |world| {
    ///     let (rank, size) = (world.rank(), world.size());
    ///     let sum = |own: &Service<u64, u64>, _, n| match n {
    ///         0 => 0,
    ///         n => n + own.call(n as usize % 3, &(n - 1)).unwrap(),
    ///     };
    ///     let sum = world.serve_recursive(sum).unwrap();
    ///     assert_eq!(sum.call((rank + 1) % size, &10).unwrap(), 55);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn serve_recursive<Q, A>(
        &self,
        handler: impl Fn(&Service<Q, A>, usize, Q) -> A + Send + Sync + 'static,
    ) -> Result<Service<Q, A>, Error>
    where
        Q: Serialize + DeserializeOwned + 'static,
        A: Serialize + DeserializeOwned + 'static,
    {
        let own = Arc::new(OnceLock::new());
        let known = own.clone();
        let handle = move |caller, request| {
            Ok(handler(known.get().expect("it is set before the first call"), caller, request))
        };
        self.register(handle, |service| drop(own.set(service.clone())))
    }

    /// Registers a function like [`Communicator::serve`], which may fail. Its callers then get
    /// [`ServiceError::Failed`](crate::ServiceError::Failed) with the text of its error, of at most a thousand bytes.
    ///
    /// # Errors
    /// As [`Communicator::serve`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let parse = world.try_serve(|_, text: String| text.parse::<u32>()).unwrap();
    ///     assert_eq!(parse.call(1, &"42".to_owned()).unwrap(), 42);
    ///     let error = parse.call(1, &"many".to_owned()).unwrap_err();
    ///     assert_eq!(error.to_string(), "service 0 of rank 1 refused the call: invalid digit found in string");
    ///     # world.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn try_serve<Q, A, E: Display>(
        &self,
        handler: impl Fn(usize, Q) -> Result<A, E> + Send + Sync + 'static,
    ) -> Result<Service<Q, A>, Error>
    where
        Q: Serialize + DeserializeOwned,
        A: Serialize + DeserializeOwned,
    {
        let handle = move |caller, request| {
            handler(caller, request).map_err(|error| Refusal::Failed(error.to_string()))
        };
        self.register(handle, |_| ())
    }

    /// Registers a handler, after `made` has seen its service.
    fn register<Q: DeserializeOwned, A: Serialize>(
        &self,
        handler: impl Fn(usize, Q) -> Result<A, Refusal> + Send + Sync + 'static,
        made: impl FnOnce(&Service<Q, A>),
    ) -> Result<Service<Q, A>, Error> {
        let services = self.step(self.device.services_on(&self.core).map_err(Error::from))?;
        let device = self.device.downgrade();
        let handle = move |rank, request: &[u8], answer: &mut Vec<u8>| {
            // A rank that has left has no process any more, and runs no handler.
            let Some(device) = device.upgrade() else { return Ok(()) };
            let request = codec::decode(request).map_err(|error| {
                Refusal::Unreadable(format!("it is no {}: {error}", type_name::<Q>()))
            })?;
            let value = device.apart(|| handler(rank as usize, request))?;
            let limit = answer.len().saturating_add(device.object_limit().load(Ordering::Relaxed));
            codec::encode(&value, answer, limit).map_err(|error| {
                Refusal::Failed(format!(
                    "its answer, a {}, cannot be sent: {error}",
                    type_name::<A>()
                ))
            })
        };
        let (communicator, types) = (PointToPoint::clone(self), PhantomData);
        let mut service = Service { communicator, services: services.clone(), number: 0, types };
        self.answer(services.register(|number| {
            service.number = number;
            made(&service);
            Arc::new(handle)
        }))?;
        Ok(service)
    }

    /// Waits until no call of a service of this communicator is under way on any rank (collective): neither calls of
    /// programs, notices included, nor those that their handlers have made. So a program knows that work which makes more
    /// work has ended. No other thread makes such calls meanwhile.
    ///
    /// # Errors
    /// [`ServiceError::InHandler`](crate::ServiceError::InHandler); as [`Communicator::barrier`].
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// mpj::local::run(3, |world| {
    ///     let next = (world.rank() + 1) % world.size();
    ///     let hops = Arc::new(AtomicU32::new(0));
    ///     let count = hops.clone();
    ///     let pass = move |own: &mpj::Service<u32, ()>, _, left| {
    ///         count.fetch_add(1, Ordering::Relaxed);
    ///         if left > 0 {
    ///             own.notify(next, &(left - 1)).unwrap();
    ///         }
    ///     };
    ///     let pass = world.serve_recursive(pass).unwrap();
    ///     if world.rank() == 0 {
    ///         pass.notify(1, &11).unwrap();
    ///     }
    ///     world.quiesce().unwrap();
    ///     assert_eq!(hops.load(Ordering::Relaxed), 4);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn quiesce(&self) -> Result<(), Error> {
        let services = self.step(self.device.services_on(&self.core).map_err(Error::from))?;
        self.answer(services.quiesce())
    }
}

impl<Q: Serialize, A: DeserializeOwned> Service<Q, A> {
    /// Calls the service on a rank, and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Service`]: the handler refused the call or panicked, or request and answer have other types there. No such
    /// rank; the rank is lost; the request cannot be encoded, or is longer than objects may be
    /// ([`Communicator::set_object_limit`]); the device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let half = world.serve(|_, number: u32| {
    ///         assert!(number % 2 == 0, "{number} is odd");
    ///         number / 2
    ///     })
    ///     .unwrap();
    ///     assert_eq!(half.call(1, &6).unwrap(), 3);
    ///     let error = half.call(1, &7).unwrap_err();
    ///     assert_eq!(error.to_string(), "service 0 panicked on rank 1: 7 is odd");
    ///     # world.barrier().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn call(&self, rank: usize, request: &Q) -> Result<A, Error> {
        let _within = mpjdev::Within::call(mpjdev::Call::CallOfService);
        self.start(rank, request)?.wait()
    }

    /// Starts to call the service on a rank. Waits only while many calls are under way to that rank: 256 of them, or
    /// fewer with requests of 16 KiB and more.
    ///
    /// # Errors
    /// As [`Service::call`]; those that the other rank finds come from the request.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let square = world.serve(|_, number: u64| number * number).unwrap();
    ///     let calls: Vec<_> = (0..30).map(|number| square.start(number as usize % 3, &number).unwrap()).collect();
    ///     let sum: u64 = calls.into_iter().map(|call| call.wait().unwrap()).sum();
    ///     assert_eq!(sum, 8555);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn start(&self, rank: usize, request: &Q) -> Result<PendingCall<A>, Error> {
        let (rank, message) = self.prepare(rank, request)?;
        let started = self.services.start(self.number, rank, message);
        let (request, answer) = self.communicator.step(started.map_err(Error::from))?;
        let (communicator, operation) = (self.communicator.clone(), Operation::new(request));
        Ok(PendingCall { communicator, operation, answer, types: PhantomData })
    }

    /// Calls the service on a rank, and wants no answer: neither what the handler returns nor its error. Waits like
    /// [`Service::start`], but not in a handler: what that has made stays with its rank until there is room at the other
    /// one. [`Communicator::quiesce`] waits until such calls have been carried out. Calls of a rank need not be carried out
    /// in the order in which it made them.
    ///
    /// # Errors
    /// As [`Service::start`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let (sent, received) = std::sync::mpsc::channel();
    ///     let tell = world.serve(move |caller, word: String| sent.send((caller, word)).unwrap()).unwrap();
    ///     tell.notify(1 - world.rank(), &"done".to_owned()).unwrap();
    ///     world.quiesce().unwrap();
    ///     assert_eq!(received.try_recv().unwrap(), (1 - world.rank(), "done".to_owned()));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn notify(&self, rank: usize, request: &Q) -> Result<(), Error> {
        let (rank, message) = self.prepare(rank, request)?;
        self.communicator.answer(self.services.notify(self.number, rank, message))
    }

    /// Checks the rank and encodes the request.
    fn prepare(&self, rank: usize, request: &Q) -> Result<(u32, Vec<u8>), Error> {
        let limit = self.communicator.device.object_limit().load(Ordering::Relaxed);
        let mut message = Services::message();
        let most = message.len().saturating_add(limit);
        let type_name = type_name::<Q>();
        let encoded = codec::encode(request, &mut message, most).map_err(|error| match error {
            CodecError::TooLong { .. } => ObjectError::TooLong { type_name, limit },
            error => ObjectError::Encode { type_name, cause: error.to_string() },
        });
        self.communicator.step(encoded.map_err(Error::from))?;
        // The core refuses what is no rank.
        Ok((u32::try_from(rank).unwrap_or(u32::MAX), message))
    }
}

/// A call of a service that was started: see [`Service::start`]. Dropping it does not block, and the call is carried out
/// all the same.
///
/// ```
/// mpj::local::run(2, |world| {
///     let length = world.serve(|_, text: String| text.len()).unwrap();
///     let both = async { Ok::<_, mpj::Error>(length.start(0, &"ab".into())?.await? + length.start(1, &"c".into())?.await?) };
///     assert_eq!(pollster::block_on(both).unwrap(), 3);
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[must_use = "the answer comes from `wait`"]
pub struct PendingCall<A> {
    communicator: PointToPoint,
    operation: Operation,
    answer: Answer,
    types: PhantomData<fn() -> A>,
}

impl<A: DeserializeOwned> PendingCall<A> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`Service::call`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let rank = world.rank();
    ///     let who = world.serve(move |_, ()| rank).unwrap();
    ///     assert_eq!(who.start(1, &()).unwrap().wait().unwrap(), 1);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn wait(mut self) -> Result<A, Error> {
        let ended = self.operation.wait(&self.communicator.device);
        self.communicator.answer(ended.map_err(Error::from).and_then(|_| self.take()))
    }

    /// Tests whether the answer is there, and returns it if it is. After that a further wait or test fails.
    ///
    /// # Errors
    /// As [`Service::call`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let double = world.serve(|_, number: i32| 2 * number).unwrap();
    ///     let mut call = double.start(1 - world.rank(), &4).unwrap();
    ///     let answer = loop {
    ///         if let Some(answer) = call.test().unwrap() {
    ///             break answer;
    ///         }
    ///     };
    ///     assert_eq!(answer, 8);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[track_caller]
    pub fn test(&mut self) -> Result<Option<A>, Error> {
        self.test_at(Some(Location::caller()))
    }

    fn test_at(&mut self, place: CallPlace) -> Result<Option<A>, Error> {
        let tested = self.operation.test(&self.communicator.device, place);
        let answer = |ended: Option<_>| ended.map(|_| self.take()).transpose();
        self.communicator.answer_look(tested.map_err(Error::from).and_then(answer))
    }

    /// Returns whether [`PendingCall::wait`] would return at once, with an answer or an error.
    ///
    /// # Errors
    /// The device has failed.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let double = world.serve(|_, number: i32| 2 * number).unwrap();
    ///     let call = double.start(1 - world.rank(), &4).unwrap();
    ///     while !call.is_done().unwrap() {}
    ///     assert_eq!(call.wait().unwrap(), 8);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn is_done(&self) -> Result<bool, Error> {
        self.communicator.is_done(self.operation.is_done(&self.communicator.device))
    }

    /// Takes the answer of a call that has ended.
    fn take(&self) -> Result<A, Error> {
        let payload = self.answer.take()?;
        let unreadable =
            |error: CodecError| self.answer.unreadable(type_name::<A>(), error.to_string());
        codec::decode(payload.bytes()).map_err(|error| unreadable(error).into())
    }
}

listed!(impl[A] PendingCall<A>, communicator);

impl<A: DeserializeOwned> Await for PendingCall<A> {
    type Output = A;

    fn look(&mut self) -> Result<Option<A>, Error> {
        self.test_at(None)
    }
}

impl<A: DeserializeOwned> IntoFuture for PendingCall<A> {
    type Output = Result<A, Error>;
    type IntoFuture = Completion<Self>;

    fn into_future(self) -> Self::IntoFuture {
        Completion::new(self)
    }
}

impl<A> Drop for PendingCall<A> {
    /// Lets the device forget the request when the call has ended.
    fn drop(&mut self) {
        if let Some(request) = self.operation.take_open() {
            self.communicator.device.detach(request, Box::new(()));
        }
    }
}
