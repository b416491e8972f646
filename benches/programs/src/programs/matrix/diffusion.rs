//! Explicit diffusion on 64 x 64 x 64 points, periodic in all directions and distributed by planes:
//! a point becomes a quarter of itself plus an eighth of each of its six neighbours. That takes 8
//! operations per point: five sums, two products, and the sum of these.

use std::mem;
use std::ops::Range;

use super::slab::{self, Slab, Stencil};
use crate::order::Order;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

const SIDE: usize = 64;
/// The weight of the point itself; with the weights of the neighbours, the sum is 1.
const STAYS: f64 = 0.25;
const GIVES: f64 = 0.125;

type Row = [f64; SIDE];
type Plane = [Row; SIDE];

/// Runs the benchmark.
///
/// # Errors
/// More ranks than planes, a wrong result, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    slab::run::<Diffusion, R>(runtime, order, sink)
}

/// The planes of one rank, before and after a step.
struct Diffusion {
    now: Vec<Plane>,
    next: Vec<Plane>,
}

impl Stencil for Diffusion {
    const SERIES: &'static str = "diffusion";
    const LINES: usize = SIDE;
    const PERIODIC: bool = true;
    const OPERATIONS: usize = 8 * SIDE * SIDE * SIDE;

    fn start(slab: &Slab) -> Self {
        let mut now = vec![[[0.0; SIDE]; SIDE]; slab.stored()];
        for (number, plane) in slab.lines.clone().zip(&mut now[1..]) {
            (number * SIDE..).zip(plane).for_each(|(line, row)| *row = slab::noise(line));
        }
        Self { next: now.clone(), now }
    }

    fn step<R: Runtime>(&mut self, runtime: &R, slab: &Slab) -> Result<f64, Failure> {
        let seconds = slab.exchange(runtime, &mut self.now)?;
        for (next, around) in self.next[1..].iter_mut().zip(self.now.windows(3)) {
            let [above, here, below] = around else { continue };
            for (line, row) in next.iter_mut().enumerate() {
                let (before, after) = ((line + SIDE - 1) % SIDE, (line + 1) % SIDE);
                let four = [&above[line], &below[line], &here[before], &here[after]];
                diffuse(row, &here[line], four);
            }
        }
        mem::swap(&mut self.now, &mut self.next);
        Ok(seconds)
    }

    fn values(&self, lines: Range<usize>) -> Vec<f64> {
        self.now[1..][lines].as_flattened().as_flattened().to_vec()
    }

    fn check(start: &Self, end: &Self) -> Result<(), Failure> {
        let total = |state: &Self| state.values(0..SIDE).iter().sum::<f64>();
        slab::conserved("what diffuses", total(start), total(end))
    }
}

/// Updates one row of points from itself and the four rows around it.
fn diffuse(row: &mut Row, here: &Row, [above, below, before, after]: [&Row; 4]) {
    slab::around(row, |left, place, right| {
        let across = (above[place] + below[place]) + (before[place] + after[place]);
        STAYS * here[place] + GIVES * (across + (here[left] + here[right]))
    });
}
