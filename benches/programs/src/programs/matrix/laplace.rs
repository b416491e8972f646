//! Red-black relaxation of Laplace's equation on 512 x 512 points inside a fixed border.
//!
//! The red points are updated first, from black ones only, then the black ones from the red: the
//! order within a colour does not matter. Each colour is stored separately, so that updates run
//! over adjacent numbers and a ghost is half a line. Every update takes 4 operations.

use std::array;
use std::ops::Range;

use super::slab::{self, Slab, Stencil};
use crate::order::Order;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

const SIDE: usize = 512;
/// Points of one colour in a line.
const POINTS: usize = SIDE / 2;
/// The value on the upper border; it is 0 on the other sides.
const HOT: f64 = 1.0;

/// The points of one colour in a line, including the left and right borders.
type Half = [f64; POINTS + 2];

/// Runs the benchmark.
///
/// # Errors
/// More ranks than lines, a wrong result, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    slab::run::<Laplace, R>(runtime, order, sink)
}

/// The lines of one rank: red points, and black ones.
#[derive(Clone)]
struct Laplace {
    first: usize,
    colours: [Vec<Half>; 2],
}

impl Stencil for Laplace {
    const SERIES: &'static str = "laplace";
    const LINES: usize = SIDE;
    const PERIODIC: bool = false;
    const OPERATIONS: usize = 4 * SIDE * SIDE;

    fn start(slab: &Slab) -> Self {
        let half = |line| {
            let mut half: Half = slab::noise(line);
            (half[0], half[POINTS + 1]) = (0.0, 0.0);
            half
        };
        let colours = array::from_fn(|colour| {
            let lines = slab.lines.clone().map(|line| half(2 * line + colour));
            let hot = if slab.lines.start == 0 { HOT } else { 0.0 };
            [[hot; POINTS + 2]].into_iter().chain(lines).chain([[0.0; POINTS + 2]]).collect()
        });
        Self { first: slab.lines.start, colours }
    }

    fn step<R: Runtime>(&mut self, runtime: &R, slab: &Slab) -> Result<f64, Failure> {
        let mut seconds = 0.0;
        for colour in [0, 1] {
            seconds += slab.exchange(runtime, &mut self.colours[1 - colour])?;
            self.relax(colour);
        }
        Ok(seconds)
    }

    fn values(&self, lines: Range<usize>) -> Vec<f64> {
        let of = |colour: &Vec<Half>| colour[1..][lines.clone()].concat();
        self.colours.iter().flat_map(of).collect()
    }

    fn check(start: &Self, end: &Self) -> Result<(), Failure> {
        let (before, after) = (start.residual(), end.residual());
        if after < before {
            return Ok(());
        }
        Err(Failure::new(format_args!("laplace does not converge: {before} became {after}")))
    }
}

impl Laplace {
    /// Replaces every point of a colour by the mean of its neighbours.
    fn relax(&mut self, colour: usize) {
        let [red, black] = &mut self.colours;
        let (updated, others) = if colour == 0 { (red, &*black) } else { (black, &*red) };
        let lines = updated[1..].iter_mut().zip(others.windows(3));
        for (line, (row, around)) in (self.first..).zip(lines) {
            let [above, here, below] = around else { continue };
            // Lines of a colour begin alternately with the first and the second point.
            if (line + colour) % 2 == 0 {
                means(row, [above, below, here], |place| place - 1);
            } else {
                means(row, [above, below, here], |place| place + 1);
            }
        }
    }

    /// Returns how far the points are from the means of their neighbours. Valid only where no ghost
    /// is another rank's line.
    fn residual(&self) -> f64 {
        let of = |colour: usize| {
            let mut relaxed = self.clone();
            relaxed.relax(colour);
            let points = relaxed.colours[colour].iter().zip(&self.colours[colour]);
            points
                .flat_map(|(new, old)| new.iter().zip(old))
                .map(|(new, old)| (new - old).abs())
                .sum()
        };
        [0, 1].map(of).iter().sum::<f64>()
    }
}

/// Updates the points of a colour in one line. Of the two neighbours in the line, one is stored at
/// the same index in the other colour, the other one at the index from `beside`.
#[inline(always)]
fn means(row: &mut Half, [above, below, here]: [&Half; 3], beside: impl Fn(usize) -> usize) {
    for place in 1..=POINTS {
        let sum = (above[place] + below[place]) + (here[place] + here[beside(place)]);
        row[place] = 0.25 * sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_becomes_the_mean_of_those_around_it() {
        let (mut row, here) = ([0.0; POINTS + 2], array::from_fn(|place| 16.0 * place as f64));
        means(&mut row, [&[1.0; POINTS + 2], &[7.0; POINTS + 2], &here], |place| place + 1);
        assert_eq!(row[1..4], [14.0, 22.0, 30.0]);
        assert_eq!((row[0], row[POINTS + 1]), (0.0, 0.0), "the border stays");
    }
}
