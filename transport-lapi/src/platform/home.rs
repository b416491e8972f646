//! The processor on which a thread is at home. Called at the end of wireup ([`crate::job::wireup`]), and by waits that
//! yield or wake ([`crate::progress::context`]); [`move_to`] also by the adapters' placement.
//!
//! Where several ranks share each processor, those that wait poll and yield in turns, and the kernel may leave three of
//! four on one of two processors for a tenth of a second. Ranks that are bound to a processor are spared that. But
//! their other threads would be bound, too, and OpenMP takes as many threads as there are processors that the rank may
//! use. So the launcher only tells each rank its home. The thread that has joined the job goes back there when it has
//! waited elsewhere. It is not bound: the kernel may move it again, and it stays where it is while it computes.

use std::cell::Cell;

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

thread_local! {
    static HOME: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Makes a processor the home of this thread, and goes there.
pub(crate) fn settle(processor: u32) {
    HOME.set(Some(processor));
    go();
}

/// Goes home, if this thread has one and is elsewhere. A thread that may not use its home any more, since the program
/// has bound it, has none.
#[inline]
pub(crate) fn go() {
    if let Some(home) = HOME.get() {
        if sched_getcpu() != home as usize {
            leave_for(home);
        }
    }
}

#[cold]
#[inline(never)]
fn leave_for(home: u32) {
    match sched_getaffinity(None) {
        Ok(mine) if (home as usize) < CpuSet::MAX_CPU && mine.is_set(home as usize) => {
            move_to(home, &mine, || {});
        }
        _ => HOME.set(None),
    }
}

/// Moves this thread, which may use `mine`, to a processor, calls `there`, and lets the thread use `mine` again.
pub(crate) fn move_to(processor: u32, mine: &CpuSet, there: impl FnOnce()) {
    let mut only = CpuSet::new();
    only.set(processor as usize);
    if sched_setaffinity(None, &only).is_err() {
        return;
    }
    there();
    // Nothing restricts the thread if it may use as much when it asks for everything. Then it may also use processors
    // that are added later, as before.
    let mut everything = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|processor| everything.set(processor));
    let asked = sched_setaffinity(None, &everything).and_then(|()| sched_getaffinity(None));
    if asked != Ok(*mine) {
        // This set was legal just before.
        let _ = sched_setaffinity(None, mine);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn all() -> CpuSet {
        sched_getaffinity(None).expect("the kernel tells")
    }

    fn only(processor: u32) -> CpuSet {
        let mut set = CpuSet::new();
        set.set(processor as usize);
        set
    }

    #[test]
    fn a_thread_moves_and_may_still_use_all_its_processors() {
        let mine = all();
        for place in (0..CpuSet::MAX_CPU).filter(|&processor| mine.is_set(processor)) {
            let mut was_there = false;
            move_to(place as u32, &mine, || was_there = sched_getcpu() == place);
            assert!(was_there, "{place}");
            assert_eq!(all(), mine);
        }
    }

    #[test]
    fn a_thread_goes_home_and_is_not_bound() {
        let mine = all();
        for home in (0..CpuSet::MAX_CPU).filter(|&processor| mine.is_set(processor)) {
            settle(home as u32);
            assert_eq!((HOME.get(), all()), (Some(home as u32), mine));
        }
    }

    #[test]
    fn a_bound_thread_stays_bound_and_has_no_home_elsewhere() {
        let (before, own) = (all(), sched_getcpu() as u32);
        sched_setaffinity(None, &only(own)).expect("a processor of this thread");
        move_to(own, &only(own), || {});
        assert_eq!(all(), only(own));
        for elsewhere in [u32::MAX, (own + 1) % CpuSet::MAX_CPU as u32] {
            settle(elsewhere);
            assert_eq!((HOME.get(), all()), (None, only(own)));
        }
        sched_setaffinity(None, &before).expect("the set of before");
    }
}
