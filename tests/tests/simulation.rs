//! Campaigns of seeded simulations. A failure names its seed; `sim::orderly(seed)` or
//! `sim::hostile(seed)` repeats it.

use std::any::Any;
use std::ops::Range;
use std::panic::catch_unwind;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mpj_tests::sim::{self, Reached};

/// Time limit of one seed.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs a simulation with each seed under a watchdog; returns what they reached together.
fn campaign(simulation: fn(u64) -> Result<Reached, String>, seeds: Range<u64>) -> Reached {
    let (report, reports) = mpsc::channel();
    let all = seeds.clone();
    let play = move || {
        for seed in all {
            let outcome =
                catch_unwind(|| simulation(seed)).unwrap_or_else(|panic| Err(text(&*panic)));
            if report.send(outcome).is_err() {
                return;
            }
        }
    };
    thread::spawn(play);
    let mut reached = Reached::default();
    for seed in seeds {
        match reports.recv_timeout(LIMIT) {
            Ok(Ok(one)) => reached = reached.plus(one),
            Ok(Err(error)) => panic!("seed {seed}: {error}"),
            Err(_) => panic!("seed {seed}: no end after {LIMIT:?}"),
        }
    }
    reached
}

/// The message of a panic.
fn text(panic: &(dyn Any + Send)) -> String {
    let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.unwrap_or_default())
}

/// The campaign keeps the rules, and reaches every case that the rules are about.
fn orderly(seeds: Range<u64>) {
    let reached = campaign(sim::orderly, seeds);
    let Reached { early, fallbacks, cancelled, cancelled_late, truncated, probed, failed } =
        reached;
    for case in [early, fallbacks, cancelled, cancelled_late, truncated, probed] {
        assert!(case > 0, "{reached:?}");
    }
    assert_eq!(failed, 0);
}

#[test]
fn rules_hold_over_adapters_that_delay() {
    orderly(0..400);
}

#[test]
fn rules_hold_over_adapters_that_delay_other_seeds() {
    orderly(1_000..1_400);
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
    let reached = campaign(sim::hostile, 0..600);
    assert!(reached.failed > 300, "{reached:?}");
}
