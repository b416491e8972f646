//! Fuzz target of the messages between `mpjrun` and its agents, behind a byte for the direction. `tests/fuzz_corpus.rs`
//! replays the corpus without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run agents`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = transport_lapi::fuzz::agents(input);
});
