//! The request of the device that a request of this crate stands for, until a program has its outcome.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};

use mpjdev::{Device, Error, Status};

use crate::communicator::PointToPoint;

/// An operation that was started. A wait or a test of its own takes the outcome; a call for a list of requests stores it
/// here, for the wait or test that follows.
#[derive(Default)]
pub(crate) struct Operation {
    /// The request, while the operation is under way as far as is known.
    open: Option<mpjdev::Request>,
    outcome: Option<Outcome>,
    /// Whether the program was told that the operation is complete.
    is_seen: AtomicBool,
}

/// Where the program makes a call. That of a future that is polled is not known.
pub type CallPlace = Option<&'static Location<'static>>;

/// How an operation has ended.
pub type Outcome = Result<Status, Box<Error>>;

impl Operation {
    pub fn new(request: mpjdev::Request) -> Self {
        Self { open: Some(request), ..Self::default() }
    }

    /// Returns whether the outcome is still to come.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns whether nobody has taken the outcome.
    pub fn is_wanted(&self) -> bool {
        self.open.is_some() || self.outcome.is_some()
    }

    /// Returns the request, unless its outcome is known.
    pub fn open(&self) -> Option<&mpjdev::Request> {
        self.open.as_ref()
    }

    /// Takes out the request, unless its outcome is known.
    pub fn take_open(&mut self) -> Option<mpjdev::Request> {
        self.open.take()
    }

    /// Puts back a request that [`Operation::take_open`] took.
    pub fn put_back(&mut self, request: mpjdev::Request) {
        self.open = Some(request);
    }

    /// Stores the outcome of a request that was taken out.
    pub fn end(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
    }

    /// Waits for the outcome and takes it. The caller is where the program waits.
    #[inline]
    #[track_caller]
    pub fn wait(&mut self, device: &Device) -> Result<Status, Error> {
        match self.open.take() {
            Some(request) => device.iwait_at(request, Some(Location::caller())),
            None => self.take_outcome(),
        }
    }

    /// Takes the outcome, if it is there, in a call of the program at this place, if that is known.
    pub fn test(&mut self, device: &Device, place: CallPlace) -> Result<Option<Status>, Error> {
        match self.open {
            Some(_) => device.itest_at(&mut self.open, place),
            None => self.take_outcome().map(Some),
        }
    }

    /// Returns the outcome, if it is there, and leaves it.
    pub fn status(&self, device: &Device) -> Result<Option<Status>, Error> {
        match (&self.open, &self.outcome) {
            (Some(request), _) => self.look(request, device)?.transpose(),
            (None, Some(Ok(status))) => Ok(Some(*status)),
            (None, Some(Err(error))) => Err(Error::clone(error)),
            (None, None) => Err(Error::Request),
        }
    }

    /// Returns whether a wait would not have to wait.
    pub fn is_done(&self, device: &Device) -> Result<bool, Error> {
        match &self.open {
            Some(request) => Ok(self.look(request, device)?.is_some()),
            None => Ok(true),
        }
    }

    /// Returns whether [`Operation::status`] or [`Operation::is_done`] has told the program that it is complete.
    pub fn is_seen(&self) -> bool {
        self.is_seen.load(Ordering::Relaxed)
    }

    fn look(
        &self,
        request: &mpjdev::Request,
        device: &Device,
    ) -> Result<Option<Result<Status, Error>>, Error> {
        let status = device.istatus(request)?;
        if status.is_some() {
            self.is_seen.store(true, Ordering::Relaxed);
        }
        Ok(status)
    }

    fn take_outcome(&mut self) -> Result<Status, Error> {
        self.outcome.take().unwrap_or_else(|| Err(Error::Request.into())).map_err(|error| *error)
    }
}

/// Only this crate can make one, so only it can take requests out of their places.
pub struct Internal(pub(crate) ());

/// A request of this crate, in a list of requests.
pub trait Listed {
    /// Returns the communicator of the operation.
    fn communicator(&self, _: Internal) -> &PointToPoint;
    /// Takes out the device's request, unless its outcome is known.
    fn take_open(&mut self, _: Internal) -> Option<mpjdev::Request>;
    /// Puts the device's request back.
    fn put_back(&mut self, request: mpjdev::Request, _: Internal);
    /// Stores the outcome of a request that was taken out, for the request's own wait.
    fn end(&mut self, outcome: Outcome, _: Internal);
}

/// Implements [`Listed`] for a request that keeps its [`Operation`] in the field `operation`, and the communicator in the
/// field that is named.
macro_rules! listed {
    (impl[$($generics:tt)*] $request:ty, $communicator:ident) => {
        impl<$($generics)*> $crate::communicator::operation::Listed for $request {
            fn communicator(
                &self,
                _: $crate::communicator::operation::Internal,
            ) -> &$crate::communicator::PointToPoint {
                &self.$communicator
            }

            fn take_open(
                &mut self,
                _: $crate::communicator::operation::Internal,
            ) -> Option<mpjdev::Request> {
                self.operation.take_open()
            }

            fn put_back(
                &mut self,
                request: mpjdev::Request,
                _: $crate::communicator::operation::Internal,
            ) {
                self.operation.put_back(request);
            }

            fn end(
                &mut self,
                outcome: $crate::communicator::operation::Outcome,
                _: $crate::communicator::operation::Internal,
            ) {
                self.operation.end(outcome);
            }
        }
    };
}

pub(crate) use listed;

impl<R: Listed + ?Sized> Listed for &mut R {
    fn communicator(&self, internal: Internal) -> &PointToPoint {
        (**self).communicator(internal)
    }

    fn take_open(&mut self, internal: Internal) -> Option<mpjdev::Request> {
        (**self).take_open(internal)
    }

    fn put_back(&mut self, request: mpjdev::Request, internal: Internal) {
        (**self).put_back(request, internal);
    }

    fn end(&mut self, outcome: Outcome, internal: Internal) {
        (**self).end(outcome, internal);
    }
}
