//! Programs whose times are known exactly, since they are simulated: ranks in a row compute, exchange messages with their
//! neighbours, and meet in collective calls. Messages and calls take no time, so ranks only wait for slower ones.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

pub(super) struct Stencil {
    /// The time of each rank, in seconds.
    now: Vec<u64>,
    calls: Vec<Vec<Call>>,
    message: u64,
    sequence: u64,
}

impl Stencil {
    pub(super) fn new(ranks: usize) -> Self {
        Self { now: vec![0; ranks], calls: vec![Vec::new(); ranks], message: 0, sequence: 0 }
    }

    pub(super) fn compute(&mut self, seconds: &[u64]) {
        self.now.iter_mut().zip(seconds).for_each(|(now, seconds)| *now += seconds);
    }

    /// Each rank sends to its neighbours, and then receives from them.
    pub(super) fn exchange(&mut self) {
        let (begin, ranks) = (self.now.clone(), self.now.len());
        let first = self.message;
        let number = |from: usize, to: usize| first + (from * ranks + to) as u64;
        for rank in 0..ranks {
            for to in neighbours(rank, ranks) {
                let time = begin[rank];
                self.calls[rank].push(send(time, time, to as u32, number(rank, to)));
            }
            for from in neighbours(rank, ranks) {
                let (start, end) = (self.now[rank], self.now[rank].max(begin[from]));
                self.calls[rank].push(recv(start, end, from as u32, number(from, rank)));
                self.now[rank] = end;
            }
        }
        self.message += (ranks * ranks) as u64;
    }

    pub(super) fn reduce(&mut self) {
        let last = *self.now.iter().max().expect("there are ranks");
        for (now, calls) in self.now.iter_mut().zip(&mut self.calls) {
            calls.push(collective(*now, last, self.sequence));
            *now = last;
        }
        self.sequence += 1;
    }

    pub(super) fn trace(&self) -> Collected {
        trace(self.calls.clone())
    }
}

fn neighbours(rank: usize, ranks: usize) -> impl Iterator<Item = usize> {
    let before = rank.checked_sub(1);
    before.into_iter().chain((rank + 1 < ranks).then_some(rank + 1))
}

#[test]
#[ignore = "takes seconds unless it is optimized"]
fn a_million_calls_take_a_few_seconds() {
    let mut simulation = Stencil::new(64);
    for round in 0..4000_u64 {
        let seconds: Vec<u64> = (0..64).map(|rank| 10 + (7 * rank + 3 * round) % 5).collect();
        simulation.compute(&seconds);
        simulation.exchange();
        if round % 10 == 0 {
            simulation.reduce();
        }
    }
    let collected = simulation.trace();
    let calls = collected.trace.ranks.iter().map(|rank| rank.threads[0].calls.len());
    assert!(calls.sum::<usize>() > 1_000_000);
    let start = std::time::Instant::now();
    let profile = Profile::of(&collected);
    let size = profile.text().len() + profile.page("program").len();
    assert!(start.elapsed().as_secs() < 5, "{:?}, {size} bytes", start.elapsed());
}

proptest! {
    /// If all ranks but one compute equally long, that one is behind all waits, however far away.
    #[test]
    fn the_only_slow_rank_is_behind_all_waits(
        ranks in 2..7_usize,
        slow in 0..7_usize,
        rounds in vec((0..4_u64, 0..4_u64, 0..4_u8), 1..12),
    ) {
        let slow = slow % ranks;
        let mut simulation = Stencil::new(ranks);
        for (usual, longer, what) in rounds {
            let mut seconds = vec![usual; ranks];
            seconds[slow] += longer;
            simulation.compute(&seconds);
            if what == 0 { simulation.reduce() } else { simulation.exchange() }
        }
        let profile = Profile::of(&simulation.trace());
        for charge in &profile.causes {
            prop_assert_eq!(charge.cause, slow, "{:?}", charge);
        }
        prop_assert_eq!(profile.waited(), profile.ranks[slow].caused);
    }
}
