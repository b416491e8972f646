//! Tests of the order of launches and of added rounds.

use super::*;
use crate::model::{FORMAT, RuntimeInfo};

/// Launches of latency: `near` rounds with near processors, then `far` rounds with far ones.
fn seen(header: &Header, near: usize, far: usize) -> Vec<Launch> {
    let rounds =
        (0..near + far).flat_map(|round| header.runtimes.iter().map(move |it| (round, it)));
    let launch = |(round, runtime): (usize, &RuntimeInfo)| Launch {
        round,
        runtime: runtime.id.clone(),
        benchmark: "latency".to_owned(),
        ranks: 2,
        oversubscribed: false,
        raw: Some(if round < near { (50.0, 50.0) } else { (250.0, 250.0) }),
        seconds: 1.0,
        failure: None,
        samples: vec![Sample { series: "latency".to_owned(), x: 8, values: vec![1.0], raw: None }],
        unclear: Vec::new(),
    };
    rounds.map(launch).collect()
}

#[test]
fn rounds_are_added_until_every_distance_that_was_seen_often_has_enough() {
    let info = |id: &str, ours| RuntimeInfo { id: id.to_owned(), label: id.to_owned(), ours };
    let header = Header {
        format: FORMAT,
        command: String::new(),
        started: String::new(),
        machine: Vec::new(),
        runtimes: vec![info("auto", true), info("mpich", false)],
        thresholds: Vec::new(),
        rounds: 20,
    };
    let order = Order { programs: vec![Program::Latency], ..Order::default() };
    let bundle = Configuration { benchmark: Benchmark::Latency, ranks: 2, order }.into();
    let settled = |near, far| is_settled(&header, &bundle, &seen(&header, near, far));
    assert!(settled(6, 0) && settled(0, 6) && settled(6, 7));
    assert!(!settled(5, 0) && !settled(15, 5));
    assert!(settled(15, 4), "a distance that was seen rarely is not waited for");
}

#[test]
fn every_order_comes_about_as_often() {
    let mut lottery = Lottery::new(7);
    let mut counts = std::collections::HashMap::new();
    for _ in 0..6000 {
        *counts.entry(lottery.shuffled(&[1, 2, 3])).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 6);
    assert!(counts.values().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let orders = |seed| {
        let mut lottery = Lottery::new(seed);
        (0..20)
            .map(|_| lottery.shuffled(&[1, 2, 3, 4]).into_iter().copied().collect())
            .collect::<Vec<Vec<i32>>>()
    };
    assert_eq!(orders(3), orders(3));
    assert_ne!(orders(3), orders(4));
}
