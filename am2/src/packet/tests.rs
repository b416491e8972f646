//! The codec in both directions, on random bytes, and on each violation.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::MAX_SHORT;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        select(Opcode::ALL.to_vec()).prop_map(Kind::Message),
        Just(Kind::Acknowledge),
        Just(Kind::Exchange),
        (select(Opcode::ALL.to_vec()), select(Status::ALL.to_vec()))
            .prop_map(|(opcode, status)| Kind::Returned { opcode, status }),
    ]
}

prop_compose! {
    fn header()(
        kind in kind(),
        handler: u8,
        source: u16,
        dest: u16,
        index: u32,
        instance: u16,
        sequence: u32,
        len: u32,
        tag: u64,
        offset: u64,
    ) -> Header {
        let ticket = Ticket { index, instance, sequence };
        Header { kind, handler, source, dest, ticket, len, tag: Tag(tag), offset }
    }
}

fn sample(args: &[u32]) -> Vec<u8> {
    let header = Header {
        kind: Kind::Message(Opcode::RequestShort),
        handler: 1,
        source: 2,
        dest: 3,
        ticket: Ticket::default(),
        len: 0,
        tag: Tag::ALL,
        offset: 0,
    };
    header.encode(&Args::new(args).unwrap()).bytes().to_vec()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(header in header(), words in vec(any::<u32>(), 0..=MAX_SHORT)) {
        let args = Args::new(&words).unwrap();
        let encoded = header.encode(&args);
        prop_assert_eq!(encoded.bytes().len() % 8, 0);
        prop_assert!(encoded.bytes().len() <= transport_lapi::MAX_UHDR);
        prop_assert_eq!(decode(encoded.bytes()), Ok((header, Some(args))));
    }

    /// Small values in the first bytes, so that many of the packets are well-formed.
    #[test]
    fn random_bytes_are_refused_or_are_the_encoding_of_what_they_decode_to(
        first in vec(0_u8..12, 6),
        rest in vec(any::<u8>(), 0..130),
        is_clean: bool,
    ) {
        let mut bytes = [first, rest].concat();
        if is_clean {
            bytes[3..6].fill(0);
        }
        if let Ok((header, Some(args))) = decode(&bytes) {
            let encoded = header.encode(&args);
            prop_assert_eq!(encoded.bytes(), &bytes[..]);
        }
    }
}

#[test]
fn a_packet_that_is_too_short_is_refused() {
    for len in 0..FIXED {
        assert_eq!(decode(&sample(&[])[..len]), Err(PacketError::Truncated { len }));
    }
}

#[test]
fn unknown_codes_are_refused() {
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = sample(&[]);
        changes.iter().for_each(|&(at, value)| bytes[at] = value);
        decode(&bytes).map(drop)
    };
    for kind in [0, 10, 255] {
        assert_eq!(with(&[(0, kind)]), Err(PacketError::UnknownKind(kind)));
    }
    for code in [0, 11, 255] {
        let changes = [(0, RETURNED), (3, code), (4, 1)];
        assert_eq!(with(&changes), Err(PacketError::UnknownStatus(code)));
    }
    for code in [0, 7, 255] {
        let changes = [(0, RETURNED), (3, 1), (4, code)];
        assert_eq!(with(&changes), Err(PacketError::UnknownOpcode(code)));
    }
    for at in [3, 4, 5] {
        assert_eq!(with(&[(at, 9)]), Err(PacketError::NotZero { at, value: 9 }));
    }
}

#[test]
fn arguments_that_do_not_match_their_number_are_none() {
    for (count, right) in [(1, 8), (2, 8), (16, 64)] {
        for extra in [0, 4, 8, 56, 64, 72] {
            let mut bytes = sample(&[]);
            bytes[2] = count;
            bytes.extend(vec![0; extra]);
            let (_, args) = decode(&bytes).unwrap();
            assert_eq!(args.is_some(), extra == right, "{count} arguments in {extra} bytes");
        }
    }
    let mut bytes = sample(&[]);
    bytes[2] = 17;
    bytes.extend([0; 72]);
    assert_eq!(decode(&bytes).unwrap().1, None, "more than the limit");
    let mut bytes = sample(&[7]);
    *bytes.last_mut().unwrap() = 1;
    assert_eq!(decode(&bytes).unwrap().1, None, "padding that is not 0");
}
