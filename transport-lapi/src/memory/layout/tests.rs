//! Layouts, compared with the list of the places of all bytes of a message.

use std::ops::ControlFlow;

use proptest::prelude::*;

use super::*;
use crate::memory::region::ForeignBytes;

/// A recipe for a layout; with small numbers, so that parts often meet, overlap and continue each other.
#[derive(Debug, Clone)]
enum Recipe {
    Contiguous(usize),
    Strided(usize, isize, usize),
    Indexed(Vec<(isize, usize)>),
    IndexedBlock(usize, Vec<isize>),
    Repeat(Box<Recipe>, usize, isize),
    Place(Box<Recipe>, Vec<isize>),
    List(Vec<(isize, Recipe)>),
}

fn recipe() -> impl Strategy<Value = Recipe> {
    use prop::collection::vec;
    let by = || -40isize..40;
    let leaf = prop_oneof![
        (0usize..20).prop_map(Recipe::Contiguous),
        (0usize..10, -12isize..30, 0usize..8).prop_map(|(b, s, c)| Recipe::Strided(b, s, c)),
        vec((by(), 0usize..9), 0..6).prop_map(Recipe::Indexed),
        (0usize..9, vec(by(), 0..6)).prop_map(|(len, at)| Recipe::IndexedBlock(len, at)),
    ];
    leaf.prop_recursive(3, 40, 4, move |inner| {
        prop_oneof![
            (inner.clone(), 0usize..20, -90isize..90)
                .prop_map(|(body, count, stride)| Recipe::Repeat(body.into(), count, stride)),
            (inner.clone(), vec(by(), 0..5))
                .prop_map(|(body, places)| Recipe::Place(body.into(), places)),
            vec((-150isize..150, inner), 0..4).prop_map(Recipe::List),
        ]
    })
}

impl Recipe {
    fn layout(&self) -> Layout {
        match self {
            Self::Contiguous(len) => Layout::contiguous(*len),
            Self::Strided(block, stride, count) => Layout::strided(*block, *stride, *count),
            Self::Indexed(blocks) => Layout::indexed(blocks.iter().copied()),
            Self::IndexedBlock(len, places) => Layout::indexed_block(*len, places.iter().copied()),
            Self::Repeat(body, count, stride) => body.layout().repeat(*count, *stride),
            Self::Place(body, places) => body.layout().place(places.iter().copied()),
            Self::List(parts) => Layout::list(parts.iter().map(|(at, part)| (*at, part.layout()))),
        }
        .unwrap()
    }

    /// The displacement of every byte of the message.
    fn places(&self) -> Vec<isize> {
        let run = |at: isize, len: usize| (0..len as isize).map(move |byte| at + byte);
        let moved = |places: Vec<isize>, by: isize| places.into_iter().map(move |at| at + by);
        match self {
            Self::Contiguous(len) => run(0, *len).collect(),
            Self::Strided(block, stride, count) => {
                (0..*count as isize).flat_map(|round| run(round * stride, *block)).collect()
            }
            Self::Indexed(blocks) => blocks.iter().flat_map(|&(at, len)| run(at, len)).collect(),
            Self::IndexedBlock(len, places) => {
                places.iter().flat_map(|&at| run(at, *len)).collect()
            }
            Self::Repeat(body, count, stride) => (0..*count as isize)
                .flat_map(|round| moved(body.places(), round * stride))
                .collect(),
            Self::Place(body, places) => {
                places.iter().flat_map(|&by| moved(body.places(), by)).collect()
            }
            Self::List(parts) => {
                parts.iter().flat_map(|(by, part)| moved(part.places(), *by)).collect()
            }
        }
    }
}

fn bounds(places: &[isize]) -> (isize, isize) {
    let low = places.iter().min().copied().unwrap_or(0);
    (low, places.iter().max().map_or(0, |high| high + 1))
}

fn has_overlap(places: &[isize]) -> bool {
    let mut sorted = places.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

fn numbered(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + i / 251) as u8 | 1).collect()
}

fn send(bytes: &[u8]) -> SendRegion {
    // SAFETY: G1 of `crate::memory::region`: the tests keep their bytes until the layout is gone.
    unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) }
}

fn receive(bytes: &mut [u8]) -> RecvRegion {
    // SAFETY: G2 of `crate::memory::region`: the tests read the bytes only after the last store.
    unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn shared(bytes: &mut [u8]) -> SharedBytes<'_> {
    // SAFETY: SB1 of `crate::memory::shared`: nobody else accesses them meanwhile.
    unsafe { SharedBytes::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Divides `len` into pieces of these lengths, repeated as needed.
fn pieces(len: usize, lens: &[usize]) -> Vec<(usize, usize)> {
    let (mut at, mut pieces) = (0, Vec::new());
    for &piece in lens.iter().cycle() {
        if at == len {
            return pieces;
        }
        pieces.push((at, piece.min(len - at)));
        at += piece.min(len - at);
    }
    unreachable!("the lengths are repeated for ever")
}

proptest! {
    #[test]
    fn sizes_and_bounds_are_those_of_the_bytes(recipe in recipe()) {
        let (layout, places) = (recipe.layout(), recipe.places());
        prop_assert_eq!(layout.size(), places.len());
        prop_assert_eq!(layout.bounds(), bounds(&places));
        let runs = places.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
        prop_assert!(layout.blocks() > runs || places.is_empty());
        let mut expanded = Vec::new();
        layout.body.each_block(layout.at, &mut |at, len| expanded.extend(at..at + len as isize));
        if places.is_empty() {
            prop_assert_eq!(layout.blocks(), 0);
        } else {
            prop_assert_eq!(&expanded, &places, "{}", layout);
        }
        if runs == 0 && layout.blocks() == 1 {
            prop_assert_eq!(layout.span(), Some((places[0], places.len())));
        }
    }

    #[test]
    fn spans_are_those_of_the_bytes(recipe in recipe(), offset in 0usize..200, len in 0usize..200) {
        let (layout, places) = (recipe.layout(), recipe.places());
        let mut expanded = Vec::new();
        let ended = layout.each_span(offset, len, &mut |at, len| {
            expanded.extend(at..at + len as isize);
            if expanded.len() > 100 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let wanted = &places[offset.min(places.len())..(offset + len).min(places.len())];
        prop_assert!(wanted.starts_with(&expanded), "{}", layout);
        prop_assert!(ended.is_break() || expanded == wanted, "{}", layout);
    }

    #[test]
    fn words_make_the_same_layout_and_others_make_none(recipe in recipe(), at: usize, word: u64) {
        let (layout, places) = (recipe.layout(), recipe.places());
        let mut words = layout.to_words().unwrap();
        let again = Layout::from_words(&words).unwrap();
        prop_assert_eq!(again.to_string(), layout.to_string());
        prop_assert_eq!((again.size(), again.bounds()), (places.len(), bounds(&places)));
        prop_assert_eq!(again.to_words().unwrap(), &words[..]);
        prop_assert!(Layout::from_words(&words[..words.len() - 1]).is_err());
        let place = at % words.len();
        words[place] = word;
        // Whatever it is, reading it ends; and what is read is written as it reads.
        if let Ok(other) = Layout::from_words(&words) {
            let words = other.to_words().unwrap();
            prop_assert_eq!(Layout::from_words(&words).unwrap().to_words().unwrap(), words);
        }
    }

    #[test]
    fn any_part_is_packed_from_any_offset(
        recipe in recipe(),
        lens in prop::collection::vec(1usize..60, 1..5),
        at in any::<prop::sample::Index>(),
        len in any::<prop::sample::Index>(),
        behind in 0usize..3,
    ) {
        let (layout, places) = (recipe.layout(), recipe.places());
        let (low, high) = bounds(&places);
        let memory = numbered(high.abs_diff(low) + behind);
        let expected: Vec<u8> = places.iter().map(|at| memory[(at - low) as usize]).collect();
        let source = layout.to_send(send(&memory), -low).unwrap();
        prop_assert_eq!(source.len(), expected.len());
        prop_assert_eq!(&source.piece(0, source.len()).to_vec(), &expected, "{}", layout);
        let mut joined = Vec::new();
        for (at, len) in pieces(expected.len(), &lens) {
            joined.extend(source.piece(at, len).to_vec());
        }
        prop_assert_eq!(&joined, &expected, "{}", layout);
        let at = at.index(expected.len() + 1);
        let len = len.index(expected.len() - at + 1);
        prop_assert_eq!(source.piece(at, len).to_vec(), &expected[at..at + len], "{}", layout);
        let mut slice = vec![0; len];
        prop_assert_eq!(layout.pack(&memory, -low, at, &mut slice), Ok(len));
        prop_assert_eq!(&slice, &expected[at..at + len], "{}", layout);
        slice.fill(0);
        let mut shown = memory.clone();
        prop_assert_eq!(layout.load(shared(&mut shown), -low, at, RecvPart::of_slice(&mut slice)), Ok(()));
        prop_assert_eq!(slice, &expected[at..at + len], "{}", layout);
        let mut longer = vec![0; expected.len() + behind];
        prop_assert_eq!(layout.pack(&memory, -low, 0, &mut longer), Ok(expected.len()));
        prop_assert_eq!(&longer[..expected.len()], &expected, "{}", layout);
    }

    #[test]
    fn what_is_unpacked_is_where_the_layout_says(
        recipe in recipe(),
        lens in prop::collection::vec(1usize..60, 1..5),
        backwards in any::<bool>(),
    ) {
        let (layout, places) = (recipe.layout(), recipe.places());
        let (low, high) = bounds(&places);
        let mut memory = vec![0; high.abs_diff(low) + 2];
        let (mut slice, mut window) = (memory.clone(), memory.clone());
        let sink = layout.to_receive(receive(&mut memory), 1 - low);
        if has_overlap(&places) {
            let result = layout.unpack(&numbered(places.len()), 0, &mut slice, 1 - low);
            prop_assert_eq!(result, Err(LayoutError::Overlap), "{}", layout);
            let result = layout.store(ForeignBytes::from_slice(&[]), 0, shared(&mut window), 1 - low);
            prop_assert_eq!(result, Err(LayoutError::Overlap), "{}", layout);
            prop_assert_eq!(sink.err(), Some(LayoutError::Overlap), "{}", layout);
            return Ok(());
        }
        let (mut sink, message) = (sink.unwrap(), numbered(places.len()));
        let mut pieces = pieces(message.len(), &lens);
        if backwards {
            pieces.reverse();
        }
        for (at, len) in pieces {
            let piece = &message[at..at + len];
            prop_assert_eq!(sink.store(at, ForeignBytes::from_slice(piece)), len);
            prop_assert_eq!(layout.unpack(piece, at, &mut slice, 1 - low), Ok(len));
            let from = ForeignBytes::from_slice(piece);
            prop_assert_eq!(layout.store(from, at, shared(&mut window), 1 - low), Ok(()));
        }
        drop(sink);
        let mut expected = vec![0; memory.len()];
        for (at, byte) in places.iter().zip(message) {
            expected[(at + 1 - low) as usize] = byte;
        }
        prop_assert_eq!(&memory, &expected, "{}", layout);
        prop_assert_eq!(&slice, &expected, "{}", layout);
        prop_assert_eq!(window, expected, "{}", layout);
    }

    #[test]
    fn memory_that_is_too_short_is_refused(recipe in recipe(), cut in 1usize..5) {
        let (layout, places) = (recipe.layout(), recipe.places());
        if places.is_empty() {
            return Ok(());
        }
        let (low, high) = bounds(&places);
        let memory = vec![0; high.abs_diff(low)];
        let (cut, len) = (cut.min(memory.len()), memory.len() - cut.min(memory.len()));
        for (memory, origin) in [(&memory[..len], -low), (&memory[..], -low - cut as isize)] {
            let refused = layout.to_send(send(memory), origin);
            prop_assert!(matches!(refused, Err(LayoutError::Outside { .. })), "{:?}", refused);
        }
    }
}

/// Each layout with its printed form after simplification.
#[test]
fn layouts_take_the_simplest_form() -> Result<(), LayoutError> {
    let block = Layout::contiguous(8)?;
    let two = Layout::indexed([(0, 1), (8, 8)])?;
    let long = Layout::strided(1, 2, 100)?;
    let nothing = || (7, Layout::contiguous(0).expect("no bytes are possible"));
    for (layout, form) in [
        (Layout::strided(8, 16, 0)?, "0 bytes"),
        (Layout::strided(8, 8, 5)?, "40 bytes"),
        (Layout::strided(8, -16, 5)?, "5 times every -16: 8 bytes"),
        (Layout::strided(8, 16, 5)?.repeat(3, 80)?, "15 times every 16: 8 bytes"),
        (block.repeat(4, 8)?.repeat(3, 64)?, "3 times every 64: 32 bytes"),
        (long.repeat(1, 9)?, "100 times every 2: 1 byte"),
        (long.repeat(2, 0)?, "2 times every 0: 100 times every 2: 1 byte"),
        (two.repeat(3, 16)?, "3 times every 16: [1 byte at 0, 8 bytes at 8]"),
        (Layout::indexed([(4, 4), (8, 4), (12, 0), (12, 2)])?, "at 4: 10 bytes"),
        (Layout::indexed([(4, 4), (0, 4)])?, "at 4: 2 times every -4: 4 bytes"),
        (Layout::indexed_block(4, [8, 28, 48])?, "at 8: 3 times every 20: 4 bytes"),
        (Layout::indexed_block(4, [8, 28, 0])?, "at 8: at each of [0, 20, -8]: 4 bytes"),
        (
            Layout::indexed_block(1, (0..10).map(|at| at * at + 2 * at))?,
            "at each of [0, 3, 8, 15, 24, 35, 48, 63, and 2 more]: 1 byte",
        ),
        (long.place([5, 25, 45])?, "at 5: 3 times every 20: 100 times every 2: 1 byte"),
        (Layout::list([nothing(), (3, block.clone()), (11, block.clone())])?, "at 3: 16 bytes"),
        (Layout::list([(100, long.clone()), nothing()])?, "at 100: 100 times every 2: 1 byte"),
        (
            Layout::list([(0, long.clone()), (1, long.clone())])?,
            "2 times every 1: 100 times every 2: 1 byte",
        ),
        (
            Layout::list([(0, block.clone()), (20, two.clone())])?,
            "[8 bytes at 0, 1 byte at 20, 8 bytes at 28]",
        ),
        (
            Layout::list([(2, long.clone()), (300, two.clone()), (400, block)])?,
            "[at 2: 100 times every 2: 1 byte, [1 byte at 300, 8 bytes at 308], at 400: 8 bytes]",
        ),
    ] {
        assert_eq!(format!("{layout:?}"), form);
    }
    Ok(())
}

#[test]
fn contiguous_layouts_are_spans() {
    let mut memory = numbered(20);
    let layout = Layout::indexed([(-4, 4), (0, 4)]).unwrap();
    assert_eq!(layout.span(), Some((-4, 8)));
    let span = layout.to_send(send(&memory), 10).unwrap().span().unwrap();
    assert_eq!((span.addr(), span.len()), (send(&memory[6..]).addr(), 8));
    let Sink::Span(span) = layout.to_receive(receive(&mut memory), 10).unwrap() else {
        panic!("one block is a span")
    };
    assert_eq!((span.addr(), span.len()), (send(&memory[6..]).addr(), 8));
}

#[test]
fn what_memory_cannot_hold_is_refused() -> Result<(), LayoutError> {
    const MOST: isize = isize::MAX;
    let most = Layout::contiguous(MOST as usize)?;
    let byte = Layout::contiguous(1)?;
    for refused in [
        Layout::contiguous(usize::MAX),
        Layout::contiguous(MOST as usize + 1),
        most.repeat(2, MOST),
        most.repeat(2, 0),
        most.repeat(usize::MAX, isize::MIN),
        most.place([0, 1]),
        most.place([1]),
        byte.repeat(2, MOST),
        byte.repeat(usize::MAX, 1),
        byte.repeat(3, isize::MIN),
        byte.place([MOST]),
        byte.place([MOST - 1, -2]),
        Layout::strided(8, MOST / 2, 9),
        Layout::strided(1, 2, 5)?.place([0, MOST - 3, 7]),
        Layout::indexed([(isize::MIN, usize::MAX)]),
        Layout::indexed([(isize::MIN, 1), (MOST - 1, 2)]),
        Layout::indexed([(0, 4), (0, usize::MAX)]),
        Layout::list([(0, most.clone()), (0, most.clone())]),
        Layout::list([(0, Layout::strided(1, 2, 50)?), (0, most.clone())]),
        Layout::list([(MOST, byte.clone())]),
    ] {
        assert_eq!(refused.err(), Some(LayoutError::TooLarge));
    }
    assert_eq!(byte.repeat(MOST as usize, 1)?.span(), most.span());
    assert_eq!(byte.place([isize::MIN])?.bounds(), (isize::MIN, isize::MIN + 1));
    Ok(())
}

/// A send may name a byte any number of times.
#[test]
fn bytes_are_sent_as_often_as_they_are_named() -> Result<(), LayoutError> {
    let memory = numbered(4);
    let [one, two] = [Layout::contiguous(2)?, Layout::indexed([(0, 1), (3, 1)])?];
    for (layout, places) in [
        (one.repeat(3, 0)?, [0, 1, 0, 1, 0, 1]),
        (one.repeat(3, 1)?, [0, 1, 1, 2, 2, 3]),
        (two.repeat(3, 0)?, [0, 3, 0, 3, 0, 3]),
        (one.place([0, 2, 1])?, [0, 1, 2, 3, 1, 2]),
    ] {
        let expected: Vec<u8> = places.iter().map(|&at| memory[at]).collect();
        let source = layout.to_send(send(&memory), 0)?;
        assert_eq!(source.piece(0, 6).to_vec(), expected, "{layout}");
        let refused = layout.to_receive(receive(&mut memory.clone()), 0);
        assert_eq!(refused.err(), Some(LayoutError::Overlap), "{layout}");
    }
    Ok(())
}

#[test]
fn nesting_has_a_bound() -> Result<(), LayoutError> {
    let byte = Layout::contiguous(1)?;
    let mut nested = Layout::strided(1, 2, 20)?;
    let deeper = |layout: Layout| Layout::list([(0, byte.clone()), (3, layout)]);
    // The blocks and their repetition are two levels.
    for _ in 2..Layout::MAX_DEPTH {
        nested = deeper(nested)?;
    }
    assert_eq!(
        nested.to_send(send(&numbered(1000)), 0)?.piece(0, nested.size()).to_vec().len(),
        146
    );
    assert_eq!(deeper(nested).err(), Some(LayoutError::TooDeep));
    Ok(())
}

#[test]
fn memory_at_no_address_is_refused() -> Result<(), LayoutError> {
    // SAFETY: the null address is refused, so nothing is read or written.
    let nowhere = unsafe { SendRegion::new(std::ptr::null(), 40) };
    // SAFETY: as above.
    let landing = || unsafe { RecvRegion::new(std::ptr::null_mut(), 40) };
    let layout = Layout::strided(8, 16, 2)?;
    assert_eq!(layout.to_send(nowhere, 0).err(), Some(LayoutError::Null));
    assert_eq!(layout.to_receive(landing(), 0).err(), Some(LayoutError::Null));
    let nothing = layout.repeat(0, 0)?;
    assert!(nothing.to_send(nowhere, 0)?.is_empty());
    assert!(nothing.to_receive(landing(), 0)?.is_empty());
    let far = layout.to_send(send(&[0; 40]), isize::MAX).err();
    assert!(matches!(far, Some(LayoutError::Outside { .. })), "{far:?}");
    Ok(())
}

/// The columns of a matrix reach into each other but do not overlap; finding that out must not list all elements.
#[test]
fn a_transposed_matrix_can_be_received() -> Result<(), LayoutError> {
    const SIDE: usize = 1 << 20;
    let column = Layout::strided(8, 8 * SIDE as isize, SIDE)?;
    assert!(column.repeat(SIDE, 8)?.body.is_disjoint());
    assert!(column.repeat(SIDE, -8)?.body.is_disjoint());
    assert!(!column.repeat(2, 4)?.body.is_disjoint());
    assert!(!column.repeat(SIDE + 1, 8)?.body.is_disjoint());
    Ok(())
}
