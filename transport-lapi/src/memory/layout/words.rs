//! Layouts as words, so that a message can carry one: that of memory at its target.
//!
//! A layout is its displacement and its body. A body is a word that says its form, and:
//!
//! ```text
//!  0  block    its length
//!  1  repeat   number of rounds, stride; the body of a round
//!  2  placed   number of displacements, the displacements; the body at each
//!  3  blocks   number of blocks; displacement and length of each
//!  4  list     number of parts; displacement and body of each
//! ```
//!
//! - LAW1: words are read by the constructors of layouts, which check all numbers. So a peer's words make a legal layout
//!   or none, and reading them takes no more time and memory than their number allows, nor more levels than a layout has.

use std::sync::Arc;

use super::body::{Body, Form};
use super::{Layout, LayoutError};

/// The most words of a layout.
const MOST: usize = 1 << 20;

impl Layout {
    /// Returns the layout as words, from which [`Layout::from_words`] makes it again.
    ///
    /// ```
    /// # use transport_lapi::Layout;
    /// let column = Layout::strided(8, 24, 4)?;
    /// let words = column.to_words()?;
    /// assert_eq!(Layout::from_words(&words)?.to_string(), column.to_string());
    /// # Ok::<(), transport_lapi::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] if there would be more than 2^20 words.
    pub fn to_words(&self) -> Result<Vec<u64>, LayoutError> {
        let mut words = vec![self.at as u64];
        write(&self.body, &mut words)?;
        Ok(words)
    }

    /// Makes a layout of words of a peer.
    ///
    /// # Errors
    /// [`LayoutError::Words`] if they are not those of a layout; as the constructors.
    pub fn from_words(words: &[u64]) -> Result<Self, LayoutError> {
        let mut reader = Reader { words };
        let at = reader.offset()?;
        let body = reader.body(0)?;
        match reader.words {
            [] => Self::list([(at, body)]),
            _ => Err(LayoutError::Words),
        }
    }
}

fn write(body: &Arc<Body>, words: &mut Vec<u64>) -> Result<(), LayoutError> {
    let offset = |at: &isize| *at as u64;
    match &body.form {
        Form::Block => words.extend([0, body.size as u64]),
        Form::Repeat { body, stride, count } => {
            words.extend([1, *count as u64, offset(stride)]);
            write(body, words)?;
        }
        Form::Placed { body, displacements } => {
            words.extend([2, displacements.len() as u64]);
            words.extend(displacements.iter().map(offset));
            write(body, words)?;
        }
        Form::Blocks { begins, displacements } => {
            words.extend([3, displacements.len() as u64]);
            let lengths = begins.windows(2).map(|pair| (pair[1] - pair[0]) as u64);
            let blocks = displacements.iter().map(offset).zip(lengths);
            words.extend(blocks.flat_map(|(at, len)| [at, len]));
        }
        Form::List(parts) => {
            words.extend([4, parts.len() as u64]);
            for part in parts {
                words.push(offset(&part.at));
                write(&part.body, words)?;
            }
        }
    }
    if words.len() > MOST { Err(LayoutError::TooLarge) } else { Ok(()) }
}

/// The words that were not read yet.
struct Reader<'a> {
    words: &'a [u64],
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u64, LayoutError> {
        let (word, rest) = self.words.split_first().ok_or(LayoutError::Words)?;
        self.words = rest;
        Ok(*word)
    }

    fn offset(&mut self) -> Result<isize, LayoutError> {
        Ok(self.word()? as isize)
    }

    fn length(&mut self) -> Result<usize, LayoutError> {
        usize::try_from(self.word()?).map_err(|_| LayoutError::TooLarge)
    }

    /// Reads how many things follow that have as many words each, at least.
    fn number(&mut self, words_each: usize) -> Result<usize, LayoutError> {
        let number = self.length()?;
        let are_there = number <= self.words.len() / words_each;
        are_there.then_some(number).ok_or(LayoutError::Words)
    }

    /// Reads a body below `level` others, with displacement 0 at its first byte.
    fn body(&mut self, level: usize) -> Result<Layout, LayoutError> {
        if level >= Layout::MAX_DEPTH {
            return Err(LayoutError::TooDeep);
        }
        match self.word()? {
            0 => Layout::contiguous(self.length()?),
            1 => {
                let (count, stride) = (self.length()?, self.offset()?);
                self.body(level + 1)?.repeat(count, stride)
            }
            2 => {
                let number = self.number(1)?;
                let displacements =
                    (0..number).map(|_| self.offset()).collect::<Result<Vec<_>, _>>();
                let displacements = displacements?;
                self.body(level + 1)?.place(displacements)
            }
            3 => {
                let number = self.number(2)?;
                let blocks = (0..number).map(|_| Ok((self.offset()?, self.length()?)));
                Layout::indexed(blocks.collect::<Result<Vec<_>, LayoutError>>()?)
            }
            4 => {
                let number = self.number(3)?;
                let parts = (0..number).map(|_| Ok((self.offset()?, self.body(level + 1)?)));
                Layout::list(parts.collect::<Result<Vec<_>, LayoutError>>()?)
            }
            _ => Err(LayoutError::Words),
        }
    }
}
