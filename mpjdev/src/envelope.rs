//! Encodes and decodes the user headers of the device's active messages, whose fields are fixed and little endian.
//!
//! | handler    | index | bytes | fields                                                 |
//! |------------|-------|-------|--------------------------------------------------------|
//! | EAGER      | 1     | 8, 16 | context, tag; in synchronous mode the sender's request |
//! | RENDEZVOUS | 2     | 8     | context, tag                                           |
//! | DONE       | 3     | 8     | the sender's request                                   |
//! | CREDIT     | 4     | 8     | bytes                                                  |
//! | WITHDRAW   | 5     | 8     | the sender's request                                   |
//! | WITHDRAWN  | 6     | 8     | the sender's request                                   |
//! | FAILED     | 7     | 8     | context, tag                                           |
//! | TOLD       | 8     | 8     | the fingerprint of the types of the next message       |
//!
//! The source is not in the envelope, since the transport knows the origin. RENDEZVOUS carries an [`Offer`] as its
//! data, on one host 32 bytes, so that it fits into one cache line of a ring, FAILED a
//! [`Failure`](crate::envelope::Failure), TOLD a text. The others carry no data. From RENDEZVOUS on all
//! arrive as short messages.

use transport_lapi::{RemoteKey, RemoteRegion};

mod collective_failure;
mod violation;

pub use collective_failure::Failure;
pub use violation::PeerError;

/// An eager message. In synchronous mode it asks for an answer.
pub(crate) const EAGER: u8 = 1;
/// The envelope of a rendezvous message.
pub(crate) const RENDEZVOUS: u8 = 2;
/// The receiver has fetched a rendezvous message, or has all of an eager one in synchronous mode.
pub(crate) const DONE: u8 = 3;
/// The receiver returns credit for unexpected-message memory.
pub(crate) const CREDIT: u8 = 4;
/// The sender withdraws a rendezvous or synchronous message, if no receive has matched it yet.
pub(crate) const WITHDRAW: u8 = 5;
/// The receiver answers WITHDRAW: no receive has matched the message, and none will.
pub(crate) const WITHDRAWN: u8 = 6;
/// The sender of a collective operation does not have the message that would come here.
pub(crate) const FAILED: u8 = 7;

/// What the sender of the next message tells of it, in jobs that find mistakes between ranks.
pub(crate) const TOLD: u8 = 8;

/// Packs context and tag into a word.
#[inline]
pub(crate) fn eager(context: u32, tag: i32) -> u64 {
    u64::from(context) | u64::from(tag as u32) << 32
}

/// Unpacks context and tag from a word.
#[inline(always)]
pub(crate) fn of_eager(word: u64) -> (u32, i32) {
    (word as u32, (word >> 32) as i32)
}

/// Returns the words of a user header, which the transport has checked to consist of whole words.
pub(crate) fn words(uhdr: &[u8]) -> impl Iterator<Item = u64> {
    uhdr.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
}

/// What RENDEZVOUS says about its message: which request sends it, and where the data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    pub request: u64,
    pub data: RemoteRegion,
}

impl Offer {
    /// Least length of the packed form.
    pub const LEAST: usize = 24;
    /// Greatest length of the packed form.
    pub const MOST: usize = Self::LEAST + RemoteKey::MOST;

    /// Packs the offer. The adapter's key comes last, in as many bytes as it has. The address of the data is not told:
    /// an adapter that needs it has it in its key.
    #[inline]
    pub fn pack(self) -> Packed {
        let RemoteRegion { len, key, direct, .. } = self.data;
        let mut bytes = [0; Self::MOST];
        let words: [u8; Self::LEAST] = bytemuck::cast([self.request, len, key].map(u64::to_le));
        bytes[..Self::LEAST].copy_from_slice(&words);
        let end = Self::LEAST + direct.as_bytes().len();
        bytes[Self::LEAST..end].copy_from_slice(direct.as_bytes());
        Packed { bytes, len: end }
    }

    /// Unpacks an offer; `None` if it has another length.
    #[inline]
    pub fn unpack(bytes: &[u8]) -> Option<Self> {
        let (words, direct) = bytes.split_first_chunk::<{ Self::LEAST }>()?;
        let [request, len, key] = bytemuck::cast::<_, [u64; 3]>(*words).map(u64::from_le);
        if direct.len() > RemoteKey::MOST {
            return None;
        }
        let (addr, direct) = (RemoteRegion::NO_ADDRESS, RemoteKey::new(direct));
        Some(Self { request, data: RemoteRegion { addr, len, key, direct } })
    }
}

/// An offer in its packed form.
pub(crate) struct Packed {
    bytes: [u8; Offer::MOST],
    len: usize,
}

impl std::ops::Deref for Packed {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_come_back() {
        for key in [0, 1, 8, 32] {
            let (addr, direct) = (RemoteRegion::NO_ADDRESS, RemoteKey::new(&[9; 32][..key]));
            let data = RemoteRegion { addr, len: 33, key: 7 << 32 | 5, direct };
            let offer = Offer { request: u64::MAX - 1, data };
            assert_eq!(offer.pack().len(), Offer::LEAST + key);
            assert_eq!(Offer::unpack(&offer.pack()), Some(offer));
        }
        assert_eq!(Offer::unpack(&[0; Offer::LEAST - 1]), None);
        assert_eq!(Offer::unpack(&[0; Offer::MOST + 1]), None);
    }
}
