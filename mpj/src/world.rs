//! Joining and leaving the job: MPI_Init and MPI_Finalize.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};
use std::time::Instant;

use mpjdev::wireup::{self, Control, Job};

use crate::abort;
use crate::communicator::Communicator;
use crate::error::Error;

/// All ranks of the job: MPI_COMM_WORLD. Dropping it ends this rank's part.
pub struct World {
    communicator: Communicator,
    control: Option<Control>,
    /// Where the first rank of a local job that goes without waiting leaves its number.
    first_gone: Arc<OnceLock<usize>>,
    /// Whether `finish` was called.
    left: bool,
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
    let Job { device, control, get_report } = wireup::join()?;
    if let Some(control) = &control {
        device.report_to(control.clone());
        tell_panics(control.clone());
        abort::joined(control);
    }
    let communicator = Communicator::world(device, get_report);
    Ok(World { communicator, control, first_gone: Arc::default(), left: false })
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
        first_gone: Arc<OnceLock<usize>>,
    ) -> Self {
        let communicator = Communicator::world(device, "memory copy".to_owned());
        Self { communicator, control: None, first_gone, left: false }
    }

    /// Ends this rank's part: waits until all that it sent is in place and every rank has come here
    /// (MPI_Finalize). Dropping the world does the same, but cannot say what went wrong.
    ///
    /// # Errors
    /// The device has failed, for example since a rank died.
    pub fn finish(mut self) -> Result<(), Error> {
        self.left = true;
        self.leave(|device| device.finish().map(|()| true))
    }

    /// Leaves the job after `finish`, which answers whether the others have come to their end too.
    fn leave(
        &self,
        finish: impl FnOnce(&mpjdev::Device<wireup::Native>) -> Result<bool, mpjdev::Error>,
    ) -> Result<(), Error> {
        let device = &self.communicator.device;
        if let Some(control) = &self.control {
            control.leaving(device.stats().unwrap_or_default().into());
        }
        let have_come = device.answer(finish(device))?;
        if let Some(control) = self.control.as_ref().filter(|_| have_come) {
            control.finished();
        }
        Ok(())
    }

    /// Goes without waiting for the others, who learn that this rank is gone, as the launcher does.
    fn abandon(&self) {
        self.first_gone.get_or_init(|| self.rank());
        self.communicator.device.abort();
    }
}

impl Deref for World {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.communicator
    }
}

impl Drop for World {
    /// Leaves the job. While panicking, or after an error that counts for this thread (see
    /// the head of `seat.rs`), it waits for nobody.
    fn drop(&mut self) {
        if self.left || self.communicator.device.is_fork() {
            // The job of a rank's fork is its parent's.
            return;
        }
        if std::thread::panicking() {
            self.control.iter().for_each(tell_hushed_panic);
            return self.abandon();
        }
        let complaint = self.communicator.device.complaint();
        // Dropped by a `main` that returns an error, which is printed after this: where the job hangs by
        // that, it must get there.
        let alone = Arc::strong_count(&self.communicator.device) == 1;
        let leave = || self.leave(|device| device.finish_unless_dismissed(alone));
        let Some(complaint) = complaint.or_else(|| leave().err().map(|error| error.to_string()))
        else {
            return;
        };
        if let Some(control) = &self.control {
            control.failed(&complaint, "");
        }
        self.abandon();
    }
}

/// Whether the hook of `tell_panics` has told of a panic.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Adds to the panic hook a note of what the panic says, for the launcher's report. That alone ends
/// nothing: a panic may be caught.
fn tell_panics(control: Control) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            control.failed(&panic_text(panic.payload()), &place);
            TOLD.store(true, Ordering::Relaxed);
            before(panic);
        }));
    });
}

/// Says of a panic that goes on, and that the hook of `tell_panics` was not asked about, that there is
/// one. After another panic nothing is said: it may be the same one, resumed in this thread.
fn tell_hushed_panic(control: &Control) {
    if !TOLD.load(Ordering::Relaxed) {
        let why = "its panic hook was set after mpj::init, which keeps the text from this report";
        control.failed(why, "an unknown place");
    }
}

/// What a panic says.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}
