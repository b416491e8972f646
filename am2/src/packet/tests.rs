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
        sequence: u16,
        tag: u64,
        offset: u64,
    ) -> Header {
        let ticket = Ticket { index, instance, sequence };
        let offset = if kind.is_long() { offset } else { 0 };
        Header { kind, handler, source, dest, ticket, len: 0, tag: Tag(tag), offset }
    }
}

fn sample(args: &[u32]) -> Vec<u8> {
    let kind = Kind::Message(Opcode::RequestShort);
    let header = Header { kind, handler: 1, source: 2, dest: 3, tag: Tag::ALL, ..Header::EMPTY };
    header.encode(args).bytes().to_vec()
}

/// The packet at the beginning of `bytes`, and its length; the arguments and the length are `None` if the arguments do
/// not match their number.
fn decode(bytes: &[u8]) -> Result<(Header, Option<(Args, usize)>), PacketError> {
    // What was there before must not matter.
    let (mut header, mut args) =
        (Header { len: 9, offset: 9, ..Header::EMPTY }, Args::new(&[9; MAX_SHORT]).unwrap());
    let len = Unpacked::of(bytes).decode(&mut header, &mut args)?;
    if len.is_none() {
        assert!(args.words().is_empty());
    }
    Ok((header, len.map(|len| (args, len))))
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(header in header(), words in vec(any::<u32>(), 0..=MAX_SHORT)) {
        let encoded = header.encode(&words);
        prop_assert_eq!(encoded.bytes().len() % 8, 0);
        prop_assert!(encoded.bytes().len() <= transport_lapi::MAX_UHDR);
        let (decoded, rest) = decode(encoded.bytes()).unwrap();
        let (args, len) = rest.unwrap();
        prop_assert_eq!((decoded, args.words(), len), (header, &words[..], encoded.bytes().len()));
    }

    #[test]
    fn what_is_packed_is_unpacked(
        header in header(),
        words in vec(any::<u32>(), 0..=MAX_SHORT),
        payload in vec(any::<u8>(), 0..300),
    ) {
        let packet = header.encode(&words).bytes().to_vec();
        let copy = |word, data: &[u8]| (word, data.to_vec());
        let Some((word, data)) = with_packed(&header, &words, &payload, copy) else {
            prop_assert!(packet.len() + payload.len() > PACKED);
            return Ok(());
        };
        let data = ForeignBytes::from_slice(&data);
        let unpacked = Unpacked::new(word, data);
        let bytes = &bytemuck::cast_slice(&unpacked.words)[..unpacked.len()];
        let (decoded, rest) = decode(bytes).unwrap();
        let (args, len) = rest.unwrap();
        prop_assert_eq!((decoded, args.words(), len), (header, &words[..], packet.len()));
        let mut rest = vec![0; payload.len() + 1];
        prop_assert_eq!(Unpacked::payload(len, data).copy_to(&mut rest), payload.len());
        prop_assert_eq!(&rest[..payload.len()], &payload[..]);
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
            bytes[3] = 0;
        }
        if let Ok((header, Some((args, len)))) = decode(&bytes) {
            let encoded = header.encode(args.words());
            prop_assert_eq!(encoded.bytes(), &bytes[..len]);
        }
    }
}

#[test]
fn a_packet_that_is_too_short_is_refused() {
    for len in 0..FIXED {
        assert_eq!(decode(&sample(&[])[..len]), Err(PacketError::Truncated { len }));
    }
    let long = Header { kind: Kind::Message(Opcode::ReplyLong), ..Header::EMPTY }.encode(&[]);
    for len in 0..FIXED + OFFSET {
        assert_eq!(decode(&long.bytes()[..len]), Err(PacketError::Truncated { len }));
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
    for code in [0, 11, 15] {
        let changes = [(0, RETURNED), (3, code | 1 << 4)];
        assert_eq!(with(&changes), Err(PacketError::UnknownStatus(code)));
    }
    for code in [0, 7, 15] {
        let changes = [(0, RETURNED), (3, 1 | code << 4)];
        assert_eq!(with(&changes), Err(PacketError::UnknownOpcode(code)));
    }
    assert_eq!(with(&[(3, 9)]), Err(PacketError::NotZero { at: 3, value: 9 }));
}

#[test]
fn arguments_that_do_not_match_their_number_are_none() {
    for (count, right) in [(1, 8), (2, 8), (16, 64)] {
        for extra in [0, 4, 8, 56, 64, 72] {
            let mut bytes = sample(&[]);
            bytes[2] = count;
            bytes.extend(vec![0; extra]);
            let (_, args) = decode(&bytes).unwrap();
            assert_eq!(args.is_some(), extra >= right, "{count} arguments in {extra} bytes");
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
