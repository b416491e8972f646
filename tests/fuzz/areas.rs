//! Fuzz target of descriptions of memory in shared areas. An input is five words. `tests/fuzz_corpus.rs` replays the corpus
//! without a fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run areas`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = transport_lapi::fuzz::area(input);
});
