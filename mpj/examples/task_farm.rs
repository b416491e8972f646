//! A task farm in which idle ranks steal work from others. The tasks integrate a function, piece by piece: a piece that
//! is too coarse becomes two new tasks, so nobody knows how many there will be, and where. The ranks find out when all
//! work is done.
//!
//! `cargo mpj run --release -n 4 --example task_farm --features serde`
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// The piece to integrate: from here to there.
type Task = (f64, f64);

/// Simpson's rule for 1 / (x^2 + 10^-6).
fn simpson((from, to): Task) -> f64 {
    let f = |x: f64| 1.0 / (x * x + 1e-6);
    (to - from) / 6.0 * (f(from) + 4.0 * f(0.5 * (from + to)) + f(to))
}

fn main() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let (rank, ranks) = (world.rank(), world.size());
    // Only rank 0 has work at first.
    let tasks = Arc::new(Mutex::new(VecDeque::from_iter((rank == 0).then_some((0.0, 1.0)))));
    // Others steal from the front, where the largest pieces are; this rank works at the back.
    let stolen = tasks.clone();
    let steal = world.serve(move |_thief, ()| stolen.lock().expect("no panic").pop_front())?;
    // Rank 0 counts the open tasks of all ranks. The service adds to the number, and returns it.
    let open = AtomicI64::new(1);
    let open = world.serve(move |_, more| open.fetch_add(more, Ordering::Relaxed) + more)?;

    let (mut sum, mut done, mut victim) = ([0.0], 0, rank);
    loop {
        let own = tasks.lock().expect("no panic").pop_back();
        victim = (victim + 1) % ranks;
        // A rank that waits for an answer serves the others meanwhile. It must hold no lock that they need.
        let task: Option<Task> = if own.is_some() { own } else { steal.call(victim, &())? };
        let Some((from, to)) = task else {
            if open.call(0, &0)? == 0 {
                break;
            }
            continue;
        };
        let halves = [(from, 0.5 * (from + to)), (0.5 * (from + to), to)];
        let fine = simpson(halves[0]) + simpson(halves[1]);
        let is_fine = (fine - simpson((from, to))).abs() < 1e-9;
        // New tasks are counted before anybody can take them, so that the number is 0 only when all are done.
        open.call(0, &if is_fine { -1 } else { 1 })?;
        tasks.lock().expect("no panic").extend(halves.into_iter().filter(|_| !is_fine));
        sum[0] += if is_fine { fine } else { 0.0 };
        done += 1;
    }
    world.all_reduce(&mut sum, mpj::Op::Sum)?;
    println!("rank {rank} did {done} tasks");
    assert!((sum[0] - 1e3 * 1e3_f64.atan()).abs() < 1e-3, "the integral is not {}", sum[0]);
    Ok(())
}
