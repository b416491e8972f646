//! The programs that measure messages and calls: they run, and notice what is wrong.

mod support;

use mpj_bench_programs::{Memory, Order, Program};

use support::{Fault, fails, measures, order, run};

const SIZES: [u64; 4] = [1, 8, 100, 5000];

fn with_sizes(program: Program) -> Order {
    Order { sizes: SIZES.map(|size| size as usize).to_vec(), ..order(program) }
}

/// The points of a series over [`SIZES`].
fn over_sizes(series: &str) -> [(&str, u64); 4] {
    SIZES.map(|size| (series, size))
}

#[test]
fn latency_is_measured() {
    measures(2, &with_sizes(Program::Latency), &over_sizes("latency"));
    measures(3, &with_sizes(Program::Latency), &over_sizes("latency"));
    let empty = Order { sizes: vec![0], ..order(Program::Latency) };
    measures(2, &empty, &[("latency", 0)]);
}

#[test]
fn streams_are_measured() {
    for ranks in [2, 3] {
        measures(ranks, &with_sizes(Program::Bandwidth), &over_sizes("bandwidth"));
        measures(ranks, &with_sizes(Program::Bibw), &over_sizes("bibw"));
        measures(ranks, &order(Program::Rate), &[("rate", 8)]);
    }
}

#[test]
fn long_streams_have_short_windows() {
    let long = Order { sizes: vec![40 << 20], ..order(Program::Bandwidth) };
    measures(2, &long, &[("bandwidth", 40 << 20)]);
}

#[test]
fn overlap_is_measured() {
    measures(2, &with_sizes(Program::Overlap), &over_sizes("overlap"));
    measures(3, &with_sizes(Program::Overlap), &over_sizes("overlap"));
}

#[test]
fn allocated_memory_has_series_of_its_own() {
    let programs = [
        (Program::Latency, "latency-allocated"),
        (Program::Bandwidth, "bandwidth-allocated"),
        (Program::Bibw, "bibw-allocated"),
        (Program::Overlap, "overlap-allocated"),
        (Program::Matching, "matching-posted"),
    ];
    for (program, series) in programs {
        let order = Order { memory: Memory::Allocated, ..order(program) };
        let samples = run(2, &order, Fault::None).expect("the order is legal");
        assert_eq!(samples[0].series, series);
    }
    let order = Order { memory: Memory::Allocated, ..order(Program::Latency) };
    fails(2, &order, Fault::Every, "wrong payload");
}

#[test]
fn waking_up_is_measured() {
    let samples = run(2, &order(Program::Wakeup), Fault::None).expect("the order is legal");
    let [wakeup, processor] = &*samples else { panic!("not two series: {samples:?}") };
    // The ranks share a process with other tests, so that time is over 100 % here.
    assert_eq!((&*wakeup.series, &*processor.series), ("wakeup", "wakeup-cpu"));
    assert!(wakeup.values.iter().all(|delay| *delay > 0.0), "{wakeup:?}");
    assert!(processor.values.iter().all(|share| *share >= 0.0), "{processor:?}");
}

#[test]
fn matching_is_measured() {
    let order = Order { depths: vec![1, 100], ..order(Program::Matching) };
    let series = ["matching-posted", "matching-posted-any", "matching-early", "matching-early-any"];
    let points = [1, 100].map(|depth| series.map(|series| (series, depth)));
    for ranks in [2, 3] {
        measures(ranks, &order, points.as_flattened());
    }
}

#[test]
fn calls_are_measured() {
    let order = with_sizes(Program::Collectives);
    for ranks in [1, 2, 3] {
        let mut points = vec![("barrier", ranks as u64)];
        for size in SIZES {
            points.push(("bcast", size));
            if size % 8 == 0 {
                points.push(("allreduce", size));
            }
            points.push(("alltoall", size));
        }
        measures(ranks, &order, &points);
    }
}

#[test]
fn one_rank_is_not_enough_for_messages() {
    let programs = [
        (Program::Latency, "latency needs 2 ranks, this job has 1"),
        (Program::Bandwidth, "bandwidth needs 2 ranks"),
        (Program::Bibw, "bibw needs 2 ranks"),
        (Program::Rate, "rate needs 2 ranks"),
        (Program::Overlap, "overlap needs 2 ranks"),
        (Program::Wakeup, "wakeup needs 2 ranks"),
        (Program::Matching, "matching needs 2 ranks"),
    ];
    for (program, text) in programs {
        fails(1, &order(program), Fault::None, text);
    }
}

#[test]
fn wrong_payloads_are_noticed() {
    for program in [Program::Latency, Program::Bibw] {
        fails(2, &order(program), Fault::Every, "wrong payload");
    }
    fails(2, &order(Program::Collectives), Fault::Every, "wrong");
}
