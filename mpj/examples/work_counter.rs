//! A work counter: ranks take the numbers of pieces of work from one counter, so none has to divide the work, and a rank
//! whose pieces take longer takes fewer. Here a piece is a row of the Mandelbrot set.
//!
//! `cargo mpj run --release -n 4 --example work_counter`
#![allow(clippy::print_stdout, reason = "a program prints")]

use mpj::{Error, Op};

const ROWS: u64 = 100;
const COLUMNS: u64 = 150;
const MOST: u64 = 200;

/// Returns after how many steps, of `MOST`, the points of a row are known not to belong to the set, in total.
fn steps(row: u64) -> u64 {
    let steps_at = |column: u64| {
        let (x, y) = (column as f64 / 50.0 - 2.0, row as f64 / 50.0 - 1.0);
        let (mut re, mut im, mut steps) = (0.0, 0.0, 0);
        while steps < MOST && re * re + im * im < 4.0 {
            (re, im) = (re * re - im * im + x, 2.0 * re * im + y);
            steps += 1;
        }
        steps
    };
    (0..COLUMNS).map(steps_at).sum()
}

fn main() -> Result<(), Error> {
    let world = mpj::init()?;
    let counter = world.shared_counter()?;
    let (mut total, mut taken) = ([0, 0], 0_u64);
    loop {
        let row = counter.next()?;
        if row >= ROWS {
            break;
        }
        // The sum tells whether each row was taken once.
        total = [total[0] + steps(row), total[1] + row * row];
        taken += 1;
    }
    println!("rank {} took {taken} rows", world.rank());
    world.all_reduce(&mut total, Op::Sum)?;
    if world.rank() == 0 {
        let alone = (0..ROWS).fold([0, 0], |sum, row| [sum[0] + steps(row), sum[1] + row * row]);
        assert_eq!(total, alone, "a row was left out, or taken twice");
        println!("{} steps: verified", total[0]);
    }
    Ok(())
}
