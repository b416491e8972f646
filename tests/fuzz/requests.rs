//! Fuzz target of the user headers of one-sided requests. An input is a header. `tests/fuzz_corpus.rs` replays the corpus
//! without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run requests`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = transport_lapi::fuzz::request(input);
});
