//! Parts of arrays, compared with arithmetic on indices.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Returns the places of all elements of an array whose indices satisfy `belongs`, in the order of memory.
fn chosen(sizes: &[i64], order: Order, belongs: impl Fn(&[i64]) -> bool) -> Vec<isize> {
    let count: i64 = sizes.iter().product();
    let is_chosen = |place: &i64| {
        let (mut left, mut indices) = (*place, vec![0; sizes.len()]);
        let dimensions: Vec<_> = match order {
            Order::C => (0..sizes.len()).rev().collect(),
            Order::Fortran => (0..sizes.len()).collect(),
        };
        for dimension in dimensions {
            indices[dimension] = left % sizes[dimension];
            left /= sizes[dimension];
        }
        belongs(&indices)
    };
    (0..count).filter(is_chosen).map(|place| place as isize).collect()
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::C), Just(Order::Fortran)]
}

/// Generates the size, and the size and start of the part, for each dimension.
fn part() -> impl Strategy<Value = Vec<[i64; 3]>> {
    let dimension = (1_i64..6, 0_i64..6, 0_i64..6).prop_map(|(size, part, start)| {
        let part = 1 + part % size;
        [size, part, start % (size - part + 1)]
    });
    vec(dimension, 1..4)
}

/// Generates the size, distribution and number of processes for each dimension.
fn shares() -> impl Strategy<Value = Vec<(i64, Distribution, i64)>> {
    let dimension =
        (1_i64..9, 1_i64..4, 0_i64..4, 0..5).prop_map(|(size, processes, more, which)| {
            let fewest = (size + processes - 1) / processes;
            match which {
                0 => (size, Distribution::Whole, 1),
                1 => (size, Distribution::Block(None), processes),
                2 => (size, Distribution::Block(Some(fewest + more)), processes),
                3 => (size, Distribution::Cyclic(None), processes),
                _ => (size, Distribution::Cyclic(Some(1 + more)), processes),
            }
        });
    vec(dimension, 1..4)
}

/// Returns the process along its dimension that an index belongs to.
fn owner(index: i64, (size, distribution, processes): (i64, Distribution, i64)) -> i64 {
    match distribution {
        Distribution::Whole => 0,
        Distribution::Block(block) => index / block.unwrap_or((size + processes - 1) / processes),
        Distribution::Cyclic(block) => index / block.unwrap_or(1) % processes,
    }
}

proptest! {
    #[test]
    fn a_subarray_is_a_box(part in part(), order in order()) {
        let [sizes, subsizes, starts] =
            [0, 1, 2].map(|which| part.iter().map(|sizes| sizes[which]).collect::<Vec<_>>());
        let datatype = Datatype::subarray(&sizes, &subsizes, &starts, order, &int()).unwrap();
        let inside = |indices: &[i64]| {
            let mut sides = indices.iter().zip(&part);
            sides.all(|(index, [_, part, start])| (*start..start + part).contains(index))
        };
        prop_assert_eq!(elements(&datatype, 4), chosen(&sizes, order, inside));
        let whole = 4 * sizes.iter().product::<i64>() as isize;
        prop_assert_eq!((datatype.lower_bound(), datatype.extent()), (0, whole));
    }

    #[test]
    fn the_parts_of_a_distributed_array_are_the_array(shares in shares(), order in order()) {
        let sizes: Vec<_> = shares.iter().map(|share| share.0).collect();
        let distributions: Vec<_> = shares.iter().map(|share| share.1).collect();
        let grid: Vec<_> = shares.iter().map(|share| share.2).collect();
        let processes: i64 = grid.iter().product();
        let mut all = Vec::new();
        for rank in 0..processes {
            let part =
                Datatype::darray(processes, rank, &sizes, &distributions, &grid, order, &int());
            let part = part.unwrap();
            let belongs = |indices: &[i64]| {
                let owners = indices.iter().zip(&shares).map(|(index, share)| owner(*index, *share));
                owners.zip(&grid).fold(0, |rank, (owner, length)| rank * length + owner) == rank
            };
            let expected = chosen(&sizes, order, belongs);
            prop_assert_eq!(part.signature().elements(), expected.len() as u64);
            let places = if expected.is_empty() { vec![] } else { elements(&part, 4) };
            prop_assert_eq!(&places, &expected);
            let whole = 4 * sizes.iter().product::<i64>() as isize;
            prop_assert_eq!((part.lower_bound(), part.extent()), (0, whole));
            all.extend(places);
        }
        all.sort_unstable();
        let whole = sizes.iter().product::<i64>() as isize;
        prop_assert_eq!(all, (0..whole).collect::<Vec<_>>());
    }
}

/// The example of section 5.1.4: `<oldtype(100, 200, 300)>` over processes `(2, 3)` of HPF's
/// `(CYCLIC(10), *, BLOCK)`.
#[test]
fn the_distributed_array_of_the_standard() {
    use Distribution::{Block, Cyclic, Whole};
    let sizes = [100, 200, 300];
    let distributions = [Cyclic(Some(10)), Whole, Block(None)];
    let part = |rank| {
        let order = Order::Fortran;
        Datatype::darray(6, rank, &sizes, &distributions, &[2, 1, 3], order, &double()).unwrap()
    };
    assert_eq!(part(0).size(), 8 * 50 * 200 * 100);
    assert_eq!(part(4).true_lower_bound(), 8 * (10 + 100 * 200 * 100));
    assert_eq!(part(5).extent(), 8 * 100 * 200 * 300);
}

#[test]
fn wrong_arrays_are_refused() {
    use crate::ErrorClass as Class;
    use Distribution::{Block, Cyclic, Whole};
    let refused = |result: Result<Datatype, DatatypeError>, class, says: &str| {
        let error = result.unwrap_err();
        assert_eq!((error.class(), error.to_string().as_str()), (class, says));
    };
    let subarray = |sizes: &[i64], subsizes: &[i64], starts: &[i64]| {
        Datatype::subarray(sizes, subsizes, starts, Order::C, &int())
    };
    let says = "ndims is 0; an array has at least 1 dimension";
    refused(subarray(&[], &[], &[]), Class::Dims, says);
    let says = "array_of_starts has 1 entries; give 2, as many as in array_of_sizes";
    refused(subarray(&[2, 2], &[1, 1], &[0]), Class::Arg, says);
    refused(subarray(&[4], &[0], &[0]), Class::Arg, "array_of_subsizes[0] is 0; give 1 to 4");
    refused(subarray(&[4], &[3], &[2]), Class::Arg, "array_of_starts[0] is 2; give 0 to 1");
    let darray = |size, rank, how, processes| {
        Datatype::darray(size, rank, &[10], &[how], &[processes], Order::C, &int())
    };
    let says = "size is 3, but the grid array_of_psizes has 2 processes; both must be the same";
    refused(darray(3, 0, Cyclic(None), 2), Class::Dims, says);
    refused(darray(2, 2, Cyclic(None), 2), Class::Rank, "rank is 2; give 0 to 1");
    let says = "array_of_dargs[0] is 4; give 5 to 9223372036854775807";
    refused(darray(2, 0, Block(Some(4)), 2), Class::Arg, says);
    refused(darray(2, 0, Whole, 2), Class::Arg, "array_of_psizes[0] is 2; give 1 to 1");
    let says = "array_of_dargs[0] is 0; give 1 to 9223372036854775807";
    refused(darray(2, 0, Cyclic(Some(0)), 2), Class::Arg, says);
}
