//! How often something is repeated so that it takes the time that was asked for, and no more.

use std::time::Instant;

use crate::order::{Buffers, Effort, Order};
use crate::runtime::{Failure, Runtime};

/// Rounds at most from one agreement to the next.
const MOST_ROUNDS: u64 = 1 << 24;
/// Part of the budget that is spent on warming up.
const WARM_UP: f64 = 0.2;
/// So many budgets are spent where one round takes longer than its part of the budget, as long as there
/// are [`FEWEST`] batches.
const STRETCH: f64 = 3.0;
/// As many batches there are at least, if as many are asked for.
const FEWEST: f64 = 3.0;
/// Batches of passes that are measured alone.
const PASSES: usize = 7;
/// A first round that takes so many budgets is warm-up enough.
const LONG: f64 = 20.0;

/// Repeats `round` on every rank, first untimed, then in batches, and returns rank 0's seconds per
/// round, batch by batch. Collective; other ranks get what they measured themselves.
///
/// How many rounds are in a batch is rank 0's decision, made from the untimed rounds.
///
/// # Errors
/// The first of `round`.
pub fn measure<R: Runtime>(
    runtime: &R,
    effort: &Effort,
    mut round: impl FnMut() -> Result<(), Failure>,
) -> Result<Vec<f64>, Failure> {
    let mut round = || round().map(|()| 0.0);
    let batches = batches(runtime, effort, |rounds| time(runtime, rounds, &mut round, || Ok(())))?;
    Ok(batches.iter().map(|batch| batch.seconds).collect())
}

/// One batch: seconds per round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// All of them.
    pub seconds: f64,
    /// Those that the rounds returned.
    pub part: f64,
}

/// As [`measure`], of work that all ranks do together: a batch begins when all of them are there and
/// ends when the last one is done, so that no rank's head start counts. The rounds return how many
/// of their seconds were spent on what counts by itself.
///
/// # Errors
/// As [`measure`], and of the barriers.
pub fn measure_together<R: Runtime>(
    runtime: &R,
    effort: &Effort,
    mut round: impl FnMut() -> Result<f64, Failure>,
) -> Result<Vec<Timed>, Failure> {
    batches(runtime, effort, |rounds| {
        runtime.barrier()?;
        time(runtime, rounds, &mut round, || runtime.barrier())
    })
}

/// As [`measure`], of calls that all ranks make: a batch begins when all of them are there. Every rank gets what
/// it measured itself, of which [`slowest`] makes one figure.
///
/// # Errors
/// As [`measure`], and of the barriers.
pub fn measure_calls<R: Runtime>(
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

/// Of each figure the greatest that a rank has, on rank 0. All ranks have as many figures; ranks other than 0 get
/// their own back. Collective.
///
/// # Errors
/// As [`Runtime::gather`].
pub fn slowest<R: Runtime>(runtime: &R, own: &[f64]) -> Result<Vec<f64>, Failure> {
    let is_first = runtime.rank() == 0;
    let mut all = vec![0.0; if is_first { own.len() * runtime.size() } else { 0 }];
    runtime.gather(bytemuck::cast_slice(own), bytemuck::cast_slice_mut(&mut all), 0)?;
    if !is_first || own.is_empty() {
        return Ok(own.to_vec());
    }
    let mut most = own.to_vec();
    for of_rank in all.chunks(own.len()) {
        most.iter_mut().zip(of_rank).for_each(|(most, figure)| *most = most.max(*figure));
    }
    Ok(most)
}

/// Runs `batch` with growing numbers of rounds until the best number is known, then with that one. There
/// are fewer batches than asked for if a single round takes too long for that.
fn batches<R: Runtime>(
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
        // The first round may be like no other, since it finds everything cold.
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

/// How many batches, where this many rounds fit into each.
fn fewer(batches: usize, per_batch: f64) -> usize {
    let asked = batches as f64;
    (asked * per_batch * STRETCH).clamp(FEWEST.min(asked), asked) as usize
}

/// Times `rounds` rounds and their end.
#[inline]
fn time<R: Runtime>(
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

/// When ranks 0 and 1 store and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turns {
    /// One after the other.
    InTurn,
    /// At the same time.
    AtOnce,
}

/// Seconds that one round of [`measure`] spends on storing and reading its buffers, which is to be
/// subtracted: `pass` does as much of it as this rank does in a round, and nothing else. Nothing where
/// buffers are not rewritten. Collective.
///
/// Where ranks 0 and 1 work in turn, it is the sum of both; where they work at once, their mean. Each
/// rank's part is the median of batches, with the buffers in the cache that the pass before left them in.
///
/// # Errors
/// As [`Runtime::barrier`] and [`Runtime::allreduce`].
pub fn alone<R: Runtime>(
    runtime: &R,
    order: &Order,
    turns: Turns,
    mut pass: impl FnMut(),
) -> Result<f64, Failure> {
    if order.buffers != Buffers::Rewritten {
        return Ok(0.0);
    }
    let rank = runtime.rank();
    let mut own = [0.0];
    let (starts, part) = match turns {
        Turns::InTurn => (2, 1.0),
        Turns::AtOnce => (1, 0.5),
    };
    for start in 0..starts {
        runtime.barrier()?;
        if rank < 2 && (rank == start || turns == Turns::AtOnce) {
            own[0] = part * passes(&order.effort, &mut pass)[PASSES / 2];
        }
    }
    runtime.allreduce(&mut own)?;
    Ok(own[0])
}

/// Seconds that `pass` takes on this rank while all ranks do theirs: of batches as in [`alone`] the fastest one,
/// since a rank that shares its processor with others is interrupted in most of them. Collective.
///
/// # Errors
/// As [`Runtime::barrier`].
pub fn alone_here<R: Runtime>(
    runtime: &R,
    effort: &Effort,
    mut pass: impl FnMut(),
) -> Result<f64, Failure> {
    runtime.barrier()?;
    Ok(passes(effort, &mut pass)[0])
}

/// Seconds of `pass`, batch by batch, ascending. There are as many as take half of a point's budget, the first
/// ones untimed.
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

/// The batches without what took `alone` seconds of every round. `None` if one of them is not above zero
/// then: what is left is noise, and to leave out that batch would bend the others' median.
pub fn less(seconds: &[f64], alone: f64) -> Option<Vec<f64>> {
    let left = seconds.iter().map(|seconds| seconds - alone);
    left.map(|left| (left > 0.0).then_some(left)).collect()
}

/// Rank 0's value, on every rank.
///
/// # Errors
/// As [`Runtime::broadcast`].
pub fn of_rank_0<R: Runtime>(runtime: &R, value: f64) -> Result<f64, Failure> {
    let mut bytes = value.to_ne_bytes();
    runtime.broadcast(&mut bytes, 0)?;
    Ok(f64::from_ne_bytes(bytes))
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
