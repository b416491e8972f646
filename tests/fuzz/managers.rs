//! Fuzz target of what process managers say. An input is a letter for the form, and a record. `tests/fuzz_corpus.rs`
//! replays the corpus without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run managers`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = transport_lapi::fuzz::manager(input);
});
