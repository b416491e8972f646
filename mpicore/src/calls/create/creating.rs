//! Duplication without waiting: MPI_Comm_idup (MPI-4.1 section 7.4.2). Any call that makes progress advances the rounds
//! of the agreement.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mpjdev::{Call, Request, Status};

use super::highest_of_both;
use crate::communicator::{Communicator, Copied};
use crate::error::Error;
use crate::plan::Plan;
use crate::process::context_ids::Agreement;

/// A communicator that is being made.
#[must_use = "the communicator comes from `wait`"]
pub struct Creating {
    parent: Communicator,
    request: Option<Request>,
    made: Arc<Made>,
}

/// The communicator that [`Creating::into_request`] has separated from its request.
#[must_use = "the communicator comes from `take`"]
pub struct Created(Arc<Made>);

impl Created {
    /// Returns the communicator after its request has ended, once.
    ///
    /// # Errors
    /// As [`Communicator::dup`]; [`mpjdev::Error::Request`] if it is not made yet, or was taken.
    pub fn take(&self) -> Result<Communicator, Error> {
        let made = self.0.lock().take();
        made.unwrap_or_else(|| Err(mpjdev::Error::Request.into()))
    }
}

/// Where the communicator is stored when it is made.
struct Made(Mutex<Option<Result<Communicator, Error>>>);

impl Made {
    fn lock(&self) -> MutexGuard<'_, Option<Result<Communicator, Error>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Creating {
    /// Returns the device's request, which ends when the communicator is made, and the communicator to be taken then.
    /// So it can be waited for in a list with others.
    pub fn into_request(mut self) -> (Request, Created) {
        let request = self.request.take().expect("only waits and tests take it, with `self`");
        (request, Created(self.made.clone()))
    }

    /// Waits until the communicator is made and returns it.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    pub fn wait(mut self) -> Result<Communicator, Error> {
        if let Some(request) = self.request.take() {
            self.parent.device().iwait(request)?;
        }
        self.outcome()
    }

    /// Returns the communicator if it is made, otherwise `self`.
    ///
    /// # Errors
    /// As [`Communicator::dup`].
    pub fn test(mut self) -> Result<Result<Communicator, Self>, Error> {
        match self.parent.device().itest(&mut self.request)? {
            Some(_) => self.outcome().map(Ok),
            None => Ok(Err(self)),
        }
    }

    fn outcome(self) -> Result<Communicator, Error> {
        Created(self.made.clone()).take()
    }
}

impl Drop for Creating {
    /// Lets the device forget the request when it has ended.
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            self.parent.device().detach(request, Box::new(()));
        }
    }
}

impl Communicator {
    /// Starts [`Communicator::dup`] without waiting: MPI_Comm_idup. The copy callbacks of attributes run in this call;
    /// if one fails, its error is the outcome.
    ///
    /// # Errors
    /// What made the device unusable. Other errors are the outcome.
    pub fn idup(&self) -> Result<Creating, Error> {
        let copied = self.copy_attributes();
        let (context, number) = (self.collective_context(), self.next_number());
        let (request, ending) = self.device().begin(Call::Dup, context, number)?;
        let made = Arc::new(Made(Mutex::new(None)));
        let (place, process) = (made.clone(), self.process().clone());
        let done = Box::new(move |outcome| {
            *place.lock() = Some(outcome);
            process.device().end(ending, Ok(Status::new(0, 0, 0)));
        });
        let salt = self.salt();
        let agreement = self.process().with_free_ids(|ids| Agreement::new(ids, salt));
        Duplication { parent: self.clone(), number, agreement, copied, done }.tell();
        Ok(Creating { parent: self.clone(), request: Some(request), made })
    }
}

/// An agreement whose rounds run without a thread that waits for them.
struct Duplication {
    parent: Communicator,
    /// The number of the call, used in all rounds: other calls on the parent may come between the rounds, at different
    /// places on different ranks.
    number: i32,
    agreement: Agreement,
    copied: Copied,
    done: Box<dyn FnOnce(Result<Communicator, Error>) + Send>,
}

impl Duplication {
    /// Begins a round.
    fn tell(self) {
        let words = self.agreement.words().map(u64::from).to_vec();
        let told = self.parent.highest_here(Call::Dup, words, self.number).and_then(Plan::once);
        match told {
            Ok(plan) => plan.start_then(|here| self.tell_remote(here)),
            Err(error) => self.fail(error),
        }
    }

    /// Continues with the words of this rank's group.
    fn tell_remote(self, here: Result<Vec<u64>, Error>) {
        match here {
            Err(error) => self.fail(error),
            Ok(here) if !self.parent.is_inter() => self.learn(Ok(here)),
            Ok(here) => {
                let told = self.parent.highest_there(Call::Dup, here.clone(), self.number);
                match told.and_then(Plan::once) {
                    Ok(plan) => plan.start_then(move |there| {
                        self.learn(there.map(|there| highest_of_both(here, &there)));
                    }),
                    Err(error) => self.fail(error),
                }
            }
        }
    }

    /// Ends a round.
    fn learn(mut self, words: Result<Vec<u64>, Error>) {
        let Self { parent, agreement, .. } = &mut self;
        match words.and_then(|words| parent.learn(agreement, &words)) {
            Ok(None) => self.tell(),
            Ok(Some(id)) => {
                let made = self.parent.twin(id, self.copied);
                (self.done)(made);
            }
            Err(error) => self.fail(error),
        }
    }

    fn fail(mut self, error: Error) {
        self.parent.process().with_free_ids(|ids| self.agreement.give_up(ids));
        (self.done)(Err(error));
    }
}
