//! Views, compared with the list of the places of all bytes of their streams.

use proptest::prelude::*;

use super::*;
use crate::op::ElementKind;

/// The places of the first `tiles` filetypes.
fn places(view: &View, tiles: i64) -> Vec<u64> {
    let mut places = Vec::new();
    for tile in 0..tiles {
        let base = view.displacement as i64 + tile * view.extent as i64;
        let _ = view.tile.each_span(0, view.tile.size(), &mut |at, len| {
            places.extend((0..len as i64).map(|byte| (base + at as i64 + byte) as u64));
            ControlFlow::Continue(())
        });
    }
    places
}

/// Filetypes of blocks of `int` with gaps between them, and around them.
fn filetype() -> impl Strategy<Value = Datatype> {
    let blocks = prop::collection::vec((0_i64..4, 0_i64..5), 1..5);
    (blocks, 0_isize..5, any::<bool>()).prop_map(|(blocks, behind, is_nested)| {
        let int = Datatype::predefined(ElementKind::I32);
        let (mut at, mut lengths, mut displacements) = (0, Vec::new(), Vec::new());
        for (gap, length) in blocks {
            displacements.push(at + gap);
            lengths.push(length);
            at += gap + length;
        }
        let blocks = Datatype::indexed(&lengths, &displacements, &int).unwrap();
        let whole = blocks.resized(0, 4 * (at as isize + behind)).unwrap();
        if is_nested { Datatype::hvector(2, 1, whole.extent() + 4, &whole).unwrap() } else { whole }
    })
}

proptest! {
    #[test]
    fn blocks_are_those_of_the_bytes(
        filetype in filetype(), displacement in 0_u64..9, from in 0_usize..60, len in 0_usize..60,
    ) {
        let int = Datatype::predefined(ElementKind::I32);
        let view = View::new(displacement, &int, &filetype, Representation::Native, true).unwrap();
        prop_assert!(view.is_ascending());
        if filetype.size() == 0 {
            prop_assert!(view.spans(0, 1, |_, _| ControlFlow::Break(())).is_err());
            return Ok(());
        }
        let places = places(&view, 120);
        let (mut found, mut blocks) = (Vec::new(), Vec::new());
        view.spans(from as u64, len as u64, |at, len| {
            found.extend(at..at + len);
            blocks.push((at, len));
            ControlFlow::Continue(())
        }).unwrap();
        let wanted = &places[from..from + len];
        prop_assert_eq!(&found[..], wanted);
        prop_assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 < pair[1].0), "they touch");
        if let (Some(first), Some(last)) = (wanted.first(), wanted.last()) {
            let (low, end, most) = view.range(from as u64, len as u64).unwrap();
            prop_assert_eq!((low, end), (*first, last + 1));
            prop_assert!(most > 0);
            prop_assert_eq!(view.place(from as u64).unwrap(), *first);
        }
        for place in 0..100 {
            let below = places.iter().filter(|at| **at < place).count() as u64;
            prop_assert_eq!(view.below(place), below);
        }
    }
}

#[test]
fn views_that_make_no_sense_are_refused() {
    let [int, byte] = [ElementKind::I32, ElementKind::Byte].map(Datatype::predefined);
    let new = |etype: &Datatype, filetype: &Datatype, is_writable| {
        View::new(0, etype, filetype, Representation::Native, is_writable)
    };
    let none = Datatype::contiguous(0, &int).unwrap();
    for (etype, filetype) in [(&none, &int), (&int, &byte)] {
        assert!(matches!(new(etype, filetype, true), Err(FileError::Argument { .. })));
    }
    for displacements in [[-1, 0], [2, 0]] {
        let wrong = Datatype::indexed(&[1, 1], &displacements, &int).unwrap();
        for (etype, is_writable) in [(&int, true), (&wrong, false)] {
            assert!(matches!(new(etype, &wrong, is_writable), Err(FileError::View { .. })));
        }
    }
    let overlapping = Datatype::indexed(&[2, 1], &[0, 1], &int).unwrap();
    assert!(matches!(new(&int, &overlapping, true), Err(FileError::View { .. })));
    assert!(!new(&int, &overlapping, false).unwrap().is_ascending());
    let short = byte.resized(0, 0).unwrap();
    assert!(!new(&byte, &short, true).unwrap().is_ascending());
    new(&byte, &none, true).unwrap();
    let view = View::new(1 << 62, &byte, &int, Representation::Native, true).unwrap();
    assert!(view.spans(1 << 62, 4, |_, _| ControlFlow::Break(())).is_err(), "no file is so long");
    assert!(Representation::of_name("Native").is_err());
}

#[test]
fn external_elements_have_their_own_size() {
    let long = Datatype::predefined(crate::datatype::Basic::Long);
    let every_second = Datatype::vector(2, 1, 2, &long).unwrap();
    let view = View::new(0, &long, &every_second, Representation::External32, true).unwrap();
    assert_eq!((view.unit(), view.place(4).unwrap()), (4, 8));
}
