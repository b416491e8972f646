//! Failures of collective operations, as the ranks tell each other of them.
//!
//! In a collective operation ranks pass on what they have received. A rank whose receive has failed does not have what the
//! next rank waits for, so it sends a [`Failure`] in the place of that message. It matches the receive as the message would
//! have, and the receive fails with it. `Device::send_failure` sends it, `backend/collective_failure.rs` receives it.

use transport_lapi::ForeignBytes;
use transport_lapi::bootstrap::control::cut;

use crate::envelope::PeerError;

/// Why a rank cannot send the message that its peer waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The rank of the job on which the operation failed first.
    pub rank: u32,
    /// The rank whose loss is the reason, if a loss is.
    pub lost: Option<u32>,
    /// The class of the error. The device passes the number on; what it means is up to the client.
    pub class: u32,
    /// The text of the error. Its first 160 bytes are sent.
    pub text: String,
}

/// The most bytes of text, so that every failure fits into one frame.
const TEXT: usize = 160;
/// Bytes of the numbers before the text.
const NUMBERS: usize = 12;
/// Stands for no lost rank.
const NOBODY: u32 = u32::MAX;

impl Failure {
    /// Packs three numbers, little endian, and the text.
    pub(crate) fn pack(&self) -> Vec<u8> {
        let numbers = [self.rank, self.lost.unwrap_or(NOBODY), self.class];
        let mut packed: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        packed.extend(cut(&self.text, TEXT).as_bytes());
        packed
    }

    /// Unpacks what a peer in a job of `size` ranks has sent.
    pub(crate) fn unpack(packed: ForeignBytes<'_>, size: usize) -> Result<Self, PeerError> {
        let len = packed.len();
        let mut bytes = [0; NUMBERS + TEXT];
        let Some(bytes) = bytes.get_mut(..len).filter(|_| len >= NUMBERS) else {
            return Err(PeerError::Envelope { len, needed: NUMBERS });
        };
        packed.copy_to(bytes);
        let numbers = bytemuck::pod_read_unaligned::<[u32; 3]>(&bytes[..NUMBERS]);
        let [rank, lost, class] = numbers.map(u32::from_le);
        let lost = (lost != NOBODY).then_some(lost);
        match [Some(rank), lost].into_iter().flatten().find(|rank| *rank as usize >= size) {
            Some(rank) => Err(PeerError::FailedRank { rank }),
            None => {
                let text = String::from_utf8_lossy(&bytes[NUMBERS..]).into_owned();
                Ok(Self { rank, lost, class, text })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unpack(bytes: &[u8]) -> Result<Failure, PeerError> {
        Failure::unpack(ForeignBytes::from_slice(bytes), 4)
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_failure_in_the_job_or_refused(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            if let Ok(Failure { rank, lost, .. }) = unpack(&bytes) {
                prop_assert!(rank < 4 && lost.is_none_or(|lost| lost < 4));
            }
        }

        #[test]
        fn failures_come_back(
            rank in 0_u32..4,
            lost in proptest::option::of(0_u32..4),
            class: u32,
            text in "\\PC{0,100}",
        ) {
            let failure = Failure { rank, lost, class, text };
            let back = unpack(&failure.pack()).unwrap();
            prop_assert!(back.text.len() <= TEXT && failure.text.starts_with(&back.text));
            prop_assert!(back.text.len() + 4 > TEXT || back.text == failure.text);
            prop_assert_eq!(Failure { text: back.text.clone(), ..failure }, back);
        }
    }

    #[test]
    fn what_is_no_failure_is_refused() {
        let of_rank =
            |rank, lost| unpack(&Failure { rank, lost, class: 0, text: String::new() }.pack());
        assert_eq!(of_rank(4, None), Err(PeerError::FailedRank { rank: 4 }));
        assert_eq!(of_rank(0, Some(9)), Err(PeerError::FailedRank { rank: 9 }));
        for len in [0, NUMBERS - 1, NUMBERS + TEXT + 1] {
            let refused = Err(PeerError::Envelope { len, needed: NUMBERS });
            assert_eq!(unpack(&vec![0; len]), refused);
        }
        assert!(
            unpack(&[&[0; NUMBERS][..], &[0xff; TEXT]].concat()).is_ok(),
            "texts are not trusted"
        );
    }
}
