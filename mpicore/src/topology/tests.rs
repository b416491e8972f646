//! Tests of topologies: the examples of MPI-4.1 chapter 8, every refusal, and, as oracles, a search and walks without
//! arithmetic.

use std::ops::RangeInclusive;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Cartesian, Shift, TopologyError, dims_create};
use crate::ErrorClass;

fn grid(dims: &[u32], periods: &[bool]) -> Cartesian {
    Cartesian::new(dims, periods).unwrap()
}

fn created<const N: usize>(nodes: u32, mut dims: [u32; N]) -> [u32; N] {
    dims_create(nodes, &mut dims).unwrap();
    dims
}

fn refused(nodes: u32, dims: &[u32]) -> TopologyError {
    let mut given = dims.to_vec();
    let error = dims_create(nodes, &mut given).unwrap_err();
    assert_eq!(given, dims, "what is refused changes nothing");
    error
}

/// The table of section 8.5.2.
#[test]
fn dims_of_the_standard() {
    assert_eq!(created(6, [0, 0]), [3, 2]);
    assert_eq!(created(7, [0, 0]), [7, 1]);
    assert_eq!(created(6, [0, 3, 0]), [2, 3, 1]);
    let error = refused(7, &[0, 3, 0]);
    assert_eq!(error, TopologyError::KeptDimension { dimension: 1, length: 3, left: 7, nodes: 7 });
    assert_eq!(error.class(), ErrorClass::Dims);
}

#[test]
fn dims_are_as_even_as_they_can_be() {
    assert_eq!(created(1, [0, 0, 0]), [1, 1, 1]);
    assert_eq!(created(16, [0, 0, 0]), [4, 2, 2]);
    assert_eq!(created(36, [0, 0, 0]), [4, 3, 3]);
    assert_eq!(created(72, [0, 0, 0]), [6, 4, 3]);
    assert_eq!(created(96, [0, 0]), [12, 8]);
    assert_eq!(created(1000, [0, 0, 0]), [10, 10, 10]);
    assert_eq!(created(1024, [0; 4]), [8, 8, 4, 4]);
    assert_eq!(created(60, [0; 6]), [5, 3, 2, 2, 1, 1]);
    assert_eq!(created(u32::MAX, [0; 2]), [65537, 65535]);
    assert_eq!(created(7488, [0; 3]), [26, 18, 16], "not 24, 24, 13");
}

#[test]
fn dims_that_are_given_stay() {
    assert_eq!(created(12, [0, 0, 3]), [2, 2, 3]);
    assert_eq!(created(12, [12]), [12]);
    assert_eq!(created(1, []), []);
    assert_eq!(created(6, [1, 0, 6, 1]), [1, 1, 6, 1]);
}

#[test]
fn dims_that_cannot_hold_the_nodes_are_refused() {
    let dims = ErrorClass::Dims;
    let kept = TopologyError::KeptDimension { dimension: 2, length: 6, left: 3, nodes: 12 };
    assert_eq!((refused(12, &[4, 0, 6]), kept.class()), (kept, dims));
    let room = TopologyError::NoFreeDimension { room: 4, nodes: 12 };
    assert_eq!((refused(12, &[2, 2]), room.class()), (room, dims));
    assert_eq!(refused(2, &[]), TopologyError::NoFreeDimension { room: 1, nodes: 2 });
    let none = TopologyError::NoNodes;
    assert_eq!((refused(0, &[0, 0]), none.class()), (none, ErrorClass::Arg));
    let more = TopologyError::KeptDimension { dimension: 1, length: u32::MAX, left: 1, nodes: 2 };
    assert_eq!(refused(2, &[2, u32::MAX, u32::MAX]), more);
}

/// The numbers with the most divisors below 2^32, primes, powers, and products of close primes.
#[test]
fn dims_of_large_numbers_are_found_in_few_steps() {
    for nodes in
        [2_095_133_040, 3_491_888_400, 4_294_967_291, 1 << 31, 65521 * 65519, 1_162_261_467]
    {
        for count in (0..40).step_by(3) {
            let mut dims = vec![0; count + 1];
            dims_create(nodes, &mut dims).unwrap();
            assert_eq!(dims.iter().product::<u32>(), nodes);
            assert!(dims.is_sorted_by(|before, after| before >= after), "{dims:?}");
        }
    }
    assert_eq!(created(1 << 31, [0; 31]), [2; 31]);
    assert_eq!(created(2_095_133_040, [0; 3]), [1292, 1287, 1260]);
}

/// The order of section 8.5: four processes in a grid of 2 by 2.
#[test]
fn ranks_go_row_by_row() {
    let square = grid(&[2, 2], &[false; 2]);
    for (rank, coords) in (0..).zip([[0, 0], [0, 1], [1, 0], [1, 1]]) {
        assert_eq!(square.coords(rank).unwrap(), coords);
        assert_eq!(square.rank(&coords), Ok(rank));
    }
    assert_eq!((square.size(), square.dims(), square.periods()), (4, &[2, 2][..], &[false; 2][..]));
}

#[test]
fn a_grid_without_dimensions_has_one_node() {
    let point = grid(&[], &[]);
    assert_eq!((point.size(), point.coords(0), point.rank(&[])), (1, Ok(vec![]), Ok(0)));
    assert_eq!(point.neighbours(0), Ok(vec![]));
    assert_eq!(
        point.sub(0, &[]).map(|part| (part.grid, part.color, part.key)),
        Ok((point.clone(), 0, 0))
    );
    let nowhere = TopologyError::Direction { direction: 0, dimensions: 0 };
    assert_eq!(point.shift(0, 0, 1), Err(nowhere));
}

#[test]
fn grids_that_are_none_are_refused() {
    let refused = |dims: &[u32], periods: &[bool]| Cartesian::new(dims, periods).unwrap_err();
    let entries = TopologyError::Entries { given: 1, dimensions: 2 };
    assert_eq!(refused(&[2, 2], &[true]), entries);
    assert_eq!(entries.class(), ErrorClass::Arg);
    let zero = TopologyError::LengthZero { dimension: 1 };
    assert_eq!(refused(&[u32::MAX, 0], &[true; 2]), zero);
    assert_eq!(zero.class(), ErrorClass::Dims);
    let large = TopologyError::TooLarge { dimension: 1, length: 1 << 16 };
    assert_eq!(refused(&[1 << 15, 1 << 16, 2], &[true; 3]), large);
    assert_eq!(refused(&[1 << 20, 1 << 20], &[true; 2]).class(), ErrorClass::Dims);
    assert_eq!(grid(&[i32::MAX as u32, 1], &[true; 2]).size(), i32::MAX as u32);
}

#[test]
fn ranks_outside_of_the_grid_are_refused() {
    let tube = grid(&[2, 3], &[false, true]);
    let error = TopologyError::Rank { rank: 6, size: 6 };
    assert_eq!(tube.coords(6), Err(error));
    assert_eq!(tube.shift(6, 0, 1), Err(error));
    assert_eq!(tube.sub(6, &[true, true]), Err(error));
    assert_eq!(tube.neighbours(6), Err(error));
    assert_eq!(error.class(), ErrorClass::Rank);
}

#[test]
fn coordinates_wrap_in_periodic_dimensions_only() {
    let tube = grid(&[2, 3], &[false, true]);
    assert_eq!(tube.rank(&[1, 3]), tube.rank(&[1, 0]));
    assert_eq!(tube.rank(&[1, -4]), tube.rank(&[1, 2]));
    assert_eq!(tube.rank(&[0, i32::MIN]), Ok(1));
    for coordinate in [-1, 2, i32::MAX] {
        let error = TopologyError::Coordinate { dimension: 0, coordinate, length: 2 };
        assert_eq!(tube.rank(&[coordinate, 0]), Err(error));
        assert_eq!(error.class(), ErrorClass::Arg);
    }
    let entries = TopologyError::Entries { given: 1, dimensions: 2 };
    assert_eq!(tube.rank(&[0]), Err(entries));
    assert_eq!(tube.sub(0, &[true]), Err(entries));
}

#[test]
fn shifts_end_where_a_dimension_does() {
    let tube = grid(&[2, 3], &[false, true]);
    let shift = |rank, direction, displacement| {
        let Shift { source, destination } = tube.shift(rank, direction, displacement).unwrap();
        (source, destination)
    };
    assert_eq!(shift(4, 0, 1), (Some(1), None));
    assert_eq!(shift(4, 0, -1), (None, Some(1)));
    assert_eq!(shift(4, 0, 0), (Some(4), Some(4)));
    assert_eq!(shift(4, 0, i32::MIN), (None, None));
    assert_eq!(shift(5, 1, 1), (Some(4), Some(3)));
    assert_eq!(shift(5, 1, 3), (Some(5), Some(5)));
    assert_eq!(shift(3, 1, i32::MIN), (Some(5), Some(4)));
    let error = TopologyError::Direction { direction: 2, dimensions: 2 };
    assert_eq!(tube.shift(0, 2, 1), Err(error));
    assert_eq!(error.class(), ErrorClass::Arg);
}

/// Returns the number of ranks in each part, by color.
fn part_sizes(grid: &Cartesian, remain: &[bool]) -> Vec<usize> {
    let colors = (0..grid.size()).map(|rank| grid.sub(rank, remain).unwrap().color);
    let mut sizes = Vec::new();
    for color in colors.map(|color| color as usize) {
        sizes.resize(sizes.len().max(color + 1), 0);
        sizes[color] += 1;
    }
    sizes
}

/// The example of section 8.5.7: a grid of 2 by 3 by 4.
#[test]
fn parts_of_the_standard() {
    let whole = grid(&[2, 3, 4], &[false, false, true]);
    assert_eq!(part_sizes(&whole, &[true, false, true]), [8; 3]);
    assert_eq!(part_sizes(&whole, &[false, false, true]), [4; 6]);
    assert_eq!(part_sizes(&whole, &[false; 3]), [1; 24]);
    assert_eq!(part_sizes(&whole, &[true; 3]), [24]);
    for rank in 0..24 {
        let part = whole.sub(rank, &[true, false, true]).unwrap();
        assert_eq!(part.grid, grid(&[2, 4], &[false, true]));
    }
}

#[test]
fn a_rank_can_be_its_own_neighbour_or_have_one_twice() {
    let narrow = grid(&[1, 2], &[true, true]);
    assert_eq!(narrow.neighbours(1), Ok(vec![Some(1), Some(1), Some(0), Some(0)]));
    let wall = grid(&[1, 2], &[false, false]);
    assert_eq!(wall.neighbours(1), Ok(vec![None, None, Some(0), None]));
}

#[test]
fn errors_say_what_is_legal() {
    let told = [
        (
            TopologyError::Rank { rank: -1, size: 6 },
            "rank -1 is out of range: the grid has ranks 0 to 5",
        ),
        (
            TopologyError::Coordinate { dimension: 1, coordinate: 4, length: 4 },
            "coordinate 4 is out of range: dimension 1 is not periodic and has coordinates 0 to 3",
        ),
        (
            TopologyError::KeptDimension { dimension: 1, length: 3, left: 7, nodes: 14 },
            "dimension 1 is 3, which does not divide the 7 of 14 nodes that the dimensions before it \
             leave; give 0 for those to be chosen",
        ),
        (
            TopologyError::TooLarge { dimension: 0, length: 1 << 31 },
            "with dimension 0, of length 2147483648, the grid has more than 2147483647 nodes",
        ),
    ];
    for (error, text) in told {
        assert_eq!(error.to_string(), text);
    }
}

/// Returns all ways to write `nodes` as a product of `count` factors that do not increase.
fn products(nodes: u32, count: usize, most: u32) -> Vec<Vec<u32>> {
    if count == 0 {
        return if nodes == 1 { vec![vec![]] } else { vec![] };
    }
    let firsts = (1..=nodes.min(most)).filter(|first| nodes % first == 0);
    let behind = |first: u32, rest: Vec<u32>| [vec![first], rest].concat();
    firsts
        .flat_map(|first| {
            products(nodes / first, count - 1, first)
                .into_iter()
                .map(move |rest| behind(first, rest))
        })
        .collect()
}

/// Returns the factors that are closest to each other, by search.
fn closest(nodes: u32, count: usize) -> Option<Vec<u32>> {
    let spread = |dims: &[u32]| dims.first().zip(dims.last()).map(|(first, last)| first - last);
    products(nodes, count, nodes).into_iter().min_by_key(|dims| (spread(dims), dims.clone()))
}

fn compare_with_search(counts: RangeInclusive<usize>, all_nodes: impl Iterator<Item = u32>) {
    for nodes in all_nodes {
        for count in counts.clone() {
            let mut dims = vec![0; count];
            dims_create(nodes, &mut dims).unwrap();
            assert_eq!(Some(dims), closest(nodes, count), "{nodes} nodes");
        }
    }
}

#[test]
fn dims_agree_with_a_search_of_all_products() {
    compare_with_search(1..=4, (1..=300).chain((301..=20_000).step_by(499)));
    compare_with_search(2..=4, [7488, 4096, 5040, 15_120].into_iter());
}

#[test]
#[ignore = "takes minutes without optimisation"]
fn dims_agree_with_a_search_of_all_products_up_to_20_000() {
    compare_with_search(2..=4, 1..=20_000);
}

fn any_grid() -> impl Strategy<Value = Cartesian> {
    vec((1..5_u32, any::<bool>()), 0..5).prop_map(|dimensions| {
        let (dims, periods): (Vec<_>, Vec<_>) = dimensions.into_iter().unzip();
        grid(&dims, &periods)
    })
}

/// Returns the coordinates of all nodes in the order of their ranks, by counting.
fn all_coords(dims: &[u32]) -> Vec<Vec<i32>> {
    let mut all = vec![vec![]];
    for &length in dims {
        let longer = |coords: &Vec<i32>| {
            let coords = coords.clone();
            (0..length as i32).map(move |last| [&coords[..], &[last]].concat())
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// Returns the rank that is reached by single steps along a dimension.
fn walk(grid: &Cartesian, rank: u32, dimension: usize, displacement: i32) -> Option<u32> {
    let all = all_coords(grid.dims());
    let (mut coords, last) = (all[rank as usize].clone(), grid.dims()[dimension] as i32 - 1);
    for _ in 0..displacement.abs() {
        let is_up = displacement > 0;
        let at = &mut coords[dimension];
        let (end, other) = if is_up { (last, 0) } else { (0, last) };
        *at = match *at == end {
            true if grid.periods()[dimension] => other,
            true => return None,
            false => *at + displacement.signum(),
        };
    }
    all.iter().position(|other| *other == coords).map(|rank| rank as u32)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn kept_dims_stay_and_free_ones_are_the_best(
        nodes in 1..200_u32,
        given in vec(0..5_u32, 0..5),
    ) {
        let mut dims = given.clone();
        let kept: u32 = given.iter().filter(|&&length| length > 0).product();
        let free = given.iter().filter(|&&length| length == 0).count();
        let best = closest(nodes / kept, free);
        let best = best.filter(|_| nodes % kept == 0);
        prop_assert_eq!(dims_create(nodes, &mut dims).is_ok(), best.is_some());
        let mut best = best.unwrap_or(vec![0; free]).into_iter();
        let expected: Vec<_> = given.iter().map(|&length| match length {
            0 => best.next().expect("there are as many factors as free entries"),
            kept => kept,
        }).collect();
        prop_assert_eq!(dims, expected);
    }

    #[test]
    fn coordinates_agree_with_counting(grid in any_grid(), laps in vec(-2..3_i32, 5)) {
        for (rank, coords) in (0..).zip(all_coords(grid.dims())) {
            prop_assert_eq!(grid.coords(rank), Ok(coords.clone()));
            prop_assert_eq!(grid.rank(&coords), Ok(rank));
            let lengths = grid.dims().iter().zip(grid.periods()).zip(&laps);
            let laps = lengths.map(|((&length, &is_periodic), lap)| {
                if is_periodic { length as i32 * lap } else { 0 }
            });
            let beyond: Vec<_> = coords.iter().zip(laps).map(|(at, lap)| at + lap).collect();
            prop_assert_eq!(grid.rank(&beyond), Ok(rank));
        }
        prop_assert_eq!(all_coords(grid.dims()).len(), grid.size() as usize);
    }

    #[test]
    fn shifts_agree_with_walking(grid in any_grid(), displacement in -9..10_i32) {
        for rank in 0..grid.size() {
            let mut neighbours = Vec::new();
            for dimension in 0..grid.dims().len() {
                let step = |displacement| walk(&grid, rank, dimension, displacement);
                let (source, destination) = (step(-displacement), step(displacement));
                let shift = grid.shift(rank, dimension, displacement);
                prop_assert_eq!(shift, Ok(Shift { source, destination }));
                neighbours.extend([step(-1), step(1)]);
            }
            prop_assert_eq!(grid.neighbours(rank), Ok(neighbours));
        }
    }

    #[test]
    fn parts_agree_with_coordinates(grid in any_grid(), remain in vec(any::<bool>(), 5)) {
        let remain = &remain[..grid.dims().len()];
        let chosen = |coords: &[i32], wanted| {
            let chosen = coords.iter().zip(remain).filter(|(_, remains)| **remains == wanted);
            chosen.map(|(&at, _)| at).collect::<Vec<_>>()
        };
        let nodes = all_coords(grid.dims());
        let parts: Vec<_> = (0..grid.size()).map(|rank| grid.sub(rank, remain).unwrap()).collect();
        for (coords, part) in nodes.iter().zip(&parts) {
            prop_assert_eq!(part.grid.coords(part.key), Ok(chosen(coords, true)));
            let alike = parts.iter().filter(|other| other.color == part.color).count();
            prop_assert_eq!(part.grid.size() as usize, alike);
            for (others, other) in nodes.iter().zip(&parts) {
                let together = chosen(coords, false) == chosen(others, false);
                prop_assert_eq!(part.color == other.color, together);
            }
        }
    }
}
