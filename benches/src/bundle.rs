//! What one launch measures: one configuration, or several one after the other.
//!
//! To start a job takes a peer up to a second, to measure a benchmark of messages less. So those of
//! one number of ranks share their launches. All else has launches of its own: a start is what is
//! measured, or a failure is so likely or so dear that it should not cost the figures of others.

use mpj_bench_programs::Order;

use crate::catalogue::{Benchmark, Configuration};

/// The configurations of one launch, for any runtime. There is one at least.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle(Vec<Configuration>);

/// The launches that measure all `configurations`, in the order in which they were asked for.
pub fn bundles(configurations: Vec<Configuration>) -> Vec<Bundle> {
    let mut bundles: Vec<Bundle> = Vec::new();
    for configuration in configurations {
        match bundles.iter_mut().find(|bundle| bundle.takes(&configuration)) {
            Some(bundle) => bundle.0.push(configuration),
            None => bundles.push(configuration.into()),
        }
    }
    bundles
}

impl From<Configuration> for Bundle {
    fn from(configuration: Configuration) -> Self {
        Self(vec![configuration])
    }
}

impl Bundle {
    fn takes(&self, other: &Configuration) -> bool {
        use Benchmark::{Matching, Matrix, Startup};
        let shares = |benchmark| !matches!(benchmark, Startup | Matching | Matrix);
        let is_new = |it: &Configuration| it.name() != other.name() && it.ranks == other.ranks;
        shares(other.benchmark) && self.0.iter().all(|it| shares(it.benchmark) && is_new(it))
    }

    /// How many ranks it has.
    pub fn ranks(&self) -> usize {
        self.0[0].ranks
    }

    /// The names of its configurations: `latency, rate`.
    pub fn name(&self) -> String {
        let names: Vec<_> = self.0.iter().map(Configuration::name).collect();
        names.join(", ")
    }

    /// Whether its own duration is a figure.
    pub fn is_startup(&self) -> bool {
        self.0[0].benchmark == Benchmark::Startup
    }

    /// What the worker is asked for.
    pub fn orders(&self) -> impl Iterator<Item = &Order> {
        self.0.iter().map(|configuration| &configuration.order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::Extent;

    fn names(benchmarks: &[Benchmark], extent: &Extent) -> Vec<(usize, String)> {
        let all = benchmarks.iter().flat_map(|it| it.configurations(extent).0);
        bundles(all.collect()).iter().map(|bundle| (bundle.ranks(), bundle.name())).collect()
    }

    #[test]
    fn messages_between_the_same_ranks_share_their_launches() {
        use Benchmark::{Latency, Matrix, Rate, Startup, Wakeup};
        let extent = Extent { ranks: vec![2, 3], ..Extent::default() };
        let expected = [
            (2, "latency, rate, wakeup"),
            (3, "latency, rate, wakeup"),
            (2, "startup"),
            (3, "startup"),
            (2, "matrix"),
            (3, "matrix"),
        ];
        let expected = expected.map(|(ranks, name)| (ranks, name.to_owned()));
        assert_eq!(names(&[Latency, Startup, Rate, Matrix, Wakeup], &extent).len(), 6);
        let mut found = names(&[Latency, Startup, Rate, Matrix, Wakeup], &extent);
        found.sort_by_key(|(_, name)| expected.iter().position(|it| it.1 == *name));
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_asked_for_twice_is_measured_twice() {
        let twice = [Benchmark::Rate, Benchmark::Rate];
        assert_eq!(names(&twice, &Extent::default()).len(), 2);
    }
}
