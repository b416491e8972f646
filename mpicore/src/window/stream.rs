//! The messages of one origin, in the order of their numbers.
//!
//! Several threads of the target may receive messages at once, and a long one is here later than a short one behind it.
//! Messages about windows are carried out in the order of their numbers all the same, by one thread at a time, and not
//! while the origin waits for the lock.

use std::collections::BTreeMap;

/// The messages of an origin that were not carried out yet.
#[derive(Debug)]
pub(super) struct Stream<M> {
    /// The number of the next message; the first one is 1.
    next: u64,
    early: BTreeMap<u64, M>,
    /// Whether a thread carries a message out.
    is_busy: bool,
    /// Whether the origin waits for the lock.
    is_held: bool,
}

impl<M> Default for Stream<M> {
    fn default() -> Self {
        Self { next: 1, early: BTreeMap::new(), is_busy: false, is_held: false }
    }
}

impl<M> Stream<M> {
    /// Adds a message. Returns `false` if there was one with this number.
    fn add(&mut self, number: u64, message: M) -> bool {
        number >= self.next && self.early.insert(number, message).is_none()
    }

    /// Adds a message, and takes the next one if there is one whose turn has come, as [`Stream::take`] does: mostly this
    /// one. `None` if there was one with this number.
    pub fn pass(&mut self, number: u64, message: M) -> Option<Option<M>> {
        if number != self.next || self.is_busy || self.is_held {
            return self.add(number, message).then(|| self.take());
        }
        self.next += 1;
        self.is_busy = true;
        Some(Some(message))
    }

    /// Takes the next message, which the caller carries out before it calls [`Stream::done`]; `None` if there is none, or
    /// if its turn has not come.
    pub fn take(&mut self) -> Option<M> {
        if self.is_busy || self.is_held {
            return None;
        }
        let message = self.early.remove(&self.next)?;
        self.next += 1;
        self.is_busy = true;
        Some(message)
    }

    /// Notes that the message was carried out.
    fn done(&mut self) {
        self.is_busy = false;
    }

    /// Notes that the message was carried out, and takes the next one like [`Stream::take`].
    pub fn take_next(&mut self) -> Option<M> {
        self.done();
        self.take()
    }

    /// Holds later messages back until the origin has the lock, or lets them go on.
    pub fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the order of arrival, and whatever is held back meanwhile, messages leave in their order.
        #[test]
        fn messages_leave_in_order(order in Just((1..=20_u64).collect::<Vec<_>>()).prop_shuffle(), holds: Vec<bool>) {
            let (mut stream, mut left) = (Stream::default(), Vec::new());
            for (at, number) in order.into_iter().enumerate() {
                let is_held = holds.get(at) == Some(&true);
                stream.hold(is_held);
                let mut next = stream.pass(number, number).expect("it is new");
                prop_assert!(stream.pass(number, number).is_none(), "there is one already");
                while let Some(message) = next {
                    prop_assert!(!is_held && stream.take().is_none(), "one at a time");
                    left.push(message);
                    next = stream.take_next();
                }
            }
            stream.hold(false);
            left.extend(std::iter::from_fn(|| {
                let message = stream.take();
                stream.done();
                message
            }));
            prop_assert_eq!(left, (1..=20).collect::<Vec<_>>());
            prop_assert!(stream.pass(20, 20).is_none(), "it was carried out");
        }
    }
}
