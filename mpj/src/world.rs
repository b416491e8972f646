//! Joining and leaving the job: MPI_Init and MPI_Finalize.

use std::ops::Deref;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};
use std::time::Instant;

use mpjdev::wireup::{self, Control, Job};

use crate::communicator::Communicator;
use crate::error::Error;

/// All ranks of the job: MPI_COMM_WORLD. Dropping it ends this rank's part.
pub struct World {
    communicator: Communicator,
    control: Option<Control>,
    /// Where the first rank of a local job that panics leaves its number.
    first_panic: Arc<OnceLock<usize>>,
}

/// Joins the job that this process was started for and waits until all its ranks have come
/// (MPI_Init). A program that was started alone, without a launcher, is a job of one rank. Once per
/// process.
///
/// # Errors
/// A setting that is not legal; a process that the launcher of another MPI has started; a second
/// call; a job segment that cannot be used.
pub fn init() -> Result<World, Error> {
    wtime();
    let Job { device, control, .. } = wireup::join()?;
    if control.is_some() {
        remember_panics();
    }
    let communicator = Communicator::world(device);
    Ok(World { communicator, control, first_panic: Arc::default() })
}

/// Seconds since an arbitrary moment in the past of this process (MPI_Wtime).
pub fn wtime() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

impl World {
    /// The world of one rank of a job in this process.
    pub(crate) fn local(
        device: mpjdev::Device<wireup::Native>,
        first_panic: Arc<OnceLock<usize>>,
    ) -> Self {
        Self { communicator: Communicator::world(device), control: None, first_panic }
    }

    /// Ends this rank's part: waits until all that it sent is in place and every rank has come here
    /// (MPI_Finalize). Dropping the world does the same, but cannot say what went wrong.
    ///
    /// # Errors
    /// The device has failed, for example since a rank died.
    pub fn finish(self) -> Result<(), Error> {
        self.leave()
    }

    fn leave(&self) -> Result<(), Error> {
        self.communicator.device.finish()?;
        if let Some(control) = &self.control {
            control.finished();
        }
        Ok(())
    }
}

impl Deref for World {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.communicator
    }
}

impl Drop for World {
    /// Leaves the job. While panicking, tells the launcher and the other ranks, and waits for nobody.
    fn drop(&mut self) {
        if std::thread::panicking() {
            if let Some(control) = &self.control {
                let (message, location) = last_panic();
                control.failed(&message, &location);
            }
            self.first_panic.get_or_init(|| self.rank());
            self.communicator.device.abort();
            return;
        }
        match self.leave() {
            // The second time: `finish` was called.
            Ok(()) | Err(Error::Device(mpjdev::Error::Finished)) => {}
            Err(error) => {
                if let Some(control) = &self.control {
                    control.failed(&error.to_string(), "");
                }
            }
        }
    }
}

/// Text and place of the last panic of this process.
static LAST_PANIC: Mutex<(String, String)> = Mutex::new((String::new(), String::new()));

fn last_panic() -> (String, String) {
    LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Adds to the panic hook a note of what the panic says, for the launcher's report. Whether the
/// panic ends the rank is decided only when it reaches the world.
fn remember_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let payload = panic.payload();
            let literal = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = literal.or_else(|| payload.downcast_ref::<String>().cloned());
            let place = panic.location().map(ToString::to_string);
            *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) =
                (text.unwrap_or_default(), place.unwrap_or_default());
            before(panic);
        }));
    });
}
