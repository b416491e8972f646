//! The memory in which each rank records: made when the rank starts, read when all have ended. Called by `job`, also in
//! the agents of other hosts, which only make memories.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use transport_lapi::TaskId;
use transport_lapi::bootstrap::monotonic_nanos;
use transport_lapi::bootstrap::trace::{self, Clock, Keep, ticks};
use transport_lapi::config;

use super::collect::{OfRank, Times, collect};
use super::footprints::Footprints;
use super::incoming::HostRecords;
use super::{Collected, Kind, ThreadTrace, perfetto};
use crate::LaunchError;
use crate::io::destination::Destination;

/// The library that records the calls of programs in C.
const LIBRARY: &str = "libmpj_trace.so";
/// The variable with the libraries that the system loads into a program first.
const PRELOAD: &str = "LD_PRELOAD";

/// What ranks record their calls for, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceChoice {
    /// The file of `--trace`, if one is written.
    pub file: Option<PathBuf>,
    /// The most bytes that a rank records.
    pub memory: u64,
    /// Whether the newest calls are kept if there are more, or else the first ones.
    pub newest: bool,
    /// Whether it is recorded, too, what calls consist of.
    pub details: bool,
}

/// The memories of the ranks of a job that is recorded.
#[derive(Debug)]
pub(crate) struct Memories {
    keep: Keep,
    out: Option<Destination>,
    library: Option<Library>,
    clock: Clock,
    /// When the job began, by the clock of the records and by that of the system.
    began: (u64, u64),
    of_ranks: RefCell<Vec<(TaskId, OwnedFd)>>,
    /// How much memory the ranks of this host occupy, unless only their last calls are kept.
    footprints: Option<RefCell<Footprints>>,
}

impl Memories {
    /// Begins to record a job. The file is opened now, so that a mistake in its name costs no job.
    ///
    /// # Errors
    /// [`LaunchError::Trace`].
    pub(crate) fn begin(choice: &TraceChoice) -> Result<Self, LaunchError> {
        let open = |path: &PathBuf| {
            Destination::open(path)
                .map_err(|source| LaunchError::Trace { path: path.clone(), source })
        };
        let out = choice.file.as_ref().map(open).transpose()?;
        let &TraceChoice { memory, newest, details, .. } = choice;
        let memories = Self::of(Keep::Calls { memory, newest, details }, Clock::here());
        Ok(Self { out, library: Library::find(), ..memories })
    }

    /// Begins to record the last calls of each thread, which ranks in Rust do if they find mistakes.
    pub(crate) fn of_last_calls() -> Self {
        Self::of(Keep::LastCalls, Clock::System)
    }

    fn of(keep: Keep, clock: Clock) -> Self {
        let began = (ticks(clock), monotonic_nanos());
        let footprints = (keep != Keep::LastCalls).then(|| Footprints::from(Instant::now()).into());
        let (out, library, of_ranks) = Default::default();
        Self { keep, out, library, clock, began, of_ranks, footprints }
    }

    /// Whether only the last calls are kept.
    pub(crate) fn keep_last(&self) -> bool {
        self.keep == Keep::LastCalls
    }

    /// Makes the memory of a rank that is about to start, and tells it to the rank's environment. Returns a descriptor that
    /// the rank has to inherit.
    ///
    /// # Errors
    /// What the system answers.
    pub(crate) fn add(&self, task: TaskId, command: &mut Command) -> io::Result<OwnedFd> {
        let memory = trace::create(self.keep, self.clock)?;
        command.env(config::TRACE_FD, memory.as_raw_fd().to_string());
        if let Some(library) = &self.library {
            let set = command.get_envs().find(|(name, _)| *name == PRELOAD);
            let set = match set {
                Some((_, value)) => value.map(OsStr::to_owned),
                None => config::inherited(PRELOAD),
            };
            command.env(PRELOAD, before(&library.name, set));
        }
        self.of_ranks.borrow_mut().push((task, memory.try_clone()?));
        Ok(memory)
    }

    /// Writes the file, if there is one, and returns what there is to say: whole lines.
    pub(crate) fn finish(&self, collected: &Collected) -> String {
        let threads = || collected.trace.ranks.iter().flat_map(|rank| &rank.threads);
        let calls = threads().flat_map(|thread| &thread.calls);
        let calls = calls.filter(|call| call.kind != Kind::Part).count();
        let mut text = String::new();
        if let Some(out) = &self.out {
            let path = out.path().display();
            text = match out.replace(|out| perfetto::write(collected, out)) {
                Ok(()) => {
                    format!(
                        "mpjrun: {path} shows {calls} calls; open it at https://ui.perfetto.dev\n"
                    )
                }
                Err(error) => {
                    return format!("mpjrun: cannot write the trace to {path}: {error}\n");
                }
            };
        }
        if let Some(comparable) = collected.comparable() {
            text += &format!("mpjrun: {comparable}\n");
        }
        let sum = |of: fn(&ThreadTrace) -> u64| {
            let ranks = collected.trace.ranks.iter().map(|rank| rank.sum(of));
            ranks.fold(0, u64::saturating_add)
        };
        for (missing, which) in
            [(sum(|thread| thread.overwritten), "earlier"), (sum(|thread| thread.lost), "later")]
        {
            if missing > 0 {
                text += &format!(
                    "mpjrun: {missing} {which} calls are missing, for which there was no memory: --trace-memory gives more\n"
                );
            }
        }
        if calls == 0 {
            text += "mpjrun: no rank has recorded anything";
            if self.library.is_none() {
                text += &format!(
                    ": for programs in C, {LIBRARY} of libmpi has to be beside mpjrun or in ../lib"
                );
            }
            text += "\n";
        }
        text
    }

    /// The clock of the records.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// What is kept of the records.
    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    /// When it is to be seen how much memory the ranks of this host occupy.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        Some(self.footprints.as_ref()?.borrow().next())
    }

    /// Takes how many bytes the ranks of this host occupy.
    pub(crate) fn look(&self, now: Instant, occupied: impl IntoIterator<Item = (TaskId, u64)>) {
        if let Some(footprints) = &self.footprints {
            footprints.borrow_mut().take(now, ticks(self.clock), occupied);
        }
    }

    /// Takes the memories of the ranks, once none of them runs any more.
    pub(crate) fn take(&self) -> Vec<(TaskId, OwnedFd)> {
        let memories = self.of_ranks.take();
        if let Some(footprints) = &self.footprints {
            for (task, memory) in &memories {
                // What the system does not take is missing in the picture.
                let _ = trace::note_footprint(memory, &footprints.borrow_mut().of(*task));
            }
        }
        memories
    }

    /// Reads the clocks at the end of the job.
    pub(crate) fn end(&self) -> Times {
        let (ended, nanos_now) = (ticks(self.clock), monotonic_nanos());
        let (began, nanos) = self.began;
        Times { began, ended, nanos: nanos_now.saturating_sub(nanos), elsewhere: None }
    }

    /// Reads what the ranks of this `host` have recorded, once none of them runs any more.
    pub(crate) fn collect(&self, times: Times, host: &str) -> Collected {
        // Each goes when it has been read.
        let ranks = self.take().into_iter().map(|(task, memory)| {
            let recorded = trace::read(memory.as_fd(), self.clock).unwrap_or_default();
            OfRank { task, host, times, recorded }
        });
        collect(ranks, None)
    }
}

/// Joins what the ranks of several hosts have recorded in a job that had these `times` on this host.
pub(crate) fn collect_hosts(times: Times, hosts: Vec<HostRecords>) -> Collected {
    let mut errors: Vec<u64> = hosts.iter().map(|host| times.span(host.clock.error())).collect();
    errors.sort_unstable_by(|one, other| other.cmp(one));
    let names: Vec<String> = hosts.iter().map(|host| host.host.clone()).collect();
    let mut ranks: Vec<OfRank<'_>> = Vec::new();
    for (HostRecords { clock, ranks: recorded, .. }, host) in hosts.into_iter().zip(&names) {
        let times = Times { elsewhere: Some(clock), ..times };
        let of_rank = |(task, recorded)| OfRank { task, host, times, recorded };
        ranks.extend(recorded.into_iter().map(of_rank));
    }
    ranks.sort_by_key(|rank| rank.task);
    let error = match errors[..] {
        [worst, next, ..] => worst.saturating_add(next),
        _ => 0,
    };
    collect(ranks, Some(error))
}

/// Puts a library before those that are loaded already.
fn before(library: &OsStr, others: Option<OsString>) -> OsString {
    let mut all = library.to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// The library that records the calls of programs in C.
#[derive(Debug)]
struct Library {
    /// By which the ranks find it.
    name: OsString,
    /// Open as long as the name needs it.
    _file: Option<File>,
}

impl Library {
    /// Finds it: where an installation has it, or where cargo builds it.
    fn find() -> Option<Self> {
        let program = std::env::current_exe().ok()?;
        let folder = program.parent()?;
        let places = [folder.parent().map(|prefix| prefix.join("lib")), Some(folder.to_owned())];
        let mut places = places.into_iter().flatten().map(|place| place.join(LIBRARY));
        let name = places.find(|path| path.is_file())?.into_os_string();
        // The system would take what follows one of these for another library.
        if !name.as_bytes().iter().any(|byte| b": \t\n".contains(byte)) {
            return Some(Self { name, _file: None });
        }
        let file = File::open(&name).ok()?;
        let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        Some(Self { name: name.into(), _file: Some(file) })
    }
}
