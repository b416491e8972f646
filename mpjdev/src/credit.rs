//! Flow control of early messages: it limits the bytes that a rank may have on their way to another one without
//! knowing of a posted receive.
//!
//! Every eager message spends credit at its sender: its length, and the receiver's bookkeeping for an early message,
//! so that early messages take no more memory than the limit. The receiver returns the credit when the message has
//! left its early memory or never entered it, a quarter of the limit at a time. If there is no credit for a message,
//! even after a look at new arrivals, or if it costs more than half the limit, it goes by rendezvous, which needs
//! only the envelope at the receiver. Nothing is lost, and no message overtakes another.
//!
//! From the first loss of a rank on, all credit is *reserved*: the fast path of sends, which checks nothing else,
//! finds none, and the general path checks which ranks are lost before it spends reserved credit.
//!
//! - CR1: at the sender, `available + reserved <= limit`; the difference was spent and has not come back.
//! - CR2: at the receiver, the credit of arrived messages that was not returned is at most the limit, for every
//!   origin that keeps the rule: `room` does not become negative. A message beyond that is refused as a violation.
//! - CR3: at most a quarter of the limit waits at the receiver to be returned, so a sender with nothing on its way
//!   has at least three quarters: more than any eager message costs.

use crate::early;
use crate::error::PeerError;

/// What a message costs beside its bytes; alike on all ranks, since they run one version of this.
const OVERHEAD: usize = early::OVERHEAD;
/// How often a sender looks for credit from a rank that has returned some since the last unsuccessful look. All these
/// looks together take about as long as the round trip of a rendezvous.
const LOOKS: u32 = 128;
/// The smallest limit: with it, messages that are as long as the overhead still go eagerly.
const LEAST: usize = 4 * OVERHEAD;

/// Credits towards and from every rank.
#[derive(Debug)]
pub(crate) struct Credits {
    limit: usize,
    /// Length of the longest eager message: what it costs is half the limit.
    longest: usize,
    /// A quarter of the limit: the most credit that may wait to be returned.
    quarter: usize,
    accounts: Vec<Account>,
    /// Whether a rank was lost.
    reserves: bool,
}

#[derive(Debug, Clone)]
struct Account {
    /// What we may still send there.
    available: usize,
    /// The same, if we look first who is lost.
    reserved: usize,
    /// The bytes that may still come from there before credit is returned.
    room: usize,
    /// The credit to return.
    owed: usize,
    /// Whether credit has come from there since the last unsuccessful look.
    keeps_up: bool,
}

impl Credits {
    /// Credits of `limit` bytes per rank.
    pub fn new(size: usize, limit: usize) -> Self {
        let limit = limit.max(LEAST);
        let account =
            Account { available: limit, reserved: 0, room: limit, owed: 0, keeps_up: true };
        let accounts = vec![account; size];
        let longest = limit / 2 - OVERHEAD;
        Self { limit, longest, quarter: limit / 4, accounts, reserves: false }
    }

    /// What a message costs, if it may go eagerly.
    #[inline(always)]
    fn price(&self, len: usize) -> Option<usize> {
        (len <= self.longest).then(|| len + OVERHEAD)
    }

    /// Spends the credit for a message of `len` bytes to `dest`; `false` if there is not enough.
    #[inline]
    pub fn spend(&mut self, dest: u32, len: usize) -> bool {
        let Some(price) = self.price(len) else { return false };
        let account = &mut self.accounts[dest as usize];
        if price > account.available {
            return false;
        }
        account.available -= price;
        true
    }

    /// The same for a sender that has found that nobody is lost whom the message needs.
    pub fn spend_checked(&mut self, dest: u32, len: usize) -> bool {
        if !self.reserves {
            return self.spend(dest, len);
        }
        let Some(price) = self.price(len) else { return false };
        let account = &mut self.accounts[dest as usize];
        if price > account.reserved {
            return false;
        }
        account.reserved -= price;
        true
    }

    /// How often a sender that has no credit for a message of `len` bytes to `dest` looks for it before it
    /// does without.
    pub fn looks(&self, dest: u32, len: usize) -> u32 {
        match self.accounts[dest as usize].keeps_up {
            _ if self.price(len).is_none() => 0,
            true => LOOKS,
            false => 1,
        }
    }

    /// The sender has looked for credit, and none has come that is enough.
    pub fn looked_in_vain(&mut self, dest: u32) {
        self.accounts[dest as usize].keeps_up = false;
    }

    /// The message of `len` bytes to `dest` did not go: takes [`Self::spend`] back.
    #[inline]
    pub fn unspend(&mut self, dest: u32, len: usize) {
        self.accounts[dest as usize].available += len + OVERHEAD;
    }

    /// A message of `len` bytes came from `source`.
    #[inline]
    pub fn charge(&mut self, source: u32, len: usize) -> Result<(), PeerError> {
        let price = self.price(len);
        let account = &mut self.accounts[source as usize];
        match price {
            Some(price) if price <= account.room => {
                account.room -= price;
                Ok(())
            }
            _ => Err(PeerError::Credit { limit: self.limit }),
        }
    }

    /// A message of `len` bytes came from `source` and needed no early memory: [`Self::charge`] and
    /// [`Self::release`] in one.
    #[inline]
    pub fn pass(&mut self, source: u32, len: usize) -> Result<bool, PeerError> {
        let price = self.price(len);
        let account = &mut self.accounts[source as usize];
        match price {
            Some(price) if price <= account.room => {
                account.room -= price;
                account.owed += price;
                Ok(account.owed >= self.quarter)
            }
            _ => Err(PeerError::Credit { limit: self.limit }),
        }
    }

    /// A message of `len` bytes from `source` needs no early memory any more. Returns whether it is
    /// time for [`Self::settle`].
    #[inline]
    pub fn release(&mut self, source: u32, len: usize) -> bool {
        let account = &mut self.accounts[source as usize];
        account.owed += len + OVERHEAD;
        account.owed >= self.quarter
    }

    /// Returns the credit to return to `source` now, in bytes.
    pub fn settle(&mut self, source: u32) -> u64 {
        let account = &mut self.accounts[source as usize];
        let owed = std::mem::take(&mut account.owed);
        account.room = account.room.saturating_add(owed).min(self.limit);
        owed as u64
    }

    /// Nothing goes to `dest` any more, nor comes from there: it has no credit, and that of the others is reserved.
    pub fn close(&mut self, dest: u32) {
        self.reserves = true;
        for account in &mut self.accounts {
            account.reserved += std::mem::take(&mut account.available);
        }
        self.accounts[dest as usize].reserved = 0;
    }

    /// Credit came back from `dest`.
    pub fn refund(&mut self, dest: u32, bytes: u64) -> Result<(), PeerError> {
        let account = &mut self.accounts[dest as usize];
        let missing = self.limit - account.available - account.reserved;
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= missing => {
                *(if self.reserves { &mut account.reserved } else { &mut account.available }) +=
                    bytes;
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
        let mut credits = Credits::new(1, 4096);
        let refused = Err(PeerError::Credit { limit: 4096 });
        assert_eq!(credits.charge(0, 1 << 40), refused, "no message may cost more than half");
        assert_eq!(credits.charge(0, 2048 - OVERHEAD), Ok(()));
        assert_eq!(credits.charge(0, 2048 - OVERHEAD), Ok(()));
        assert_eq!(credits.charge(0, 0), refused);
        assert_eq!(credits.refund(0, 1), Err(PeerError::CreditReturn { bytes: 1 }));
    }

    #[test]
    fn from_a_loss_on_credit_is_for_those_who_look_first() {
        let mut credits = Credits::new(3, 4096);
        assert!(credits.spend(1, 0) && credits.spend_checked(1, 0));
        credits.close(2);
        assert!(!credits.spend(1, 0) && !credits.spend_checked(2, 0));
        assert_eq!(credits.refund(1, 2 * OVERHEAD as u64), Ok(()));
        assert_eq!(credits.refund(1, 1), Err(PeerError::CreditReturn { bytes: 1 }));
        assert!(!credits.spend(1, 0));
        assert!(credits.spend_checked(1, 2048 - OVERHEAD));
        assert!(credits.spend_checked(1, 2048 - OVERHEAD));
        assert!(!credits.spend_checked(1, 0));
    }

    proptest! {
        /// A sender and a receiver that keep the rule: the receiver never complains, and once
        /// everything is released the dearest eager message can go again (CR1, CR2, CR3).
        #[test]
        fn credit_is_neither_lost_nor_made(
            limit in 0usize..100_000, steps in prop::collection::vec((any::<bool>(), 0usize..200_000), 0..200),
        ) {
            let (mut sender, mut receiver) = (Credits::new(1, limit), Credits::new(1, limit));
            let mut early = std::collections::VecDeque::new();
            let release = |sender: &mut Credits, receiver: &mut Credits, len| {
                if receiver.release(0, len) {
                    sender.refund(0, receiver.settle(0)).unwrap();
                }
            };
            for (send, len) in steps {
                if send {
                    if sender.spend(0, len) {
                        receiver.charge(0, len).unwrap();
                        early.push_back(len);
                    }
                } else if let Some(len) = early.pop_front() {
                    release(&mut sender, &mut receiver, len);
                }
            }
            for len in early {
                release(&mut sender, &mut receiver, len);
            }
            prop_assert!(sender.spend(0, limit.max(LEAST) / 2 - OVERHEAD));
        }
    }
}
