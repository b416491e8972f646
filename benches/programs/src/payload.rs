//! Payloads that can be checked: every byte depends on the message and on its place in it.

use crate::runtime::Failure;

/// Fills `buffer` with the pattern number `seed`, which differs from every other one almost
/// everywhere, and from itself at every other place.
pub fn fill(buffer: &mut [u8], seed: u64) {
    for (place, byte) in (0_u64..).zip(buffer) {
        *byte = pattern(seed, place);
    }
}

/// Checks that `buffer` holds the pattern number `seed`.
///
/// # Errors
/// Names the first byte that is wrong.
pub fn check(buffer: &[u8], seed: u64) -> Result<(), Failure> {
    match (0_u64..).zip(buffer).find(|&(place, &byte)| byte != pattern(seed, place)) {
        None => Ok(()),
        Some((place, byte)) => Err(Failure::new(format_args!(
            "wrong payload: byte {place} of {} is {byte:#04x}, not {:#04x}",
            buffer.len(),
            pattern(seed, place),
        ))),
    }
}

fn pattern(seed: u64, place: u64) -> u8 {
    let mixed = (seed << 40).wrapping_add(place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8
}
