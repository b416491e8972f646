//! The time that overlap computes beside a message: the transfer time of the fastest peer, the same
//! for every runtime; without peers, that of our fastest runtime.
//!
//! A few launches measure it before all others, and every later order contains it. Called by the
//! program.

use std::collections::BTreeMap;

use mpj_bench_programs::{Program, Sample};

use crate::bundle::Bundle;
use crate::campaign::Conduct;
use crate::catalogue::Configuration;
use crate::contender::Contender;
use crate::model::{RuntimeInfo, SELF};
use crate::report::words;
use crate::stats;

/// Sets the computation of every overlap configuration, by `rounds` launches of each contender.
/// Returns name and value pairs for the reader. Configurations without a computation are removed;
/// `tell` gets a line for each.
pub fn fix(
    conduct: &Conduct,
    contenders: &[Contender],
    rounds: usize,
    configurations: &mut Vec<Configuration>,
    tell: &mut impl FnMut(String),
) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    configurations.retain_mut(|configuration| {
        if !configuration.order.programs.contains(&Program::Overlap) {
            return true;
        }
        let name = configuration.name();
        let bundle = Bundle::from(configuration.clone());
        let mut seen = Vec::new();
        for contender in (0..rounds).flat_map(|_| contenders) {
            if conduct.is_stopped() {
                break;
            }
            seen.push((&contender.info, conduct.launch(contender, &bundle).samples));
        }
        let Some(compute) = of_sizes(&seen, &configuration.order.sizes) else {
            tell(format!("{name} is not measured: no runtime's transfer was, to compute as long"));
            return false;
        };
        let sizes = configuration.order.sizes.iter().zip(&compute).filter(|(size, _)| **size > 0);
        let times = sizes.map(|(size, microseconds)| {
            format!("{} {} us", words::size(*size as u64), words::figure(*microseconds))
        });
        let times = times.collect::<Vec<_>>().join(", ");
        facts.push((format!("computation of {name}"), times));
        configuration.order.compute = compute;
        true
    });
    facts
}

/// For each size the lowest median transfer time of the peers, or of our runtimes if there are no
/// peers. `None` if a size was not measured; empty messages never are.
fn of_sizes(seen: &[(&RuntimeInfo, Vec<Sample>)], sizes: &[usize]) -> Option<Vec<f64>> {
    let is_peer = |info: &RuntimeInfo| !info.ours && info.id != SELF;
    let has_peers = seen.iter().any(|(info, samples)| is_peer(info) && !samples.is_empty());
    let judges = seen.iter().filter(|(info, _)| !has_peers || is_peer(info));
    let mut medians = BTreeMap::<(usize, &str), Vec<f64>>::new();
    for (info, samples) in judges {
        let alone = samples.iter().filter(|it| it.series.starts_with("overlap-alone"));
        for sample in alone {
            let median = stats::median(&sample.values);
            medians.entry((sample.x as usize, &info.id)).or_default().extend(median);
        }
    }
    let of_size = |&size: &usize| {
        let here = medians.iter().filter(|((at, _), _)| *at == size);
        let times = here.filter_map(|(_, medians)| stats::median(medians));
        times.reduce(f64::min).or((size == 0).then_some(0.0))
    };
    sizes.iter().map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: &str) -> RuntimeInfo {
        RuntimeInfo { id: id.to_owned(), label: id.to_owned(), ours: id == "auto" }
    }

    fn samples(times: &[(u64, f64)]) -> Vec<Sample> {
        let sample = |&(x, time): &(u64, f64)| {
            let values = vec![time, time, 100.0 * time];
            Sample { series: "overlap-alone".to_owned(), x, values, raw: None }
        };
        times.iter().map(sample).collect()
    }

    #[test]
    fn the_fastest_peer_at_each_size_decides() {
        let (auto, again) = (info("auto"), info(SELF));
        let (one, other) = (info("openmpi"), info("mpich"));
        let mut seen = vec![
            (&auto, samples(&[(8, 1.0), (64, 2.0)])),
            (&again, samples(&[(8, 0.5), (64, 3.0)])),
        ];
        assert_eq!(of_sizes(&seen, &[0, 8, 64]), Some(vec![0.0, 0.5, 2.0]));
        seen.push((&one, samples(&[(8, 4.0), (64, 9.0)])));
        seen.push((&other, samples(&[(8, 5.0), (64, 7.0)])));
        // Its median over launches counts, not its best launch.
        seen.push((&other, samples(&[(8, 1.0), (64, 7.0)])));
        seen.push((&other, samples(&[(8, 6.0), (64, 7.0)])));
        assert_eq!(of_sizes(&seen, &[8, 64]), Some(vec![4.0, 7.0]));
        assert_eq!(of_sizes(&seen, &[8, 16]), None);
    }

    #[test]
    fn peers_that_do_not_run_decide_nothing() {
        let (auto, peer) = (info("auto"), info("mpich"));
        let seen = [(&auto, samples(&[(8, 1.0)])), (&peer, vec![])];
        assert_eq!(of_sizes(&seen, &[8]), Some(vec![1.0]));
    }
}
