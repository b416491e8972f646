//! Encodes and decodes the user headers of the device's active messages, whose fields are fixed and little endian.
//!
//! | handler        | index | bytes | fields                                              |
//! |----------------|-------|-------|-----------------------------------------------------|
//! | EAGER          | 1     | 8     | context, tag                                        |
//! | EAGER_SYNC     | 2     | 16    | context, tag, the sender's request                  |
//! | RENDEZVOUS     | 3     | 8     | context, tag                                        |
//! | DONE           | 4     | 8     | the sender's request                                |
//! | CREDIT         | 5     | 8     | bytes                                               |
//! | WITHDRAW       | 6     | 8     | the sender's request                                |
//! | WITHDRAWN      | 7     | 8     | the sender's request                                |
//! | FAILED         | 8     | 8     | context, tag                                        |
//!
//! The source is not in the envelope, since the transport knows the origin. RENDEZVOUS carries an [`Offer`] as its
//! data, on one host 32 bytes, so that it fits into one cache line of a ring, and FAILED a
//! [`Failure`](crate::envelope::Failure). The messages between them carry no data. From RENDEZVOUS on all
//! arrive as short messages.

use transport_lapi::{RemoteKey, RemoteRegion};

mod failure;
mod violation;

pub use failure::Failure;
pub use violation::PeerError;

/// An eager message.
pub(crate) const EAGER: u8 = 1;
/// An eager message in synchronous mode, which asks for an answer.
pub(crate) const EAGER_SYNC: u8 = 2;
/// The envelope of a rendezvous message.
pub(crate) const RENDEZVOUS: u8 = 3;
/// The receiver has fetched a rendezvous message, or has all of an eager one in synchronous mode.
pub(crate) const DONE: u8 = 4;
/// The receiver returns credit for unexpected-message memory.
pub(crate) const CREDIT: u8 = 5;
/// The sender withdraws a rendezvous or synchronous message, if no receive has matched it yet.
pub(crate) const WITHDRAW: u8 = 6;
/// The receiver answers WITHDRAW: no receive has matched the message, and none will.
pub(crate) const WITHDRAWN: u8 = 7;
/// The sender of a collective operation does not have the message that would come here.
pub(crate) const FAILED: u8 = 8;

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

/// Packs context, tag and request.
pub(crate) fn eager_sync(context: u32, tag: i32, request: u64) -> [u8; 16] {
    let mut uhdr = [0; 16];
    uhdr[..8].copy_from_slice(&eager(context, tag).to_le_bytes());
    uhdr[8..].copy_from_slice(&request.to_le_bytes());
    uhdr
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

/// A user header, read from the front.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Checks that the header has exactly the length that its handler needs.
    #[inline]
    pub fn of(uhdr: &'a [u8], needed: usize) -> Result<Self, PeerError> {
        if uhdr.len() != needed {
            return Err(PeerError::Envelope { len: uhdr.len(), needed });
        }
        Ok(Self(uhdr))
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("`of` checked the length");
        self.0 = rest;
        *field
    }

    /// Reads the next four bytes.
    #[inline]
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    /// Reads the next four bytes as a signed number.
    #[inline]
    pub fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.take())
    }

    /// Reads the next eight bytes.
    #[inline]
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let uhdr = eager_sync(9, -4, u64::MAX - 1);
        let mut fields = Fields::of(&uhdr, 16).unwrap();
        assert_eq!((fields.u32(), fields.i32(), fields.u64()), (9, -4, u64::MAX - 1));
    }

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

    #[test]
    fn other_lengths_are_refused() {
        let error = Fields::of(&[0; 9], 8).err();
        assert_eq!(error, Some(PeerError::Envelope { len: 9, needed: 8 }));
    }
}
