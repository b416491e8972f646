//! What ranks demand of the launcher while the job runs: that it starts further worlds, and keeps names for all ranks.
//!
//! - DY1: a demand is answered at once, and waits for no rank (L10 of `transport_lapi::bootstrap::control`).
//! - DY2: the ranks of a further world are ranks of the job like all others: its limits, its output and its end are
//!   theirs, and their failures are the job's. Their numbers follow those of the ranks before them, and are never given
//!   again, even if a world could not be started whole: the ranks of it that were started have used them.
//! - DY3: a name is gone with the rank that published it. Names and values have a limited length.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::rc::Rc;

use transport_lapi::TaskId;
use transport_lapi::adapters::MAX_PLACES_PER_HOST;
use transport_lapi::bootstrap::control::agents::Order;
use transport_lapi::bootstrap::control::demand::{Answer, Demand, Name, SpawnProgram};
use transport_lapi::bootstrap::signals::Mask;
use transport_lapi::bootstrap::spawn::DescriptorLimit;

use super::agents::host_job::app_of;
use super::spawn::{self, WorldPlace};
use super::{App, BindTo, Binding, InputChoice, Job, JobSpec, Seat, Universe};
use crate::LaunchError;
use crate::host::rank::Rank;
use crate::io::output::{Delivery, Transcript};
use crate::trace::Memories;

/// The most names that the ranks of a job can have published at a time.
const MOST_NAMES: usize = 65536;
/// The most bytes of a name, and of its value, which is the name of a port: MPI_MAX_PORT_NAME without the byte 0 of C.
const LONGEST_NAME: usize = 1023;

/// What a rank has published under a name.
pub(super) struct Published {
    /// The rank.
    owner: usize,
    value: Vec<u8>,
    /// If it is a port: how often each rank was allowed to connect.
    callers: BTreeMap<TaskId, u64>,
}

/// The names that ranks have published.
pub(super) type Names = BTreeMap<Name, Published>;

/// What it takes to start further ranks of a job on this host.
pub(super) struct Spawner {
    pub(super) spec: JobSpec,
    pub(super) universe: Universe,
    pub(super) job: String,
    pub(super) segment: OwnedFd,
    pub(super) limit: DescriptorLimit,
    pub(super) mask: Mask,
    pub(super) traces: Option<Rc<Memories>>,
}

/// A world that was started, or a part of it.
struct Begun {
    /// Its first ranks.
    ranks: Vec<Rank>,
    /// Where the output of each of its ranks goes.
    deliveries: Vec<Delivery>,
    /// Those that never sleep while they wait, by their numbers in the job.
    spinning: Vec<usize>,
    /// How many ranks each program was to have, or why a further one could not be started.
    counts: Result<Vec<u64>, String>,
}

impl Spawner {
    /// Starts a world of these programs behind `ranks` ranks, for `parent`.
    fn start(
        &self,
        ranks: usize,
        parent: usize,
        programs: &[SpawnProgram],
    ) -> Result<Begun, String> {
        let universe = self.universe;
        let left = universe.most - ranks;
        let counts = counts(programs, left as u64);
        let counts = counts.ok_or_else(|| shortage(programs, left, universe.most))?;
        if counts.iter().sum::<u64>() == 0 {
            return Err("no ranks were to be spawned; ask for one at least".to_owned());
        }
        let app = |(program, count): (&SpawnProgram, &u64)| App {
            ranks: *count as usize,
            ..app_of(&program.program)
        };
        let spec = JobSpec {
            apps: programs.iter().zip(&counts).map(app).collect(),
            binding: Binding::new(Some(BindTo::None), None, false),
            input: InputChoice::None,
            ..self.spec.clone()
        };
        let number = spec.ranks();
        let universe = universe.beyond(ranks + number);
        let at = WorldPlace { first: ranks as TaskId, universe, parent: Some(parent as TaskId) };
        let inputs = std::iter::repeat_with(Stdio::null).take(number).collect();
        let how = (&self.limit, self.mask);
        let text = |error: LaunchError| error.to_string();
        let mut prepared = spawn::check(&spec, (0..number).collect()).map_err(text)?;
        prepared.record(self.traces.clone());
        let spinning = spawn::spinning(&spec).map_err(text)?;
        let spinning = spinning.into_iter().map(|rank| ranks + rank).collect();
        let deliveries = spec.output.deliveries(ranks..ranks + number).map_err(text)?;
        let (segment, mut begun) = ((&*self.job, &self.segment), Vec::new());
        let started = prepared.start_world(&at, segment, how, inputs, None, &mut begun);
        let counts = match started.map_err(text) {
            Err(why) if begun.is_empty() => return Err(why),
            started => started.map(|()| counts),
        };
        Ok(Begun { ranks: begun, deliveries, spinning, counts })
    }
}

/// The number of ranks of each program: the largest ones that find room; `None` if there is none.
fn counts(programs: &[SpawnProgram], room: u64) -> Option<Vec<u64>> {
    let least = |program: &SpawnProgram| *program.or_fewer.last().unwrap_or(&program.program.ranks);
    let mut needed: u64 = programs.iter().map(least).fold(0, u64::saturating_add);
    if needed > room {
        return None;
    }
    let mut left = room;
    let count = |program: &SpawnProgram| {
        needed -= least(program);
        let mut wanted = std::iter::once(&program.program.ranks).chain(&program.or_fewer);
        let count = *wanted.find(|count| count.saturating_add(needed) <= left)?;
        left -= count;
        Some(count)
    };
    programs.iter().map(count).collect()
}

fn shortage(programs: &[SpawnProgram], left: usize, universe: usize) -> String {
    let asked = programs.iter().map(|program| program.program.ranks).fold(0, u64::saturating_add);
    format!(
        "{asked} ranks were to be spawned, but the job has room for {left} more: it can have {universe} in all, with those \
         that have ended; give mpjrun more with --universe N, at most {MAX_PLACES_PER_HOST}"
    )
}

impl Job {
    /// Answers a demand of a rank (DY1).
    pub(super) fn answer(&mut self, rank: usize, demand: Demand) {
        let answer = match demand {
            _ if self.verdict.is_some() => refused("the job is ending"),
            // Another process has its line.
            _ if self.exit_log.records()[rank].ended.is_some() => refused("the rank has ended"),
            Demand::Spawn { programs } => self.spawn(rank, &programs),
            Demand::Publish { name, value } => self.publish(rank, name, value),
            Demand::Unpublish { name } => match self.names.get(&name) {
                None => refused("nothing is published under this name"),
                Some(Published { owner, .. }) if *owner != rank => refused(&format!(
                    "rank {owner} has published it, and only that rank can take it back"
                )),
                Some(_) => {
                    let callers = self.names.remove(&name).map(|published| published.callers);
                    Answer::Forgotten { callers: callers.into_iter().flatten().collect() }
                }
            },
            Demand::Lookup { name } => match self.names.get(&name) {
                Some(published) => Answer::Value(published.value.clone()),
                None => refused("nothing is published under this name"),
            },
            Demand::Connect { port } => match self.names.get_mut(&Name::Port(port)) {
                Some(published) => {
                    *published.callers.entry(rank as TaskId).or_default() += 1;
                    Answer::Done
                }
                None => refused("no rank has an open port of this name"),
            },
        };
        self.ranks.order(Order::Answer { task: rank as TaskId, answer });
    }

    fn spawn(&mut self, parent: usize, programs: &[SpawnProgram]) -> Answer {
        let Some(spawner) = &self.spawner else {
            return refused("ranks can be spawned only in jobs that run on one host");
        };
        let before = self.seats.len();
        let begun = spawner.start(before, parent, programs);
        let Begun { mut ranks, mut deliveries, spinning, counts } = match begun {
            Ok(begun) => begun,
            Err(why) => return refused(&why),
        };
        if counts.is_err() {
            ranks.iter_mut().for_each(Rank::abandon);
            deliveries.truncate(ranks.len());
        }
        let tasks = before + deliveries.len();
        let pids: Vec<u32> = ranks.iter().map(Rank::pid).collect();
        let running = if counts.is_ok() { pids.len() } else { 0 };
        for (place, delivery) in deliveries.into_iter().enumerate() {
            let transcript = Transcript::new(before + place, delivery);
            self.seats.push(Seat { transcript, is_gone: place >= running });
        }
        let all = pids[..running].iter().copied().map(Some).chain(std::iter::repeat(None));
        self.exit_log.admit(all.take(tasks - before));
        self.watcher.admit(pids, tasks, spinning);
        if let Some(note) = self.ranks.admit(ranks, tasks) {
            self.printer.say(&format!("mpjrun: {note}\n"));
        }
        match counts {
            Ok(counts) => {
                self.printer.share();
                Answer::Spawned { first: before as TaskId, counts }
            }
            Err(why) => refused(&why),
        }
    }

    fn publish(&mut self, rank: usize, name: Name, value: Vec<u8>) -> Answer {
        if let Some(Published { owner, .. }) = self.names.get(&name) {
            return refused(&format!("rank {owner} has published something under this name"));
        }
        let (Name::Port(text) | Name::Service(text)) = &name;
        if text.len().max(value.len()) > LONGEST_NAME {
            return refused(&format!(
                "it is longer than {LONGEST_NAME} bytes; give a shorter name"
            ));
        }
        if self.names.len() >= MOST_NAMES {
            return refused(&format!(
                "the ranks have published {MOST_NAMES} names, which is the limit"
            ));
        }
        self.names.insert(name, Published { owner: rank, value, callers: BTreeMap::new() });
        Answer::Done
    }

    /// Forgets what a rank has published that has ended (DY3).
    pub(super) fn forget_names(&mut self, rank: usize) {
        self.names.retain(|_, published| published.owner != rank);
    }
}

fn refused(why: &str) -> Answer {
    Answer::Refused { why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use transport_lapi::bootstrap::control::agents::HostProgram;

    use super::*;

    #[test]
    fn programs_get_the_most_ranks_for_which_there_is_room() {
        let program = |ranks, or_fewer: &[u64]| SpawnProgram {
            program: HostProgram { ranks, ..HostProgram::default() },
            or_fewer: or_fewer.to_vec(),
        };
        let of = |programs: &[SpawnProgram], room| counts(programs, room);
        assert_eq!(of(&[program(3, &[])], 3), Some(vec![3]));
        assert_eq!(of(&[program(3, &[])], 2), None);
        assert_eq!(of(&[program(8, &[6, 4, 2])], 5), Some(vec![4]));
        let two = [program(4, &[2]), program(4, &[1])];
        assert_eq!(of(&two, 8), Some(vec![4, 4]));
        assert_eq!(of(&two, 7), Some(vec![4, 1]));
        assert_eq!(of(&two, 4), Some(vec![2, 1]));
        assert_eq!(of(&two, 2), None);
        assert_eq!(of(&[program(u64::MAX, &[]), program(u64::MAX, &[])], 9), None);
    }
}
