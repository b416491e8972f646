//! The configurations that one launch measures, one after the other.
//!
//! Starting a job takes a peer up to a second, longer than one message benchmark. So message
//! benchmarks with the same number of ranks share launches. All others have launches of their own:
//! they measure the start itself, or their failures are too likely or too costly to share.

use mpj_bench_programs::Order;

use crate::catalogue::{Benchmark, Configuration};

/// The configurations of one launch, for any runtime. There is at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle(Vec<Configuration>);

/// Returns the launches that measure all `configurations`, in the order of the request.
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
        use Benchmark::{Matrix, Startup};
        let shares =
            |benchmark: Benchmark| !matches!(benchmark, Startup | Matrix) && !benchmark.is_apart();
        let is_new = |it: &Configuration| it.name() != other.name() && it.ranks == other.ranks;
        shares(other.benchmark) && self.0.iter().all(|it| shares(it.benchmark) && is_new(it))
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.0[0].ranks
    }

    /// Returns the names of its configurations: `latency, rate`.
    pub fn name(&self) -> String {
        let names: Vec<_> = self.0.iter().map(Configuration::name).collect();
        names.join(", ")
    }

    /// Returns whether the duration of the launch is itself a figure.
    pub fn is_startup(&self) -> bool {
        self.0[0].benchmark == Benchmark::Startup
    }

    /// Returns the orders for the worker.
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
