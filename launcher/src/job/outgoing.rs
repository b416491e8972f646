//! What waits until a line takes it. The other end reads at its own pace, and nothing here waits for it. Owned by both
//! ends of a line.
//!
//! - OG1: what many lines are told is in memory once.
//! - OG2: each byte is written from where it is: what is left is not moved, however often the line takes a part.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;

/// Most pieces in one write.
const PIECES: usize = 64;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pieces: VecDeque<Rc<[u8]>>,
    /// Bytes of the first piece that have been written.
    written: usize,
    /// Bytes that have not been written.
    left: usize,
}

impl Outgoing {
    /// Adds what is written after all the rest.
    pub(super) fn push(&mut self, pieces: impl IntoIterator<Item = Rc<[u8]>>) {
        for piece in pieces {
            self.left += piece.len();
            self.pieces.push_back(piece);
        }
    }

    /// Number of bytes that wait.
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Drops all that waits.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Calls `write` until it would block, or nothing is left.
    ///
    /// # Errors
    /// Any other error of `write`.
    pub(super) fn write(
        &mut self,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<()> {
        while self.left > 0 {
            let first = self.pieces.front().map(|piece| &piece[self.written..]);
            let others = self.pieces.iter().skip(1).map(|piece| &**piece);
            let slices = first.into_iter().chain(others).take(PIECES).map(IoSlice::new);
            match write(&slices.collect::<Vec<_>>()) {
                Ok(len) => self.advance(len),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn advance(&mut self, len: usize) {
        self.left -= len;
        self.written += len;
        while let Some(first) = self.pieces.front().filter(|first| first.len() <= self.written) {
            self.written -= first.len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_bytes_are_written_in_order_however_few_the_line_takes(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 0..99),
            takes in prop::collection::vec(0_usize..20, 1..99),
        ) {
            let (mut outgoing, mut taken) = (Outgoing::default(), Vec::new());
            let mut pieces_left = pieces.iter();
            for take in takes.iter().cycle().take(2_000) {
                outgoing.push(pieces_left.next().map(|piece| Rc::from(&piece[..])));
                let mut room = *take;
                let written = outgoing.write(|slices| {
                    let all = slices.iter().flat_map(|slice| slice.iter()).take(room);
                    let before = taken.len();
                    taken.extend(all.copied());
                    room -= taken.len() - before;
                    match taken.len() - before {
                        0 => Err(io::ErrorKind::WouldBlock.into()),
                        len => Ok(len),
                    }
                });
                prop_assert!(written.is_ok());
            }
            let given = pieces.concat();
            prop_assert_eq!(outgoing.left(), given.len() - taken.len());
            prop_assert_eq!(&given[..taken.len()], &taken[..]);
            prop_assert!(outgoing.left() == 0 || takes.iter().all(|take| *take == 0));
        }
    }
}
