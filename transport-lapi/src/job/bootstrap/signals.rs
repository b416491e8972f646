//! Signals as readable events, for the launcher's event loop. There are no signal handlers.
//!
//! - SI1: the signals are blocked in the thread that made [`Signals`], and in every thread that it starts afterwards;
//!   they stay pending until read. An ignored signal stays ignored, as `nohup` and background jobs of a shell expect,
//!   unless it was asked for `in_any_case`.
//! - SI2: the previous mask is restored when [`Signals`] is dropped, on the same thread (it is not `Send`), and in each
//!   rank before exec.
//! - SI3: an unread SIGXFSZ is discarded then. The call that made a file too large has already returned the error;
//!   unlike other signals, this one means nothing to later code.

#![expect(unsafe_code, reason = "signal masks and signalfd are libc calls")]

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::Signal;

/// The signal mask that the process was started with.
#[derive(Clone, Copy)]
pub struct Mask(libc::sigset_t);

impl Mask {
    /// Sets this as the calling thread's mask. Async-signal-safe (SP1 of [`super::spawn`]).
    pub(super) fn restore(&self) -> io::Result<()> {
        // SAFETY: reads an initialised set; the old mask is not asked for.
        let answer =
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
        if answer == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(answer)) }
    }
}

impl std::fmt::Debug for Mask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mask")
    }
}

/// A set of signals, blocked and readable. Use it through [`AsFd`] in a poll set.
#[derive(Debug)]
pub struct Signals {
    descriptor: OwnedFd,
    before: Mask,
    this_thread: PhantomData<*const ()>,
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl Signals {
    /// Blocks `signals` in this thread and makes them readable, except those that this process ignores (SI1). A blocked
    /// signal is kept and read even if it is ignored: so those of `in_any_case` are readable, and a rank still inherits
    /// that they are ignored.
    ///
    /// # Errors
    /// The error of the system if it has no descriptor left.
    pub fn block(signals: &[Signal], in_any_case: &[Signal]) -> io::Result<Self> {
        let heeded = signals.iter().copied().filter(|s| !is_ignored(*s));
        let heeded: Vec<Signal> = heeded.chain(in_any_case.iter().copied()).collect();
        let set = set_of(&heeded);
        let mut before = MaybeUninit::uninit();
        // SAFETY: `set` is initialised, `before` is room for one set.
        let answer = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, before.as_mut_ptr()) };
        if answer != 0 {
            return Err(io::Error::from_raw_os_error(answer));
        }
        // SAFETY: the call succeeded, so it has written the old mask.
        let before = Mask(unsafe { before.assume_init() });
        // SAFETY: `set` is initialised; -1 asks for a new descriptor.
        let number = unsafe { libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if number == -1 {
            let refused = io::Error::last_os_error();
            before.restore()?;
            return Err(refused);
        }
        // SAFETY: the number is new, and nobody else owns it.
        let descriptor = unsafe { OwnedFd::from_raw_fd(number) };
        Ok(Self { descriptor, before, this_thread: PhantomData })
    }

    /// Returns the mask from before, for the ranks (SI2).
    pub fn mask_before(&self) -> Mask {
        self.before
    }

    /// Returns the next pending signal without waiting.
    pub fn next_pending(&self) -> Option<Signal> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        loop {
            match rustix::io::read(&self.descriptor, &mut info) {
                Ok(_) => break,
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
        let number = u32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
        Signal::from_named_raw(number as i32)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        let set = set_of(&[Signal::XFSZ]);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: reads an initialised set and time; asks for no details of the signal.
        unsafe { libc::sigtimedwait(&set, std::ptr::null_mut(), &now) };
        self.before.restore().expect("a mask that was in force is legal");
    }
}

/// Lets this process wait for its children even if it was started with SIGCHLD ignored; the kernel would then discard
/// their exit states.
pub fn keep_children_waitable() {
    // SAFETY: the default action runs no code.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Blocks in this thread every signal that can be blocked. Async-signal-safe.
pub(super) fn block_all() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: initialises the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: initialised above; the old mask is not asked for. A set of all signals is legal.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), std::ptr::null_mut()) };
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: only asks: sets nothing, and `action` is room for the answer.
    let answer = unsafe { libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call succeeded, so it has written the action.
    answer == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: initialises the set that it is given.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    for signal in signals {
        // SAFETY: the set is initialised; a `Signal` is a legal number.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal.as_raw()) };
    }
    // SAFETY: initialised above.
    unsafe { set.assume_init() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raise(signal: Signal) {
        // SAFETY: the signal is blocked in this thread, so it stays pending.
        assert_eq!(unsafe { libc::raise(signal.as_raw()) }, 0);
    }

    #[test]
    fn blocked_signals_are_read_one_by_one() {
        let signals = Signals::block(&[Signal::USR1, Signal::USR2], &[]).expect("signalfd");
        assert_eq!(signals.next_pending(), None);
        raise(Signal::USR1);
        assert_eq!(signals.next_pending(), Some(Signal::USR1));
        raise(Signal::USR2);
        assert_eq!(signals.next_pending(), Some(Signal::USR2));
        assert_eq!(signals.next_pending(), None);
    }

    #[test]
    fn an_ignored_signal_is_read_if_it_is_to_be_in_any_case() {
        // SAFETY: ignoring a signal runs no code.
        unsafe { libc::signal(libc::SIGWINCH, libc::SIG_IGN) };
        let signals = Signals::block(&[Signal::WINCH], &[]).expect("signalfd");
        raise(Signal::WINCH);
        assert_eq!(signals.next_pending(), None);
        drop(signals);
        let signals = Signals::block(&[], &[Signal::WINCH]).expect("signalfd");
        raise(Signal::WINCH);
        assert_eq!(signals.next_pending(), Some(Signal::WINCH));
    }

    #[test]
    fn a_file_that_grew_too_large_ends_nobody_afterwards() {
        let signals = Signals::block(&[Signal::XFSZ], &[]).expect("signalfd");
        raise(Signal::XFSZ);
        drop(signals);
        assert_eq!(Signals::block(&[Signal::XFSZ], &[]).expect("signalfd").next_pending(), None);
    }

    #[test]
    fn dropping_restores_the_mask() {
        let outer = Signals::block(&[Signal::USR2], &[]).expect("signalfd");
        drop(Signals::block(&[Signal::HUP, Signal::USR2], &[]).expect("signalfd"));
        raise(Signal::USR2);
        assert_eq!(outer.next_pending(), Some(Signal::USR2));
        let now = Signals::block(&[], &[]).expect("signalfd").mask_before();
        // SAFETY: both sets are initialised.
        let held =
            [Signal::USR2, Signal::HUP].map(|s| unsafe { libc::sigismember(&now.0, s.as_raw()) });
        assert_eq!(held, [1, 0]);
    }
}
