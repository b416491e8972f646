//! Wireup: how the tasks of a job meet in their segment and agree.
//!
//! Each task publishes its identity and meets the others of its world; then it reads a cell in the memory of its successor,
//! publishes the result, and meets the others again. Every task reads all results, so all come to the same conclusion.
//! Finally, it moves to its place ([`super::placement`]). Called by [`super::ShmAdapter::attach_contexts`], once per
//! task: tasks meet in the segment of context 0, and what they agree on holds for all contexts.
//!
//! - W1: the probed cell stays allocated until the second meeting, and then as long as any of the task's adapters,
//!   since other tasks identify the process by it (PE1 of `peer.rs`).
//! - W2: what others published is read only after a meeting, once, into local variables.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{PTracer, getppid, parent_process_death_signal};

use crate::adapter::{AdapterError, TaskId};
use crate::adapters::local::doorbell::Fences;
use crate::adapters::local::segment::{Segment, WireupLine};
use crate::adapters::shm::clients::lost_of;
use crate::adapters::shm::peer::{Peers, ProbeCell};
use crate::adapters::shm::placement;
use crate::adapters::shm::world::World;
use crate::adapters::shm::{GetMode, Processes};
use crate::platform::offer::pid_namespace;
use crate::platform::sync::FutexWord;

/// How often a task that waits for the others checks whether one gave up.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The result of a task's probe of its successor's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Readable,
    /// Not tried: the settings ask for active messages.
    Declined,
    /// The read succeeded, but brought a wrong value.
    WrongBytes,
    /// The kernel refused, with this error number.
    Refused(i32),
}

impl Verdict {
    /// Encoded error numbers start here.
    const REFUSED: u32 = 1 << 16;

    fn encode(self) -> u32 {
        match self {
            Self::Readable => 1,
            Self::Declined => 2,
            Self::WrongBytes => 3,
            Self::Refused(errno) => Self::REFUSED + errno.unsigned_abs(),
        }
    }

    fn decode(word: u32) -> Self {
        match word {
            1 => Self::Readable,
            2 => Self::Declined,
            Self::REFUSED.. => Self::Refused((word - Self::REFUSED) as i32),
            _ => Self::WrongBytes,
        }
    }

    /// Why this verdict of `task`, one of these tasks, rules out one-sided reads in the job, if it does.
    fn objection(self, task: usize, tasks: &Range<usize>) -> Option<String> {
        let successor = if task + 1 == tasks.end { tasks.start } else { task + 1 };
        match self {
            Self::Readable => None,
            Self::Declined => Some(format!("rank {task} was started with MPJ_GET=am")),
            Self::WrongBytes => Some(format!("rank {task} read wrong bytes from rank {successor}")),
            Self::Refused(errno) => {
                let cause = io::Error::from_raw_os_error(errno);
                Some(format!("rank {task} cannot read rank {successor}: {cause}"))
            }
        }
    }
}

/// Takes the number `task`, unless another process has taken it before.
pub(super) fn claim(segment: &Segment, task: TaskId) -> Result<(), AdapterError> {
    let pid = &segment.task(task as usize).wireup.pid;
    // Relaxed: the first meeting publishes it.
    pid.compare_exchange(0, std::process::id(), Ordering::Relaxed, Ordering::Relaxed)
        .map(|_| ())
        .map_err(|pid| AdapterError::AlreadyAttached { task, pid })
}

/// Meets the other tasks of the world and agrees with them how to access memory, and on the fences of the bells.
pub(super) fn agree(
    segment: &Segment,
    world: &World,
    mode: GetMode,
) -> Result<(Processes, Fences), AdapterError> {
    let (me, places) = (world.task as usize, world.places());
    let mine = &segment.task(me).wireup;
    let keeper = segment.job().keeper.load(Ordering::Relaxed);
    let cell = publish(mine, mode, keeper);
    let first = &segment.task(places.start).wireup;
    meet(&first.attached, segment, world)?;

    let successor = if me + 1 == places.end { places.start } else { me + 1 };
    let successor = &segment.task(successor).wireup;
    let verdict = if mode == GetMode::Am { Verdict::Declined } else { probe(successor) };
    mine.verdict.store(verdict.encode(), Ordering::Relaxed);
    mine.processor.store(placement::here(), Ordering::Relaxed);
    meet(&first.probed, segment, world)?;

    let began = |task| segment.task(task).wireup.processor.load(Ordering::Relaxed);
    placement::spread(me - places.start, &places.map(began).collect::<Vec<_>>());
    conclude(segment, world, mode, cell)
}

/// Publishes this process, and a cell for its predecessor to read. The next meeting makes them visible.
fn publish(mine: &WireupLine, mode: GetMode, keeper: u32) -> Arc<AtomicU64> {
    if mode != GetMode::Am {
        // Under Yama's ptrace_scope 1 siblings may read this process only if it allows that. A kernel without Yama
        // refuses the call. In either case the probe shows what is possible.
        let _ = rustix::process::set_ptracer(PTracer::Any);
    }
    let light_fences = Fences::Asymmetric.register().is_ok();
    let value = RandomState::new().hash_one(std::process::id()) | 1;
    let cell = Arc::new(AtomicU64::new(value));
    // The launcher sets a death signal for its own children. A child of a script may have become the launcher's child,
    // but has no such signal.
    let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get() as u32);
    let is_child = matches!(parent_process_death_signal(), Ok(Some(_)));
    let keeps_pid = is_child && parent == keeper;
    mine.keeps_pid.store(keeps_pid.into(), Ordering::Relaxed);
    mine.light_fences.store(light_fences.into(), Ordering::Relaxed);
    mine.pid_namespace.store(pid_namespace(), Ordering::Relaxed);
    mine.probe_value.store(value, Ordering::Relaxed);
    mine.probe_addr.store(cell.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
    cell
}

/// Reads the successor's cell and compares its value (W2).
fn probe(successor: &WireupLine) -> Verdict {
    let pid = successor.pid.load(Ordering::Relaxed) as i32;
    match ProbeCell::of(successor).is_in(pid) {
        Ok(true) => Verdict::Readable,
        Ok(false) => Verdict::WrongBytes,
        Err(error) => Verdict::Refused(error.raw_os_error().unwrap_or_default()),
    }
}

/// Counts this task and waits until all tasks of the world are counted. Every task then sees what the others stored
/// before.
fn meet(word: &FutexWord, segment: &Segment, world: &World) -> Result<(), AdapterError> {
    let tasks = world.tasks.len() as u32;
    let before = word.value().fetch_add(1, Ordering::AcqRel); // SYNC: meeting
    if before.wrapping_add(1) == tasks {
        word.wake_all();
    }
    loop {
        let arrived = word.value().load(Ordering::Acquire); // SYNC: meeting
        if arrived >= tasks {
            return Ok(());
        }
        if let Some(task) = lost_of(segment, world) {
            return Err(AdapterError::PeerLost { task });
        }
        word.wait(arrived, Some(LOOK_AGAIN));
    }
}

/// Concludes from what the tasks of the world have published, and those of its parent's world (WO2). Each task comes to
/// the same conclusion (W2).
fn conclude(
    segment: &Segment,
    world: &World,
    mode: GetMode,
    cell: Arc<AtomicU64>,
) -> Result<(Processes, Fences), AdapterError> {
    let (mut without_get, mut all_light) = agreement(segment, world.places());
    if let Some(parents) = world.of_parent(segment) {
        let (way, light) = agreement(segment, parents);
        if way.is_none() {
            if let Some(reason) = without_get {
                return Err(AdapterError::GetRefused { reason });
            }
        }
        if light && !all_light {
            let what = "its ranks use the system call membarrier, which is refused here".to_owned();
            return Err(AdapterError::BadSegment { what });
        }
        // What the worlds that these ranks spawn will read.
        let mine = &segment.wireup(world.task as usize);
        (without_get, all_light) = (way, light);
        if without_get.is_some() {
            mine.verdict.store(Verdict::Declined.encode(), Ordering::Relaxed);
        }
        mine.light_fences.store(all_light.into(), Ordering::Relaxed);
    }
    match without_get {
        Some(reason) if mode == GetMode::Cma => Err(AdapterError::GetRefused { reason }),
        without_get => {
            let fences = if all_light { Fences::Asymmetric } else { Fences::Symmetric };
            let peers = Arc::new(Peers::new(segment));
            for task in world.tasks.clone() {
                peers.of(task)?;
            }
            let may_be_reaped = peers.of(world.task)?.may_be_reaped;
            Ok((Processes { peers, may_be_reaped, cell, without_get }, fences))
        }
    }
}

/// Why these tasks do not read memory, if they do not, and whether all of them have light fences.
fn agreement(segment: &Segment, tasks: Range<usize>) -> (Option<String>, bool) {
    let lines = || tasks.clone().map(|task| &segment.task(task).wireup);
    let all_light = lines().all(|line| line.light_fences.load(Ordering::Relaxed) == 1);
    let without_get = lines()
        .map(|line| Verdict::decode(line.verdict.load(Ordering::Relaxed)))
        .zip(tasks.clone())
        .find_map(|(verdict, task)| verdict.objection(task, &tasks));
    (without_get, all_light)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_survive_the_segment() {
        use Verdict::{Declined, Readable, Refused, WrongBytes};
        for verdict in [Readable, Declined, WrongBytes, Refused(0), Refused(1), Refused(38)] {
            assert_eq!(Verdict::decode(verdict.encode()), verdict);
        }
        assert_eq!(Verdict::decode(0), WrongBytes, "a verdict that was never published");
    }

    #[test]
    fn only_a_readable_successor_is_no_objection() {
        assert_eq!(Verdict::Readable.objection(1, &(0..2)), None);
        let refused = Verdict::Refused(libc::EPERM).objection(1, &(0..2)).unwrap();
        assert!(refused.starts_with("rank 1 cannot read rank 0: "), "{refused}");
        let declined = Verdict::Declined.objection(0, &(0..2)).unwrap();
        assert_eq!(declined, "rank 0 was started with MPJ_GET=am");
        let wrong = Verdict::WrongBytes.objection(0, &(0..1)).unwrap();
        assert_eq!(wrong, "rank 0 read wrong bytes from rank 0");
    }
}
