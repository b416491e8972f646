//! Fits a model of several layers of weights by gradient descent, the samples distributed over the ranks, and the threads of
//! each rank working with rayon; checked against the weights that made the samples.
//!
//! `cargo mpj run -n 2 --release --example gradient -- --steps 200`
//!
//! As frameworks for learning do it, the gradient of a layer is summed over the ranks (`start(all_reduce)`) while that of
//! the next one is computed. With `MPJ_PROGRESS_THREAD=1` the messages travel meanwhile, if a processor is free.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use std::process::ExitCode;

use clap::Parser;
use mpj::{Communicator, Error, Op, Request, collective};
use rayon::prelude::*;

#[path = "support/partition.rs"]
mod partition;
#[path = "support/random.rs"]
mod random;
mod support;

/// Seeds of the true weights and of the samples.
const WEIGHTS: u64 = 5;
const SAMPLES: u64 = 6;
/// Largest error of a weight that counts as found.
const TOLERANCE: f64 = 1e-6;

/// Fits weights to samples by gradient descent.
#[derive(Parser)]
#[command(name = "gradient")]
struct Options {
    /// Samples of all ranks together
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    samples: u32,
    /// Layers of weights, each with inputs of its own
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=64))]
    layers: u32,
    /// Weights of a layer
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=4096))]
    weights: u32,
    /// Steps of the descent
    #[arg(long, default_value_t = 200)]
    steps: u32,
}

fn main() -> ExitCode {
    support::run(start)
}

fn start(comm: &Communicator, options: Options) -> Result<ExitCode, Error> {
    let (layers, width) = (options.layers as usize, options.weights as usize);
    let samples = options.samples as usize;
    let mine = partition::part(samples, comm.size(), comm.rank());
    let truth = |layer: usize, at: usize| random::uniform(WEIGHTS, (layer * width + at) as u64);
    // The inputs of a sample for a layer, and what the true weights make of them.
    let input = |layer: usize, sample: usize, at: usize| {
        random::uniform(SAMPLES + layer as u64, (sample * width + at) as u64)
    };
    let layer_of = |layer: usize| -> Vec<(Vec<f64>, f64)> {
        let sample = |sample| {
            let inputs: Vec<f64> = (0..width).map(|at| input(layer, sample, at)).collect();
            let goal = (0..width).map(|at| inputs[at] * truth(layer, at)).sum();
            (inputs, goal)
        };
        mine.clone().into_par_iter().map(sample).collect()
    };
    let data: Vec<_> = (0..layers).map(layer_of).collect();
    let mut weights = vec![vec![0.0; width]; layers];
    // Inputs from -1 to 1 have variance 1/3, so this rate is safe.
    let rate = 1.5 / samples as f64;
    for _ in 0..options.steps {
        let mut sums: Vec<Request<f64>> = Vec::with_capacity(layers);
        for (samples, weights) in data.iter().zip(&weights) {
            let gradient = gradient(samples, weights);
            sums.push(comm.start(collective::all_reduce(gradient, Op::Sum))?);
        }
        for (sum, weights) in sums.into_iter().zip(&mut weights) {
            for (weight, slope) in weights.iter_mut().zip(sum.wait()?.0) {
                *weight -= rate * slope;
            }
        }
    }
    let errors = weights.iter().enumerate().flat_map(|(layer, weights)| {
        weights.iter().enumerate().map(move |(at, weight)| (weight - truth(layer, at)).abs())
    });
    // In this order, values that are not numbers are the greatest.
    let error = errors.max_by(f64::total_cmp).unwrap_or(0.0);
    let passed = error < TOLERANCE;
    if comm.rank() == 0 && passed {
        println!("gradient: {samples} samples, {layers} x {width} weights, {} ranks", comm.size());
        println!("  error           {error:.3e} after {} steps: verified", options.steps);
    } else if !passed {
        eprintln!("gradient: the weights differ from the true ones by up to {error:.3e}");
    }
    support::outcome(comm, passed)
}

/// Returns the slope of the squared error of a layer, summed over this rank's samples by all its threads.
fn gradient(samples: &[(Vec<f64>, f64)], weights: &[f64]) -> Vec<f64> {
    let slope = |mut sum: Vec<f64>, (inputs, goal): &(Vec<f64>, f64)| {
        let output: f64 = inputs.iter().zip(weights).map(|(input, weight)| input * weight).sum();
        sum.iter_mut().zip(inputs).for_each(|(sum, input)| *sum += (output - goal) * input);
        sum
    };
    let zero = || vec![0.0; weights.len()];
    let add = |mut sum: Vec<f64>, other: Vec<f64>| {
        sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
        sum
    };
    samples.par_iter().fold(zero, slope).reduce(zero, add)
}
