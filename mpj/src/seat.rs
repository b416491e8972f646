//! A rank's place in its job: the device, and what its last call had to complain of.
//!
//! A program that meets an error usually leaves by `?`, and its [`crate::World`] is dropped before
//! anything is printed. Waiting for the other ranks then would hang the job, since they wait for this
//! one. So the last call's error is kept until a later call succeeds, which shows that the program has
//! dealt with it; a world that is dropped with an error kept does not wait.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use mpjdev::Device;
use mpjdev::wireup::Native;

use crate::error::Error;

/// See the module. Shared by the communicators, scopes and requests of one world.
pub(crate) struct Seat {
    device: Device<Native>,
    /// How one-sided reads are done, in words.
    pub get_report: String,
    complaint: Mutex<Option<String>>,
    /// Whether there is one: what a call that succeeds looks at.
    complains: AtomicBool,
}

impl Seat {
    pub fn new(device: Device<Native>, get_report: String) -> Self {
        let (complaint, complains) = (Mutex::new(None), AtomicBool::new(false));
        Self { device, get_report, complaint, complains }
    }

    /// Passes on what a call of the user answers, and keeps or forgets its error.
    #[inline(always)]
    pub fn answer<T>(&self, outcome: Result<T, impl Into<Error>>) -> Result<T, Error> {
        match outcome {
            Ok(value) => {
                self.content();
                Ok(value)
            }
            Err(error) => Err(self.complain(error.into())),
        }
    }

    /// A call has succeeded: forgets the error of the one before.
    #[inline(always)]
    pub fn content(&self) {
        if self.complains.load(Ordering::Relaxed) {
            self.keep(None);
        }
    }

    #[cold]
    #[inline(never)]
    fn complain(&self, error: Error) -> Error {
        self.keep(Some(error.to_string()));
        error
    }

    #[cold]
    fn keep(&self, complaint: Option<String>) {
        self.complains.store(complaint.is_some(), Ordering::Relaxed);
        *self.complaint.lock().unwrap_or_else(PoisonError::into_inner) = complaint;
    }

    /// The error of the last call, if it had one.
    pub fn complaint(&self) -> Option<String> {
        self.complaint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Deref for Seat {
    type Target = Device<Native>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.device
    }
}
