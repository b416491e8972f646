//! The programs that measure messages and calls: they run, and notice what is wrong.

mod support;

use mpj_bench_programs::programs::collectives::MOST_BLOCKS;
use mpj_bench_programs::{Buffers, Order, Program, Sample};

use support::{Fault, fails, measures, order, run};

const BLOCK_CALLS: [&str; 4] = ["gather", "scatter", "allgather", "alltoall"];
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
    let buffers = Buffers::Unchanged;
    let long = Order { buffers, sizes: vec![40 << 20], ..order(Program::Bandwidth) };
    measures(2, &long, &[("bandwidth-unchanged", 40 << 20)]);
}

#[test]
fn buffers_have_series_of_their_own() {
    let programs = [
        (Program::Latency, ["latency", "latency-unchanged", "latency-cold"]),
        (Program::Bandwidth, ["bandwidth", "bandwidth-unchanged", "bandwidth-cold"]),
        (Program::Bibw, ["bibw", "bibw-unchanged", "bibw-cold"]),
        (Program::Rate, ["rate", "rate-unchanged", "rate-cold"]),
        (Program::MatrixPingpong, ["matrix-f32", "matrix-f32-unchanged", "matrix-f32-cold"]),
        (Program::Wakeup, ["wakeup"; 3]),
    ];
    for (program, series) in programs {
        let kinds = [Buffers::Rewritten, Buffers::Unchanged, Buffers::Cold];
        let names = kinds.map(|buffers| {
            let order = Order { buffers, ..order(program) };
            run(2, &order, Fault::None).expect("the order is legal").remove(0).series
        });
        assert_eq!(names, series);
        assert_eq!(program.has_buffers(), program != Program::Wakeup);
    }
}

/// Messages that are longer than the pool, that fill it, and of which it holds many.
#[test]
fn cold_buffers_are_measured_at_every_size() {
    let sizes = vec![0, 1, 100, 5000, 100_000];
    for program in [Program::Latency, Program::Bandwidth, Program::Bibw] {
        let order = Order { buffers: Buffers::Cold, sizes: sizes.clone(), ..order(program) };
        for ranks in [2, 3] {
            let samples = run(ranks, &order, Fault::None).expect("the order is legal");
            let of_empty = usize::from(program == Program::Latency);
            assert_eq!(samples.len(), 4 + of_empty, "{program:?}");
            assert!(samples.iter().all(|sample| !sample.values.is_empty()), "nothing to subtract");
        }
        // It is rank 1 whose messages are spoilt.
        if program != Program::Bandwidth {
            fails(2, &order, Fault::Every, "wrong payload");
        }
    }
}

#[test]
fn transfers_are_measured_alone_and_beside_computation() {
    let alone = with_sizes(Program::Overlap);
    measures(3, &alone, &over_sizes("overlap-alone"));
    let order = Order { compute: vec![1.0, 10.0, 100.0, 50.0], ..alone };
    let series = ["alone", "send", "receive"];
    let names = series.map(|name| format!("overlap-{name}"));
    let points = SIZES.map(|size| names.each_ref().map(|name| (&**name, size)));
    measures(2, &order, points.as_flattened());
    let samples = run(2, &order, Fault::None).expect("the order is legal");
    let of_100 = |it: &&Sample| it.x == SIZES[2] && !it.series.ends_with("alone");
    for Sample { series, values, .. } in samples.iter().filter(of_100) {
        // The computation is done.
        assert!(values.iter().all(|value| *value > 50.0), "{series}: {values:?}");
    }
    fails(2, &order, Fault::Every, "wrong payload");
}

#[test]
fn waking_up_is_measured() {
    let order = Order { blocked: vec![30, 2000], ..order(Program::Wakeup) };
    let samples = run(2, &order, Fault::None).expect("the order is legal");
    let points: Vec<_> = samples.iter().map(|sample| (&*sample.series, sample.x)).collect();
    let of_both = |x| [("wakeup", x), ("wakeup-cpu", x)];
    assert_eq!(points, [of_both(30), of_both(2000)].concat());
    for Sample { series, values, .. } in &samples {
        // The ranks share a process with other tests, so that time is over 100 % here.
        let can_be = |value: &f64| *value > 0.0 || (series == "wakeup-cpu" && *value == 0.0);
        assert!(values.len() == 2 && values.iter().all(can_be), "{series}: {values:?}");
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
                points.extend([("reduce", size), ("allreduce", size)]);
            }
            points.extend(BLOCK_CALLS.map(|call| (call, size)));
        }
        measures(ranks, &order, &points);
    }
}

#[test]
fn calls_with_a_block_for_each_rank_are_left_out_where_those_are_long() {
    let size = MOST_BLOCKS / 2;
    let order = Order { sizes: vec![size, size + 1], ..order(Program::Collectives) };
    let (fits, over) = (size as u64, size as u64 + 1);
    let mut points = vec![("barrier", 2), ("bcast", fits), ("reduce", fits), ("allreduce", fits)];
    points.extend(BLOCK_CALLS.map(|call| (call, fits)));
    points.push(("bcast", over));
    measures(2, &order, &points);
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
    // In reductions, which come before calls with blocks; in those, where there are no reductions.
    fails(2, &order(Program::Collectives), Fault::Every, "wrong sums from reduce of 1 f64");
    let bytes = Order { sizes: vec![9], ..order(Program::Collectives) };
    fails(2, &bytes, Fault::Every, "wrong payload: byte 7 of 9");
}
