//! Numbers that depend only on a seed and a position, so that every rank can make its part of the same data.
#![allow(dead_code, reason = "no single example needs all of it")]

/// Returns the `index`-th number of the SplitMix64 sequence of `seed`.
pub fn mixed(seed: u64, index: u64) -> u64 {
    let mut bits = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns [`mixed`], scaled to -1..1.
pub fn uniform(seed: u64, index: u64) -> f64 {
    // An f64 represents the upper 53 bits exactly.
    (mixed(seed, index) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
