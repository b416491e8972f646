//! What depends on the length of a message: its protocol, and the pieces that it is cut into. Ranks go by it, and the
//! launcher shows it.

use super::{BackendChoice, Ranges, Settings};

/// The two ways to carry a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// One Amsend carries envelope and data.
    Eager,
    /// Amsend carries the envelope, the receiver fetches the data with Get.
    Rendezvous,
}

/// A circumstance, other than the length of a message, that favours rendezvous.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Circumstance {
    /// The data are in huge pages: the kernel walks their page tables so much faster that one copy beats the pipeline's
    /// two.
    HugePages,
    /// Messages of this length to this rank were measured to take less time by rendezvous. With more ranks than
    /// processors nothing is measured, and this never applies.
    Cheaper,
}

/// The length from which on the cheaper protocol is measured.
pub const CHEAPER_FROM: usize = 32 << 10;

/// The length from which on each circumstance selects rendezvous, if the protocol is chosen by size and Get reads
/// memory directly.
const RENDEZVOUS_FROM: [(usize, Circumstance); 2] =
    [(128 << 10, Circumstance::HugePages), (CHEAPER_FROM, Circumstance::Cheaper)];

/// The longest eager message, if no circumstance selects rendezvous and the user names no other length. Up to there the
/// copying pipeline keeps both processors busy and beats the one-copy Get on ordinary pages. A longer message without a
/// posted receive would take an unreasonable amount of early memory.
const EAGER_UP_TO: usize = 16 << 20;

impl Settings {
    /// Returns the protocols by message size, for messages under no [`Circumstance`]: the forced one, or eager up to the
    /// length that the user has named or the built-in one.
    pub fn protocols(&self) -> Ranges<Protocol> {
        match self.backend {
            BackendChoice::Eager => Ranges::all(Protocol::Eager),
            BackendChoice::Rendezvous => Ranges::all(Protocol::Rendezvous),
            BackendChoice::Auto => {
                let bound = self.eager_up_to.unwrap_or(EAGER_UP_TO);
                let protocols = vec![Protocol::Eager, Protocol::Rendezvous];
                Ranges::new(vec![bound], protocols).expect("two values for one bound")
            }
        }
    }

    /// Returns the lengths from which on circumstances select rendezvous, whatever the sizes say. There are none if the
    /// user forces a backend or a length.
    pub fn exceptions(&self) -> &'static [(usize, Circumstance)] {
        match (self.backend, self.eager_up_to) {
            (BackendChoice::Auto, None) => &RENDEZVOUS_FROM,
            _ => &[],
        }
    }
}

/// How messages are cut into frames whose bodies have at most a certain length: short messages travel as one frame,
/// longer ones in pieces, which are small enough that both ends work at once, and large enough that the cost per piece
/// does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pieces {
    max_body: usize,
}

impl Pieces {
    /// The lengths of messages, in bytes and ascending, above which pieces are larger, if frames may be as long.
    pub const BOUNDS: [usize; 2] = [128 << 10, 512 << 10];

    /// Makes the pieces for frames whose bodies have at most `max_body` bytes.
    pub fn within(max_body: usize) -> Self {
        Self { max_body }
    }

    /// Returns the longest message that travels as one frame, in bytes.
    #[inline]
    pub fn whole(self) -> usize {
        self.max_body.min(16 << 10)
    }

    /// Returns the size of the pieces of a message of `len` bytes.
    #[inline]
    pub fn size(self, len: usize) -> usize {
        let [small, medium] = Self::BOUNDS;
        let size = if len <= small {
            16 << 10
        } else if len <= medium {
            32 << 10
        } else {
            64 << 10
        };
        self.max_body.min(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_chosen_by_size_unless_one_is_forced() {
        let of = |backend, eager_up_to| {
            let settings = Settings { backend, eager_up_to, ..Settings::default() };
            let protocols = settings.protocols();
            (protocols.bounds().to_vec(), protocols.of(1000), settings.exceptions())
        };
        let (auto, forced): (_, &[_]) = (BackendChoice::Auto, &[]);
        assert_eq!(of(auto, None), (vec![16 << 20], Protocol::Eager, &RENDEZVOUS_FROM[..]));
        assert_eq!(of(auto, Some(1000)), (vec![1000], Protocol::Eager, forced));
        assert_eq!(of(auto, Some(999)), (vec![999], Protocol::Rendezvous, forced));
        let (eager, rendezvous) = (BackendChoice::Eager, BackendChoice::Rendezvous);
        assert_eq!(of(eager, Some(10)), (vec![], Protocol::Eager, forced));
        assert_eq!(of(rendezvous, None), (vec![], Protocol::Rendezvous, forced));
    }

    #[test]
    fn an_adapter_with_short_frames_shortens_the_pieces() {
        let of = |max_body| {
            let pieces = Pieces::within(max_body);
            let [small, medium] = Pieces::BOUNDS;
            let sizes = [small, small + 1, medium, medium + 1].map(|len| pieces.size(len));
            (pieces.whole(), sizes)
        };
        assert_eq!(of(64 << 10), (16 << 10, [16 << 10, 32 << 10, 32 << 10, 64 << 10]));
        assert_eq!(of(20 << 10), (16 << 10, [16 << 10, 20 << 10, 20 << 10, 20 << 10]));
        assert_eq!(of(4096), (4096, [4096; 4]));
    }
}
