//! A bare futex: what the kernel takes to wake a process is a lower bound for a message to a rank that sleeps.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use crate::runtime::Failure;

/// A word that one process changes and another sleeps on. 128 bytes, because lines are fetched in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Futex(AtomicU32);

impl Futex {
    /// Returns the value.
    pub fn value(&self) -> u32 {
        self.0.load(Ordering::Acquire) // SYNC: bare futex
    }

    /// Sleeps until the value differs from `value`. Returns whether it was woken, or `false` if the value differed
    /// before it slept.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn wait_while(&self, value: u32) -> Result<bool, Failure> {
        let mut woken = false;
        while self.value() == value {
            match futex::wait(&self.0, Flags::empty(), value, None) {
                Ok(()) => woken = true,
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(failed("wait for", error)),
            }
        }
        Ok(woken)
    }

    /// Changes the value and wakes the process that sleeps on it.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn wake(&self) -> Result<(), Failure> {
        self.0.fetch_add(1, Ordering::Release); // SYNC: bare futex
        futex::wake(&self.0, Flags::empty(), 1).map(drop).map_err(|error| failed("wake", error))
    }
}

fn failed(what: &str, error: Errno) -> Failure {
    Failure::new(format_args!("cannot {what} the other side of a futex: {error}"))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn one_side_wakes_the_other_again_and_again() {
        let (ball, back) = (Futex::default(), Futex::default());
        thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..100 {
                    ball.wait_while(turn).expect("the kernel waits");
                    back.wake().expect("the kernel wakes");
                }
            });
            for turn in 0..100 {
                ball.wake().expect("the kernel wakes");
                back.wait_while(turn).expect("the kernel waits");
            }
        });
        assert_eq!((ball.value(), back.value()), (100, 100));
        assert!(!ball.wait_while(99).expect("it does not wait"), "nobody woke it");
    }
}
