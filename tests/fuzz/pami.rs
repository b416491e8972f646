//! Fuzz target of the packets of PAMI. An input is a list of packets. `tests/fuzz_corpus.rs` replays the corpus without a
//! fuzzer.
//!
//! From the folder above this one: `cargo +nightly fuzz run pami`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _ = pami::fuzz::packets(input);
});
