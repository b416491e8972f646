//! Random numbers and bytes from a seed, so that a failure can be repeated.

use std::sync::OnceLock;

/// Random numbers from a seed (SplitMix64), so that a failure can be repeated.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    /// The next number.
    pub fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next_number() % limit as u64) as usize
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// `len` bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        payload(self.next_number(), len)
    }
}

/// Bytes that depend on `seed` and on their place, so that a wrong message or a piece in the wrong place shows. They
/// are cut out of one block, since tests need many.
pub fn payload(seed: u64, len: usize) -> Vec<u8> {
    static BLOCK: OnceLock<Vec<u8>> = OnceLock::new();
    // A prime number, so that pieces of usual lengths begin at different places of the block.
    const BYTES: usize = 2_097_143;
    let block = BLOCK.get_or_init(|| {
        let (mut numbers, mut block) = (Numbers(1), Vec::with_capacity(BYTES + 8));
        while block.len() < BYTES {
            block.extend_from_slice(&numbers.next_number().to_le_bytes());
        }
        block.truncate(BYTES);
        block
    });
    cut(block, Numbers(seed).below(BYTES), len)
}

/// `len` bytes of the endlessly repeated block, from one of its places on.
pub fn cut(block: &[u8], start: usize, len: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(len);
    let mut rest = &block[start..];
    while bytes.len() < len {
        bytes.extend_from_slice(&rest[..rest.len().min(len - bytes.len())]);
        rest = block;
    }
    bytes
}
