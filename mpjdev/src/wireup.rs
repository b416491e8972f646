//! Joining a job: the device over the adapter that this process's environment calls for.

use transport_lapi::config::Settings;
use transport_lapi::wireup::{self, Joined, WireupError};

use crate::device::{Device, Options};
use crate::error::Error;

pub use transport_lapi::bootstrap::Control;
pub use transport_lapi::wireup::Native;

/// A rank that has joined its job.
pub struct Job {
    /// The device.
    pub device: Device<Native>,
    /// The line to the launcher, if one started this process.
    pub control: Option<Control>,
    /// How Get reads memory, in words.
    pub get_report: String,
}

/// Reads the settings and joins the job that the environment describes; blocks until all its ranks
/// have come.
///
/// # Errors
/// [`Error::Wireup`] for a setting that is not legal, a foreign launcher, or a segment that cannot
/// be used.
pub fn join() -> Result<Job, Error> {
    let settings = Settings::from_env().map_err(WireupError::from)?;
    let Joined { adapter, control, get_report, processors, tuning } = wireup::connect(&settings)?;
    let is_alone = control.is_none();
    let options = Options { processors, is_alone, ..Options::new(&settings, tuning) };
    let device = Device::new(adapter, options)?;
    Ok(Job { device, control, get_report })
}

/// A job whose ranks are threads of this process: one device for each, in order.
///
/// # Errors
/// [`Error::Wireup`] for a number of ranks that is not possible.
pub fn in_process(ranks: usize, options: &Options) -> Result<Vec<Device<Native>>, Error> {
    let adapters = wireup::in_process(ranks).map_err(WireupError::Adapter)?;
    adapters.into_iter().map(|adapter| Device::new(adapter, options.clone())).collect()
}
