//! Campaigns of seeded simulations. A failure names its seed; `sim::orderly(seed)` or
//! `sim::hostile(seed)` repeats it.

use std::ops::Range;
use std::panic::catch_unwind;

use mpj_harness::watch_with;
use mpj_tests::sim::{self, Reached};

/// Runs a simulation with each seed under a watchdog; returns what they reached together.
fn campaign(simulation: fn(u64) -> Result<Reached, String>, seeds: Range<u64>) -> Reached {
    let one = |seed| {
        let caught = move || catch_unwind(|| simulation(seed));
        let outcome = watch_with(|| format!("seed {seed}"), caught);
        let outcome = outcome.unwrap_or_else(|panic| Err(mpjdev::panic_text(&*panic)));
        outcome.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
    };
    seeds.map(one).fold(Reached::default(), Reached::plus)
}

/// The campaign keeps the rules, and reaches every case that the rules are about.
#[test]
fn rules_hold_over_adapters_that_delay() {
    let reached = campaign(sim::orderly, 0..400);
    let Reached { unexpected, fallbacks, cancelled, cancelled_late, truncated, probed, failed } =
        reached;
    for case in [unexpected, fallbacks, cancelled, cancelled_late, truncated, probed] {
        assert!(case > 0, "{reached:?}");
    }
    assert_eq!(failed, 0);
}

#[test]
fn a_seed_gives_the_same_run_again() {
    for seed in 0..20 {
        assert_eq!(sim::orderly(seed), sim::orderly(seed));
        assert_eq!(sim::hostile(seed), sim::hostile(seed));
    }
}

#[test]
fn harmed_frames_and_lost_ranks_end_in_errors() {
    let reached = campaign(sim::hostile, 0..300);
    assert!(reached.failed > 150, "{reached:?}");
}
