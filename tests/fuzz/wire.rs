//! Fuzz target of the packet decoder. An input is two bytes for the length of the frame's body, and
//! the head of the frame; `tests/fuzz_corpus.rs` replays the corpus without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run wire`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((body, head)) = input.split_first_chunk() else { return };
    let body = usize::from(u16::from_le_bytes(*body));
    if transport_lapi::fuzz::packet(head, body) {
        assert!(head.len() >= 8, "a packet was made of too few bytes");
    }
});
