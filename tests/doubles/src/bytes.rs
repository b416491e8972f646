//! A comparison of bytes that is quick in a build without optimisation.

/// Whether all bytes are `byte`: the first one is, and each further one equals the one before.
pub fn are_all(bytes: &[u8], byte: u8) -> bool {
    let Some((first, rest)) = bytes.split_first() else { return true };
    *first == byte && *rest == bytes[..rest.len()]
}

#[cfg(test)]
mod tests {
    use super::are_all;

    #[test]
    fn one_other_byte_is_seen_wherever_it_is() {
        assert!(are_all(&[], 7));
        for len in 1..50 {
            let mut bytes = vec![7; len];
            assert!(are_all(&bytes, 7) && !are_all(&bytes, 8));
            for place in 0..len {
                bytes[place] = 9;
                assert!(!are_all(&bytes, 7), "{place} of {len}");
                bytes[place] = 7;
            }
        }
    }
}
