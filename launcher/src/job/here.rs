//! Starts a job whose ranks all run on this host.

use rustix::process::Signal;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::{Signals, keep_children_waitable};
use transport_lapi::bootstrap::spawn::DescriptorLimit;
use transport_lapi::bootstrap::waits::JobView;

use super::recording::Recording;
use super::spawn::{self, Started};
use super::watching::ASK;
use super::worlds::Spawner;
use super::{ENDING, FORWARDED, Job, JobSpec, OTHERS, Parts};
use crate::LaunchError;
use crate::exits::ExitLog;
use crate::hang::watcher::Watcher;
use crate::host::local::LocalRanks;
use crate::host::machine::host_name;
use crate::host::orphans::Orphans;
use crate::io::output::Printer;
use crate::io::stdin;

/// Starts the job, and returns it running.
pub(super) fn start(spec: &JobSpec) -> Result<Job, LaunchError> {
    let mut prepared = spawn::check(spec, (0..spec.ranks()).collect())?;
    // Files are opened before signals are blocked, so that a signal ends an open that hangs.
    let limit = DescriptorLimit::raise();
    let deliveries = spec.output.deliveries(0..spec.ranks())?;
    let recording = Recording::begin(spec)?;
    let traces = recording.as_ref().map(Recording::memories);
    keep_children_waitable();
    let signals = block_signals()?;
    let orphans = Orphans::adopt();
    let start = monotonic_nanos();
    let (inputs, input) = stdin::for_ranks(spec.input, spec.ranks())
        .map_err(|source| LaunchError::System { action: "forward standard input", source })?;
    let (job, mask) = (spawn::job_name(), signals.mask_before());
    prepared.record(traces.clone());
    let Started { ranks, segment, universe } = prepared.start(&job, &limit, mask, inputs, None)?;
    let mut printer = Printer::new(spec.output.is_exact(spec.ranks()));
    for note in &spec.notes {
        printer.say(&format!("mpjrun: {note}\n"));
    }
    let (mut ranks, note) =
        LocalRanks::new(ranks, JobView::open(&segment)?.of_first(spec.ranks()), None, orphans);
    ranks.note_footprints(traces.clone());
    let pids = ranks.pids();
    let processes = (spec.ranks(), pids.clone());
    let watcher = Watcher::new(&segment, &spec.vigilance, processes, spawn::spinning(spec)?)?;
    for line in note.into_iter().chain(prepared.lines(&pids)) {
        printer.say(&format!("mpjrun: {line}\n"));
    }
    let exit_log = ExitLog::new(start, host_name(), spec.ranks(), pids);
    let spawner = Spawner { spec: spec.clone(), universe, job, segment, limit, mask, traces };
    let spawner = Some(spawner);
    let ranks = Box::new(ranks);
    let parts = Parts { exit_log, ranks, printer, input, signals, watcher, spawner, recording };
    Ok(Job::new(spec, deliveries, parts))
}

/// Makes the launcher's signals readable.
pub(super) fn block_signals() -> Result<Signals, LaunchError> {
    Signals::block(&[ENDING, FORWARDED, OTHERS].concat(), &[Signal::QUIT, ASK])
        .map_err(|source| LaunchError::System { action: "receive signals", source })
}
