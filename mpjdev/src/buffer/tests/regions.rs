//! Multi-strided regions, compared with a walk that follows their definition.

use super::*;

/// Returns the indexes of a region in the order of its definition: for each place in the first dimension, those of the
/// region of the other dimensions.
fn indexes(offset: isize, extents: &[isize], strides: &[isize]) -> Vec<isize> {
    let ([extent, extents @ ..], [stride, strides @ ..]) = (extents, strides) else {
        return vec![offset];
    };
    (0..*extent).flat_map(|place| indexes(offset + place * stride, extents, strides)).collect()
}

/// Generates extents and strides of up to four dimensions, in one list.
fn shape() -> impl Strategy<Value = Vec<isize>> {
    (0_usize..5).prop_flat_map(|rank| {
        let extents = prop::collection::vec(0_isize..5, rank);
        let strides = prop::collection::vec(-20_isize..20, rank);
        (extents, strides).prop_map(|(extents, strides)| [extents, strides].concat())
    })
}

proptest! {
    #[test]
    fn regions_are_what_their_definition_says(shape in shape(), offset in 0_usize..200) {
        const LEN: usize = 200;
        let data: Vec<i32> = (0..LEN as i32).collect();
        let rank = shape.len() / 2;
        let (extents, strides) = shape.split_at(rank);
        let wanted = indexes(offset as isize, extents, strides);
        let is_inside = wanted.iter().all(|index| (0..LEN as isize).contains(index));

        let mut buffer = Buffer::new(8 + 4 * wanted.len()).unwrap();
        buffer.put_section_header(ElementType::Int).unwrap();
        let outcome = buffer.str_gather(&data, offset, rank, 0, rank, &shape);
        let is_outside = matches!(outcome, Err(BufferError::OutOfBounds { .. }));
        prop_assert_eq!((outcome.is_ok(), is_outside), (is_inside, !is_inside));
        if !is_inside {
            return Ok(());
        }
        buffer.commit();
        let wanted: Vec<_> = wanted.into_iter().map(|index| index as i32).collect();
        prop_assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), &*wanted);

        buffer.commit();
        buffer.get_section_header().unwrap();
        let mut into = vec![-1; LEN];
        buffer.str_scatter(&mut into, offset, rank, 0, rank, &shape).unwrap();
        for (index, value) in (0..).zip(into) {
            prop_assert_eq!(value, if wanted.contains(&index) { index } else { -1 });
        }
    }
}

#[test]
fn a_region_of_rank_0_is_one_element() {
    let mut buffer = Buffer::new(16).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.str_gather(&[5, 6, 7], 1, 0, 99, 99, &[]).unwrap();
    buffer.commit();
    assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [6]);
}

/// Holds for any offset, and any other extents and strides.
#[test]
fn a_region_of_volume_0_is_legal() {
    let mut buffer = Buffer::new(8).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    let shape = [isize::MAX, 0, isize::MAX, isize::MIN];
    buffer.str_gather(&[5], 1_000, 2, 0, 2, &shape).unwrap();
    buffer.commit();
    buffer.get_section_header().unwrap();
    assert_eq!(buffer.section_size().unwrap(), 0);
    buffer.str_scatter(&mut [5], usize::MAX, 2, 0, 2, &shape).unwrap();
}

/// The stride of a dimension with one place is never used.
#[test]
fn strides_that_no_step_takes_may_be_of_any_length() {
    let mut buffer = Buffer::new(16).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    let shape = [1, 2, 1, isize::MIN, 1, isize::MAX];
    buffer.str_gather(&[5, 6], 0, 3, 0, 3, &shape).unwrap();
    buffer.commit();
    assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [5, 6]);
}

/// Extents and strides lie where the caller says, even if they overlap.
#[test]
fn a_shape_may_have_its_entries_anywhere() {
    let mut buffer = Buffer::new(24).unwrap();
    buffer.put_section_header(ElementType::Int).unwrap();
    buffer.str_gather(&[5, 6, 7, 8], 0, 1, 2, 2, &[9, 9, 2]).unwrap();
    buffer.commit();
    assert_eq!(whole::<i32>(&mut buffer, ElementType::Int), [5, 7]);
}
