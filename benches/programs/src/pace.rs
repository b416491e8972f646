//! Chooses how often to repeat a measurement so that it takes the requested time.

use std::time::Instant;

use crate::order::{Buffers, Effort, Order};
use crate::runtime::{Failure, Job};

/// The most rounds between two agreements of the ranks.
const MOST_ROUNDS: u64 = 1 << 24;
/// The part of the budget for warming up.
const WARM_UP: f64 = 0.2;
/// The largest total time, in budgets, where one round takes longer than its share of the budget,
/// unless [`FEWEST`] batches take longer.
const STRETCH: f64 = 3.0;
/// The fewest batches, if at least as many are requested.
const FEWEST: f64 = 3.0;
/// Batches of passes that are measured alone.
const PASSES: usize = 7;
/// A first round that takes this many budgets is enough warm-up.
const LONG: f64 = 20.0;

/// Repeats `round` on every rank, first untimed, then in batches, and returns rank 0's seconds per
/// round for each batch. Collective; other ranks get their own times.
///
/// Rank 0 chooses the number of rounds per batch from the untimed rounds.
///
/// # Errors
/// The first error of `round`.
pub fn measure<R: Job>(
    runtime: &R,
    effort: &Effort,
    mut round: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    let mut round = || round().map(|()| 0.0);
    let batches = batches(runtime, effort, |rounds| time(runtime, rounds, &mut round, || Ok(())))?;
    Ok(batches.iter().map(|batch| batch.seconds).collect())
}

/// The times of one batch, in seconds per round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The whole time.
    pub seconds: f64,
    /// The part that the rounds returned.
    pub part: f64,
}

/// Measures like [`measure`], for work that all ranks do together: a batch begins when all ranks
/// are ready and ends when the last one is done, so that no rank has a head start. The rounds
/// return how many of their seconds count separately.
///
/// # Errors
/// The errors of [`measure`] and of the barriers.
pub fn measure_together<R: Job>(
    runtime: &R,
    effort: &Effort,
    mut round: impl FnMut() -> Result<f64, Failure>,
) -> Result<Vec<Timed>, Failure> {
    batches(runtime, effort, |rounds| {
        runtime.barrier()?;
        time(runtime, rounds, &mut round, || runtime.barrier())
    })
}

/// Measures like [`measure`], for calls that all ranks make: a batch begins when all ranks are
/// ready. Every rank gets its own times; [`slowest`] combines them.
///
/// # Errors
/// The errors of [`measure`] and of the barriers.
pub fn measure_calls<R: Job>(
    runtime: &R,
    effort: &Effort,
    mut call: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    let mut call = || call().map(|()| 0.0);
    let batches = batches(runtime, effort, |rounds| {
        runtime.barrier()?;
        time(runtime, rounds, &mut call, || Ok(()))
    })?;
    Ok(batches.iter().map(|batch| batch.seconds).collect())
}

/// Returns the maximum of each figure over all ranks, which pass the same number of figures. Collective.
///
/// # Errors
/// The errors of [`Job::exchange`].
pub fn slowest<R: Job>(runtime: &R, own: &[f64]) -> Result<Vec<f64>, Failure> {
    let most = |figure: &f64| Ok(all(runtime, *figure)?.into_iter().fold(*figure, f64::max));
    own.iter().map(most).collect()
}

/// Runs `batch` with growing numbers of rounds until the best number is known, then with that one.
/// Runs fewer batches than requested if a single round takes too long.
fn batches<R: Job>(
    runtime: &R,
    effort: &Effort,
    mut batch: impl FnMut(u64) -> Result<Timed, Failure>,
) -> Result<Vec<Timed>, Failure> {
    let budget = effort.budget / 1e3;
    let mut rounds = 1;
    let mut spent = 0.0;
    let per_batch = loop {
        let seconds = batch(rounds)?.seconds;
        spent += seconds * rounds as f64;
        // The first round may be slow because caches are cold.
        let is_warm = rounds > 1 || spent > budget * LONG;
        let enough = is_warm && (spent >= budget * WARM_UP || rounds >= MOST_ROUNDS);
        let per_batch = budget / effort.batches as f64 / seconds;
        let decision = if enough { -per_batch.clamp(1e-9, MOST_ROUNDS as f64) } else { 0.0 };
        let decision = of_rank_0(runtime, decision)?;
        if decision < 0.0 {
            break -decision;
        }
        rounds *= 2;
    };
    let best = per_batch.max(1.0) as u64;
    (0..fewer(effort.batches, per_batch)).map(|_| batch(best)).collect()
}

/// The number of batches for this many rounds per batch.
fn fewer(batches: usize, per_batch: f64) -> usize {
    let asked = batches as f64;
    (asked * per_batch * STRETCH).clamp(FEWEST.min(asked), asked) as usize
}

/// Times `rounds` rounds and the code after them.
#[inline]
fn time<R: Job>(
    runtime: &R,
    rounds: u64,
    mut round: impl FnMut() -> Result<f64, Failure>,
    end: impl FnOnce() -> Result<(), Failure>,
) -> Result<Timed, Failure> {
    let mut part = 0.0;
    let start = runtime.wtime();
    for _ in 0..rounds {
        part += round()?;
    }
    end()?;
    let seconds = (runtime.wtime() - start).max(1e-9);
    Ok(Timed { seconds: seconds / rounds as f64, part: part / rounds as f64 })
}

/// How ranks 0 and 1 take turns at storing and reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// One after the other.
    InTurn,
    /// At the same time.
    AtOnce,
}

/// Returns the seconds per round of [`measure`] for storing and reading buffers, which the caller
/// subtracts. `pass` does only this rank's storing and reading of one round; it does nothing if
/// buffers are not rewritten. Collective.
///
/// The result is the sum over ranks 0 and 1 if they work in turn, and the mean if they work at
/// once. Each rank's part is the median of batches, with buffers in the cache as the previous pass
/// left them.
///
/// # Errors
/// The errors of [`Job::barrier`] and [`Job::exchange`].
pub fn alone<R: Job>(
    runtime: &R,
    order: &Order,
    turns: Turns,
    mut pass: impl FnMut(),
) -> Result<f64, Failure> {
    if order.buffers != Buffers::Rewritten {
        return Ok(0.0);
    }
    let rank = runtime.rank();
    let mut own = 0.0;
    let (starts, part) = match turns {
        Turns::InTurn => (2, 1.0),
        Turns::AtOnce => (1, 0.5),
    };
    for start in 0..starts {
        runtime.barrier()?;
        if rank < 2 && (rank == start || turns == Turns::AtOnce) {
            own = part * passes(&order.effort, &mut pass)[PASSES / 2];
        }
    }
    Ok(all(runtime, own)?.iter().sum())
}

/// Returns the seconds of `pass` on this rank while all ranks run theirs: the fastest batch, since
/// a rank that shares its processor is interrupted in most batches. Collective.
///
/// # Errors
/// The errors of [`Job::barrier`].
pub fn alone_here<R: Job>(
    runtime: &R,
    effort: &Effort,
    mut pass: impl FnMut(),
) -> Result<f64, Failure> {
    runtime.barrier()?;
    Ok(passes(effort, &mut pass)[0])
}

/// The seconds of `pass` per batch, ascending. The batches take half of a point's budget; the first
/// passes are untimed.
fn passes(effort: &Effort, pass: &mut impl FnMut()) -> [f64; PASSES] {
    let batch = effort.budget / 1e3 / 2.0 / PASSES as f64;
    let mut timed = |rounds: u64| {
        let start = Instant::now();
        (0..rounds).for_each(|_| pass());
        start.elapsed().as_secs_f64()
    };
    let (mut rounds, mut seconds) = (1, timed(1));
    while seconds < batch && rounds < MOST_ROUNDS {
        rounds *= 2;
        seconds = timed(rounds);
    }
    let mut batches = [(); PASSES].map(|()| timed(rounds) / rounds as f64);
    batches.sort_by(f64::total_cmp);
    batches
}

/// Subtracts `alone` seconds per round from every batch. Returns `None` if a result is not above
/// zero: the rest is then noise, and dropping only that batch would bias the median.
pub fn less(seconds: &[f64], alone: f64) -> Option<Vec<f64>> {
    let left = seconds.iter().map(|seconds| seconds - alone);
    left.map(|left| (left > 0.0).then_some(left)).collect()
}

/// Returns rank 0's value on every rank.
///
/// # Errors
/// The errors of [`Job::exchange`].
pub fn of_rank_0<R: Job>(runtime: &R, value: f64) -> Result<f64, Failure> {
    Ok(all(runtime, value)?[0])
}

/// Returns the values of all ranks.
fn all<R: Job>(runtime: &R, value: f64) -> Result<Vec<f64>, Failure> {
    Ok(runtime.exchange(value.to_bits())?.into_iter().map(f64::from_bits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_that_is_noise_is_no_figure() {
        assert_eq!(less(&[3.0, 2.5], 2.0), Some(vec![1.0, 0.5]));
        assert_eq!(less(&[3.0, 2.0], 2.0), None);
        assert_eq!(less(&[3.0, 1.0], 2.0), None);
        assert_eq!(less(&[], 2.0), Some(vec![]));
    }

    #[test]
    fn long_rounds_are_repeated_less_often() {
        let counts = [100.0, 1.0, 0.4, 0.2, 0.01].map(|per_batch| fewer(10, per_batch));
        assert_eq!(counts, [10, 10, 10, 6, 3]);
        assert_eq!([fewer(2, 0.01), fewer(1, 0.01)], [2, 1]);
    }
}
