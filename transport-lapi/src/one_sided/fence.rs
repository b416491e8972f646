//! LAPI_Fence and LAPI_Gfence.
//!
//! A fence is a packet at the end of every send queue that was used; its target answers when it gets there. Frames are
//! stored in the order of arrival, so the answer means that all data sent before it is in place. It says nothing about
//! completion handlers; only completion counters do. Where the adapter has stored data without the target, a flush says
//! when that is in place ([`crate::adapter::OneSided::Flush`]). The barrier of the global fence is a dissemination: in
//! round `k`, a task signals the task `2^k` places above, and waits for the one `2^k` places below.

use std::ops::Range;

use crate::adapter::waits::{Phase, Wait};
use crate::adapter::{TaskId, WaitRecords};
use crate::error::LapiError;
use crate::progress::amsend::{Outgoing, check_target};
use crate::progress::awaited::Awaited;
use crate::progress::context::Context;
use crate::progress::handler::Next;
use crate::progress::outbox::SendQueue;
use crate::progress::session::Session;
use crate::wire::Packet;

impl<S> Context<S> {
    /// Blocks until the data of everything that this context has started is in place at its targets (LAPI_Fence). The
    /// targets must make progress, unless the adapter has done everything without them.
    ///
    /// # Errors
    /// Those of [`Context::wait`]; the loss of a task counts only if something may have been sent to it.
    pub fn fence(&self) -> Result<(), LapiError> {
        self.fence_unless(|_| false, None).map(drop)
    }

    /// A fence and a barrier over all tasks (LAPI_Gfence); every task calls it.
    ///
    /// # Errors
    /// [`LapiError::TgtPurged`] if a task is purged; those of [`Context::wait`].
    pub fn gfence(&self) -> Result<(), LapiError> {
        self.gfence_unless(&(0..self.num_tasks() as TaskId), |_| false).map(drop)
    }

    /// [`Context::gfence`] for a task that has nothing left to do after it. Returns whether all tasks have arrived. It
    /// returns `false` if the watcher of the job has found that they never will, and has dismissed this task
    /// ([`crate::bootstrap::waits::JobView::dismiss`]); the task must end then.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    pub fn gfence_unless_dismissed(&self) -> Result<bool, LapiError> {
        self.gfence_unless(&(0..self.num_tasks() as TaskId), |records| records.is_dismissed())
    }

    /// Ends the communication of this task in a job of several worlds: [`Context::gfence_unless_dismissed`] for the tasks
    /// of its `world`, or [`Context::gfence`] if it is not `dismissible`; then it waits until the tasks of other worlds
    /// with which it is `connected` have got that far, too, or are lost.
    ///
    /// # Errors
    /// Those of [`Context::wait`]; the loss of a task counts only if it belongs to the world.
    pub fn leave(
        &self,
        world: &Range<TaskId>,
        connected: &[TaskId],
        dismissible: bool,
    ) -> Result<bool, LapiError> {
        let is_dismissed: fn(&dyn WaitRecords) -> bool = match dismissible {
            true => |records| records.is_dismissed(),
            false => |_| false,
        };
        if !self.gfence_unless(world, is_dismissed)? {
            return Ok(false);
        }
        self.session_to_wait()?.losses.declare_end();
        self.wait_for_others(is_dismissed, None, |session| {
            let losses = &session.losses;
            let has_ended = |task: &TaskId| losses.is_at_end(*task) || losses.is_lost(*task);
            connected.iter().all(has_ended).then_some(())
        })
    }

    /// Blocks until the adapter has all frames of everything that this context has started. So they reach targets that
    /// look for them later, when this task may have ended.
    ///
    /// # Errors
    /// Those of [`Context::wait`].
    pub fn drain(&self) -> Result<(), LapiError> {
        self.wait_for_others(|_| false, None, |session| session.has_drained().then_some(()))
            .map(drop)
    }

    fn gfence_unless(
        &self,
        world: &Range<TaskId>,
        is_dismissed: fn(&dyn WaitRecords) -> bool,
    ) -> Result<bool, LapiError> {
        let (tasks, place) = (world.len(), (self.task() - world.start) as usize);
        self.session_to_wait()?.check_closed()?;
        if !self.fence_unless(is_dismissed, Some(world))? {
            return Ok(false);
        }
        for round in 0..tasks.next_power_of_two().trailing_zeros() {
            let up = world.start + ((place + (1 << round)) % tasks) as TaskId;
            let signal = Packet::Barrier { round: round as u8 };
            self.session_to_wait()?.engine.outbox.push(up, Outgoing::Control(signal));
            let have_come = self.wait_for_others(is_dismissed, Some(world), |session| {
                let seen = &mut session.engine.barrier[round as usize];
                *seen = seen.checked_sub(1)?;
                Some(())
            })?;
            if !have_come {
                return Ok(false);
            }
        }
        self.wait_for_others(is_dismissed, Some(world), |session| {
            session.has_drained().then_some(())
        })
    }

    fn fence_unless(
        &self,
        is_dismissed: fn(&dyn WaitRecords) -> bool,
        world: Option<&Range<TaskId>>,
    ) -> Result<bool, LapiError> {
        self.session_to_wait()?.start_fence();
        self.wait_for_others(is_dismissed, world, |session| session.fence_done().then_some(()))
    }

    /// Waits until `look` succeeds or this task is dismissed, and returns whether it was the former. The wait needs
    /// the tasks of `world`, and those that have not yet answered a fence.
    fn wait_for_others(
        &self,
        is_dismissed: fn(&dyn WaitRecords) -> bool,
        world: Option<&Range<TaskId>>,
        mut look: impl FnMut(&mut Session<S>) -> Option<()>,
    ) -> Result<bool, LapiError> {
        let look = |session: &mut Session<S>| match look(session) {
            Some(()) => Some(true),
            None => session.wait_records.as_deref().is_some_and(is_dismissed).then_some(false),
        };
        self.wait_from(self.session_to_wait()?, &mut Others { look, world })
    }
}

/// A wait for progress of other tasks.
struct Others<'a, F> {
    look: F,
    /// The tasks that are needed in any case.
    world: Option<&'a Range<TaskId>>,
}

impl<S, F: FnMut(&mut Session<S>) -> Option<bool>> Awaited<S> for Others<'_, F> {
    type Answer = bool;

    fn look(&mut self, session: &mut Session<S>) -> Option<bool> {
        (self.look)(session)
    }

    fn in_vain(&self, session: &Session<S>) -> Option<LapiError> {
        if let Some(world) = self.world {
            let lost = session.check_lost_of(world).and_then(|()| session.check_closed());
            if let Err(error) = lost {
                return Some(error);
            }
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
    /// Begins a fence of everything that this context has started, or has started to `target`. Never blocks;
    /// [`Session::is_fenced`] says whether the data is in place.
    ///
    /// # Errors
    /// [`LapiError::Tgt`].
    pub fn begin_fence(&mut self, target: Option<TaskId>) -> Result<(), LapiError> {
        match target {
            None => self.start_fence(),
            Some(target) => {
                check_target(target, self.engine.outbox.send_queues.num_tasks())?;
                self.fence_target(target);
            }
        }
        self.end_call(Next::Nothing);
        Ok(())
    }

    /// Returns whether no fence is under way, or none of what was sent to `target`. Gets count whatever their target is.
    ///
    /// # Errors
    /// The loss of a task that has not answered a fence.
    pub fn is_fenced(&self, target: Option<TaskId>) -> Result<bool, LapiError> {
        let outbox = &self.engine.outbox;
        let mut asked = outbox.send_queues.iter().filter(|(task, queue)| {
            queue.has_fences() && target.is_none_or(|target| *task == target)
        });
        match asked.next() {
            None => Ok(outbox.gets.under_way() == 0),
            Some(first) => std::iter::once(first)
                .chain(asked)
                .try_for_each(|(task, _)| outbox.check_lost(task))
                .map(|()| false),
        }
    }

    fn start_fence(&mut self) {
        for place in 0.. {
            let Some(target) = self.engine.outbox.send_queues.task_at(place) else { break };
            self.fence_target(target);
        }
    }

    fn fence_target(&mut self, target: TaskId) {
        let outbox = &mut self.engine.outbox;
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

    fn fence_done(&self) -> bool {
        let outbox = &self.engine.outbox;
        outbox.gets.under_way() == 0 && self.waits_only_for_ended(SendQueue::has_fences)
    }

    /// Whether no frame waits for the adapter but those to tasks that have left the job.
    fn has_drained(&self) -> bool {
        self.engine.outbox.queued == 0
            || self.waits_only_for_ended(|queue| !queue.waiting.is_empty())
    }

    /// Whether every task whose send queue `waits` has left the job, so that it answers nothing.
    fn waits_only_for_ended(&self, waits: fn(&SendQueue) -> bool) -> bool {
        let mut waiting = self.engine.outbox.send_queues.iter().filter(|(_, queue)| waits(queue));
        waiting.all(|(task, _)| self.losses.is_at_end(task))
    }
}
