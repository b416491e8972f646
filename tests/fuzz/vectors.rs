//! Fuzz target of vectors that peers send ahead. An input is its words. `tests/fuzz_corpus.rs` replays the corpus
//! without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run vectors`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = transport_lapi::fuzz::vector(input);
});
