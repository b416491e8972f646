//! Decides whether an alternative is better than the built-in value. Pure.
//!
//! Programs need short times for single messages and for streams. So an alternative is judged by
//! both at once, at every affected size: by the geometric mean of the medians, with equal weights.
//! It is taken if, at every processor distance that was seen often enough,
//!
//! - VE1: the mean is better by the margin;
//! - VE2: the mean of the unfavourable ends of the intervals is better too, by any amount;
//! - VE3: no single median is worse than noise explains.

use std::collections::BTreeMap;

use crate::model::Distance;
use crate::stats;

/// The largest ratio of times at which an alternative is taken.
pub const MARGIN: f64 = 0.92;
/// The largest ratio of times for a single median.
pub const TOLERANCE: f64 = 1.02;

/// The timed pattern of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flow {
    /// One message there and one back.
    Single,
    /// A window of messages one way.
    Stream,
}

/// A pattern of messages and their size in bytes.
pub type Aspect = (Flow, usize);

/// Ratios of times, alternative by built-in, of consecutive launches at one processor distance.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    ratios: BTreeMap<(Aspect, bool), Vec<f64>>,
}

impl Pairs {
    /// Adds a pair.
    pub fn add(&mut self, aspect: Aspect, distance: Distance, ratio: f64) {
        self.ratios.entry((aspect, distance == Distance::Near)).or_default().push(ratio);
    }

    fn of(&self, aspect: Aspect, distance: Distance) -> &[f64] {
        self.ratios.get(&(aspect, distance == Distance::Near)).map_or(&[], Vec::as_slice)
    }
}

/// The summary of the pairs at one processor distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sight {
    /// The processor distance.
    pub distance: Distance,
    /// The fewest pairs of any aspect.
    pub pairs: usize,
    /// Geometric mean of the medians: time of the alternative by time of the built-in value.
    pub mean: f64,
    /// Geometric mean of the upper ends of the 95 % intervals.
    pub upper: f64,
    /// The worst median.
    pub worst: f64,
}

/// The decision about an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The alternative is taken, unless another one suits better.
    Better,
    /// No processor distance was seen often enough.
    TooFew,
    /// VE1 does not hold.
    Margin,
    /// VE2 does not hold.
    Uncertain,
    /// VE3 does not hold.
    OneSided,
}

impl Verdict {
    /// Returns the verdict as text.
    pub fn text(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::TooFew => "kept: too few pairs of near or of far processors",
            Self::Margin => "kept: not better by 8 %",
            Self::Uncertain => "kept: may be chance",
            Self::OneSided => "kept: worse for single messages, streams, or some size",
        }
    }
}

/// Returns a summary for each processor distance with enough pairs of all `aspects`.
pub fn sights(pairs: &Pairs, aspects: &[Aspect]) -> Vec<Sight> {
    [Distance::Near, Distance::Far]
        .into_iter()
        .filter_map(|distance| sight(pairs, aspects, distance))
        .collect()
}

fn sight(pairs: &Pairs, aspects: &[Aspect], distance: Distance) -> Option<Sight> {
    let ratios: Vec<&[f64]> = aspects.iter().map(|&aspect| pairs.of(aspect, distance)).collect();
    let medians: Option<Vec<f64>> = ratios.iter().map(|values| stats::median(values)).collect();
    let medians = medians?;
    let uppers: Option<Vec<f64>> =
        ratios.iter().map(|values| Some(stats::interval(values)?.1)).collect();
    Some(Sight {
        distance,
        pairs: ratios.iter().map(|values| values.len()).min()?,
        mean: stats::geometric_mean(&medians)?,
        upper: stats::geometric_mean(&uppers?)?,
        worst: medians.iter().copied().fold(0.0, f64::max),
    })
}

/// Decides from all summaries of an alternative.
pub fn judge(sights: &[Sight]) -> Verdict {
    let any = |fails: fn(&Sight) -> bool| sights.iter().any(fails);
    if sights.is_empty() {
        Verdict::TooFew
    } else if any(|sight| sight.mean > MARGIN) {
        Verdict::Margin
    } else if any(|sight| sight.upper >= 1.0) {
        Verdict::Uncertain
    } else if any(|sight| sight.worst > TOLERANCE) {
        Verdict::OneSided
    } else {
        Verdict::Better
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: [Aspect; 2] = [(Flow::Single, 1024), (Flow::Stream, 1024)];

    /// Pairs of both aspects: the ratios `single` and `stream`, each multiplied by the values of
    /// `chance`.
    fn pairs(distance: Distance, single: f64, stream: f64, chance: &[f64]) -> Pairs {
        let mut pairs = Pairs::default();
        for factor in chance {
            pairs.add(BOTH[0], distance, single * factor);
            pairs.add(BOTH[1], distance, stream * factor);
        }
        pairs
    }

    fn verdict(pairs: &Pairs) -> Verdict {
        judge(&sights(pairs, &BOTH))
    }

    const CALM: [f64; 8] = [0.97, 1.01, 0.99, 1.0, 1.02, 1.0, 0.98, 1.03];

    #[test]
    fn a_clear_gain_is_better_and_each_rule_keeps_the_built_in_value() {
        let of = |single, stream| verdict(&pairs(Distance::Near, single, stream, &CALM));
        assert_eq!(of(0.8, 0.8), Verdict::Better);
        assert_eq!(of(0.8, 1.0), Verdict::Better, "streams as before");
        assert_eq!(of(0.95, 0.95), Verdict::Margin);
        assert_eq!(of(0.5, 1.2), Verdict::OneSided);
        let wild = pairs(Distance::Near, 0.9, 0.9, &[0.5, 0.8, 0.9, 1.0, 1.0, 1.2, 1.3, 1.5]);
        assert_eq!(verdict(&wild), Verdict::Uncertain);
        assert_eq!(verdict(&pairs(Distance::Near, 0.5, 0.5, &CALM[..5])), Verdict::TooFew);
    }

    #[test]
    fn one_distance_that_disagrees_is_enough_to_keep_it() {
        let mut both = pairs(Distance::Near, 0.7, 0.7, &CALM);
        both.ratios.extend(pairs(Distance::Far, 1.0, 1.0, &CALM).ratios);
        assert_eq!(verdict(&both), Verdict::Margin);
        let mut rare = pairs(Distance::Near, 0.7, 0.7, &CALM);
        rare.ratios.extend(pairs(Distance::Far, 1.0, 1.0, &CALM[..5]).ratios);
        assert_eq!(verdict(&rare), Verdict::Better, "five pairs have no interval");
    }

    /// A random factor on a ratio: mostly small, sometimes large.
    fn chance() -> impl Strategy<Value = f64> {
        prop_oneof![4 => 0.95..1.05, 1 => 0.5..2.0]
    }

    proptest! {
        /// Noise around equality, with outliers in both directions, changes nothing unless more
        /// than half of the values lie far on one side.
        #[test]
        fn noise_moves_nothing(chance in prop::collection::vec(chance(), 10..30)) {
            let low = chance.iter().filter(|factor| **factor < 0.95).count();
            prop_assume!(low * 2 < chance.len());
            prop_assert_ne!(verdict(&pairs(Distance::Near, 1.0, 1.0, &chance)), Verdict::Better);
        }

        /// An alternative that takes half the time is found despite the noise.
        #[test]
        fn a_large_gain_is_found(chance in prop::collection::vec(0.8..1.25, 10..30)) {
            prop_assert_eq!(verdict(&pairs(Distance::Far, 0.5, 0.5, &chance)), Verdict::Better);
        }
    }
}
