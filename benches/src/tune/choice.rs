//! Derives the table from the verdicts. Pure.

use transport_lapi::config::{Pieces, Protocol, Ranges, Tuning};

use crate::stats;

/// The smallest and the largest message at which protocols are compared, in bytes.
pub const SIZES: (usize, usize) = (256, 64 << 20);

/// The shortest spin to choose, in turns.
const LEAST_SPIN: f64 = 125.0;
/// The longest spin to choose, in turns.
const MOST_SPIN: f64 = 1e6;
/// The suitable length of a spin, in wake-ups: it is not worth waiting longer for a message.
const WAKE_UPS: f64 = 2.0;
/// A spin is changed only if it differs from the suitable one by more than this factor.
const SLACK: f64 = 4.0;

/// Returns the powers of two at which protocols are compared.
pub fn sizes() -> Vec<usize> {
    std::iter::successors(Some(SIZES.0), |size| Some(size * 2))
        .take_while(|size| *size <= SIZES.1)
        .collect()
}

/// Returns the other protocol.
pub fn other(protocol: Protocol) -> Protocol {
    match protocol {
        Protocol::Eager => Protocol::Rendezvous,
        Protocol::Rendezvous => Protocol::Eager,
    }
}

/// Returns the protocol table of `tuning`, changed at those `sizes` where the other protocol is
/// `better`. A size that would differ from both its neighbours stays unchanged: a real crossover
/// shows at more than one size.
pub fn protocols(tuning: &Tuning, sizes: &[usize], better: &[bool]) -> Ranges<Protocol> {
    let before: Vec<Protocol> = sizes.iter().map(|&size| tuning.protocols().of(size)).collect();
    let changed = before.iter().zip(better);
    let changed: Vec<Protocol> =
        changed.map(|(&old, &better)| if better { other(old) } else { old }).collect();
    let is_alone = |at: usize| {
        let below = at.checked_sub(1).map(|below| changed[below]);
        below != Some(changed[at]) && changed.get(at + 1) != Some(&changed[at])
    };
    let settled: Vec<Protocol> =
        (0..sizes.len()).map(|at| if is_alone(at) { before[at] } else { changed[at] }).collect();
    let (mut bounds, mut values) = (Vec::new(), vec![settled[0]]);
    for at in 1..settled.len() {
        if settled[at] != settled[at - 1] {
            bounds.push(sizes[at - 1]);
            values.push(settled[at]);
        }
    }
    // Every change takes two sizes, so there are fewer ranges than the limit.
    Ranges::new(bounds, values).unwrap_or_else(|_| tuning.protocols().clone())
}

/// Returns the factor for a value that can be halved or doubled: the one with the better mean, or 1
/// if neither is better than the value itself.
pub fn factor(half: Option<f64>, double: Option<f64>) -> f64 {
    match (half, double) {
        (Some(half), Some(double)) if half <= double => 0.5,
        (_, Some(_)) => 2.0,
        (Some(_), None) => 0.5,
        (None, None) => 1.0,
    }
}

/// Returns the pieces of `tuning` with every number multiplied: the longest whole message by
/// `whole`, the piece of each range by its factor. Messages that stop being whole travel in
/// pieces as long as the longest whole message.
pub fn pieces(tuning: &Tuning, whole: f64, ranges: &[f64]) -> Pieces {
    let before = tuning.pieces();
    let (mut bounds, mut values) = (before.sizes().bounds().to_vec(), Vec::new());
    let scaled = |value: usize, factor: f64| (value as f64 * factor) as usize;
    let longest = scaled(before.whole(), whole);
    if whole < 1.0 {
        bounds.insert(0, before.whole());
        values.push(longest);
    }
    let sizes = before.sizes().values().iter();
    values.extend(sizes.zip(ranges).map(|(&size, &factor)| scaled(size, factor)));
    let pieces =
        Ranges::new(bounds, values).ok().and_then(|sizes| Pieces::new(longest, sizes).ok());
    pieces.unwrap_or_else(|| before.clone())
}

/// Returns how many turns a waiting rank spins: those of `tuning`, unless they last much longer or
/// shorter than suitable at both ends of the interval. Each of `rounds` holds the microseconds of a
/// turn and of a wake-up.
pub fn spin(tuning: &Tuning, rounds: &[(f64, f64)]) -> u32 {
    let now = f64::from(tuning.spin());
    // A turn of no time is a failed measurement.
    let seen = rounds.iter().filter(|(turn, _)| *turn > 0.0);
    let suits: Vec<f64> = seen.map(|(turn, wake_up)| WAKE_UPS * wake_up / turn).collect();
    let (Some((least, most)), Some(suits)) = (stats::interval(&suits), stats::median(&suits))
    else {
        return tuning.spin();
    };
    if most >= now / SLACK && least <= now * SLACK {
        return tuning.spin();
    }
    let doublings = (suits / now).log2().round();
    (now * doublings.exp2()).clamp(LEAST_SPIN, MOST_SPIN) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table if the other protocol is better at these sizes.
    fn at(better: &[usize]) -> Ranges<Protocol> {
        let sizes = sizes();
        let better: Vec<bool> = sizes.iter().map(|size| better.contains(size)).collect();
        protocols(&Tuning::default(), &sizes, &better)
    }

    #[test]
    fn nothing_better_is_the_built_in_table() {
        assert_eq!(at(&[]), *Tuning::default().protocols());
        let same = pieces(&Tuning::default(), 1.0, &[1.0; 4]);
        assert_eq!(same, *Tuning::default().pieces());
    }

    #[test]
    fn a_crossover_moves_the_bound() {
        let [lower, upper] = [[8 << 20, 16 << 20], [32 << 20, 64 << 20]];
        assert_eq!(at(&lower).bounds(), [4 << 20]);
        assert_eq!(at(&lower[1..]).bounds(), [8 << 20], "beside its own kind");
        assert_eq!(at(&upper), Ranges::all(Protocol::Eager));
        let island = at(&[1 << 20, 2 << 20]);
        assert_eq!(island.bounds(), [512 << 10, 2 << 20, 16 << 20]);
    }

    #[test]
    fn a_size_alone_moves_nothing() {
        for size in sizes().into_iter().filter(|size| ![16 << 20, 32 << 20].contains(size)) {
            assert_eq!(at(&[size]), at(&[]), "{size}");
        }
    }

    #[test]
    fn pieces_are_halved_and_doubled_range_by_range() {
        let pieces = |whole, ranges| pieces(&Tuning::default(), whole, ranges);
        let doubled = pieces(2.0, &[1.0, 2.0, 1.0]);
        let sizes = [16 << 10, 64 << 10, 64 << 10];
        assert_eq!((doubled.whole(), doubled.sizes().values()), (32 << 10, &sizes[..]));
        let halved = pieces(0.5, &[1.0, 1.0, 0.5]);
        let sizes = [8 << 10, 16 << 10, 32 << 10, 32 << 10];
        assert_eq!((halved.whole(), halved.sizes().values()), (8 << 10, &sizes[..]));
        assert_eq!(halved.sizes().bounds()[0], 16 << 10);
    }

    #[test]
    fn of_two_better_ones_the_best_is_taken() {
        assert_eq!(factor(None, None), 1.0);
        assert_eq!((factor(Some(0.9), None), factor(None, Some(0.9))), (0.5, 2.0));
        assert_eq!((factor(Some(0.8), Some(0.9)), factor(Some(0.9), Some(0.8))), (0.5, 2.0));
    }

    #[test]
    fn a_spin_that_lasts_about_as_long_as_it_should_stays() {
        let of = |turn, wake_up| spin(&Tuning::default(), &[(turn, wake_up); 6]);
        assert_eq!(of(0.025, 40.0), 4000);
        assert_eq!((of(0.01, 40.0), of(0.06, 40.0)), (4000, 4000));
        assert_eq!((of(0.025, 400.0), of(0.25, 40.0)), (32_000, 250));
        assert_eq!((of(1e-9, 1e9), of(1e9, 1.0)), (1_000_000, 125));
        assert_eq!((of(0.0, 1.0), of(-1.0, 1.0), of(f64::NAN, 1.0)), (4000, 4000, 4000));
    }

    #[test]
    fn rounds_that_disagree_leave_the_spin_as_it_is() {
        let mut rounds = [(0.025, 4000.0); 8];
        assert_ne!(spin(&Tuning::default(), &rounds), 4000);
        rounds[3] = (0.025, 40.0);
        assert_eq!(spin(&Tuning::default(), &rounds), 4000);
        assert_eq!(spin(&Tuning::default(), &[(0.025, 4000.0); 5]), 4000, "no interval");
    }

    proptest! {
        /// Every table is legal, and every range spans at least two sizes, except where the
        /// built-in table has a narrower one.
        #[test]
        fn every_table_is_legal(better in prop::collection::vec(any::<bool>(), 19)) {
            let sizes = sizes();
            prop_assert_eq!(sizes.len(), better.len());
            let tuning = Tuning::default();
            let table = protocols(&tuning, &sizes, &better);
            prop_assert!(Tuning::new(table, tuning.pieces().clone(), tuning.spin()).is_ok());
        }
    }
}
