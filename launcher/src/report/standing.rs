//! The state of one rank, from its control messages and from the segment.

use std::collections::BTreeMap;

use transport_lapi::bootstrap::control::{Queues, SpaceMembers};
use transport_lapi::bootstrap::waits::{Blocked, Space, Wait};

use super::format::ended_how;
use super::waiting::Waiting;
use crate::exits::{Ending, ExitLog, Names, Record};
use crate::hang::snapshot::{Activity, Seen, Snapshot};

/// The contexts of a rank whose spaces are looked at.
const MAX_CONTEXTS: usize = 4;

/// The words for how far a rank has come; they fit one rank and several.
#[derive(Debug, Clone, Copy, Default)]
struct Stage {
    words: &'static str,
    /// The shorter form, for the end of a chain of waits.
    brief: &'static str,
}

impl Stage {
    fn brief(brief: &'static str) -> Self {
        Self { words: brief, brief }
    }
}

/// The state of a rank.
#[derive(Debug, Clone)]
pub(super) struct Standing<'a> {
    /// The calls that its threads are, or were, blocked in.
    pub(super) waits: Vec<Blocked>,
    /// Its host, in a job of several.
    pub(super) host: Option<&'a str>,
    /// Its names for them.
    pub(super) names: &'a Names,
    /// The number of blocked threads beyond those.
    pub(super) unlisted: u32,
    /// How far it has come.
    stage: Stage,
    /// What became of its process, if the report is to say so.
    pub(super) fate: Option<String>,
    /// Whether its process existed when the snapshot was taken.
    pub(super) is_alive: bool,
    /// What its process did then.
    activity: Option<Activity>,
    /// Whether it was let go and its program ended with code 0 (EX6 of [`crate::exits`]).
    pub(super) ended_well: bool,
    /// Whether it has sent that it communicates no more.
    has_left: bool,
    /// Whether the table lists it.
    pub(super) is_listed: bool,
    /// The queues of all its contexts, as it sent them.
    pub(super) queues: Option<Queues>,
}

impl<'a> Standing<'a> {
    fn waits_in(&mut self, seen: &Seen) {
        if let Some(state) = seen.state() {
            self.waits = state.blocked.clone();
            self.unlisted = state.unlisted;
        }
    }

    /// What it has sent of a space.
    pub(super) fn members_of(&self, space: Space) -> Option<&SpaceMembers> {
        let spaces = self.queues.iter().flat_map(|queues| &queues.spaces);
        // Those of all its contexts, at most.
        let mut listed = spaces.take(MAX_CONTEXTS * Queues::SPACES);
        listed.find(|members| members.space == space)
    }

    /// The waits that it is in now.
    pub(super) fn holding(&self) -> impl Iterator<Item = Waiting<'a>> {
        let live = self.waits.iter().filter(|blocked| self.is_alive && !blocked.failed);
        live.map(|blocked| self.in_words(blocked.wait))
    }

    /// One of its waits with its names.
    pub(super) fn in_words(&self, wait: Wait) -> Waiting<'a> {
        Waiting { wait, words: self.names.of(wait.space.context) }
    }

    /// Treats failed waits as waits, for the report on the failure that made them fail.
    pub(super) fn forget_errors(&mut self) {
        self.waits.iter_mut().for_each(|blocked| blocked.failed = false);
    }

    /// Whether its process is stopped by a signal or a debugger.
    pub(super) fn is_halted(&self) -> bool {
        matches!(self.activity, Some(Activity::Stopped | Activity::Traced))
    }

    /// Why its process is stopped, if it is, with the command that continues process `pid`.
    fn halt(&self, pid: Option<u32>) -> Option<String> {
        match (self.activity?, pid) {
            (Activity::Stopped, Some(pid)) => {
                let host = self.host.map_or(String::new(), |host| format!(" on {host}"));
                Some(format!("stopped by a signal; kill -CONT {pid}{host} lets it go on"))
            }
            (Activity::Stopped, None) => Some("stopped by a signal".to_owned()),
            (Activity::Traced, _) => Some("stopped by a debugger".to_owned()),
            _ => None,
        }
    }

    /// Whether it waits at its end for the other ranks.
    pub(super) fn is_at_its_end(&self) -> bool {
        self.has_left || self.holding().any(|wait| wait.at_end)
    }

    /// The line about it behind the table of waits.
    pub(super) fn line(&self) -> Option<String> {
        let state = self.stage.words;
        match &self.fate {
            Some(fate) => Some(format!("{state}, {fate}")),
            None if self.waits.is_empty() && self.unlisted == 0 => Some(state.to_owned()),
            None => None,
        }
    }

    /// Why others wait for it, in short.
    pub(super) fn brief(&self) -> String {
        let brief = self.stage.brief;
        match (self.activity, &self.fate) {
            (Some(Activity::Stopped), _) => "stopped by a signal".to_owned(),
            (Some(Activity::Traced), _) => "stopped by a debugger".to_owned(),
            (_, Some(fate)) if !self.is_alive => format!("{brief}, {fate}"),
            _ => brief.to_owned(),
        }
    }
}

/// The queues of all contexts together; `None` if none was sent.
fn all_contexts(queues: &BTreeMap<u32, Queues>) -> Option<Queues> {
    queues.values().cloned().reduce(|mut all, one| {
        all.posted.extend(one.posted);
        all.unexpected.extend(one.unexpected);
        all.spaces.extend(one.spaces);
        all.all_posted = all.all_posted.saturating_add(one.all_posted);
        all.all_unexpected = all.all_unexpected.saturating_add(one.all_unexpected);
        all
    })
}

/// The process of a rank, as the segment has it.
fn pid(seen: &Seen) -> Option<u32> {
    seen.state().map(|state| state.pid)
}

/// The state of every rank of a job, which was stopped at `stopped_at` unless it goes on.
pub(super) fn of_all<'a>(
    exit_log: &'a ExitLog,
    snapshot: &Snapshot,
    stopped_at: Option<u64>,
) -> Vec<Standing<'a>> {
    let ranks = exit_log.records().iter().enumerate();
    let host = |rank| exit_log.has_several_hosts().then(|| exit_log.host(rank));
    let one = |(rank, record)| {
        let lacks_mates = || {
            let mut others = snapshot.ranks.iter().enumerate();
            others.any(|(other, seen)| is_absent(seen) && exit_log.are_mates(rank, other))
        };
        one(rank, (record, host(rank), &lacks_mates), snapshot, stopped_at)
    };
    ranks.map(one).collect()
}

/// Whether a rank is known not to have joined.
fn is_absent(seen: &Seen) -> bool {
    seen.state().is_some_and(|state| !state.is_there())
}

fn one<'a>(
    rank: usize,
    (record, host, lacks_mates): (&'a Record, Option<&'a str>, &dyn Fn() -> bool),
    snapshot: &Snapshot,
    stopped_at: Option<u64>,
) -> Standing<'a> {
    let seen = snapshot.rank(rank);
    let started = record.pid.is_some();
    let is_alive = started && !ended_before(record, stopped_at);
    let mut standing = Standing {
        is_listed: true,
        has_left: record.leaving || record.finished,
        ended_well: record.dismissed
            && !record.is_script()
            && matches!(record.ended, Some((Ending::Code(0), _))),
        is_alive,
        activity: snapshot.activity(rank).filter(|_| is_alive),
        queues: all_contexts(&record.queues),
        host,
        names: &record.names,
        waits: Vec::new(),
        unlisted: 0,
        stage: Stage::default(),
        fate: None,
    };
    if started && !record.finished {
        standing.waits_in(seen);
    }
    let is_outside = is_alive && standing.waits.is_empty();
    standing.stage = match stage(record) {
        Some(stage) => stage,
        None if is_outside => outside(rank, snapshot, lacks_mates),
        None => Stage::brief("joined"),
    };
    let pid = pid(seen).filter(|pid| *pid != 0).or(record.pid);
    standing.fate = fate(record, stopped_at, &standing, pid);
    standing
}

/// Whether it ended before the job was stopped (EX4 of [`crate::exits`]).
fn ended_before(record: &Record, stopped_at: Option<u64>) -> bool {
    record.ended.is_some_and(|(_, at)| stopped_at.is_none_or(|stopped| at <= stopped))
}

/// How far it has come, by its messages; `None` for a rank that has joined and not left.
fn stage(record: &Record) -> Option<Stage> {
    let brief = match (record.finished, record.leaving, record.joined) {
        _ if record.pid.is_none() => "not started",
        (true, ..) => "finished",
        (_, true, _) => "leaving the job, waiting for the others",
        (.., true) => return None,
        _ => "not joined",
    };
    Some(Stage::brief(brief))
}

/// The stage of a rank that has joined and is not blocked in a call. It waits in `mpj::init` or MPI_Init until all
/// ranks of its world have joined; `lacks_mates` says that some have not.
fn outside(rank: usize, snapshot: &Snapshot, lacks_mates: impl Fn() -> bool) -> Stage {
    let (words, brief) = match snapshot.rank(rank) {
        Seen::State(state) if !state.is_there() => return Stage::brief("joined"),
        Seen::State(_) if lacks_mates() => {
            ("joined, waiting for the others to join", "waiting for the others to join")
        }
        Seen::State(_) => match snapshot.activity(rank) {
            Some(Activity::Stopped | Activity::Traced) => return Stage::brief("joined"),
            Some(Activity::InKernel) => (
                "joined, in a system call that cannot be interrupted",
                "in a system call that cannot be interrupted",
            ),
            Some(Activity::Sleeping) => (
                "joined, asleep outside of MPI: in a lock, a pipe or a timer",
                "asleep outside of MPI",
            ),
            // It may have entered a call just now.
            Some(Activity::Computing) | None => {
                ("joined, awake: computing, polling, or at the beginning of a call", "awake")
            }
        },
        Seen::Unsteady => {
            ("joined, in a state that cannot be read", "in a state that cannot be read")
        }
        Seen::Unanswered => ("joined; its host has not answered", "its host has not answered"),
        Seen::Unread => return Stage::brief("joined"),
    };
    Stage { words, brief }
}

/// What became of its process; `None` for a blocked rank that the launcher has ended.
fn fate(
    record: &Record,
    stopped_at: Option<u64>,
    standing: &Standing<'_>,
    pid: Option<u32>,
) -> Option<String> {
    record.pid?;
    let is_blocked = !standing.waits.is_empty();
    match record.ended {
        Some((ending, _)) if ended_before(record, stopped_at) => Some(ended_how(ending)),
        None if stopped_at.is_some() => Some("still running, even after SIGKILL".to_owned()),
        None if standing.is_halted() => standing.halt(pid),
        Some(_) if standing.is_halted() => {
            standing.halt(None).map(|words| words + "; ended by mpjrun")
        }
        _ if is_blocked => None,
        Some(_) => Some("still running; ended by mpjrun".to_owned()),
        None => Some("still running".to_owned()),
    }
}
