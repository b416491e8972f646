//! Runs ranks as threads of one process, for tests, documentation and small tools. Messages use the same rings as those
//! between processes.

use std::sync::{Arc, Mutex, PoisonError};

use mpicore::job;
use mpjdev::wireup::{self, AnyAdapter};
use mpjdev::{Device, Options};

use crate::error::Error;
use crate::world::{Departures, World};

/// Why a local job failed.
///
/// ```
/// use mpj::local::LocalError;
/// let outcome = mpj::local::run(2, |world| assert_eq!(world.rank(), 0, "too high"));
/// let Err(LocalError::Panicked { rank, .. }) = outcome else { unreachable!() };
/// assert_eq!(rank, 1);
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The job could not be set up.
    #[error(transparent)]
    Setup(#[from] Error),
    /// A rank panicked. If several did, this is the first one.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// Rank that panicked.
        rank: usize,
        /// Message of the panic.
        message: String,
    },
    /// A rank that left the job had messages that it never received. Only jobs that find mistakes between ranks notice.
    /// What the bodies returned is lost; it may tell why. A rank that calls [`World::finish`] gets this error there instead,
    /// and the results are returned.
    #[error(
        "rank {rank}: {error} (what the ranks returned is dropped; World::finish returns this error to its rank instead)"
    )]
    Mistaken {
        /// The rank.
        rank: usize,
        /// What it found.
        error: Error,
    },
}

/// Runs `body` on `ranks` ranks, each a thread with its own [`World`], and returns the results in the order of the
/// ranks. When a rank panics, the blocking calls of the other ranks fail.
///
/// No launcher watches such a job, so a deadlock hangs silently. Under `mpjrun`, and in a `#[mpj::test]`, deadlocks
/// are reported. Mistakes between ranks are found in debug builds, unless `MPJ_CHECK=0` is set, and in release builds with
/// `MPJ_CHECK=1`.
///
/// # Errors
/// [`LocalError::Setup`] for no ranks or more than the limit; [`LocalError::Panicked`]; [`LocalError::Mistaken`].
///
/// ```
/// let sum = mpj::local::run(4, |world| {
///     if world.rank() > 0 {
///         world.send(&[world.rank()], 0, 0)?;
///         return Ok(0);
///     }
///     let mut sum = 0;
///     for _ in 1..world.size() {
///         let mut value = [0];
///         world.recv(&mut value, mpj::ANY_SOURCE, 0)?;
///         sum += value[0];
///     }
///     Ok::<usize, mpj::Error>(sum)
/// })?;
/// assert_eq!(*sum[0].as_ref().unwrap(), 6);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn run<R: Send>(ranks: usize, body: impl Fn(World) -> R + Sync) -> Result<Vec<R>, LocalError> {
    run_with(&Options::default(), ranks, body)
}

/// Like [`run`], with options: backend or protocol table, unexpected-message memory, wait mode, contexts.
///
/// # Errors
/// As [`run`]; [`LocalError::Setup`] for a number of contexts that is not possible.
///
/// ```
/// let options = mpj::tuning::Options::with_backend(mpj::tuning::BackendChoice::Rendezvous);
/// let sizes = mpj::local::run_with(&options, 3, |world| {
///     world.barrier().unwrap();
///     world.size()
/// })?;
/// assert_eq!(sizes, [3; 3]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub fn run_with<R: Send>(
    options: &Options,
    ranks: usize,
    body: impl Fn(World) -> R + Sync,
) -> Result<Vec<R>, LocalError> {
    let checks =
        options.checks.or(job::check().map_err(Error::from)?).or(Some(cfg!(debug_assertions)));
    let options = Options { checks, ..options.clone() };
    answers(wireup::in_process(ranks, &options).map_err(Error::from)?, body)
}

/// Like [`run_with`], over connections that the caller has made: for each rank in order, those of its contexts. For ranks
/// that also have contexts for other clients of the transport, and for suites that hold an adapter against all of MPI.
///
/// # Errors
/// As [`run_with`].
pub fn run_over<R: Send>(
    options: &Options,
    ranks: Vec<Vec<AnyAdapter>>,
    body: impl Fn(World) -> R + Sync,
) -> Result<Vec<R>, LocalError> {
    answers(wireup::over(ranks, options).map_err(Error::from)?, body)
}

/// Runs `body` on the ranks that have these devices, and returns the results in the order of the ranks.
fn answers<R: Send>(
    ranks: Vec<Vec<Device>>,
    body: impl Fn(World) -> R + Sync,
) -> Result<Vec<R>, LocalError> {
    let answers = Mutex::new(Vec::new());
    run_each(ranks, &|world| {
        let rank = world.rank();
        let answer = body(world);
        answers.lock().unwrap_or_else(PoisonError::into_inner).push((rank, answer));
    })?;
    let mut answers = answers.into_inner().unwrap_or_else(PoisonError::into_inner);
    answers.sort_unstable_by_key(|(rank, _)| *rank);
    Ok(answers.into_iter().map(|(_, answer)| answer).collect())
}

/// The part of [`answers`] that does not depend on the type of the body, so that it is compiled once.
fn run_each(
    rank_devices: Vec<Vec<Device>>,
    body: &(dyn Fn(World) + Sync),
) -> Result<(), LocalError> {
    // The rank that left first by a panic is the cause; others may panic because it is gone.
    let departures = Arc::new(Departures::default());
    let worlds = rank_devices.into_iter().map(|devices| World::local(devices, departures.clone()));
    let worlds = worlds.collect::<Result<Vec<_>, Error>>()?;
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let rank_thread = |world| scope.spawn(move || body(world));
        let threads: Vec<_> = worlds.into_iter().map(rank_thread).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let first = departures.first_gone.get().copied();
    let mut panicked = None;
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Err(panic) if panicked.is_none() || first == Some(rank) => {
                panicked = Some((rank, mpjdev::panic_text(&*panic)));
            }
            Ok(()) | Err(_) => {}
        }
    }
    match panicked {
        Some((rank, message)) => Err(LocalError::Panicked { rank, message }),
        None => match departures.mistaken.get() {
            Some((rank, error)) => Err(LocalError::Mistaken { rank: *rank, error: error.clone() }),
            None => Ok(()),
        },
    }
}

/// Writes the message as [`std::fmt::Display`] does.
impl std::fmt::Debug for LocalError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{self}")
    }
}
