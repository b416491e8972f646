//! A process's part in its job: joining, leaving and aborting it. The layers above call this, and keep the rest of the
//! rank's state themselves.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use mpjdev::wireup::{self, Control};
use mpjdev::{Device, Error, Stats};
use transport_lapi::bootstrap::control::demand::{Answer, Demand, DemandError};
use transport_lapi::config;
use transport_lapi::wireup::WireupError;

pub use mpjdev::wireup::Job;
pub use transport_lapi::config::{SETTINGS, Setting, Values};

/// The connection to the launcher, or to the process manager, of the job that this process has joined.
static LAUNCHER: OnceLock<Control> = OnceLock::new();

/// Joins the job of this process, and waits until all ranks have joined: the first half of MPI_Init. A process without
/// a launcher is a job of one rank. Errors of the devices are reported to the launcher. Where `MPJ_CHECK` does not say
/// it, `asks` says whether this rank asks for checks of mistakes between ranks.
///
/// # Errors
/// A setting is not legal; the launcher of another MPI started this process; the process has joined before; the job
/// segment cannot be used.
pub fn join(asks: bool) -> Result<Job, Error> {
    wtime();
    let job = wireup::join(asks)?;
    if let Some(control) = &job.control {
        job.devices.iter().for_each(|device| device.report_to(control.clone()));
        LAUNCHER.get_or_init(|| control.clone());
    }
    Ok(job)
}

/// Returns what `MPJ_CHECK` says about checks of mistakes between ranks.
///
/// # Errors
/// Its value is not legal.
pub fn check() -> Result<Option<bool>, Error> {
    config::check().map_err(|error| Error::from(WireupError::from(error)))
}

/// Returns the number of ranks of this process's job, which it need not have joined. A process without a launcher is a
/// job of one rank.
pub fn size() -> u32 {
    config::size().unwrap_or(1)
}

/// Demands something of the launcher, and returns its answer, which comes at once.
///
/// # Errors
/// Why there is none.
pub(crate) fn demand(demand: Demand) -> Result<Answer, String> {
    let launcher = LAUNCHER.get().ok_or(DemandError::NoLauncher);
    launcher.and_then(|launcher| launcher.demand(demand)).map_err(|error| error.to_string())
}

/// Returns the seconds since an arbitrary moment in the past of this process: MPI_Wtime.
pub fn wtime() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Leaves the job, in all contexts, after `finish`, which ends one device and returns whether the other ranks have also
/// reached their end: the second half of MPI_Finalize. It is told whether other clients of the process stay in the job,
/// or may still join. The launcher learns what the rank has sent and received, which messages it has left, and that it
/// has done its part if the others have come.
///
/// All devices end at the same time. A rank that waited for the others in one context at a time would make no progress
/// in the rest, where other ranks may still wait for it.
///
/// # Errors
/// The first error of `finish`; messages that were never received, in any context, if there is no other.
pub fn leave(
    devices: &[&Device],
    control: Option<&Control>,
    finish: impl Fn(&Device, bool) -> Result<bool, Error> + Sync,
) -> Result<(), Error> {
    let others_stay = control.is_some_and(|control| {
        let stats = devices.iter().map(|device| device.stats().unwrap_or_default());
        !control.leaving(stats.sum::<Stats>().into())
    });
    let left = end_all(devices, &|device| finish(device, others_stay));
    if let (Err(mistake @ Error::Unreceived(_)), Some(control)) = (&left, control) {
        control.mistaken(&mistake.to_string());
    }
    let have_come = left?;
    if let Some(control) = control.filter(|_| have_come) {
        control.finished();
    }
    Ok(())
}

fn end_all(
    devices: &[&Device],
    finish: &(impl Fn(&Device) -> Result<bool, Error> + Sync),
) -> Result<bool, Error> {
    let Some((first, further)) = devices.split_first() else { return Ok(true) };
    thread::scope(|scope| {
        let end = |device| thread::Builder::new().spawn_scoped(scope, move || finish(device));
        let ends: Vec<_> = further.iter().map(|device| end(device)).collect();
        let mut outcomes = vec![finish(first)];
        for (device, end) in further.iter().zip(ends) {
            outcomes.push(match end {
                Ok(end) => end.join().unwrap_or_else(|panic| resume_unwind(panic)),
                // If no thread can be started, ending one context after the other suffices for most programs.
                Err(_) => finish(device),
            });
        }
        let have_come = outcomes.iter().all(|outcome| !matches!(outcome, Ok(false)));
        let errors = outcomes.into_iter().filter_map(Result::err);
        errors.reduce(Error::and).map_or(Ok(have_come), Err)
    })
}

/// Tells the launcher why this rank is about to fail. Returns whether there is a launcher that reports it.
pub fn complain(why: &str) -> bool {
    LAUNCHER.get().is_some_and(|launcher| launcher.failed(why, ""))
}

/// Ends the whole job at once with exit code `code`: MPI_Abort. The launcher reports which rank called it, and exits
/// with the low 8 bits of `code`, or with 1 if these are 0, since a job that was aborted has not succeeded. A process
/// without a launcher ends with the same code. This is the only place where the library ends a process.
#[expect(clippy::disallowed_methods, reason = "MPI_Abort ends the process by its meaning")]
pub fn abort(code: i32) -> ! {
    if let Some(control) = LAUNCHER.get() {
        control.aborted(code);
    }
    let told = code & 0xff;
    std::process::exit(if told == 0 { 1 } else { told })
}
