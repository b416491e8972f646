//! Fuzz target of the heads of frames of the reliable layer. An input is the length of the body and the head. `tests/fuzz_corpus.rs` replays the corpus
//! without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run frames`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Some((body, head)) = input.split_first_chunk() else { return };
    let _ = transport_lapi::fuzz::frame(head, u16::from_le_bytes(*body).into());
});
