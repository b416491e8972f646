//! LAPI_Fence and LAPI_Gfence.
//!
//! A fence is a packet at the end of every send queue that was used; its target answers when it gets there. Frames are
//! stored in the order of arrival, so the answer means that all data sent before it is in place. It says nothing about
//! completion handlers; only completion counters do. Where the adapter has stored data without the target, a flush says
//! when that is in place ([`crate::adapter::OneSided::Flush`]). The barrier of the global fence is a dissemination: in
//! round `k`, a task signals the task `2^k` places above, and waits for the one `2^k` places below.

use crate::adapter::WaitRecords;
use crate::adapter::waits::{Phase, Wait};
use crate::error::LapiError;
use crate::progress::amsend::Outgoing;
use crate::progress::awaited::Awaited;
use crate::progress::context::Context;
use crate::progress::session::Session;
use crate::wire::Packet;

impl<S> Context<S> {
    /// Blocks until the data of everything that this context has started is in place at its targets (LAPI_Fence). The
    /// targets must make progress, unless the adapter has done everything without them.
    ///
    /// # Errors
    /// Those of [`Context::wait`]; the loss of a task counts only if something may have been sent to it.
    pub fn fence(&self) -> Result<(), LapiError> {
        self.fence_unless(|_| false, false).map(drop)
    }

    /// A fence and a barrier over all tasks (LAPI_Gfence); every task calls it.
    ///
    /// # Errors
    /// [`LapiError::TgtPurged`] if a task is purged; those of [`Context::wait`].
    pub fn gfence(&self) -> Result<(), LapiError> {
        self.gfence_unless(|_| false).map(drop)
    }

    /// [`Context::gfence`] for a task that has nothing left to do after it. Returns whether all tasks have arrived. It
    /// returns `false` if the watcher of the job has found that they never will, and has dismissed this task
    /// ([`crate::bootstrap::waits::JobView::dismiss`]); the task must end then.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    pub fn gfence_unless_dismissed(&self) -> Result<bool, LapiError> {
        self.gfence_unless(|records| records.is_dismissed())
    }

    fn gfence_unless(&self, is_dismissed: fn(&dyn WaitRecords) -> bool) -> Result<bool, LapiError> {
        let (task, num_tasks) = (self.task() as usize, self.num_tasks());
        self.session_to_wait()?.check_closed()?;
        if !self.fence_unless(is_dismissed, true)? {
            return Ok(false);
        }
        for round in 0..num_tasks.next_power_of_two().trailing_zeros() {
            let up = (task + (1 << round)) % num_tasks;
            let signal = Packet::Barrier { round: round as u8 };
            self.session_to_wait()?.engine.outbox.push(up as u32, Outgoing::Control(signal));
            let have_come = self.wait_for_others(is_dismissed, true, |session| {
                let seen = &mut session.engine.barrier[round as usize];
                *seen = seen.checked_sub(1)?;
                Some(())
            })?;
            if !have_come {
                return Ok(false);
            }
        }
        self.wait_for_others(is_dismissed, true, |session| {
            (session.engine.outbox.queued == 0).then_some(())
        })
    }

    fn fence_unless(
        &self,
        is_dismissed: fn(&dyn WaitRecords) -> bool,
        all: bool,
    ) -> Result<bool, LapiError> {
        self.session_to_wait()?.start_fence();
        self.wait_for_others(is_dismissed, all, |session| session.fence_done().then_some(()))
    }

    /// Waits until `look` succeeds or this task is dismissed, and returns whether it was the former. The wait needs
    /// `all` tasks, or only those that have not yet answered a fence.
    fn wait_for_others(
        &self,
        is_dismissed: fn(&dyn WaitRecords) -> bool,
        all: bool,
        mut look: impl FnMut(&mut Session<S>) -> Option<()>,
    ) -> Result<bool, LapiError> {
        let look = |session: &mut Session<S>| match look(session) {
            Some(()) => Some(true),
            None => session.wait_records.as_deref().is_some_and(is_dismissed).then_some(false),
        };
        self.wait_from(self.session_to_wait()?, &mut Others { look, all })
    }
}

/// A wait for progress of other tasks.
struct Others<F> {
    look: F,
    /// Whether all tasks are needed.
    all: bool,
}

impl<S, F: FnMut(&mut Session<S>) -> Option<bool>> Awaited<S> for Others<F> {
    type Answer = bool;

    fn look(&mut self, session: &mut Session<S>) -> Option<bool> {
        (self.look)(session)
    }

    fn in_vain(&self, session: &Session<S>) -> Option<LapiError> {
        if self.all {
            return session.check_lost().and_then(|()| session.check_closed()).err();
        }
        let outbox = &session.engine.outbox;
        let mut needed = outbox.send_queues.iter().filter(|(_, queue)| queue.has_fences());
        needed.find_map(|(task, _)| outbox.check_lost(task).err())
    }

    fn describe(&self, _: &Session<S>) -> Wait {
        Wait { phase: Phase::Others, ..Wait::default() }
    }
}

impl<S> Session<S> {
    fn start_fence(&mut self) {
        let outbox = &mut self.engine.outbox;
        for place in 0.. {
            let Some(target) = outbox.send_queues.task_at(place) else { break };
            let send_queue = &mut outbox.send_queues[target];
            let (dirty, unflushed) = (send_queue.dirty, send_queue.unflushed);
            if !send_queue.is_open() && !dirty && !unflushed {
                // An earlier fence has reported the loss.
                (send_queue.fences, send_queue.flushes) = (0, 0);
            }
            send_queue.fences += u32::from(dirty);
            send_queue.flushes += u32::from(unflushed);
            if dirty {
                outbox.push(target, Outgoing::Control(Packet::Fence));
            }
            if unflushed {
                outbox.queue_flush(target, None);
            }
            let send_queue = &mut outbox.send_queues[target];
            (send_queue.dirty, send_queue.unflushed) = (false, false);
        }
    }

    fn fence_done(&self) -> bool {
        let outbox = &self.engine.outbox;
        outbox.gets.under_way() == 0
            && !outbox.send_queues.iter().any(|(_, queue)| queue.has_fences())
    }
}
