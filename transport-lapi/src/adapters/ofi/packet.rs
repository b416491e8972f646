//! Packets: the messages of the provider, each of which carries frames of one context of one task. A pure codec.
//!
//! ```text
//!  packet   token: 8 bytes · origin: 4 · number: 4 · frames
//!  frame    length of the head: 4 · of the body: 4 · head · body
//! ```
//!
//! Numbers are little endian. The token proves that the sender knows the job's secret; origin and context are part of
//! it. Packets of one origin are numbered, so that none is delivered twice or out of order.
//!
//! - PK1: what arrives is a claim: every length is checked against the bytes that are there.

use crate::adapter::TaskId;

/// Length of what precedes the frames.
pub(super) const HEADER: usize = 16;
/// Length of what precedes the head of a frame.
pub(super) const FRAME_HEADER: usize = 8;

/// Who sends a packet, and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) token: u64,
    pub(super) origin: TaskId,
    pub(super) number: u32,
}

impl Header {
    pub(super) fn encode(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.token.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.origin.to_le_bytes());
        bytes[12..].copy_from_slice(&self.number.to_le_bytes());
        bytes
    }

    /// The header of a packet; `None` if it is too short for one.
    pub(super) fn decode(packet: &[u8]) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(packet.get(at..at + 4)?.try_into().ok()?));
        let token = u64::from_le_bytes(packet.get(..8)?.try_into().ok()?);
        Some(Self { token, origin: word(8)?, number: word(12)? })
    }
}

/// Length of a frame in a packet.
pub(super) const fn frame_bytes(head: usize, body: usize) -> usize {
    FRAME_HEADER + head + body
}

/// What precedes a frame.
pub(super) fn frame_header(head: usize, body: usize) -> [u8; FRAME_HEADER] {
    let mut bytes = [0; FRAME_HEADER];
    bytes[..4].copy_from_slice(&(head as u32).to_le_bytes());
    bytes[4..].copy_from_slice(&(body as u32).to_le_bytes());
    bytes
}

/// The frame that begins at `at` of a packet, as its head, its body and where the next one begins; `None` at the end, and
/// where the bytes are no frame (PK1).
pub(super) fn frame_at(packet: &[u8], at: usize) -> Option<(&[u8], &[u8], usize)> {
    let rest = packet.get(at..)?;
    let (header, rest) = rest.split_at_checked(FRAME_HEADER)?;
    let length = |bytes: &[u8]| Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize);
    let (head, body) = (length(&header[..4])?, length(&header[4..])?);
    let (head, rest) = rest.split_at_checked(head)?;
    let body = rest.get(..body)?;
    Some((head, body, at + frame_bytes(head.len(), body.len())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_are_found_as_they_were_packed(
            frames in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..40), prop::collection::vec(any::<u8>(), 0..90)),
                0..9,
            ),
            token: u64, origin: u32, number: u32,
            cut in 0_usize..2_000,
        ) {
            let header = Header { token, origin, number };
            let mut packet = header.encode().to_vec();
            for (head, body) in &frames {
                packet.extend(frame_header(head.len(), body.len()));
                packet.extend(head);
                packet.extend(body);
            }
            prop_assert_eq!(Header::decode(&packet), Some(header));
            let found = |packet: &[u8]| {
                let (mut at, mut found) = (HEADER, Vec::new());
                while let Some((head, body, next)) = frame_at(packet, at) {
                    found.push((head.to_vec(), body.to_vec()));
                    at = next;
                }
                (found, at)
            };
            prop_assert_eq!(found(&packet), (frames.clone(), packet.len()));
            // A packet that is cut has a beginning of its frames.
            let cut = &packet[..cut.min(packet.len())];
            let (some, end) = found(cut);
            prop_assert!(frames.starts_with(&some) && end <= packet.len());
        }

        #[test]
        fn any_bytes_are_frames_inside_of_them_or_none(bytes: Vec<u8>, at in 0_usize..300) {
            if let Some((head, body, next)) = frame_at(&bytes, at) {
                prop_assert_eq!(next, at + FRAME_HEADER + head.len() + body.len());
                prop_assert!(next <= bytes.len());
            }
            prop_assert_eq!(Header::decode(&bytes).is_some(), bytes.len() >= HEADER);
        }
    }
}
