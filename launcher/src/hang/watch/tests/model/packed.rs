//! Packs a state of the model into few bits, and hashes it: an exploration keeps all states that it has met.

use std::hash::{Hash, Hasher};

use super::launcher::{
    Doing::{Asking, Listing, Reading},
    Line,
};
use super::*;

/// Words that the states of the largest jobs need.
const WORDS: usize = 3;

/// A state; different ones have different words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Packed([u64; WORDS]);

impl Hash for Packed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for word in self.0 {
            state.write_u64(word);
        }
    }
}

/// A quick hash, good enough for states.
#[derive(Default)]
pub(super) struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64((*byte).into()));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x51_7c_c1_b7_27_22_0a_95);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}

/// Words that are filled bit by bit.
struct Packer {
    words: [u64; WORDS],
    word: usize,
    filled: u32,
}

impl Packer {
    /// Adds a number that is less than 2 to the power of `bits`.
    fn push(&mut self, number: u8, bits: u32) {
        assert!(number >> bits == 0, "{number} has more than {bits} bits");
        if self.filled + bits > u64::BITS {
            (self.word, self.filled) = (self.word + 1, 0);
        }
        self.words[self.word] |= u64::from(number) << self.filled;
        self.filled += bits;
    }

    fn flags(&mut self, flags: &[bool]) {
        flags.iter().for_each(|flag| self.push((*flag).into(), 1));
    }

    fn thread(&mut self, thread: Thread) {
        let Thread { at, context, met, rung, looks } = thread;
        self.push(at.code(), 5);
        let flags = context | u8::from(met) << 1 | u8::from(rung) << 2;
        self.push(flags | looks << 3, 5);
    }

    fn line(&mut self, line: Line) {
        let code = line.map_or(0, |(rung, looks)| 1 + u8::from(rung) + 2 * looks);
        self.push(code, 3);
    }
}

impl At {
    /// A number for each variant, in jobs of at most three ranks.
    fn code(self) -> u8 {
        match self {
            Unborn => 0,
            Gone => 1,
            Free => 2,
            Bystander => 3,
            Waiting => 4,
            Looked => 5,
            Asleep => 6,
            LookedAgain => 7,
            Found => 8,
            Sent(to) => 9 + 2 * to,
            Answered(to) => 10 + 2 * to,
            Idle => 15,
            Queued => 16,
        }
    }
}

impl<const R: usize, const T: usize, const C: usize> Job<R, T, C> {
    pub(super) fn packed(&self) -> Packed {
        let mut packer = Packer { words: [0; WORDS], word: 0, filled: 0 };
        packer.push(self.sends, 3);
        for rank in &self.ranks {
            rank.threads.iter().for_each(|thread| packer.thread(*thread));
            rank.frames.iter().for_each(|frames| packer.push(*frames, 3));
            packer.flags(&rank.changed);
            packer.push(rank.ended.into(), 1);
        }
        let Launcher { doing, ended, lines, changed, idle } = &self.launcher;
        match *doing {
            Reading { round, rank, context, line } => {
                packer.push(round << 2, 5);
                packer.push(rank | context << 2 | line << 3, 5);
            }
            Listing { second, rank, told, last } => {
                packer.push(1 | u8::from(second) << 2 | rank << 3, 5);
                packer.push(told | last << 3, 5);
            }
            Asking { second, rank, threads } => {
                packer.push(2 | u8::from(second) << 2 | rank << 3, 5);
                packer.push(threads, 5);
            }
        }
        if self.pool != Pool::None {
            idle.iter().for_each(|idle| packer.push(*idle, 3));
            self.ranks.iter().for_each(|rank| packer.push(rank.woken, 3));
        }
        packer.flags(ended.as_flattened());
        packer.flags(changed.as_flattened().as_flattened());
        let lines = lines.as_flattened().as_flattened().as_flattened();
        lines.iter().for_each(|line| packer.line(*line));
        Packed(packer.words)
    }
}
