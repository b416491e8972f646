//! Calls that synchronize (MPI-4.1 section 12.5): fences, start to complete and post to wait, locks and flushes.

use std::collections::BTreeSet;
use std::sync::atomic::{Ordering, fence};

use mpjdev::{Call, Within};

use super::conflicts::MOST_WORDS;
use super::direct::{Direct, looks};
use super::epoch::{Asked, Epochs};
use super::gate::Signal;
use super::head::{Head, Kind};
use super::{Flavor, Inner, Peer, State, Window};
use crate::error::{Error, WindowError};
use crate::group::Group;
use crate::plan::meet;

/// Whether other ranks may have the lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// MPI_LOCK_SHARED: those that ask for a shared lock.
    Shared,
    /// MPI_LOCK_EXCLUSIVE: none.
    Exclusive,
}

impl Window {
    /// Ends the operations of all ranks since the last fence: MPI_Win_fence. Collective. `precedes` is whether this rank
    /// has made any (not MPI_MODE_NOPRECEDE), `succeeds` whether it makes some up to the next fence (not
    /// MPI_MODE_NOSUCCEED).
    ///
    /// # Errors
    /// [`WindowError::Sync`]; [`WindowError::Refused`]; the loss of a member; what made the device unusable.
    pub fn fence(&self, precedes: bool, succeeds: bool) -> Result<(), Error> {
        let is_used = self.0.epochs(|epochs| epochs.check_fence())?;
        let accesses = self.0.accesses([None]).pop();
        let flushed =
            if precedes || is_used { self.0.flush(Call::WinFlush, self.all()) } else { Ok(()) };
        // The other ranks wait for this one in any case.
        let met = match accesses {
            Some(accesses) => self.0.compare_all(accesses),
            None => meet(&self.0.communicator, Call::WinFence).map(Ok),
        };
        let compared = met.inspect_err(|_| self.0.epochs(|epochs| epochs.fenced(false)))?;
        self.0.epochs(|epochs| epochs.fenced(succeeds));
        flushed.and(compared)
    }

    /// Exposes this rank's window to a group: MPI_Win_post.
    ///
    /// # Errors
    /// [`WindowError::Sync`]; [`Error::NotMember`]; the loss of a rank; what made the device unusable.
    pub fn post(&self, group: &Group) -> Result<(), Error> {
        let origins = self.ranks_of(group)?;
        self.0.epochs(|epochs| epochs.post(origins.clone()))?;
        origins.into_iter().try_for_each(|rank| match &self.0.direct {
            Some(direct) => self.0.signal(direct, rank, Signal::Post),
            None => self.0.post(rank, Head::alone(Kind::Post, 0)),
        })
    }

    /// Begins accesses to the windows of a group, when all of them are exposed: MPI_Win_start.
    ///
    /// # Errors
    /// As [`Window::post`].
    pub fn start(&self, group: &Group) -> Result<(), Error> {
        let targets = self.ranks_of(group)?;
        self.0.epochs(|epochs| epochs.start(targets.iter().copied()))?;
        for rank in targets {
            if let Some(direct) = &self.0.direct {
                self.0.await_signal(direct, Call::WinStart, (rank, Signal::Post))?;
                continue;
            }
            self.0.wait_until(Call::WinStart, rank, |state| {
                let peer = &mut state.peers[rank as usize];
                peer.posts = peer.posts.checked_sub(1)?;
                // The rank has waited for the end of the epoch before.
                let completed = peer.completed;
                peer.carried_out(completed);
                Some(())
            })?;
        }
        Ok(())
    }

    /// Ends accesses that [`Window::start`] began: MPI_Win_complete.
    ///
    /// # Errors
    /// As [`Window::fence`].
    pub fn complete(&self) -> Result<(), Error> {
        let targets = self.0.epochs(Epochs::complete)?;
        let accesses = self.0.accesses(targets.iter().copied().map(Some));
        for (rank, accesses) in targets.iter().zip(accesses) {
            let mut message = Head::alone(Kind::Accesses, 0);
            message.extend(accesses.into_iter().flat_map(u64::to_le_bytes));
            self.0.post(*rank, message)?;
        }
        if let Some(direct) = &self.0.direct {
            let ended = direct.finish_batches(targets.iter().copied());
            let signal = |rank| self.0.signal(direct, rank, Signal::Complete);
            return ended.and(targets.into_iter().try_for_each(signal));
        }
        // Targets of dynamic windows say only when asked that they have refused something.
        let flushed = match self.0.flavor {
            Flavor::Dynamic => self.0.flush(Call::WinComplete, targets.iter().copied()),
            _ => Ok(()),
        };
        targets.iter().try_for_each(|rank| self.0.end_accesses(Call::WinComplete, *rank))?;
        for &rank in &targets {
            self.0.ask(rank, Kind::Complete)?;
        }
        for &rank in &targets {
            self.0.wait_locally(Call::WinComplete, rank)?;
        }
        flushed
    }

    /// Waits until all ranks of the group of [`Window::post`] have completed their accesses: MPI_Win_wait.
    ///
    /// # Errors
    /// As [`Window::post`].
    pub fn wait(&self) -> Result<(), Error> {
        let origins = self.0.state().epochs.exposed_to("wait")?;
        for &rank in &origins {
            if let Some(direct) = &self.0.direct {
                self.0.await_signal(direct, Call::WinWait, (rank, Signal::Complete))?;
                continue;
            }
            self.0.wait_until(Call::WinWait, rank, |state| {
                let completes = &mut state.peers[rank as usize].completes;
                completes.checked_sub(1).map(|left| *completes = left)
            })?;
        }
        self.0.end_exposure(&origins)
    }

    /// Returns whether all ranks of the group of [`Window::post`] have completed their accesses, and ends the exposure
    /// then: MPI_Win_test.
    ///
    /// # Errors
    /// As [`Window::post`].
    pub fn test(&self) -> Result<bool, Error> {
        let origins = self.0.state().epochs.exposed_to("test")?;
        self.0.communicator.device().progress()?;
        if let Some(direct) = &self.0.direct {
            if self.0.take_signals(direct, &origins, Signal::Complete) {
                return self.0.end_exposure(&origins).map(|()| true);
            }
            origins.into_iter().try_for_each(|rank| self.0.check_alive(rank))?;
            return Ok(false);
        }
        let mut state = self.0.state();
        let State { peers, .. } = &mut *state;
        let have_all = origins.iter().all(|rank| peers[*rank as usize].completes > 0);
        if have_all {
            origins.iter().for_each(|rank| peers[*rank as usize].completes -= 1);
            drop(state);
            return self.0.end_exposure(&origins).map(|()| true);
        }
        let missing = origins.iter().filter(|rank| peers[**rank as usize].completes == 0);
        missing.copied().try_for_each(|rank| self.0.check_alive(rank))?;
        Ok(false)
    }

    /// Locks the window of a rank: MPI_Win_lock. Without `checks` (MPI_MODE_NOCHECK) no other rank has or asks for a lock
    /// that excludes this one, so the target is not asked.
    ///
    /// # Errors
    /// As [`Window::post`]; [`Error::Group`] if there is no such rank.
    pub fn lock(&self, kind: LockKind, rank: u32, checks: bool) -> Result<(), Error> {
        let is_quick = checks
            && self.0.direct.as_ref().is_some_and(|direct| direct.has(rank))
            && self.0.open.lock(rank);
        if !is_quick {
            self.0.exposed(rank)?;
            self.0.epochs(|epochs| epochs.lock(rank, checks))?;
        }
        let locked = if checks { self.0.lock(kind, rank) } else { Ok(()) };
        locked.inspect_err(|_| {
            if let Some(direct) = &self.0.direct {
                // Best effort: the epoch ends in any case.
                let _ = self.0.unlock_directly(direct, rank);
                let _ = self.0.epochs(|epochs| epochs.unlock(rank));
            }
        })
    }

    /// Gives the lock of a rank's window back, when all operations there have been carried out: MPI_Win_unlock.
    ///
    /// # Errors
    /// As [`Window::fence`].
    pub fn unlock(&self, rank: u32) -> Result<(), Error> {
        let quickly = |direct: &&Direct| direct.has(rank) && self.0.open.unlock(rank);
        if let Some(direct) = self.0.direct.as_ref().filter(quickly) {
            return self.0.end_lock(direct, rank);
        }
        self.0.exposed(rank)?;
        let is_asked = self.0.epochs(|epochs| epochs.unlock(rank))?;
        self.0.forget(Some(rank));
        match (is_asked, &self.0.direct) {
            (true, Some(direct)) => self.0.end_lock(direct, rank),
            (true, None) => {
                let number = self.0.ask(rank, Kind::Unlock)?;
                self.0.settle(Call::WinUnlock, rank, number)
            }
            (false, _) => self.0.flush(Call::WinUnlock, [rank]),
        }
    }

    /// Locks the windows of all ranks, shared: MPI_Win_lock_all. `checks` is as for [`Window::lock`]. Most targets are
    /// asked when the first operation needs it.
    ///
    /// # Errors
    /// As [`Window::lock`].
    pub fn lock_all(&self, checks: bool) -> Result<(), Error> {
        let own = self.rank();
        let (asked, ranks) = match (checks, &self.0.direct) {
            (false, _) => (Asked::None, 0..0),
            (true, Some(_)) => (Asked::All, self.all()),
            (true, None) => (Asked::These([own].into()), own..own + 1),
        };
        self.0.epochs(|epochs| epochs.lock_all(asked))?;
        let locked = ranks.into_iter().try_for_each(|rank| self.0.lock(LockKind::Shared, rank));
        locked.inspect_err(|_| {
            if self.0.direct.is_some() {
                // As for one. Those that it does not have are left as they are.
                let _ = self.unlock_all();
            }
        })
    }

    /// Gives all locks of [`Window::lock_all`] back: MPI_Win_unlock_all.
    ///
    /// # Errors
    /// As [`Window::fence`].
    pub fn unlock_all(&self) -> Result<(), Error> {
        let asked = self.0.epochs(|epochs| epochs.unlock_all())?;
        self.0.forget(None);
        let asked = match (asked, &self.0.direct) {
            (Asked::All, Some(direct)) => {
                let ended = direct.finish_batches(self.all());
                let unlock = |rank| self.0.unlock_directly(direct, rank);
                return ended.and(first_error(self.all().map(unlock)));
            }
            (Asked::These(asked), _) => asked,
            (Asked::None | Asked::All, _) => BTreeSet::new(),
        };
        let flushed =
            self.0.flush(Call::WinUnlock, self.all().filter(|rank| !asked.contains(rank)));
        let numbers = asked.into_iter().map(|rank| Ok((rank, self.0.ask(rank, Kind::Unlock)?)));
        let numbers = numbers.collect::<Result<Vec<_>, Error>>()?;
        let each =
            numbers.into_iter().map(|(rank, number)| self.0.settle(Call::WinUnlock, rank, number));
        first_error(each.chain([flushed]))
    }

    /// Waits until all operations on the window of a rank, or of all, have been carried out: MPI_Win_flush,
    /// MPI_Win_flush_all.
    ///
    /// # Errors
    /// As [`Window::unlock`].
    #[inline]
    pub fn flush(&self, rank: Option<u32>) -> Result<(), Error> {
        if let (Some(direct), Some(rank)) = (&self.0.direct, rank) {
            if direct.has(rank) && self.0.open.is_locked(rank) {
                direct.finish_batch(rank)?;
                return self.0.order_memory();
            }
        }
        self.flush_otherwise(rank)
    }

    /// Flushes where the epochs have to be asked.
    fn flush_otherwise(&self, rank: Option<u32>) -> Result<(), Error> {
        let call = if rank.is_some() { "flush" } else { "flush_all" };
        self.check_flush(call, rank)?;
        let flushed = match rank {
            Some(rank) => self.0.flush(Call::WinFlush, [rank]),
            None => self.0.flush(Call::WinFlush, self.all()),
        };
        self.0.forget(rank);
        flushed
    }

    /// Waits until the buffers of all operations on the window of a rank, or of all, are free, and results are there:
    /// MPI_Win_flush_local, MPI_Win_flush_local_all.
    ///
    /// # Errors
    /// As [`Window::unlock`].
    pub fn flush_local(&self, rank: Option<u32>) -> Result<(), Error> {
        let call = if rank.is_some() { "flush_local" } else { "flush_local_all" };
        self.check_flush(call, rank)?;
        self.settle_local(rank)
    }

    /// Does what [`Window::flush_local`] does in an epoch of any kind, or in none. Whatever it returns, no buffer of
    /// operations without requests is in use afterwards.
    ///
    /// # Errors
    /// [`WindowError::Refused`]; [`Error::Group`] if there is no such rank; the loss of a member; what made the device
    /// unusable.
    pub fn settle_local(&self, rank: Option<u32>) -> Result<(), Error> {
        rank.map_or(Ok(()), |rank| self.0.exposed(rank).map(drop))?;
        let ranks = rank.map_or(self.all(), |rank| rank..rank + 1);
        let settled = match &self.0.direct {
            // DW3. A program may poll the memory until messages of its own have left.
            Some(direct) => {
                let ended = direct.finish_batches(ranks);
                ended.and(self.0.progress_sometimes())
            }
            None => first_error(ranks.map(|rank| self.0.wait_locally(Call::WinFlush, rank))),
        };
        if let Some(mut log) = self.0.log() {
            log.settle(rank, self.0.sent());
        }
        settled
    }

    fn check_flush(&self, call: &'static str, rank: Option<u32>) -> Result<(), Error> {
        rank.map_or(Ok(()), |rank| self.0.exposed(rank).map(drop))?;
        Ok(self.0.epochs(|epochs| epochs.flush(call, rank))?)
    }

    /// Orders this rank's accesses to its memory with those of other ranks, and carries out what has arrived:
    /// MPI_Win_sync.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn sync(&self) -> Result<(), Error> {
        fence(Ordering::SeqCst);
        Ok(self.0.communicator.device().progress()?)
    }

    fn all(&self) -> std::ops::Range<u32> {
        0..self.0.communicator.size()
    }

    fn ranks_of(&self, group: &Group) -> Result<Vec<u32>, Error> {
        let own = self.group();
        let ranks = group.iter().map(|rank| own.rank_of(rank).ok_or(Error::NotMember { rank }));
        ranks.collect()
    }
}

/// Accesses that conflict (WN1).
impl Inner {
    /// Forgets the accesses to a target, or to all.
    fn forget(&self, target: Option<u32>) {
        if let Some(mut log) = self.log() {
            log.forget(target);
        }
    }

    /// Takes the accesses to each of these targets, or to all, before anything is sent; nothing if they are not noted.
    fn accesses(&self, targets: impl IntoIterator<Item = Option<u32>>) -> Vec<Vec<u64>> {
        if self.log.is_none() {
            return Vec::new();
        }
        let sent = self.sent();
        let Some(mut log) = self.log() else { return Vec::new() };
        targets.into_iter().map(|target| log.take(target, sent)).collect()
    }

    /// Compares the accesses of all ranks since the last fence. Returns the conflict as the inner error.
    fn compare_all(&self, mut words: Vec<u64>) -> Result<Result<(), Error>, Error> {
        let gather = |words| self.communicator.gather_words(Call::WinFence, words);
        let lens = gather(vec![words.len() as u64])?;
        let most = lens.into_iter().max().unwrap_or(0).min(MOST_WORDS as u64) as usize;
        if most == 0 {
            return Ok(Ok(()));
        }
        words.resize(most, 0);
        let all = gather(words)?;
        Ok(self.compare((0..).zip(all.chunks_exact(most))))
    }

    /// Ends the exposure to ranks that have completed their accesses, and compares these.
    fn end_exposure(&self, origins: &[u32]) -> Result<(), Error> {
        let mut all = Vec::new();
        for &rank in origins.iter().filter(|_| self.log.is_some()) {
            let told = self.wait_until(Call::WinWait, rank, |state| {
                state.peers[rank as usize].accesses.pop_front()
            })?;
            all.push((rank, told));
        }
        self.epochs(Epochs::waited);
        self.compare(all.iter().map(|(rank, words)| (*rank, &**words)))
    }

    fn compare<'w>(
        &self,
        of_ranks: impl IntoIterator<Item = (u32, &'w [u64])>,
    ) -> Result<(), Error> {
        let conflict = self.log().and_then(|log| log.compare(of_ranks));
        conflict.map_or(Ok(()), |conflict| Err(Error::Conflict(Box::new(conflict))))
    }
}

impl Inner {
    /// Asks a rank for the lock of its window, and waits where the program may access the memory directly (OW3).
    pub(super) fn lock(&self, kind: LockKind, rank: u32) -> Result<(), Error> {
        if let Some(direct) = &self.direct {
            return self.lock_directly(direct, kind, rank);
        }
        let is_own = rank == self.communicator.rank();
        let answers = is_own || self.reaches(rank);
        let exclusive = kind == LockKind::Exclusive;
        let number = self.ask(rank, Kind::Lock { exclusive, answers })?;
        if is_own { self.settle(Call::WinLock, rank, number) } else { Ok(()) }
    }

    /// Ends the operations on a rank, and gives its lock back, also if they have failed.
    fn end_lock(&self, direct: &Direct, rank: u32) -> Result<(), Error> {
        if let Err(why) = direct.finish_batch(rank) {
            let _ = self.unlock_directly(direct, rank);
            return Err(why);
        }
        self.unlock_directly(direct, rank)?;
        self.progress_sometimes()
    }

    /// Sends a message that names no place, and returns its number.
    pub(super) fn ask(&self, rank: u32, kind: Kind) -> Result<u64, Error> {
        self.end_accesses(Call::WinFlush, rank)?;
        let mut state = self.state();
        let peer = &mut state.peers[rank as usize];
        let number = peer.next();
        match kind {
            Kind::Complete => peer.completed = number,
            Kind::Lock { .. } => peer.locked = number,
            _ => {}
        }
        if matches!(kind, Kind::Flush | Kind::Unlock) {
            (peer.asked, peer.is_open) = (number, false);
            peer.awaited.push_back(number);
        }
        drop(state);
        self.post(rank, Head::alone(kind, number)).inspect_err(|why| self.give_up(why))?;
        Ok(number)
    }

    /// Orders accesses to memory before and after a flush (DW3).
    fn order_memory(&self) -> Result<(), Error> {
        fence(Ordering::SeqCst);
        self.progress_sometimes()
    }

    /// Waits until all operations on the windows of these ranks have been carried out.
    fn flush(&self, call: Call, ranks: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        if let Some(direct) = &self.direct {
            let ended = direct.finish_batches(ranks);
            return ended.and(self.order_memory());
        }
        let mut asked = Vec::new();
        for rank in ranks {
            self.end_accesses(call, rank)?;
            // Another thread may have asked before.
            let Peer { is_open, asked: before, .. } = self.state().peers[rank as usize];
            asked.push((rank, if is_open { self.ask(rank, Kind::Flush)? } else { before }));
        }
        first_error(asked.into_iter().map(|(rank, number)| self.settle(call, rank, number)))
    }

    /// Waits until a rank has carried out the messages up to this one.
    pub(super) fn settle_up_to(&self, call: Call, rank: u32, number: u64) -> Result<(), Error> {
        let is_done = |state: &mut State| state.peers[rank as usize].done >= number;
        self.wait_until(call, rank, |state| is_done(state).then_some(()))
    }

    /// Waits until a rank has carried out the messages up to this one, and the data of gets from it are here.
    fn settle(&self, call: Call, rank: u32, number: u64) -> Result<(), Error> {
        self.wait_until(call, rank, |state| {
            let peer = &state.peers[rank as usize];
            peer.has_answered(number).then_some(())
        })?;
        self.refusal(rank)
    }

    /// Waits until the buffers of operations on a rank are free, and results are there.
    fn wait_locally(&self, call: Call, rank: u32) -> Result<(), Error> {
        let sent = self.state().peers[rank as usize].sent;
        self.end_accesses(call, rank)?;
        let is_local = |state: &mut State| state.peers[rank as usize].is_local_to(sent);
        self.wait_until(call, rank, |state| is_local(state).then_some(()))?;
        self.refusal(rank)
    }

    /// Returns the error of operations that a rank has refused, or whose results were dropped (OW4).
    fn refusal(&self, rank: u32) -> Result<(), Error> {
        let mut state = self.state();
        if let Some(why) = &state.given_up {
            return Err(why.clone());
        }
        let is_refused = std::mem::take(&mut state.peers[rank as usize].is_refused);
        if is_refused { Err(WindowError::Refused { rank }.into()) } else { Ok(()) }
    }

    /// Waits until `ready` returns something, which needs what a rank does.
    pub(super) fn wait_until<R>(
        &self,
        call: Call,
        rank: u32,
        mut ready: impl FnMut(&mut State) -> Option<R>,
    ) -> Result<R, Error> {
        let device = self.communicator.device();
        let mut found = None;
        for _ in 0..looks(device) {
            found = ready(&mut self.state());
            if found.is_some() {
                break;
            }
            device.progress().map_err(Error::from).inspect_err(|why| self.give_up(why))?;
        }
        while found.is_none() {
            self.wait_once(call, rank, |state| {
                found = ready(state);
                Ok(found.is_some())
            })?;
        }
        Ok(found.expect("the loop has ended"))
    }

    /// Waits until something changes, which needs what a rank does, unless `is_ready`.
    pub(super) fn wait_once(
        &self,
        call: Call,
        rank: u32,
        is_ready: impl FnOnce(&mut State) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let device = self.communicator.device();
        let peer = self.communicator.group().job_rank(rank)? as usize;
        let mut state = self.state();
        if is_ready(&mut state)? {
            return Ok(());
        }
        let begun = device.begin_with(call, self.waits(), 0, peer);
        let waited = begun.and_then(|(request, ending)| {
            state.waiting.push(ending);
            drop(state);
            let _within = Within::call(call);
            device.iwait(request)
        });
        waited.map_err(Error::from).inspect_err(|why| self.give_up(why))?;
        Ok(())
    }

    /// Ends the use of buffers after a loss, before the program learns of it (OW4): drops the places of short gets
    /// without requests, and waits for transfers of long data, all of which the loss ends. `why` is the error.
    pub(super) fn give_up(&self, why: &Error) {
        let device = self.communicator.device();
        loop {
            let mut state = self.state();
            let gets = state.gets.values_mut().filter(|get| get.ending.is_none());
            if gets.filter_map(|get| get.into.take()).count() > 0 {
                state.given_up.get_or_insert_with(|| why.clone());
            }
            if state.transfers == 0 {
                return;
            }
            // A device that has failed uses no buffer.
            let begun = device.begin(Call::WinFlush, self.waits(), 0);
            let Ok((request, ending)) = begun else { return };
            state.waiting.push(ending);
            drop(state);
            let _within = Within::call(Call::WinFlush);
            if device.iwait(request).is_err() {
                return;
            }
        }
    }
}

/// Returns the first error, after all have been waited for.
pub(super) fn first_error(outcomes: impl Iterator<Item = Result<(), Error>>) -> Result<(), Error> {
    outcomes.fold(Ok(()), Result::and)
}
