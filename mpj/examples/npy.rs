//! Writes a matrix that is divided among all ranks as one file of NumPy, and reads it again in another division.
//!
//! `cargo mpj run --release -n 4 --example npy -- --rows 1000 --columns 600 --out matrix.npy`
//!
//! The ranks are a grid, and each one has a block of rows and columns. All write their blocks by one collective call, in
//! which they exchange them, so that few ranks write long parts of the file. `numpy.load` reads the result.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, File, Op, dims_create};

#[path = "support/partition.rs"]
mod partition;
mod support;

/// Writes a divided matrix as a file of NumPy.
#[derive(Parser)]
#[command(name = "npy")]
struct Options {
    /// Rows of the matrix
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    rows: u32,
    /// Columns of the matrix
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    columns: u32,
    /// The file
    #[arg(long)]
    out: PathBuf,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let shape = [options.rows as usize, options.columns as usize];
    let (rank, grid) = (comm.rank(), dims_create(comm.size(), [0, 0])?);
    let (rows, columns) = partition::block(shape, grid, rank);
    let value = |row: usize, column: usize| row as f64 + column as f64 / 1e6;
    let block: Vec<f64> = rows
        .clone()
        .flat_map(|row| columns.clone().map(move |column| value(row, column)))
        .map(|value| f64::from_bits(value.to_bits().to_le()))
        .collect();

    let header = header(shape);
    let mut file = File::create(comm, &options.out)?;
    file.view::<u8>(0)?.write_at_all(if rank == 0 { &header[..] } else { &[] }, 0)?;
    let at = header.len() as u64;
    file.view_subarray(at, &shape, &[rows, columns])?.write_at_all(&block, 0)?;
    file.sync_all()?;

    let len = shape[0] * shape[1];
    let view = file.view_block::<f64>(at, len)?;
    let mut read = vec![0.0; view.len().unwrap_or(0)];
    view.read_at_all(&mut read, 0)?;
    let first = partition::part(len, comm.size(), rank).start;
    let is_right = (first..).zip(&read).all(|(at, read)| {
        u64::from_le(read.to_bits()) == value(at / shape[1], at % shape[1]).to_bits()
    });
    file.close()?;
    let mut right = if is_right { read.len() } else { 0 };
    comm.all_reduce(&mut right, Op::Sum)?;
    if right != len {
        eprintln!("the file has other elements than were written");
        return Ok(ExitCode::FAILURE);
    }
    if rank == 0 {
        let path = options.out.display();
        println!(
            "{path}: {} x {} elements of {} x {} ranks, verified",
            shape[0], shape[1], grid[0], grid[1]
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what stands before the elements in a file of NumPy, version 1.0: a text that ends at a multiple of 64 bytes.
fn header([rows, columns]: [usize; 2]) -> Vec<u8> {
    let text =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}");
    let end = (10 + text.len() + 1).next_multiple_of(64);
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(((end - 10) as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(end - 1, b' ');
    bytes.push(b'\n');
    bytes
}
