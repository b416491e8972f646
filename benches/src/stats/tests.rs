//! Tests of the statistics: known values, independent computation, and simulation.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// The probabilities that `n` fair coins show 0 to `n` heads, by Pascal's triangle.
fn coins(n: usize) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..n {
        let end = row[0] / 2.0;
        let inner = row.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        row = std::iter::once(end).chain(inner).chain([end]).collect();
    }
    row
}

/// The coverage of the interval that leaves out `cut` values at either end.
fn coverage(coins: &[f64], cut: usize) -> f64 {
    coins[cut + 1..coins.len() - 1 - cut].iter().sum()
}

fn xorshift(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1_u64 << 53) as f64
}

#[test]
fn the_middle_of_odd_and_even_numbers_of_values() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[3.0]), Some(3.0));
    assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    assert_eq!(median(&[4.0, 1.0, 2.0, 100.0]), Some(3.0));
}

#[test]
fn five_values_give_no_interval_and_six_give_their_ends() {
    assert_eq!(interval(&[5.0, 4.0, 3.0, 2.0, 1.0]), None);
    assert_eq!(interval(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), Some((1.0, 6.0)));
    // From the tables of the sign test: ranks 2 and 9 of 10, ranks 6 and 15 of 20.
    assert_eq!(interval(&(1..=10).map(f64::from).collect::<Vec<_>>()), Some((2.0, 9.0)));
    assert_eq!(interval(&(1..=20).map(f64::from).collect::<Vec<_>>()), Some((6.0, 15.0)));
}

#[test]
fn a_cut_is_the_largest_that_covers() {
    for n in 0..300 {
        let coins = coins(n);
        let naive = (0..n.div_ceil(2)).rfind(|&cut| coverage(&coins, cut) >= CONFIDENCE);
        assert_eq!(cut(n), naive, "n = {n}");
    }
}

#[test]
fn many_values_do_not_underflow() {
    // The normal approximation: n / 2 - 1.96 * sqrt(n) / 2.
    let cut = cut(1_000_000).expect("there are more than six") as f64;
    assert!((cut - 499_020.0).abs() < 2.0, "{cut}");
}

#[test]
fn simulated_coverage_is_at_least_what_is_claimed() {
    let mut state = 0x5eed_5eed_5eed_5eed;
    for n in [6, 10, 17, 40] {
        let mut draw = || {
            let values: Vec<f64> = (0..n).map(|_| xorshift(&mut state).powi(3)).collect();
            let (low, high) = interval(&values).expect("there are at least six");
            (low..=high).contains(&0.125)
        };
        let hits = (0..20_000).filter(|_| draw()).count() as f64 / 20_000.0;
        let exact = coverage(&coins(n), cut(n).expect("there are at least six"));
        assert!((hits - exact).abs() < 0.006, "n = {n}: {hits} of {exact}");
    }
}

#[test]
fn numbers_that_are_none_do_not_panic() {
    let values = [f64::NAN, 1.0, f64::INFINITY, -0.0, f64::NEG_INFINITY, f64::NAN, -f64::NAN];
    let _ = (median(&values), interval(&values));
}

proptest! {
    #[test]
    fn a_median_splits_the_values_in_halves(values in vec(0.0..10.0_f64, 1..60)) {
        let middle = median(&values).expect("there are values");
        let below = values.iter().filter(|value| **value < middle).count();
        let above = values.iter().filter(|value| **value > middle).count();
        prop_assert!(2 * below <= values.len() && 2 * above <= values.len());
    }

    #[test]
    fn an_interval_encloses_the_median_in_whatever_order(
        values in vec(0.0..10.0_f64, 6..60), turn in 0..60_usize,
    ) {
        let (low, high) = interval(&values).expect("there are at least six");
        let middle = median(&values).expect("there are values");
        prop_assert!(low <= middle && middle <= high);
        let mut turned = values.clone();
        turned.rotate_left(turn % values.len());
        prop_assert_eq!(interval(&turned), Some((low, high)));
    }
}
