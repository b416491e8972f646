//! Spans, compared with copies made byte by byte.

use proptest::prelude::*;

use super::*;

fn send(bytes: &[u8]) -> SendRegion {
    // SAFETY: G1 of `crate::memory::region`: the tests keep their bytes until the layout is gone.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

fn receive(bytes: &mut [u8]) -> RecvRegion {
    // SAFETY: G2 of `crate::memory::region`: the tests read the bytes only after the last store.
    unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}

/// The bytes of a source, packed in pieces of these lengths, repeated as needed.
fn packed(source: &Source, pieces: &[usize]) -> Vec<u8> {
    let mut whole = Vec::new();
    for &piece in pieces.iter().cycle() {
        let len = piece.min(source.len() - whole.len());
        if len == 0 && whole.len() == source.len() {
            break;
        }
        whole.extend(source.piece(whole.len(), len).to_vec());
    }
    whole
}

/// Stores bytes in pieces of these lengths, repeated as needed; returns how many fitted.
fn unpack(sink: &mut Sink, bytes: &[u8], pieces: &[usize]) -> usize {
    let (mut at, mut stored) = (0, 0);
    for &piece in pieces.iter().cycle() {
        if at == bytes.len() {
            break;
        }
        let part = &bytes[at..bytes.len().min(at + piece)];
        stored += sink.store(at, ForeignBytes::from_slice(part));
        at += part.len();
    }
    stored
}

proptest! {
    #[test]
    fn spans_follow_each_other(
        lens in prop::collection::vec(0usize..30, 0..8),
        pieces in prop::collection::vec(1usize..50, 1..5),
        limit in 0usize..200,
    ) {
        let parts: Vec<Vec<u8>> = lens.iter().map(|&len| numbered(len)).collect();
        let expected = parts.concat();
        let source = Spans::to_send(parts.iter().map(|part| send(part))).unwrap();
        prop_assert_eq!(&packed(&source, &pieces), &expected);

        let mut landings: Vec<Vec<u8>> = lens.iter().map(|&len| vec![0; len]).collect();
        let regions: Vec<_> = landings.iter_mut().map(|landing| receive(landing)).collect();
        let mut sink = Spans::to_receive(regions).unwrap().truncated(limit);
        let stored = unpack(&mut sink, &expected, &pieces);
        prop_assert_eq!(stored, limit.min(expected.len()));
        drop(sink);
        let mut cut = expected;
        cut[stored..].fill(0);
        prop_assert_eq!(landings.concat(), cut);
    }
}

#[test]
fn spans_at_no_address_are_refused() {
    // SAFETY: the null address is refused, so nothing is read.
    let nowhere = unsafe { SendRegion::new(std::ptr::null(), 40) };
    assert!(Spans::to_send([send(&[1]), nowhere]).is_none());
}
