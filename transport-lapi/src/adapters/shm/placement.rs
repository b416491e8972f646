//! Where the tasks of a job begin to run: each on a processor of its own, if there are as many.
//!
//! The kernel often starts two tasks on one processor. Tasks that wait poll and yield, so neither sleeps, and the
//! kernel may leave them there for a tenth of a second while another processor is idle. So a task that began beside
//! another one moves once, at the end of [`super::wireup`]. That does not bind it: the kernel may move it again.
//! Hardware threads count as processors, and what other jobs do is not known.
//!
//! A task computes the places of all tasks from what all published before they met, so all come to the same places,
//! unless they may use different processors. A task that the kernel has moved since then moves back, so that all places
//! stay different. What others published is only compared; a task moves only to a processor that it may use.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu};

use crate::platform::home::move_to;

/// The processor that this thread is running on.
pub(super) fn here() -> u32 {
    sched_getcpu() as u32
}

/// Moves this thread, the one of `task`, to its place if it is on another processor. `began` lists where the tasks
/// were. A move that the kernel refuses is left out.
pub(super) fn spread(task: usize, began: &[u32]) {
    let Ok(mine) = sched_getaffinity(None) else { return };
    let usable = (0..CpuSet::MAX_CPU).filter(|&processor| mine.is_set(processor));
    let usable: Vec<u32> = usable.map(|processor| processor as u32).collect();
    if began.len() == 1 || began.len() > usable.len() {
        return;
    }
    let place = places(began, &usable)[task];
    if place != here() && usable.contains(&place) {
        move_to(place, &mine, || {});
    }
}

/// The place of each task: the processor where it began, unless a task before it began there, too; else the next one,
/// counted from there, that no task has. There are at least as many processors as tasks.
fn places(began: &[u32], usable: &[u32]) -> Vec<u32> {
    let mut taken = began.to_vec();
    let place = |(task, &own): (usize, &u32)| {
        if !began[..task].contains(&own) {
            return own;
        }
        let behind = usable.iter().filter(|&&processor| processor > own);
        let free = behind.chain(usable).copied().find(|processor| !taken.contains(processor));
        let free =
            free.expect("one of the taken processors is taken twice, so a usable one is not");
        taken.push(free);
        free
    };
    began.iter().enumerate().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_gets_a_processor_and_the_first_ones_stay() {
        let usable = [1, 2, 4, 7];
        let began = |number: u32| [0, 1, 2].map(|task| usable[(number >> (2 * task)) as usize % 4]);
        for began in (0..64).map(began) {
            let places = places(&began, &usable);
            for (task, place) in places.iter().enumerate() {
                assert!(usable.contains(place), "{began:?} {places:?}");
                assert!(!places[..task].contains(place), "{began:?} {places:?}");
                let is_first = !began[..task].contains(&began[task]);
                assert!(!is_first || *place == began[task], "{began:?} {places:?}");
            }
        }
        assert_eq!(places(&[4, 4, 7], &usable), [4, 1, 7], "the next free one");
        assert_eq!(places(&[9, 9], &[1, 2]), [9, 1], "tasks may use different ones");
        assert_eq!(places(&[5, 5, 5], &[1, 2, 3]), [5, 1, 2]);
    }

    #[test]
    fn a_task_that_moves_may_still_use_all_its_processors() {
        let mine = sched_getaffinity(None).expect("the kernel tells");
        for began in [[here(); 2], [0, 1], [u32::MAX; 2]] {
            spread(1, &began);
            assert_eq!(sched_getaffinity(None).expect("the kernel tells"), mine);
        }
    }
}
