//! Flow control of unexpected messages: limits how many bytes a rank may have under way to another one without knowing
//! whether a receive is posted.
//!
//! Each eager message spends credit at its sender: its length plus the receiver's bookkeeping for an unexpected
//! message, so unexpected messages never take more memory than the limit. The receiver returns the credit when the
//! message has left unexpected-message memory or turned out not to need it, a quarter of the limit at a time. A message
//! goes by rendezvous, which needs only memory for the envelope at the receiver, if it costs more than half the limit,
//! or if there is not enough credit even after a look at new arrivals. No message is lost, and none overtakes another.
//!
//! - CR1: at the sender, `available <= limit`; the difference is credit that was spent and has not come back.
//! - CR2: at the receiver, for each origin that keeps to its credit, the credit of arrived messages that was not yet
//!   returned is at most the limit: `room` does not become negative. A message beyond that is refused as a violation.
//! - CR3: at most a quarter of the limit waits at the receiver to be returned. So a sender with nothing under way has
//!   at least three quarters, which is more than any eager message costs.

use transport_lapi::{PerTask, Tasks};

use crate::envelope::PeerError;
use crate::state::unexpected;

/// What a message costs in addition to its bytes. The same on all ranks, since all run the same version.
const OVERHEAD: usize = unexpected::OVERHEAD;
/// How often a sender looks for credit from a rank that has returned some since the last unsuccessful look. All these
/// looks together take about as long as the round trip of a rendezvous.
const LOOKS: u32 = 128;
/// The smallest limit. It lets messages as long as the overhead go eagerly.
const LEAST: usize = 4 * OVERHEAD;

/// Credits towards and from every rank.
#[derive(Debug)]
pub(crate) struct Credits {
    limit: usize,
    /// Length of the longest eager message. Such a message costs half the limit.
    longest: usize,
    /// Shorter messages are short, see [`Self::spend_short`].
    short: usize,
    /// A quarter of the limit: the most credit that may wait to be returned.
    quarter: usize,
    accounts: PerTask<Account>,
}

#[derive(Debug, Clone)]
struct Account {
    /// Credit that may be spent there.
    available: usize,
    /// How much credit that rank may still use here before some is returned to it.
    room: usize,
    /// Credit that is to be returned to that rank.
    owed: usize,
    /// Whether credit has come from that rank since the last unsuccessful look.
    keeps_up: bool,
}

impl Credits {
    /// Makes accounts with `limit` bytes of credit for each of these ranks.
    pub fn new(ranks: &Tasks, limit: usize) -> Self {
        let limit = limit.max(LEAST);
        let account = Account { available: limit, room: limit, owed: 0, keeps_up: true };
        let accounts = PerTask::new(ranks, account, Clone::clone);
        let longest = limit / 2 - OVERHEAD;
        Self { limit, longest, short: 0, quarter: limit / 4, accounts }
    }

    /// Calls messages short that have fewer bytes than `below`, and are short enough to go eagerly at all. Until the first
    /// call no message is short.
    pub fn call_short(&mut self, below: usize) {
        self.short = below.min(self.longest + 1);
    }

    /// Returns what a message costs, or `None` if it is too long to go eagerly.
    #[inline(always)]
    fn price(&self, len: usize) -> Option<usize> {
        (len <= self.longest).then(|| len + OVERHEAD)
    }

    /// Spends the credit for a short message of `len` bytes to `dest`. Returns `false` if the message is not short, if
    /// there is not enough credit, or if there is no such rank.
    #[inline]
    pub fn spend_short(&mut self, dest: usize, len: usize) -> bool {
        if len >= self.short {
            return false;
        }
        let Some(account) = self.accounts.get_mut(dest) else { return false };
        let is_covered = len + OVERHEAD <= account.available;
        if is_covered {
            account.available -= len + OVERHEAD;
        }
        is_covered
    }

    /// Takes [`Self::spend_short`] back: the message of `len` bytes to `dest` was not sent.
    #[cold]
    #[inline(never)]
    pub fn unspend(&mut self, dest: usize, len: usize) {
        self.accounts[dest as u32].available += len + OVERHEAD;
    }

    /// Spends the credit for any message of `len` bytes to `dest`. Returns `false` if there is not enough.
    pub fn spend(&mut self, dest: u32, len: usize) -> bool {
        let price = self.price(len);
        let available = &mut self.accounts[dest].available;
        let left = price.and_then(|price| available.checked_sub(price));
        *available = left.unwrap_or(*available);
        left.is_some()
    }

    /// Returns how often a sender without credit for a message of `len` bytes to `dest` looks for new credit before it
    /// uses rendezvous.
    pub fn looks(&self, dest: u32, len: usize) -> u32 {
        match self.accounts[dest].keeps_up {
            _ if self.price(len).is_none() => 0,
            true => LOOKS,
            false => 1,
        }
    }

    /// Notes that the sender has looked for credit and did not get enough.
    pub fn looked_in_vain(&mut self, dest: u32) {
        self.accounts[dest].keeps_up = false;
    }

    /// Accounts for a message of `len` bytes that came from `source`.
    #[inline]
    pub fn charge(&mut self, source: u32, len: usize) -> Result<(), PeerError> {
        let price = self.price(len);
        let account = &mut self.accounts[source];
        match price {
            Some(price) if price <= account.room => {
                account.room -= price;
                Ok(())
            }
            _ => Err(PeerError::Credit { limit: self.limit }),
        }
    }

    /// Accounts for a message of `len` bytes that came from `source` and needs no unexpected-message memory:
    /// [`Self::charge`] and
    /// [`Self::release`] in one.
    #[inline]
    pub fn pass(&mut self, source: u32, len: usize) -> Result<bool, PeerError> {
        let price = self.price(len);
        let account = &mut self.accounts[source];
        match price {
            Some(price) if price <= account.room => {
                account.room -= price;
                account.owed += price;
                Ok(account.owed >= self.quarter)
            }
            _ => Err(PeerError::Credit { limit: self.limit }),
        }
    }

    /// Accounts for a message of `len` bytes from `source` that needs no unexpected-message memory any more. Returns
    /// whether it is time for [`Self::settle`].
    #[inline]
    pub fn release(&mut self, source: u32, len: usize) -> bool {
        let account = &mut self.accounts[source];
        account.owed += len + OVERHEAD;
        account.owed >= self.quarter
    }

    /// Returns how much credit, in bytes, to return to `source` now.
    pub fn settle(&mut self, source: u32) -> u64 {
        let account = &mut self.accounts[source];
        let owed = std::mem::take(&mut account.owed);
        account.room = account.room.saturating_add(owed).min(self.limit);
        owed as u64
    }

    /// Adds credit that came back from `dest`.
    pub fn refund(&mut self, dest: u32, bytes: u64) -> Result<(), PeerError> {
        let account = &mut self.accounts[dest];
        let missing = self.limit - account.available;
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= missing => {
                account.available += bytes;
                account.keeps_up = true;
            }
            _ => return Err(PeerError::CreditReturn { bytes }),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn too_much_either_way_is_a_violation() {
        let mut credits = Credits::new(&Tasks::all_near(1), 4096);
        let refused = Err(PeerError::Credit { limit: 4096 });
        assert_eq!(credits.charge(0, 1 << 40), refused, "no message may cost more than half");
        assert_eq!(credits.charge(0, 2048 - OVERHEAD), Ok(()));
        assert_eq!(credits.charge(0, 2048 - OVERHEAD), Ok(()));
        assert_eq!(credits.charge(0, 0), refused);
        assert_eq!(credits.refund(0, 1), Err(PeerError::CreditReturn { bytes: 1 }));
    }

    proptest! {
        /// If sender and receiver keep to their credit, the receiver never complains, and once everything is released
        /// the most expensive eager message can go again (CR1, CR2, CR3).
        #[test]
        fn credit_is_neither_lost_nor_made(
            limit in 0usize..100_000, steps in prop::collection::vec((any::<bool>(), 0usize..200_000), 0..200),
        ) {
            let (mut sender, mut receiver) = (Credits::new(&Tasks::all_near(1), limit), Credits::new(&Tasks::all_near(1), limit));
            let mut unexpected = std::collections::VecDeque::new();
            let release = |sender: &mut Credits, receiver: &mut Credits, len| {
                if receiver.release(0, len) {
                    sender.refund(0, receiver.settle(0)).unwrap();
                }
            };
            for (send, len) in steps {
                if send {
                    if sender.spend(0, len) {
                        receiver.charge(0, len).unwrap();
                        unexpected.push_back(len);
                    }
                } else if let Some(len) = unexpected.pop_front() {
                    release(&mut sender, &mut receiver, len);
                }
            }
            for len in unexpected {
                release(&mut sender, &mut receiver, len);
            }
            prop_assert!(sender.spend(0, limit.max(LEAST) / 2 - OVERHEAD));
        }
    }
}
