//! Bodies that attract each other, distributed evenly over the ranks. Forces are computed by a ring pipeline, and
//! checked against the direct sum of one rank.
//!
//! `cargo mpj run -n 4 --release --example nbody -- --bodies 2000 --steps 10`
//!
//! Every rank has a block of bodies. To compute the forces, a copy of each block goes round the ring of ranks, in as
//! many steps as there are ranks. In each step, a rank adds the forces of the block that it has to its own bodies,
//! while it sends that block to the next rank and receives another one from the previous rank. After the last step each
//! rank has seen all bodies, and no rank ever has more than three blocks. The bodies move by the leapfrog scheme (kick,
//! drift, kick).
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Datatype, Error, Op, Partition};

#[path = "support/partition.rs"]
mod partition;
#[path = "support/random.rs"]
mod random;
mod support;

const SEED: u64 = 5;
const ROUND: i32 = 1;
/// Square of the distance below which forces do not grow, so that close passes are harmless.
const SOFTENING: f64 = 1e-4;

/// Moves bodies by their gravity, with a ring pipeline.
#[derive(Parser)]
#[command(name = "nbody")]
struct Options {
    /// Bodies of all ranks together
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    bodies: u64,
    /// Steps in time
    #[arg(long, default_value_t = 10)]
    steps: u64,
    /// Length of a step
    #[arg(long, default_value_t = 1e-3, value_parser = positive)]
    step: f64,
}

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|error| format!("{error}"))?;
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err("expected a positive number".into())
    }
}

/// The part of a body that goes round the ring.
#[derive(Debug, Clone, Copy, Datatype)]
#[repr(C)]
struct Body {
    position: [f64; 3],
    mass: f64,
}

/// The force on a body per unit of its mass, and the sum of the lengths of its terms, which is the scale of its
/// rounding errors.
#[derive(Debug, Clone, Copy, Default)]
struct Pull {
    sum: [f64; 3],
    scale: f64,
}

impl Pull {
    /// Adds the forces of `others` on a body at `position`. A body exerts no force on itself.
    fn add(&mut self, position: [f64; 3], others: &[Body]) {
        for other in others {
            let way = [0, 1, 2].map(|axis| other.position[axis] - position[axis]);
            let square = way.iter().map(|way| way * way).sum::<f64>() + SOFTENING;
            let strength = other.mass / (square * square.sqrt());
            for (sum, way) in self.sum.iter_mut().zip(way) {
                *sum += strength * way;
            }
            self.scale += strength * square.sqrt();
        }
    }
}

/// The bodies of one rank.
struct Block {
    bodies: Vec<Body>,
    velocities: Vec<[f64; 3]>,
    pulls: Vec<Pull>,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let total = options.bodies as usize;
    let parts = (0..comm.size()).map(|rank| partition::part(total, comm.size(), rank));
    let counts: Vec<usize> = parts.map(|part| part.len()).collect();
    let mut block = Block::new(total, comm);
    comm.barrier()?;
    let start = mpj::wtime();
    block.attract(comm, &counts)?;
    for _ in 0..options.steps {
        block.kick(options.step / 2.0);
        block.drift(options.step);
        block.attract(comm, &counts)?;
        block.kick(options.step / 2.0);
    }
    let mut seconds = mpj::wtime() - start;
    comm.all_reduce(&mut seconds, Op::Max)?;

    let blocks = Partition::packed(counts);
    let room = if comm.rank() == 0 { total } else { 0 };
    let (mut bodies, mut forces) =
        (vec![Body { position: [0.0; 3], mass: 0.0 }; room], vec![[0.0; 3]; room]);
    let own: Vec<[f64; 3]> = block.pulls.iter().map(|pull| pull.sum).collect();
    comm.gatherv(&block.bodies, &mut bodies, &blocks, 0)?;
    comm.gatherv(&own, &mut forces, &blocks, 0)?;
    let momentum = block.momentum(comm)?;
    let passed = comm.rank() > 0 || {
        println!("nbody: {total} bodies, {} steps, {} ranks", options.steps, comm.size());
        let pairs = (total * total) as f64 * (options.steps + 1) as f64;
        println!("  time            {seconds:.6} s");
        println!("  speed           {:.2} million pairs/s", pairs / seconds / 1e6);
        println!("  momentum        {momentum:.3e}, 0 without rounding");
        conclude(&bodies, &forces)
    };
    support::outcome(comm, passed)
}

impl Block {
    /// Makes this rank's bodies: at rest in a cube, with a total mass of 1 over all ranks.
    fn new(total: usize, comm: &Communicator) -> Self {
        let body = |index: usize| Body {
            position: [0, 1, 2].map(|axis| random::uniform(SEED, 3 * index as u64 + axis)),
            mass: 1.0 / total as f64,
        };
        let bodies: Vec<_> = partition::part(total, comm.size(), comm.rank()).map(body).collect();
        let (velocities, pulls) =
            (vec![[0.0; 3]; bodies.len()], vec![Pull::default(); bodies.len()]);
        Self { bodies, velocities, pulls }
    }

    /// Computes the forces of all bodies on those of this rank. Collective; `counts` has the number of bodies of each
    /// rank.
    fn attract(&mut self, comm: &Communicator, counts: &[usize]) -> Result<(), Error> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let (next, previous) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        self.pulls.fill(Pull::default());
        let mut held = self.bodies.clone();
        for step in 1..ranks {
            // The incoming block has been passed on once in each step.
            let origin = (rank + ranks - step) % ranks;
            let mut coming = vec![Body { position: [0.0; 3], mass: 0.0 }; counts[origin]];
            comm.scope(|scope| {
                scope.irecv(&mut coming, previous, ROUND)?;
                scope.isend(&held, next, ROUND)?;
                self.add(&held);
                Ok::<(), Error>(())
            })?;
            held = coming;
        }
        self.add(&held);
        Ok(())
    }

    fn add(&mut self, others: &[Body]) {
        for (body, pull) in self.bodies.iter().zip(&mut self.pulls) {
            pull.add(body.position, others);
        }
    }

    /// Changes the velocities by the forces that act for a time.
    fn kick(&mut self, time: f64) {
        for (velocity, pull) in self.velocities.iter_mut().zip(&self.pulls) {
            velocity.iter_mut().zip(pull.sum).for_each(|(speed, pull)| *speed += time * pull);
        }
    }

    /// Changes the positions by the velocities during a time.
    fn drift(&mut self, time: f64) {
        for (body, velocity) in self.bodies.iter_mut().zip(&self.velocities) {
            body.position
                .iter_mut()
                .zip(velocity)
                .for_each(|(place, speed)| *place += time * speed);
        }
    }

    /// Returns the length of the momentum of all bodies, on every rank.
    fn momentum(&self, comm: &Communicator) -> Result<f64, Error> {
        let mut momentum = [0.0; 3];
        for (body, velocity) in self.bodies.iter().zip(&self.velocities) {
            momentum.iter_mut().zip(velocity).for_each(|(sum, speed)| *sum += body.mass * speed);
        }
        comm.all_reduce(&mut momentum, Op::Sum)?;
        Ok(momentum.iter().map(|along| along * along).sum::<f64>().sqrt())
    }
}

/// Compares the last forces with the direct sum over all bodies. Returns whether they agree.
fn conclude(bodies: &[Body], forces: &[[f64; 3]]) -> bool {
    let errors = bodies.iter().zip(forces).map(|(body, force)| {
        let mut direct = Pull::default();
        direct.add(body.position, bodies);
        let differences =
            direct.sum.iter().zip(force).map(|(direct, force)| (direct - force).abs());
        let largest = differences.max_by(f64::total_cmp).unwrap_or(0.0);
        if largest == 0.0 { 0.0 } else { (largest / direct.scale).abs() }
    });
    // In this order, values that are not numbers are the greatest.
    let error = errors.max_by(f64::total_cmp).unwrap_or(0.0);
    // Both sums have the same terms and round once per body.
    let limit = 2.0 * bodies.len() as f64 * f64::EPSILON;
    let figures = format!("{error:.3e} of the forces (at most {limit:.3e})");
    if error <= limit {
        println!("  error           {figures}: verified");
        return true;
    }
    eprintln!("nbody: the forces differ from those of the direct sum: error {figures}");
    false
}
