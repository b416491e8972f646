//! The epochs of a window on this rank: which calls its program may make (MPI-4.1 section 12.5).
//!
//! - WE1: a rank has at most one kind of access epoch at a time: between fences, between start and complete, or locks. It
//!   may expose its window by post at the same time. After a fence, an epoch is open only once it was used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::error::WindowError;

/// The epochs that are open.
#[derive(Debug, Default)]
pub(super) struct Epochs {
    access: Access,
    /// The ranks for which the window is exposed, after a post.
    exposed_to: Option<Vec<u32>>,
}

/// What [`Epochs::open`] says, in a word that any thread reads: one target or [`ALL`], locked or not. It is for the short
/// paths of operations that an epoch allows; others ask the epochs.
///
/// - WE2: while no access epoch is open, the word may be [`IDLE`]. A lock of one target then needs the word alone, which
///   says that it is [`QUICK`], and so does its unlock. Whoever asks the epochs takes the word away first, and tells them
///   of such a lock; they set it again. So at any time one of the two knows the lock.
#[derive(Debug, Default)]
pub(super) struct Open {
    word: AtomicU32,
    /// Whether there were operations since the epochs were asked last.
    is_used: AtomicBool,
}

/// All targets.
const ALL: u32 = (u32::MAX >> TARGET) - 1;

/// The place of a target, plus 1, in the word of [`Open`], and what stands below it. No bit means that the epochs have to be
/// asked.
const TARGET: u32 = 2;
const LOCKED: u32 = 1;
const QUICK: u32 = 2;

/// The word if no access epoch is open.
const IDLE: u32 = QUICK;

impl Open {
    /// Sets what operations may access: the result of [`Epochs::open`].
    pub fn set(&self, word: u32) {
        self.word.store(word, Ordering::Relaxed);
    }

    /// Returns whether an operation may access this target, and notes that there is one.
    #[inline]
    pub fn admits(&self, target: u32) -> bool {
        let place = self.word.load(Ordering::Relaxed) >> TARGET;
        let is_open = place == target.wrapping_add(1) || place == ALL + 1;
        if is_open && !self.is_used.load(Ordering::Relaxed) {
            self.is_used.store(true, Ordering::Relaxed);
        }
        is_open
    }

    /// Returns whether this target is locked.
    #[inline]
    pub fn is_locked(&self, target: u32) -> bool {
        let word = self.word.load(Ordering::Relaxed);
        let place = word >> TARGET;
        word & LOCKED > 0 && (place == target.wrapping_add(1) || place == ALL + 1)
    }

    /// Locks a target that there is, if no access epoch is open (WE2).
    #[inline]
    pub fn lock(&self, target: u32) -> bool {
        self.replace(IDLE, word_of(target, LOCKED | QUICK))
    }

    /// Unlocks a target that there is, if [`Open::lock`] has locked it and nobody has asked the epochs since.
    #[inline]
    pub fn unlock(&self, target: u32) -> bool {
        self.replace(word_of(target, LOCKED | QUICK), IDLE)
    }

    #[inline]
    fn replace(&self, from: u32, to: u32) -> bool {
        self.word.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Takes the word away, and tells the epochs what they do not know: that a target is locked, and that there were
    /// operations.
    pub fn tell(&self, epochs: &mut Epochs) {
        let word = self.word.swap(0, Ordering::Relaxed);
        if word & (LOCKED | QUICK) == LOCKED | QUICK {
            epochs.was_locked((word >> TARGET) - 1);
        }
        if self.is_used.swap(false, Ordering::Relaxed) {
            epochs.were_used();
        }
    }
}

/// The word of [`Open`] for a target, or for all.
fn word_of(target: u32, how: u32) -> u32 {
    (target + 1) << TARGET | how
}

#[derive(Debug, Default)]
enum Access {
    #[default]
    None,
    /// After a fence, and whether anything was accessed since.
    Fence { is_used: bool },
    /// After a start, the targets.
    Started(BTreeSet<u32>),
    /// The targets that are locked, each with whether it was asked for the lock.
    Locked(Targets),
    /// All targets are locked.
    AllLocked(Asked),
}

/// Targets that are locked, each with whether it was asked for the lock. Most programs lock one at a time, for which no
/// memory is allocated.
#[derive(Debug, Default)]
struct Targets {
    first: Option<(u32, bool)>,
    more: BTreeMap<u32, bool>,
}

impl Targets {
    fn of(target: u32, is_asked: bool) -> Self {
        Self { first: Some((target, is_asked)), more: BTreeMap::new() }
    }

    fn contains(&self, target: u32) -> bool {
        self.first.is_some_and(|(first, _)| first == target) || self.more.contains_key(&target)
    }

    /// Returns the only one.
    fn only(&self) -> Option<u32> {
        self.first.filter(|_| self.more.is_empty()).map(|(first, _)| first)
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.more.is_empty()
    }

    fn insert(&mut self, target: u32, is_asked: bool) {
        match self.first {
            None => self.first = Some((target, is_asked)),
            Some(_) => {
                self.more.insert(target, is_asked);
            }
        }
    }

    fn remove(&mut self, target: u32) -> Option<bool> {
        match self.first {
            Some((first, is_asked)) if first == target => {
                self.first = None;
                Some(is_asked)
            }
            _ => self.more.remove(&target),
        }
    }
}

/// Which targets were asked for the lock, of all.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// None, and none will be.
    None,
    /// These; the others are asked when an operation needs it.
    These(BTreeSet<u32>),
    /// All.
    All,
}

fn refused(call: &'static str, why: &'static str) -> WindowError {
    WindowError::Sync { call, why }
}

/// Why a call is refused that a passive epoch needs.
const NOT_LOCKED: &str = "the target is not locked; call lock or lock_all before";

impl Epochs {
    /// Begins an operation on a target. Returns whether the target is to be asked for a shared lock before.
    ///
    /// # Errors
    /// As [`Epochs::check`].
    pub fn operate(
        &mut self,
        call: &'static str,
        target: u32,
        with_request: bool,
    ) -> Result<bool, WindowError> {
        self.check(call, target, with_request)?;
        Ok(match &mut self.access {
            Access::Fence { is_used } => {
                *is_used = true;
                false
            }
            Access::AllLocked(Asked::These(asked)) => asked.insert(target),
            _ => false,
        })
    }

    /// Checks an operation on a target.
    ///
    /// # Errors
    /// [`WindowError::Sync`] outside of an access epoch; for an operation with a request, outside of locks.
    pub fn check(
        &self,
        call: &'static str,
        target: u32,
        with_request: bool,
    ) -> Result<(), WindowError> {
        if with_request && !self.is_passive() {
            return Err(refused(
                call,
                "operations with requests need a lock; call lock or lock_all before",
            ));
        }
        match &self.access {
            Access::Fence { .. } | Access::AllLocked(_) => Ok(()),
            Access::Started(targets) if targets.contains(&target) => Ok(()),
            Access::Started(_) => Err(refused(call, "the target is not in the group of start")),
            Access::Locked(targets) if targets.contains(target) => Ok(()),
            Access::Locked(_) => Err(refused(call, NOT_LOCKED)),
            Access::None => {
                Err(refused(call, "no epoch is open; call fence, start, lock or lock_all before"))
            }
        }
    }

    /// Returns whether a target needs no message that asks for a lock, or was sent it.
    pub fn is_asked(&self, target: u32) -> bool {
        match &self.access {
            Access::AllLocked(Asked::These(asked)) => asked.contains(&target),
            _ => true,
        }
    }

    /// Returns whether targets are locked.
    pub fn is_passive(&self) -> bool {
        matches!(self.access, Access::Locked(_) | Access::AllLocked(_))
    }

    /// Notes that a target was locked, and asked for the lock, while no access epoch was open.
    fn was_locked(&mut self, target: u32) {
        self.access = Access::Locked(Targets::of(target, true));
    }

    /// Notes that there were operations, which did not ask here.
    fn were_used(&mut self) {
        if let Access::Fence { is_used } = &mut self.access {
            *is_used = true;
        }
    }

    /// Returns which targets operations may access, and flushes may name, without asking here: for [`Open::set`].
    pub fn open(&self) -> u32 {
        match &self.access {
            Access::None => IDLE,
            Access::AllLocked(Asked::None | Asked::All) => word_of(ALL, LOCKED),
            Access::Locked(targets) => targets.only().map_or(0, |target| word_of(target, LOCKED)),
            Access::Started(targets) if targets.len() == 1 => {
                targets.first().map_or(0, |target| word_of(*target, 0))
            }
            Access::Fence { .. } => word_of(ALL, 0),
            _ => 0,
        }
    }

    /// Checks that no access epoch is open, before another one.
    fn begin(&self, call: &'static str) -> Result<(), WindowError> {
        match &self.access {
            Access::None | Access::Fence { is_used: false } => Ok(()),
            Access::Fence { .. } => {
                Err(refused(call, "operations follow a fence; call fence before"))
            }
            Access::Started(_) => {
                Err(refused(call, "an epoch of start is open; call complete before"))
            }
            Access::Locked(_) | Access::AllLocked(_) => {
                Err(refused(call, "a lock is held; call unlock or unlock_all before"))
            }
        }
    }

    /// A fence begins. Returns whether there were operations since the last one.
    pub fn check_fence(&self) -> Result<bool, WindowError> {
        if self.exposed_to.is_some() {
            return Err(refused("fence", "the window is exposed; call wait before"));
        }
        match self.access {
            Access::Fence { is_used } => Ok(is_used),
            _ => self.begin("fence").map(|()| false),
        }
    }

    /// A fence has ended.
    pub fn fenced(&mut self, succeeds: bool) {
        self.access = if succeeds { Access::Fence { is_used: false } } else { Access::None };
    }

    /// Opens an access epoch for a group.
    pub fn start(&mut self, targets: impl IntoIterator<Item = u32>) -> Result<(), WindowError> {
        self.begin("start")?;
        self.access = Access::Started(targets.into_iter().collect());
        Ok(())
    }

    /// Ends the access epoch of start. Returns its targets.
    pub fn complete(&mut self) -> Result<BTreeSet<u32>, WindowError> {
        match std::mem::take(&mut self.access) {
            Access::Started(targets) => Ok(targets),
            other => {
                self.access = other;
                Err(refused("complete", "no epoch of start is open"))
            }
        }
    }

    /// Exposes the window.
    pub fn post(&mut self, origins: Vec<u32>) -> Result<(), WindowError> {
        if self.exposed_to.is_some() {
            return Err(refused("post", "the window is exposed already; call wait before"));
        }
        if let Access::Fence { is_used: true } = self.access {
            return Err(refused("post", "operations follow a fence; call fence before"));
        }
        self.exposed_to = Some(origins);
        Ok(())
    }

    /// Returns the ranks to which the window is exposed.
    pub fn exposed_to(&self, call: &'static str) -> Result<Vec<u32>, WindowError> {
        self.exposed_to.clone().ok_or(refused(call, "the window is not exposed; call post before"))
    }

    /// Ends the exposure.
    pub fn waited(&mut self) {
        self.exposed_to = None;
    }

    /// Locks a target, and notes whether it is asked for the lock.
    pub fn lock(&mut self, target: u32, is_asked: bool) -> Result<(), WindowError> {
        match &mut self.access {
            Access::Locked(targets) if targets.contains(target) => {
                return Err(refused("lock", "the target is locked already; call unlock before"));
            }
            Access::Locked(targets) => {
                targets.insert(target, is_asked);
                return Ok(());
            }
            _ => self.begin("lock")?,
        }
        self.access = Access::Locked(Targets::of(target, is_asked));
        Ok(())
    }

    /// Locks all targets.
    pub fn lock_all(&mut self, asked: Asked) -> Result<(), WindowError> {
        self.begin("lock_all")?;
        self.access = Access::AllLocked(asked);
        Ok(())
    }

    /// Unlocks a target. Returns whether it was asked for the lock.
    pub fn unlock(&mut self, target: u32) -> Result<bool, WindowError> {
        let Access::Locked(targets) = &mut self.access else {
            return Err(refused("unlock", NOT_LOCKED));
        };
        let is_asked = targets.remove(target).ok_or(refused("unlock", NOT_LOCKED))?;
        if targets.is_empty() {
            self.access = Access::None;
        }
        Ok(is_asked)
    }

    /// Unlocks all targets. Returns those that were asked for the lock.
    pub fn unlock_all(&mut self) -> Result<Asked, WindowError> {
        match std::mem::take(&mut self.access) {
            Access::AllLocked(asked) => Ok(asked),
            other => {
                self.access = other;
                Err(refused("unlock_all", "lock_all was not called before"))
            }
        }
    }

    /// Checks a flush of a target, or of all.
    pub fn flush(&self, call: &'static str, target: Option<u32>) -> Result<(), WindowError> {
        match (&self.access, target) {
            (Access::AllLocked(_), _) | (Access::Locked(_), None) => Ok(()),
            (Access::Locked(targets), Some(target)) if targets.contains(target) => Ok(()),
            _ => Err(refused(call, NOT_LOCKED)),
        }
    }

    /// Returns whether accesses have begun by start.
    pub fn is_started(&self) -> bool {
        matches!(self.access, Access::Started(_))
    }

    /// Checks that no epoch is open, at the end of the window.
    pub fn free(&self) -> Result<(), WindowError> {
        self.begin("free")?;
        self.exposed_to
            .as_ref()
            .map_or(Ok(()), |_| Err(refused("free", "the window is exposed; call wait before")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies calls to a new window, and returns which were refused.
    fn refused_of(calls: &[fn(&mut Epochs) -> bool]) -> Vec<usize> {
        let mut epochs = Epochs::default();
        (0..calls.len()).filter(|at| !calls[*at](&mut epochs)).collect()
    }

    const FENCE: fn(&mut Epochs) -> bool = |epochs| {
        let is_legal = epochs.check_fence().is_ok();
        if is_legal {
            epochs.fenced(true);
        }
        is_legal
    };
    const PUT: fn(&mut Epochs) -> bool = |epochs| epochs.operate("put", 1, false).is_ok();
    const RPUT: fn(&mut Epochs) -> bool = |epochs| epochs.operate("rput", 1, true).is_ok();
    const START: fn(&mut Epochs) -> bool = |epochs| epochs.start([1, 2]).is_ok();
    const START_ELSEWHERE: fn(&mut Epochs) -> bool = |epochs| epochs.start([2]).is_ok();
    const COMPLETE: fn(&mut Epochs) -> bool = |epochs| epochs.complete().is_ok();
    const POST: fn(&mut Epochs) -> bool = |epochs| epochs.post(vec![0]).is_ok();
    const WAIT: fn(&mut Epochs) -> bool = |epochs| {
        let is_legal = epochs.exposed_to("wait").is_ok();
        epochs.waited();
        is_legal
    };
    const LOCK: fn(&mut Epochs) -> bool = |epochs| epochs.lock(1, true).is_ok();
    const LOCK_OTHER: fn(&mut Epochs) -> bool = |epochs| epochs.lock(2, true).is_ok();
    const UNLOCK: fn(&mut Epochs) -> bool = |epochs| epochs.unlock(1).is_ok();
    const LOCK_ALL: fn(&mut Epochs) -> bool =
        |epochs| epochs.lock_all(Asked::These(BTreeSet::new())).is_ok();
    const UNLOCK_ALL: fn(&mut Epochs) -> bool = |epochs| epochs.unlock_all().is_ok();
    const FLUSH: fn(&mut Epochs) -> bool = |epochs| epochs.flush("flush", Some(1)).is_ok();
    const FLUSH_ALL: fn(&mut Epochs) -> bool = |epochs| epochs.flush("flush_all", None).is_ok();
    const FREE: fn(&mut Epochs) -> bool = |epochs| epochs.free().is_ok();

    #[test]
    fn calls_outside_of_their_epochs_are_refused() {
        for call in [PUT, RPUT, COMPLETE, WAIT, UNLOCK, UNLOCK_ALL, FLUSH, FLUSH_ALL] {
            assert_eq!(refused_of(&[call]), [0]);
        }
        assert_eq!(
            refused_of(&[FENCE, PUT, FENCE, PUT, RPUT, FREE, LOCK, START, POST]),
            [4, 5, 6, 7, 8]
        );
        assert_eq!(refused_of(&[FENCE, LOCK, FENCE, UNLOCK, PUT, FREE]), [2, 4]);
        assert_eq!(refused_of(&[START_ELSEWHERE, PUT]), [1]);
        assert_eq!(
            refused_of(&[START, PUT, RPUT, START, LOCK, FENCE, FLUSH, FREE, COMPLETE, FREE]),
            [2, 3, 4, 5, 6, 7]
        );
        assert_eq!(
            refused_of(&[POST, POST, START, FENCE, COMPLETE, FENCE, FREE, WAIT, FREE]),
            [1, 3, 5, 6]
        );
        assert_eq!(
            refused_of(&[LOCK, LOCK, LOCK_OTHER, RPUT, FLUSH, FLUSH_ALL, LOCK_ALL, UNLOCK_ALL]),
            [1, 6, 7]
        );
        assert_eq!(
            refused_of(&[LOCK, UNLOCK, UNLOCK, LOCK_OTHER, FLUSH, PUT, UNLOCK]),
            [2, 4, 5, 6]
        );
        assert_eq!(
            refused_of(&[LOCK_ALL, LOCK, RPUT, FLUSH, UNLOCK, UNLOCK_ALL, UNLOCK_ALL]),
            [1, 4, 6]
        );
    }

    #[test]
    fn the_first_operation_under_lock_all_asks_for_the_lock() {
        let mut epochs = Epochs::default();
        epochs.lock_all(Asked::These(BTreeSet::new())).unwrap();
        assert_eq!(
            [1, 1, 2].map(|target| epochs.operate("get", target, false)),
            [Ok(true), Ok(false), Ok(true)]
        );
        assert_eq!(epochs.unlock_all(), Ok(Asked::These([1, 2].into())));
        epochs.lock_all(Asked::None).unwrap();
        assert_eq!(epochs.operate("get", 1, false), Ok(false));
        assert_eq!(epochs.unlock_all(), Ok(Asked::None));
    }

    #[test]
    fn a_lock_by_the_word_alone_is_known_to_the_epochs_when_they_are_asked() {
        let (open, mut epochs) = (Open::default(), Epochs::default());
        assert!(!open.lock(3), "the epochs have not been asked");
        open.set(epochs.open());
        assert!(!open.admits(3) && !open.unlock(3));
        assert!(open.lock(3) && !open.lock(3) && !open.lock(4));
        assert!(open.admits(3) && open.is_locked(3) && !open.admits(4) && !open.is_locked(4));
        open.tell(&mut epochs);
        assert!(!open.admits(3) && !open.unlock(3), "the epochs know it alone");
        assert_eq!(epochs.flush("flush", Some(3)), Ok(()));
        open.set(epochs.open());
        assert!(open.is_locked(3) && !open.lock(4) && !open.unlock(3));
        assert_eq!(epochs.unlock(3), Ok(true));
        open.set(epochs.open());
        assert!(open.lock(4) && open.unlock(4) && !open.unlock(4));
        open.tell(&mut epochs);
        assert_eq!(epochs.free(), Ok(()));
    }

    #[test]
    fn words_tell_targets_and_locks_apart() {
        let open = Open::default();
        for target in [0, 1, ALL - 1] {
            for how in [0, LOCKED, LOCKED | QUICK] {
                open.set(word_of(target, how));
                assert!(open.admits(target) && !open.admits(target + 1));
                assert_eq!(open.is_locked(target), how > 0);
            }
            open.set(word_of(ALL, LOCKED));
            assert!(open.admits(target) && open.is_locked(target));
            open.set(IDLE);
            assert!(!open.admits(target) && !open.is_locked(target));
        }
    }
}
