//! The entries of the fuzz targets against their corpora, and the packet decoder against seeded random heads, without a
//! fuzzer. The name of a corpus file says what the entry must answer. For files that a fuzzer has added, it must only
//! not panic.

use std::fs;
use std::path::{Path, PathBuf};

use mpj_tests::conformance::Numbers;
use transport_lapi::fuzz;

/// Kinds of packets, and the bit that announces counters.
const KINDS: u64 = 13;
const COUNTERS: u8 = 0x80;
/// Shortest and longest head that a packet can have.
const SHORTEST: usize = 8;
const LONGEST: usize = 8 + 8 + 24 + 128;

/// The entry of a fuzz target.
type Entry = fn(&[u8]) -> bool;

/// The entries by the names of their targets.
const ENTRIES: [(&str, Entry); 8] = [
    ("wire", |input| with_body(input, fuzz::packet)),
    ("requests", fuzz::request),
    ("vectors", fuzz::vector),
    ("areas", fuzz::area),
    ("agents", fuzz::agents),
    ("am2", am2::fuzz::packets),
    ("managers", fuzz::manager),
    ("pami", pami::fuzz::packets),
];

/// An input that begins with two bytes for the length of the body.
fn with_body(input: &[u8], entry: fn(&[u8], usize) -> bool) -> bool {
    let split = input.split_first_chunk();
    split.is_some_and(|(body, head)| entry(head, u16::from_le_bytes(*body).into()))
}

/// The files of the corpus of a target, with their contents.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let files = fs::read_dir(&folder).expect("the corpus is checked in");
    let files = files.map(|file| file.expect("the corpus can be listed").path());
    files.map(|path| (path.clone(), fs::read(&path).expect("the corpus can be read"))).collect()
}

#[test]
fn the_corpora_are_answered_as_their_names_say() {
    for (target, entry) in ENTRIES {
        let (mut accepted, mut refused) = (0, 0);
        for (path, input) in corpus(target) {
            let name = path.file_name().and_then(|name| name.to_str()).expect("names are text");
            let answer = entry(&input);
            if name.starts_with("accepted_") {
                assert!(answer, "{target}/{name}");
                accepted += 1;
            } else if name.starts_with("refused_") {
                assert!(!answer, "{target}/{name}");
                refused += 1;
            }
        }
        assert!(accepted >= 4 && refused >= 8, "{target}: {accepted} and {refused}");
    }
}

/// Every file of the corpora with each of its bits flipped, and cut at each length.
#[test]
fn neighbours_of_the_corpora_do_no_harm() {
    for (target, entry) in ENTRIES {
        let (mut accepted, mut refused) = (0, 0);
        let mut count = |input: &[u8]| match entry(input) {
            true => accepted += 1,
            false => refused += 1,
        };
        for (_, input) in corpus(target) {
            for bit in 0..input.len() * 8 {
                let mut neighbour = input.clone();
                neighbour[bit / 8] ^= 1 << (bit % 8);
                count(&neighbour);
            }
            (0..input.len()).for_each(|len| count(&input[..len]));
        }
        assert!(accepted > 100 && refused > 500, "{target}: {accepted} and {refused}");
    }
}

#[test]
fn packets_that_are_cut_short_are_refused() {
    for (path, input) in corpus("wire") {
        let is_packet = with_body(&input, fuzz::packet);
        for len in (2..input.len()).filter(|_| is_packet) {
            assert!(!with_body(&input[..len], fuzz::packet), "{} cut at {len}", path.display());
        }
    }
}

/// Words that are small, near powers of two, or near the maximum, in lists that begin like a request, a vector or a
/// description of memory.
#[test]
fn random_words_do_no_harm() {
    let mut numbers = Numbers(17);
    let mut accepted = [0; 3];
    for _ in 0..200_000 {
        let words: Vec<u64> = (0..numbers.below(12))
            .map(|_| match numbers.below(6) {
                0 => numbers.next_number(),
                1 => (1_u64 << numbers.below(64)).wrapping_sub(numbers.below(3) as u64),
                2 => u64::MAX - numbers.below(3) as u64,
                3 => 1 << 63 | numbers.below(5_000) as u64,
                _ => numbers.below(100) as u64,
            })
            .collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let entries: [Entry; 3] = [fuzz::request, fuzz::vector, fuzz::area];
        for (count, entry) in accepted.iter_mut().zip(entries) {
            *count += usize::from(entry(&bytes));
        }
    }
    assert!(accepted.iter().all(|count| *count > 10), "{accepted:?}");
}

/// Random heads: what is accepted has the size of a packet.
#[test]
fn random_heads_are_refused_or_have_the_size_of_a_packet() {
    let mut numbers = Numbers(2026);
    for round in 0..200_000 {
        let len = numbers.below(LONGEST + 20);
        let head = numbers.bytes(len);
        let body = numbers.below(1 << 16);
        if fuzz::packet(&head, body) {
            assert!((SHORTEST..=LONGEST).contains(&len), "round {round}: {len} bytes");
        }
    }
}

/// Heads that begin like a packet: many are accepted, so the later checks are reached, and what is accepted is of a
/// known kind.
#[test]
fn random_fields_behind_a_known_kind() {
    let mut numbers = Numbers(7);
    let mut accepted = [0; KINDS as usize + 1];
    for round in 0..500_000 {
        let kind = (numbers.next_number() % (KINDS + 2)) as u8;
        let uhdr = [0, 8, 24, 128, 136][numbers.below(5)];
        let fields = 8 * numbers.below(5);
        let mut head = numbers.bytes(SHORTEST + fields + uhdr);
        let announced = if numbers.below(2) == 0 { COUNTERS } else { 0 };
        head[0] = kind | announced;
        let claimed = if numbers.below(2) == 0 { head.len() - SHORTEST - fields } else { 0 };
        head[2..4].copy_from_slice(&(claimed as u16).to_le_bytes());
        if fuzz::packet(&head, numbers.below(3) * 4_000) {
            assert!((1..=KINDS as u8).contains(&kind), "round {round}: kind {kind}");
            assert!(
                [1, 2, 12].contains(&kind) || announced == 0,
                "round {round}: counters in kind {kind}"
            );
            assert!(head.len() <= LONGEST && claimed <= 128, "round {round}");
            accepted[usize::from(kind)] += 1;
        }
    }
    for (kind, accepted) in accepted.iter().enumerate().skip(1) {
        assert!(*accepted > 200, "kind {kind} was accepted {accepted} times");
    }
}
