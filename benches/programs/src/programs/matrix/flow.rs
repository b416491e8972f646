//! Flow of an inviscid gas on 256 x 256 cells, periodic in both directions: Euler's equations by
//! the finite-volume method of Lax and Friedrichs, at a fixed time step. A line of cells has four
//! fields, which travel as one message.
//!
//! A cell takes 59 operations per step: 15 for its fluxes, and 11 for each field. The fluxes of
//! ghosts, which two ranks both compute, are not counted.

use std::f64::consts::PI;
use std::mem;
use std::ops::Range;

use super::slab::{self, Slab, Stencil};
use crate::order::Order;
use crate::runtime::{Failure, Runtime};
use crate::worker::Sink;

const SIDE: usize = 256;
const FIELDS: usize = 4;
/// Ratio of specific heats, minus one.
const GAMMA_1: f64 = 0.4;
/// Half of the time step, divided by the width of a cell.
const HALF_STEP: f64 = 1.0 / 16.0;
/// [`HALF_STEP`] times the fastest signal that the scheme allows, which is 2.
const SPREAD: f64 = 2.0 * HALF_STEP;

type Row = [f64; SIDE];
/// Density, momentum along the line, momentum across it, energy.
type Line = [Row; FIELDS];
/// The fluxes along the line, and across it.
type Fluxes = [Line; 2];

/// Runs the benchmark.
///
/// # Errors
/// More ranks than lines, a wrong result, or an error of the library.
pub fn run<R: Runtime>(runtime: &R, order: &Order, sink: &mut Sink<'_>) -> Result<(), Failure> {
    slab::run::<Flow, R>(runtime, order, sink)
}

/// The lines of one rank, before and after a step.
struct Flow {
    now: Vec<Line>,
    next: Vec<Line>,
    /// The fluxes of the current line and of its neighbours, in rotation.
    fluxes: Vec<Fluxes>,
}

impl Stencil for Flow {
    const SERIES: &'static str = "flow";
    const LINES: usize = SIDE;
    const PERIODIC: bool = true;
    const OPERATIONS: usize = (15 + 11 * FIELDS) * SIDE * SIDE;

    fn start(slab: &Slab) -> Self {
        let mut now = vec![[[0.0; SIDE]; FIELDS]; slab.stored()];
        slab.lines.clone().zip(&mut now[1..]).for_each(|(number, line)| fill(line, number));
        Self { next: now.clone(), now, fluxes: vec![[[[0.0; SIDE]; FIELDS]; 2]; 3] }
    }

    fn step<R: Runtime>(&mut self, runtime: &R, slab: &Slab) -> Result<f64, Failure> {
        let seconds = slab.exchange(runtime, &mut self.now)?;
        let Self { now, next, fluxes } = self;
        flow(&now[0], &mut fluxes[0]);
        flow(&now[1], &mut fluxes[1]);
        for line in 1..=slab.lines.len() {
            flow(&now[line + 1], &mut fluxes[(line + 1) % 3]);
            let [[_, above], [along, _], [_, below]] =
                [line - 1, line, line + 1].map(|line| &fluxes[line % 3]);
            for field in 0..FIELDS {
                let cells = [line - 1, line, line + 1].map(|line| &now[line][field]);
                advance(
                    &mut next[line][field],
                    cells,
                    [&above[field], &along[field], &below[field]],
                );
            }
        }
        mem::swap(now, next);
        Ok(seconds)
    }

    fn values(&self, lines: Range<usize>) -> Vec<f64> {
        self.now[1..][lines].as_flattened().as_flattened().to_vec()
    }

    fn check(start: &Self, end: &Self) -> Result<(), Failure> {
        let sum = |state: &Self, field: usize| {
            state.now[1..=SIDE].iter().flat_map(|line| line[field]).sum::<f64>()
        };
        slab::conserved("mass", sum(start, 0), sum(end, 0))?;
        slab::conserved("energy", sum(start, 3), sum(end, 3))
    }
}

/// Sets the initial state: a smooth drifting bump of density.
fn fill([density, along, across, energy]: &mut Line, number: usize) {
    let hump = |place: usize| (PI * place as f64 / SIDE as f64).sin().powi(2);
    let (speed_along, speed_across, pressure) = (0.5, 0.25, 1.0);
    for place in 0..SIDE {
        density[place] = 1.0 + 0.5 * hump(number) * hump(place);
        along[place] = density[place] * speed_along;
        across[place] = density[place] * speed_across;
        let moving = along[place] * speed_along + across[place] * speed_across;
        energy[place] = pressure / GAMMA_1 + 0.5 * moving;
    }
}

/// Computes the fluxes in a line of cells.
fn flow([density, along, across, energy]: &Line, [fluxes_along, fluxes_across]: &mut Fluxes) {
    for place in 0..SIDE {
        let inverse = 1.0 / density[place];
        let (p, q) = (along[place], across[place]);
        let (u, v) = (p * inverse, q * inverse);
        let (pu, qv, qu) = (p * u, q * v, q * u);
        let pressure = GAMMA_1 * (energy[place] - 0.5 * (pu + qv));
        let enthalpy = energy[place] + pressure;
        fluxes_along[0][place] = p;
        fluxes_along[1][place] = pu + pressure;
        fluxes_along[2][place] = qu;
        fluxes_along[3][place] = enthalpy * u;
        fluxes_across[0][place] = q;
        fluxes_across[1][place] = qu;
        fluxes_across[2][place] = qv + pressure;
        fluxes_across[3][place] = enthalpy * v;
    }
}

/// Updates one field of a line from the cells of three lines and the fluxes across, along and
/// across them.
fn advance(row: &mut Row, [above, here, below]: [&Row; 3], fluxes: [&Row; 3]) {
    let [across_above, along, across_below] = fluxes;
    slab::around(row, |left, place, right| {
        let outflow = (along[right] - along[left]) + (across_below[place] - across_above[place]);
        let around = (here[left] + here[right]) + (above[place] + below[place]);
        (1.0 - 4.0 * SPREAD) * here[place] + SPREAD * around - HALF_STEP * outflow
    });
}

#[cfg(test)]
mod tests {
    use std::array;

    use super::*;

    #[test]
    fn a_cell_changes_by_what_flows_and_what_spreads() {
        let (mut row, along) = ([0.0; SIDE], array::from_fn(|place| place as f64));
        let cells = [&[8.0; SIDE], &[16.0; SIDE], &[24.0; SIDE]];
        advance(&mut row, cells, [&[1.0; SIDE], &along, &[4.0; SIDE]]);
        // Half of 16, and an eighth of 8, 24, 16 and 16; less a sixteenth of 2 and of 3.
        assert_eq!(row[1..SIDE - 1], [15.6875; SIDE - 2]);
        assert_eq!(row[0], 16.0 - (1.0 - 255.0 + 3.0) / 16.0, "cells are in a ring");
    }

    #[test]
    fn gas_at_rest_only_presses() {
        let (line, mut fluxes) =
            ([[1.0; SIDE], [0.0; SIDE], [0.0; SIDE], [2.5; SIDE]], [[[9.0; SIDE]; FIELDS]; 2]);
        flow(&line, &mut fluxes);
        let first = fluxes.map(|fluxes| fluxes.map(|row| row[0]));
        assert_eq!(first, [[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]);
    }
}
