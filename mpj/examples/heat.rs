//! Heat that spreads over a torus, in time steps with nine-point stencils, the cells distributed in blocks over a grid of
//! ranks; checked against one rank that computes without messages.
//!
//! `cargo mpj run -n 4 --release --example heat -- --rows 400 --columns 600`
//!
//! Each rank has its block in the middle of one matrix, with a ring of ghost cells around it, as textbooks draw it. Before
//! every step the ghost cells are received from the eight neighbours while the cells beside them are sent, all from that
//! one matrix: [`mpj::split_halo_mut`] divides it. Both dimensions are periodic, so a rank may be its own neighbour.
//!
//! Every value depends only on the previous step, so the result is the same to the last bit for any number of ranks.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{CartesianCommunicator, Communicator, Error};

#[path = "support/partition.rs"]
mod partition;
mod support;

/// Tag of the blocks that rank 0 collects. Tags of the halo are below 9.
const BLOCK: i32 = 9;
/// Part of the difference to the neighbours that a cell takes on in a step.
const RATE: f64 = 0.2;

/// Computes how heat spreads over a torus, in explicit time steps.
#[derive(Parser)]
#[command(name = "heat")]
struct Options {
    /// Rows of cells
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..=1 << 14))]
    rows: u64,
    /// Columns of cells
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=1 << 14))]
    columns: u64,
    /// Time steps
    #[arg(long, default_value_t = 100)]
    steps: u64,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let whole = [options.rows as usize, options.columns as usize];
    let dims = mpj::dims_create(comm.size(), [0, 0])?;
    if dims[0] > whole[0] || dims[1] > whole[1] {
        let reason = format!(
            "{} x {} ranks share {} x {} cells: start another number of ranks, or take more cells",
            dims[0], dims[1], whole[0], whole[1],
        );
        return Ok(support::refuse_job::<Options>(comm, &reason));
    }
    // Without reordering, every rank has a place in the grid.
    let grid = comm.create_cartesian(&dims, &[true, true], false)?.expect("a place for each rank");
    let start = mpj::wtime();
    let mut block = Block::new(whole, dims, grid.rank());
    for _ in 0..options.steps {
        block.exchange(&grid)?;
        block.step();
    }
    let seconds = mpj::wtime() - start;
    let passed = match gather(&grid, whole, dims, &block)? {
        Some(cells) => {
            println!("heat: {} x {} cells, {} x {} ranks", whole[0], whole[1], dims[0], dims[1]);
            println!("  steps           {}", options.steps);
            println!("  time            {seconds:.6} s");
            println!("  total           {:.9e}", cells.iter().sum::<f64>());
            conclude(&cells, &alone(whole, options.steps))
        }
        None => true,
    };
    support::outcome(&grid, passed)
}

/// Returns the heat of a cell before the first step: a hot rectangle in the first corner of the whole.
fn initial([rows, columns]: [usize; 2], row: usize, column: usize) -> f64 {
    if row <= rows / 3 && column <= columns / 4 { 1.0 + column as f64 } else { 0.0 }
}

/// Returns the heat of a cell after a step, from its own and that of the eight around it.
fn after([above, own, below]: [[f64; 3]; 3]) -> f64 {
    let straight = above[1] + below[1] + own[0] + own[2];
    let diagonal = above[0] + above[2] + below[0] + below[2];
    own[1] + RATE * ((4.0 * straight + diagonal) / 20.0 - own[1])
}

/// The cells of one rank, row by row, and the ghost cells around them.
struct Block {
    /// Rows and columns with ghost cells.
    dims: [usize; 2],
    cells: Vec<f64>,
    /// Cells of the next step.
    next: Vec<f64>,
}

impl Block {
    fn new(whole: [usize; 2], dims: [usize; 2], rank: usize) -> Self {
        let (rows, columns) = partition::block(whole, dims, rank);
        let dims = [rows.len() + 2, columns.len() + 2];
        let mut cells = vec![0.0; dims[0] * dims[1]];
        for (row, line) in rows.zip(cells.chunks_exact_mut(dims[1]).skip(1)) {
            for (column, cell) in columns.clone().zip(&mut line[1..]) {
                *cell = initial(whole, row, column);
            }
        }
        let next = cells.clone();
        Self { dims, cells, next }
    }

    /// Fills the ghost cells from the neighbours, and gives them theirs.
    fn exchange(&mut self, grid: &CartesianCommunicator) -> Result<(), Error> {
        grid.scope(|scope| {
            for part in mpj::split_halo_mut(&mut self.cells, self.dims, 1)? {
                let rank = grid.neighbour(&part.offset)?.expect("a torus ends nowhere");
                let (sent, received) = (part.send_tag(), part.recv_tag());
                scope.irecv_view(part.ghost, rank, received)?;
                scope.isend_view(part.border, rank, sent)?;
            }
            Ok(())
        })
    }

    /// Computes all inner cells of the next step.
    fn step(&mut self) {
        let [rows, columns] = self.dims;
        let line = |row: usize| &self.cells[row * columns..][..columns];
        for row in 1..rows - 1 {
            let around = [line(row - 1), line(row), line(row + 1)];
            for column in 1..columns - 1 {
                let near = around.map(|line| [line[column - 1], line[column], line[column + 1]]);
                self.next[row * columns + column] = after(near);
            }
        }
        std::mem::swap(&mut self.cells, &mut self.next);
    }

    /// Returns the cells without ghost cells.
    fn inner(&self) -> Result<mpj::Strided<'_, f64>, Error> {
        let [rows, columns] = self.dims;
        mpj::block(&self.cells, columns, 1..rows - 1, 1..columns - 1)
    }
}

/// Collects the cells of all ranks on rank 0, row by row. Collective.
fn gather(
    grid: &Communicator,
    whole: [usize; 2],
    dims: [usize; 2],
    block: &Block,
) -> Result<Option<Vec<f64>>, Error> {
    let mine = block.inner()?;
    if grid.rank() > 0 {
        grid.send(&mine, 0, BLOCK)?;
        return Ok(None);
    }
    let mut cells = vec![0.0; whole[0] * whole[1]];
    for rank in 0..grid.size() {
        let (rows, columns) = partition::block(whole, dims, rank);
        let mut place = mpj::block_mut(&mut cells, whole[1], rows, columns)?;
        match rank {
            0 => grid.sendrecv(&mine, 0, BLOCK, &mut place, 0, BLOCK)?,
            _ => grid.recv(&mut place, rank, BLOCK)?,
        };
    }
    Ok(Some(cells))
}

/// Computes all steps on one rank, without ghost cells.
fn alone(whole: [usize; 2], steps: u64) -> Vec<f64> {
    let [rows, columns] = whole;
    let places = |index: usize, len: usize| [(index + len - 1) % len, index, (index + 1) % len];
    let mut cells: Vec<f64> =
        (0..rows * columns).map(|at| initial(whole, at / columns, at % columns)).collect();
    for _ in 0..steps {
        let near = |at: usize| {
            let (rows, columns_near) = (places(at / columns, rows), places(at % columns, columns));
            after(rows.map(|row| columns_near.map(|column| cells[row * columns + column])))
        };
        cells = (0..cells.len()).map(near).collect();
    }
    cells
}

/// Compares the cells of all ranks with those of one. Returns whether they agree.
fn conclude(cells: &[f64], alone: &[f64]) -> bool {
    let differences = cells.iter().zip(alone).map(|(one, other)| (one - other).abs());
    // In this order, values that are not numbers are the greatest.
    let error = differences.max_by(f64::total_cmp).unwrap_or(0.0);
    if error == 0.0 {
        println!("  error           {error:.3e}: verified");
        return true;
    }
    eprintln!("heat: the values differ from those of one rank by up to {error:.3e}");
    false
}
