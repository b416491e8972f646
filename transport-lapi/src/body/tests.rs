//! Layouts against copies made byte by byte.

use proptest::prelude::*;

use super::*;

fn send(bytes: &[u8]) -> SendRegion {
    // SAFETY: G1 of `crate::region`: the tests keep their bytes until the layout is gone.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

fn receive(bytes: &mut [u8]) -> RecvRegion {
    // SAFETY: G2 of `crate::region`: the tests look at the bytes after the last store.
    unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}

/// The bytes of a source, taken in pieces of these lengths, over and over.
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

/// Stores bytes in pieces of these lengths, over and over; returns how many fitted.
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

/// Where the byte at `offset` of a message of such blocks lies.
fn place(block: usize, stride: usize, offset: usize) -> usize {
    offset / block * stride + offset % block
}

proptest! {
    #[test]
    fn blocks_are_where_their_shape_says(
        block in 1usize..40,
        gap in 0usize..20,
        count in 0usize..20,
        pieces in prop::collection::vec(1usize..50, 1..5),
        behind in 0usize..10,
    ) {
        let shape = Strided::new(block, block + gap, count).unwrap();
        let memory = numbered(shape.extent() + behind);
        let source = shape.to_send(send(&memory)).unwrap();
        let expected: Vec<u8> =
            (0..shape.size()).map(|offset| memory[place(block, block + gap, offset)]).collect();
        prop_assert_eq!(&packed(&source, &pieces), &expected);

        let mut landing = vec![0; memory.len()];
        let mut sink = shape.to_receive(receive(&mut landing)).unwrap();
        prop_assert_eq!(unpack(&mut sink, &expected, &pieces), expected.len());
        drop(sink);
        let mut untouched = vec![0; memory.len()];
        for offset in 0..shape.size() {
            let at = place(block, block + gap, offset);
            untouched[at] = memory[at];
        }
        prop_assert_eq!(landing, untouched);
    }

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
fn impossible_shapes_are_refused() {
    assert!(Strided::new(8, 7, 2).is_none(), "overlapping");
    assert!(Strided::new(8, 0, 1).is_some(), "one block has no distance");
    assert!(Strided::new(8, usize::MAX / 2, 9).is_none(), "longer than memory");
    let shape = Strided::new(8, 16, 3).unwrap();
    assert_eq!((shape.size(), shape.extent()), (24, 40));
    assert!(shape.to_send(send(&[0; 39])).is_none());
    assert!(shape.to_receive(receive(&mut [0; 39])).is_none());
    // SAFETY: nothing is read at no address: it is refused.
    let nowhere = unsafe { SendRegion::new(std::ptr::null(), 40) };
    assert!(shape.to_send(nowhere).is_none());
    assert!(Spans::to_send([send(&[1]), nowhere]).is_none());
}
