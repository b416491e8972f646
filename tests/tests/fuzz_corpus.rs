//! The packet decoder against the corpus of its fuzz target and against seeded random heads, without a fuzzer. The name
//! of a corpus file says what the decoder must answer. For files that a fuzzer has added, it must only not panic.

use std::fs;
use std::path::Path;

use mpj_tests::conformance::Numbers;
use transport_lapi::fuzz_decode;

/// Kinds of packets, and the bit that announces counters.
const KINDS: u64 = 11;
const COUNTERS: u8 = 0x80;
/// Shortest and longest head that a packet can have.
const SHORTEST: usize = 8;
const LONGEST: usize = 8 + 8 + 24 + 128;

/// An input of the fuzz target: the length of the body, then the head.
fn decode(input: &[u8]) -> Option<bool> {
    let (body, head) = input.split_first_chunk()?;
    Some(fuzz_decode(head, u16::from_le_bytes(*body).into()))
}

#[test]
fn the_corpus_is_answered_as_its_names_say() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/wire");
    let (mut accepted, mut refused) = (0, 0);
    for file in fs::read_dir(&corpus).expect("the corpus is checked in") {
        let path = file.expect("the corpus can be listed").path();
        let input = fs::read(&path).expect("the corpus can be read");
        let name = path.file_name().and_then(|name| name.to_str()).expect("names are text");
        let answer = decode(&input);
        if name.starts_with("accepted_") {
            assert_eq!(answer, Some(true), "{name}");
            accepted += 1;
        } else if name.starts_with("refused_") {
            assert_eq!(answer, Some(false), "{name}");
            refused += 1;
        }
    }
    assert!(accepted >= 17 && refused >= 24, "{accepted} accepted and {refused} refused");
}

/// Every file of the corpus with each of its bits flipped; a packet that is cut short is refused.
#[test]
fn neighbours_of_the_corpus_do_no_harm() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/wire");
    let mut refused = 0;
    for file in fs::read_dir(&corpus).expect("the corpus is checked in") {
        let path = file.expect("the corpus can be listed").path();
        let input = fs::read(&path).expect("the corpus can be read");
        for bit in 0..input.len() * 8 {
            let mut neighbour = input.clone();
            neighbour[bit / 8] ^= 1 << (bit % 8);
            refused += usize::from(decode(&neighbour) == Some(false));
        }
        let is_packet = decode(&input) == Some(true);
        for len in (2..input.len()).filter(|_| is_packet) {
            assert_eq!(decode(&input[..len]), Some(false), "{} cut at {len}", path.display());
        }
    }
    assert!(refused > 1_000);
}

/// Random heads: what is accepted has the size of a packet.
#[test]
fn random_heads_are_refused_or_have_the_size_of_a_packet() {
    let mut numbers = Numbers(2026);
    for round in 0..200_000 {
        let len = numbers.below(LONGEST + 20);
        let head = numbers.bytes(len);
        let body = numbers.below(1 << 16);
        if fuzz_decode(&head, body) {
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
        if fuzz_decode(&head, numbers.below(3) * 4_000) {
            assert!((1..=KINDS as u8).contains(&kind), "round {round}: kind {kind}");
            assert!(kind <= 2 || announced == 0, "round {round}: counters in kind {kind}");
            assert!(head.len() <= LONGEST && claimed <= 128, "round {round}");
            accepted[usize::from(kind)] += 1;
        }
    }
    for (kind, accepted) in accepted.iter().enumerate().skip(1) {
        assert!(*accepted > 200, "kind {kind} was accepted {accepted} times");
    }
}
