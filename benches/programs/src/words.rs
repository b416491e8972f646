//! Storing and reading every word of a buffer, as programs do.
//!
//! The workers of mpj and of its peers are different programs, and a compiler may translate the same loop differently in
//! each of them, and places it elsewhere. That must not count as a difference between libraries. So on x86-64 the loops
//! are in assembly, and each begins on a cache line: all workers execute the same code, equally aligned.

use std::hint::black_box;

/// Bytes of a word.
const WORD: usize = 8;
/// Bytes that one turn of a loop handles.
const BLOCK: usize = 4 * WORD;

/// Stores every word of `buffer`, with values that differ from those of other turns.
///
/// Never inlined, as is [`read`]: where the loop is the compiler's, a copy in the rounds and another in the passes that are
/// timed alone may be compiled, or aligned, differently, and their difference would count as time of the messages.
#[inline(never)]
pub fn store(buffer: &mut [u8], turn: u64) {
    let first = (turn << 32) + 1;
    let whole = buffer.len() - buffer.len() % BLOCK;
    let (blocks, rest) = buffer.split_at_mut(whole);
    blocks::store(blocks, first);
    let mut words = rest.chunks_exact_mut(WORD);
    for (value, word) in (first + (whole / WORD) as u64..).zip(&mut words) {
        word.copy_from_slice(&value.to_ne_bytes());
    }
    words.into_remainder().fill(turn as u8);
}

/// Reads every word of `buffer`.
#[inline(never)]
pub fn read(buffer: &[u8]) {
    black_box(sum(buffer));
}

/// Returns the sum of all words and of the bytes behind them.
fn sum(buffer: &[u8]) -> u64 {
    let (blocks, rest) = buffer.split_at(buffer.len() - buffer.len() % BLOCK);
    let words = rest.chunks_exact(WORD);
    let bytes = words.remainder().iter().map(|byte| u64::from(*byte));
    words.map(word).chain(bytes).fold(blocks::read(blocks), u64::wrapping_add)
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("a word has 8 bytes"))
}

/// The loops over whole blocks, in assembly.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[expect(unsafe_code, reason = "the place of a loop can be determined in assembly only")]
mod blocks {
    use std::arch::asm;
    use std::arch::x86_64::{_mm_set_epi64x, _mm_set1_epi64x, _mm_setzero_si128, _mm_storeu_si128};

    /// Stores the values from `first` on. The length is a multiple of [`super::BLOCK`].
    pub(super) fn store(blocks: &mut [u8], first: u64) {
        if blocks.is_empty() {
            return;
        }
        // SAFETY: the loop writes 32 bytes from `at` on until `at` is `end`, so whole blocks inside the slice; the
        // instructions belong to every processor of this architecture.
        unsafe {
            asm!(
                ".p2align 6",
                "2:",
                "movdqa {next}, {values}",
                "paddq {next}, {two}",
                "movdqu [{at}], {values}",
                "movdqu [{at} + 16], {next}",
                "paddq {values}, {four}",
                "add {at}, 32",
                "cmp {at}, {end}",
                "jne 2b",
                at = inout(reg) blocks.as_mut_ptr() => _,
                end = in(reg) blocks.as_mut_ptr_range().end,
                values = inout(xmm_reg) _mm_set_epi64x((first + 1) as i64, first as i64) => _,
                next = out(xmm_reg) _,
                two = in(xmm_reg) _mm_set1_epi64x(2),
                four = in(xmm_reg) _mm_set1_epi64x(4),
                options(nostack),
            );
        }
    }

    /// Returns the sum of all words. The length is a multiple of [`super::BLOCK`].
    pub(super) fn read(blocks: &[u8]) -> u64 {
        if blocks.is_empty() {
            return 0;
        }
        let mut sums = [0_u64; 2];
        // SAFETY: as in `store`, but the loop reads; the vector stored at the end has two words.
        unsafe {
            let mut one = _mm_setzero_si128();
            asm!(
                ".p2align 6",
                "2:",
                "movdqu {words}, [{at}]",
                "paddq {one}, {words}",
                "movdqu {words}, [{at} + 16]",
                "paddq {other}, {words}",
                "add {at}, 32",
                "cmp {at}, {end}",
                "jne 2b",
                "paddq {one}, {other}",
                at = inout(reg) blocks.as_ptr() => _,
                end = in(reg) blocks.as_ptr_range().end,
                one = inout(xmm_reg) one,
                other = inout(xmm_reg) _mm_setzero_si128() => _,
                words = out(xmm_reg) _,
                options(nostack, readonly),
            );
            _mm_storeu_si128(sums.as_mut_ptr().cast(), one);
        }
        sums[0].wrapping_add(sums[1])
    }
}

/// The loops over whole blocks on other processors and under Miri, as the compiler translates them.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod blocks {
    use std::hint::black_box;

    use crate::words::{WORD, word};

    /// Stores the values from `first` on. The length is a multiple of [`super::BLOCK`].
    pub(super) fn store(blocks: &mut [u8], first: u64) {
        for (value, word) in (first..).zip(blocks.chunks_exact_mut(WORD)) {
            word.copy_from_slice(&value.to_ne_bytes());
        }
        // It may read the buffer, so the compiler keeps every store.
        black_box(blocks);
    }

    /// Returns the sum of all words. The length is a multiple of [`super::BLOCK`].
    pub(super) fn read(blocks: &[u8]) -> u64 {
        // It hides the content, so the compiler keeps every read.
        black_box(blocks).chunks_exact(WORD).map(word).fold(0, u64::wrapping_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_gets_a_value_that_it_did_not_have() {
        for len in [0, 7, 8, 31, 32, 37, 63, 64, 200] {
            let mut buffer = vec![0; len];
            let mut seen = std::collections::HashSet::new();
            for turn in 1..4 {
                store(&mut buffer, turn);
                let mut words = buffer.chunks_exact(WORD);
                assert!(words.all(|word| seen.insert(word.to_vec())), "{len} bytes, turn {turn}");
                assert!(buffer[len - len % WORD..].iter().all(|byte| *byte == turn as u8));
            }
        }
    }

    #[test]
    fn the_bytes_around_the_buffer_stay() {
        let mut around = [9; 120];
        store(&mut around[8..8 + 96], 1);
        assert_eq!((&around[..8], &around[104..]), (&[9; 8][..], &[9; 16][..]));
    }

    #[test]
    fn every_word_is_read() {
        let buffer: Vec<u8> = (0..203_u32).map(|place| (place * 37) as u8).collect();
        for len in 0..buffer.len() {
            let words = buffer[..len].chunks_exact(WORD);
            let bytes = words.remainder().iter().map(|byte| u64::from(*byte));
            let sum = words.map(word).chain(bytes).fold(0, u64::wrapping_add);
            assert_eq!(super::sum(&buffer[..len]), sum, "{len} bytes");
        }
    }
}
