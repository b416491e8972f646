//! A small set of cases in which every two values of different parameters meet.
//!
//! Most faults need one or two values to meet, so these cases find nearly what the full product finds. The generator is
//! greedy: it takes a pair that has not met yet, tries some random completions, and keeps the one in which the most new
//! pairs meet.

use std::collections::BTreeSet;

use crate::conformance::Numbers;

/// A value of a parameter, and a value of a later one.
type Pair = ((usize, usize), (usize, usize));

/// Completions that are compared.
const TRIES: usize = 12;
/// Completions that are tried before a pair counts as impossible.
const MOST_TRIES: usize = 1_000;

/// Lists of numbers, each below that of `values` at its place, in which all possible pairs meet. `settle` replaces
/// numbers that do not go with the others; it leaves a settled list unchanged.
pub fn pairwise<const N: usize>(
    values: [usize; N],
    seed: u64,
    settle: impl Fn(&mut [usize; N]),
) -> Vec<[usize; N]> {
    let mut numbers = Numbers(seed);
    let mut open = all_pairs(values);
    let mut lists = Vec::new();
    while let Some(&pair) = open.iter().next() {
        let mut best: Option<([usize; N], usize)> = None;
        let mut found = 0;
        for _ in 0..MOST_TRIES {
            if found == TRIES {
                break;
            }
            let Some(list) = completed(pair, values, &mut numbers, &settle) else { continue };
            found += 1;
            let new = pairs_of(&list).filter(|pair| open.contains(pair)).count();
            if best.is_none_or(|(_, most)| new > most) {
                best = Some((list, new));
            }
        }
        open.remove(&pair);
        if let Some((list, _)) = best {
            for met in pairs_of(&list) {
                open.remove(&met);
            }
            lists.push(list);
        }
    }
    lists
}

/// A random list with this pair in it, if settling leaves the pair there.
fn completed<const N: usize>(
    pair: Pair,
    values: [usize; N],
    numbers: &mut Numbers,
    settle: impl Fn(&mut [usize; N]),
) -> Option<[usize; N]> {
    let mut list = values.map(|limit| numbers.below(limit));
    let ((first, one), (second, other)) = pair;
    (list[first], list[second]) = (one, other);
    settle(&mut list);
    (list[first] == one && list[second] == other).then_some(list)
}

fn all_pairs<const N: usize>(values: [usize; N]) -> BTreeSet<Pair> {
    let parameters = (0..N).flat_map(|first| (first + 1..N).map(move |second| (first, second)));
    let pairs = parameters.flat_map(|(first, second)| {
        let ones = 0..values[first];
        ones.flat_map(move |one| (0..values[second]).map(move |two| ((first, one), (second, two))))
    });
    pairs.collect()
}

fn pairs_of<const N: usize>(list: &[usize; N]) -> impl Iterator<Item = Pair> + '_ {
    let parameters = (0..N).flat_map(|first| (first + 1..N).map(move |second| (first, second)));
    parameters.map(|(first, second)| ((first, list[first]), (second, list[second])))
}

#[cfg(test)]
mod tests {
    use super::super::Case;
    use super::*;

    fn met<const N: usize>(lists: &[[usize; N]]) -> BTreeSet<Pair> {
        lists.iter().flat_map(pairs_of).collect()
    }

    #[test]
    fn all_pairs_meet_in_few_lists() {
        let values = [4, 3, 3, 2, 5];
        let lists = pairwise(values, 7, |_| {});
        assert_eq!(met(&lists), all_pairs(values));
        assert!((20..40).contains(&lists.len()), "{} lists", lists.len());
        assert_eq!(pairwise(values, 7, |_| {}), lists, "the seed alone decides");
    }

    #[test]
    fn pairs_that_cannot_be_are_left_out() {
        let settle = |list: &mut [usize; 3]| {
            if list[0] == 1 {
                list[1] = 0;
            }
        };
        let lists = pairwise([2, 4, 2], 3, settle);
        let mut expected = all_pairs([2, 4, 2]);
        expected.retain(|pair| !matches!(pair, ((0, 1), (1, 1..))));
        assert_eq!(met(&lists), expected);
    }

    #[test]
    fn every_pair_of_a_random_case_is_met() {
        let lists = pairwise(Case::values(), 1, Case::settle);
        let (met, mut numbers) = (met(&lists), Numbers(2));
        for _ in 0..3_000 {
            let case = Case::random(&mut numbers);
            let missing = pairs_of(&case.choices()).find(|pair| !met.contains(pair));
            assert_eq!(missing, None, "{case}");
        }
        assert!(lists.len() < 700, "{} cases", lists.len());
    }
}
