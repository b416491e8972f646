//! Ghost cells: divided, exchanged with every neighbour at once, and compared with the cells that they mirror.
//!
//! Every job runs under a watchdog.

use job::job;
use mpj::{CartesianCommunicator, Error, ErrorClass, SendBuffer, collective};
use proptest::prelude::*;

mod job;

/// Returns the place along each axis of an element of an array with these lengths.
fn place<const N: usize>(mut index: usize, dims: [usize; N]) -> [usize; N] {
    let mut place = [0; N];
    for axis in (0..N).rev() {
        place[axis] = index % dims[axis];
        index /= dims[axis];
    }
    place
}

/// The array of one rank with ghost cells: what each cell has is its place in the whole grid, as one number.
struct Padded<const N: usize> {
    dims: [usize; N],
    width: usize,
    whole: [usize; N],
    origin: [usize; N],
}

const GHOST: u64 = u64::MAX;

impl<const N: usize> Padded<N> {
    /// Returns the number of the cell that an element is or mirrors, along periodic axes, and whether along each axis it
    /// is a ghost cell.
    fn mirrored(&self, index: usize) -> (u64, [bool; N]) {
        let place = place(index, self.dims);
        let number = (0..N).fold(0, |number, axis| {
            let (whole, width) = (self.whole[axis], self.width);
            // The length of the whole keeps the difference from being negative.
            let at = (self.origin[axis] + place[axis] + width * whole - width) % whole;
            number * whole as u64 + at as u64
        });
        let inner = |axis: usize| self.width..self.dims[axis] - self.width;
        (number, std::array::from_fn(|axis| !inner(axis).contains(&place[axis])))
    }

    /// Makes the array, whose ghost cells are not filled.
    fn cells(&self) -> Vec<u64> {
        let cell = |index| match self.mirrored(index) {
            (number, is_ghost) if is_ghost == [false; N] => number,
            _ => GHOST,
        };
        (0..self.dims.iter().product()).map(cell).collect()
    }

    /// Exchanges with all neighbours, or with those along an axis only, and checks every element.
    fn exchange(&self, grid: &CartesianCommunicator, faces_only: bool) {
        let (mut cells, periods) = (self.cells(), grid.periods().to_vec());
        grid.scope(|scope| {
            for part in mpj::split_halo_mut(&mut cells, self.dims, self.width)? {
                let Some(rank) = grid.neighbour(&part.offset)? else { continue };
                if part.is_face() || !faces_only {
                    let (sent, received) = (part.send_tag(), part.recv_tag());
                    scope.irecv_view(part.ghost, rank, received)?;
                    scope.isend_view(part.border, rank, sent)?;
                }
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        let coords = grid.coords(grid.rank()).unwrap();
        for (index, cell) in cells.iter().enumerate() {
            let (number, is_ghost) = self.mirrored(index);
            let at = place(index, self.dims);
            let is_beyond = (0..N).any(|axis| {
                let is_last = coords[axis] as usize + 1 == grid.dims()[axis];
                let is_edge = if at[axis] < self.width { coords[axis] == 0 } else { is_last };
                is_ghost[axis] && is_edge && !periods[axis]
            });
            let axes = is_ghost.iter().filter(|is_ghost| **is_ghost).count();
            let expected = if is_beyond || faces_only && axes > 1 { GHOST } else { number };
            assert_eq!(*cell, expected, "at {at:?} of {:?}, width {}", self.dims, self.width);
        }
    }
}

/// Exchanges a grid of one rank that is its own neighbour.
fn alone<const N: usize>(shape: [(usize, bool); 3], width: usize) {
    job(1, move |world| {
        let periods: [bool; N] = std::array::from_fn(|axis| shape[axis].1);
        let grid = world.create_cartesian(&[1; N], &periods, false).unwrap().unwrap();
        let whole: [usize; N] = std::array::from_fn(|axis| width.max(1) + shape[axis].0);
        let dims = whole.map(|length| length + 2 * width);
        let padded = Padded { dims, width, whole, origin: [0; N] };
        padded.exchange(&grid, false);
        padded.exchange(&grid, true);
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn ghost_cells_mirror_the_other_end_of_a_ring(
        shape in [(0..5_usize, any::<bool>()), (0..5_usize, any::<bool>()), (0..5_usize, any::<bool>())],
        width in 0..4_usize,
    ) {
        alone::<1>(shape, width);
        alone::<2>(shape, width);
        alone::<3>(shape, width);
    }
}

#[test]
fn ghost_cells_mirror_the_neighbours_in_two_dimensions() {
    job(4, |world| {
        for (periods, width) in [([true, true], 1), ([false, true], 2), ([false, false], 3)] {
            let grid = world.create_cartesian(&[2, 2], &periods, false).unwrap().unwrap();
            let at = grid.coords(grid.rank()).unwrap();
            let inner = [4, 300];
            let padded = Padded {
                dims: inner.map(|length| length + 2 * width),
                width,
                whole: inner.map(|length| 2 * length),
                origin: std::array::from_fn(|axis| inner[axis] * at[axis] as usize),
            };
            padded.exchange(&grid, false);
            padded.exchange(&grid, true);
        }
    });
}

#[test]
fn ghost_cells_mirror_the_neighbours_in_three_dimensions() {
    job(4, |world| {
        let grid =
            world.create_cartesian(&[1, 2, 2], &[true, false, true], false).unwrap().unwrap();
        let (at, inner) = (grid.coords(grid.rank()).unwrap(), [3, 2, 5]);
        let padded = Padded {
            dims: inner.map(|length| length + 4),
            width: 2,
            whole: [3, 4, 10],
            origin: std::array::from_fn(|axis| inner[axis] * at[axis] as usize),
        };
        padded.exchange(&grid, false);
        padded.exchange(&grid, true);
    });
}

#[test]
fn an_array_without_room_for_its_ghost_cells_is_refused() {
    let mut cells = [0; 24];
    for (dims, width) in [([4, 5], 1), ([2, 12], 1), ([4, 6], 2), ([4, 6], usize::MAX)] {
        let error = mpj::split_halo_mut(&mut cells, dims, width).unwrap_err();
        assert!(matches!(error, Error::Halo { len: 24, .. }), "{error}");
        assert_eq!(error.class(), ErrorClass::Arg);
    }
    let error = mpj::split_halo_mut(&mut cells, [usize::MAX, 2], 0).unwrap_err().to_string();
    assert!(
        error.contains("24 elements is no array of lengths [18446744073709551615, 2]"),
        "{error}"
    );
    // Without ghost cells, and without any cells, all parts are empty.
    for part in mpj::split_halo_mut(&mut cells, [4, 6], 0).unwrap() {
        assert_eq!(part.ghost.as_elements(), Some(&[][..]));
    }
    for part in mpj::split_halo_mut(&mut cells[..0], [0, usize::MAX, usize::MAX], 0).unwrap() {
        assert_eq!(part.border.as_elements(), Some(&[][..]));
    }
    // Elements that do not lie in the order of the memory are described, adjacent ones are a slice.
    let parts = mpj::split_halo_mut(&mut cells, [4, 6], 1).unwrap();
    let slices: Vec<_> = parts.iter().map(|part| part.border.as_elements().is_some()).collect();
    assert_eq!(slices, [true, true, true, false, false, true, true, true]);
}

#[test]
fn collective_calls_take_views_by_value() {
    job(3, |world| {
        let (mine, mut all) = ([[1, world.rank()], [2, world.rank()]], [[9; 2]; 6]);
        let mut sums = [[world.rank(), 5], [world.rank(), 5]];
        let outcome: Result<(), Error> = world.scope(|scope| {
            let column = mpj::column(mine.as_flattened(), 2, 1)?;
            let into = mpj::column_mut(all.as_flattened_mut(), 2, 0)?;
            scope.start(collective::all_gather(column, into))?;
            let column = mpj::column_mut(sums.as_flattened_mut(), 2, 0)?;
            scope.start(collective::all_reduce(column, mpj::Op::Sum))?.wait().map(drop)
        });
        outcome.unwrap();
        assert_eq!(all.map(|[first, _]| first), [0, 0, 1, 1, 2, 2]);
        assert_eq!(sums, [[3, 5]; 2]);
    });
}
