//! Starts a job whose ranks run on several hosts, by their agents. All hosts have checked the job before the first rank
//! starts.

use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::PollFlags;
use transport_lapi::bootstrap::control::agents::News;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::signals::{Signals, keep_children_waitable};
use transport_lapi::bootstrap::spawn::DescriptorLimit;

use super::agents::{Agents, host_job};
use super::here::block_signals;
use super::hosts::Hosts;
use super::ranks::Ranks;
use super::recording::Recording;
use super::{ENDING, Event, Job, JobSpec, Parts, events, spawn};
use crate::LaunchError;
use crate::exits::ExitLog;
use crate::hang::watcher::Watcher;
use crate::host::rank::Pauses;
use crate::io::output::Printer;
use crate::io::stdin::{Forwarding, InputChoice};

/// Most output, in bytes, that is kept until all ranks have been started. Those that print more wait.
const KEPT: usize = 16 << 20;

/// Starts the job, and returns it running.
pub(super) fn start(spec: &JobSpec, hosts: &Hosts) -> Result<Job, LaunchError> {
    spawn::check_reader(spec)?;
    let (job, copies) = host_job::of_hosts(spec, hosts)?;
    let limit = DescriptorLimit::raise();
    let deliveries = spec.output.deliveries(0..spec.ranks())?;
    let recording = Recording::begin(spec)?;
    let memories = recording.as_ref().map(Recording::memories);
    keep_children_waitable();
    let signals = block_signals()?;
    let start = monotonic_nanos();
    let timeout = spec.timeout.map(|limit| Instant::now() + limit);
    let before = (&limit, signals.mask_before());
    let mut agents = Agents::call(hosts, &job, copies, memories.as_deref(), before);
    let news = await_start(&mut agents, &signals, timeout)?;
    let mut printer = Printer::new(spec.output.is_exact(spec.ranks()));
    for note in spec.notes.iter().chain(&agents.notes) {
        printer.say(&format!("mpjrun: {note}\n"));
    }
    let exit_log = ExitLog::of_hosts(start, &hosts.names, agents.processes());
    let is_read = matches!(spec.input, InputChoice::Rank(_));
    let mut job = Job::new(
        spec,
        deliveries,
        Parts {
            exit_log,
            ranks: Box::new(agents),
            printer,
            input: is_read.then(Forwarding::to_agent),
            signals,
            watcher: Watcher::of_hosts(
                spec.ranks(),
                hosts.names.len(),
                &spec.vigilance,
                spawn::spinning(spec)?,
            ),
            spawner: None,
            recording,
        },
    );
    job.take(news);
    Ok(job)
}

/// Waits until all ranks have been started. Returns the news of those that were started first.
fn await_start(
    agents: &mut Agents,
    signals: &Signals,
    timeout: Option<Instant>,
) -> Result<Vec<News>, LaunchError> {
    let mut news = Vec::new();
    let (mut counted, mut kept) = (0, 0);
    loop {
        if let Some(refusal) = agents.take_refusal() {
            return Err(refusal);
        }
        if agents.have_started() {
            return Ok(news);
        }
        let mut set = vec![(Event::Signal, signals.as_fd(), PollFlags::IN)];
        agents.interests(Pauses::default(), &mut set);
        let deadline = agents.next_deadline().into_iter().chain(timeout).min();
        let ready = events(&set, deadline).map_err(|errno| LaunchError::System {
            action: "wait for events",
            source: errno.into(),
        })?;
        for event in ready {
            agents.handle(event, &mut news);
        }
        let output = news[counted..].iter().map(|told| match told {
            News::Output { bytes, .. } => bytes.len(),
            _ => 0,
        });
        kept += output.sum::<usize>();
        counted = news.len();
        let is_much = kept > KEPT;
        agents.turn(Instant::now(), true, Pauses { out: is_much, err: is_much }, &mut news);
        while let Some(signal) = signals.next_pending() {
            if ENDING.contains(&signal) {
                return Err(LaunchError::Interrupted { signal: signal.as_raw() });
            }
        }
        if timeout.is_some_and(|at| Instant::now() >= at) {
            return Err(LaunchError::StartTimedOut);
        }
    }
}
