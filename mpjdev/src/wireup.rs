//! Joins a job and makes its devices, over the adapters that the transport makes for it.
//!
//! A rank has a device for each of its contexts. Device `c` exchanges messages only with the devices `c` of other
//! ranks. It shares nothing with the other devices of its rank except the limit on unexpected-message memory, which is
//! divided among them.

use transport_lapi::config::{self, Settings};
use transport_lapi::wireup::{self, Client, Joined, WireupError};

use crate::call_names::Call;
use crate::device::{Device, Options, recorded};
use crate::error::Error;

pub use transport_lapi::AnyAdapter;
pub use transport_lapi::bootstrap::Control;

/// The name by which MPI joins: that of all its interfaces, since their ranks share jobs.
const CLIENT: &str = "mpj";

/// A rank that has joined its job.
pub struct Job {
    /// The devices, one for each of the rank's contexts, in order.
    pub devices: Vec<Device>,
    /// The connection to the launcher, if one started this process.
    pub control: Option<Control>,
    /// The number of this process's program among those of the job, from 0; `None` without a launcher.
    pub program: Option<u32>,
    /// The number of ranks that the program may expect in all, with those that it spawns (MPI_UNIVERSE_SIZE).
    pub expected: usize,
    /// The rank that has spawned this process, if one has.
    pub parent: Option<u32>,
    /// A text that says how Get reads memory.
    pub one_sided_path: String,
    /// Whether a thread is to make progress from the beginning.
    pub progress_thread: bool,
}

/// Reads the settings and joins the job that the environment describes; blocks until all its ranks have joined. Where
/// `MPJ_CHECK` does not say it, `asks` says whether this rank asks for checks of mistakes between ranks, which are made
/// if all ranks ask for them.
///
/// # Errors
/// [`Error::Wireup`] for a setting that is not legal, a launcher of another MPI, or a segment that cannot be used.
pub fn join(asks: bool) -> Result<Job, Error> {
    let mut settings = Settings::from_env().map_err(WireupError::from)?;
    settings.check.get_or_insert(asks);
    let client = Client::new(CLIENT).with_contexts_of_job().spanning_worlds();
    let joined = wireup::connect(&settings, client)?;
    let Joined { contexts, control, one_sided_path, processors, all_check, world, parent } = joined;
    control.iter().for_each(|launcher| launcher.vocabulary(Call::vocabulary()));
    let is_alone = control.is_none();
    let checks = Some(all_check);
    let world = Some(world);
    let records = recorded::records(all_check);
    let options =
        Options { processors, is_alone, checks, records, world, ..Options::new(&settings) };
    let program = control.as_ref().and_then(|_| config::program());
    let (devices, progress_thread) = (devices(contexts, &options)?, settings.progress_thread);
    let expected = control.as_ref().and_then(|_| config::expected());
    let expected = expected.unwrap_or_else(|| devices[0].size());
    Ok(Job { devices, control, program, expected, parent, one_sided_path, progress_thread })
}

/// Makes a job whose ranks are threads of this process. Returns, for each rank in order, the devices of its contexts.
///
/// # Errors
/// [`Error::Wireup`] for a number of ranks, or of contexts, that is not possible.
pub fn in_process(ranks: usize, options: &Options) -> Result<Vec<Vec<Device>>, Error> {
    let ranks = wireup::in_process(ranks, options.contexts).map_err(WireupError::Adapter)?;
    over(ranks, options)
}

/// Makes the devices of a job whose ranks communicate over these adapters: for each rank in order, those of its
/// contexts, of which there is at least one. Their number replaces [`Options::contexts`].
///
/// # Errors
/// Those of [`Device::new`].
///
/// # Panics
/// If a rank has no adapter.
pub fn over(ranks: Vec<Vec<AnyAdapter>>, options: &Options) -> Result<Vec<Vec<Device>>, Error> {
    ranks.into_iter().map(|contexts| devices(contexts, options)).collect()
}

/// Makes the devices of one rank. The unexpected-message memory that the rank may use at another rank is divided among
/// them.
fn devices(contexts: Vec<AnyAdapter>, options: &Options) -> Result<Vec<Device>, Error> {
    let number = contexts.len();
    assert!(number > 0, "a rank has an adapter for each of its contexts");
    let early_limit = options.early_limit / number;
    let options = Options { early_limit, contexts: number, ..options.clone() };
    contexts.into_iter().map(|adapter| Device::new(adapter, options.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_divide_the_limit_on_unexpected_memory() {
        let options = Options { early_limit: 1_000_000, contexts: 4, ..Options::default() };
        let ranks = in_process(2, &options).unwrap();
        for (number, device) in ranks.iter().flat_map(|rank| rank.iter().enumerate()) {
            assert_eq!(device.options.early_limit, 250_000);
            let title = format!("rank {} of 2, context {number}\n", device.rank());
            assert!(device.dump().unwrap().starts_with(&title));
        }
        let alone = in_process(1, &Options { contexts: 1, ..options }).unwrap();
        assert_eq!(alone[0][0].options.early_limit, 1_000_000);
        assert!(alone[0][0].dump().unwrap().starts_with("rank 0 of 1\n"));
    }
}
