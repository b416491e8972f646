//! What one match costs, and that the depth of the queues does not matter.
//!
//! Every measurement is one round of the device's own sequence, which leaves the queues as deep as
//! it found them: look among the early messages, post, and take the receive for an arrival; or
//! look among the posted receives, keep the message, and take it for a receive. `cargo bench -p
//! mpj-bench --bench matching` runs it.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion};
use mpjdev::matching::{Envelope, Matcher, Pattern};

/// How many other entries wait in the queue.
const DEPTHS: [u32; 3] = [0, 1_000, 100_000];
/// Sources that the waiting entries come from; the measured message comes from another one.
const SOURCES: u32 = 64;

/// A queue entry of the size that the device uses.
type Entry = u64;

const HERE: Envelope = Envelope { context: 1, source: SOURCES, tag: -1 };
const EXACT: Pattern = Pattern { context: 1, source: Some(SOURCES), tag: Some(-1) };
const ANY_SOURCE: Pattern = Pattern { source: None, ..EXACT };
const ANY_BOTH: Pattern = Pattern { tag: None, ..ANY_SOURCE };

/// The n-th of the entries that wait: each has a key of its own.
fn other(nth: u32) -> Envelope {
    let tag = i32::try_from(nth / SOURCES).expect("depths are small");
    Envelope { context: 1, source: nth % SOURCES, tag }
}

fn pattern_of(envelope: Envelope) -> Pattern {
    let Envelope { context, source, tag } = envelope;
    Pattern { context, source: Some(source), tag: Some(tag) }
}

fn with_posted(depth: u32) -> Matcher<Entry> {
    let mut matcher = Matcher::new();
    for nth in 0..depth {
        matcher.push_posted(pattern_of(other(nth)), nth + 1);
    }
    matcher
}

fn with_early(depth: u32) -> Matcher<Entry> {
    let mut matcher = Matcher::new();
    for nth in 0..depth {
        matcher.push_early(other(nth), 0);
    }
    matcher
}

/// A receive is posted, and its message arrives.
fn expected(matcher: &mut Matcher<Entry>, wanted: Pattern) {
    let wanted = black_box(wanted);
    if matcher.take_early(&wanted).is_none() {
        matcher.push_posted(wanted, black_box(0));
    }
    let taken = matcher.take_posted(black_box(HERE));
    black_box(taken.expect("the receive was posted"));
}

/// A message arrives early, and its receive comes.
fn unexpected(matcher: &mut Matcher<Entry>, wanted: Pattern) {
    let here = black_box(HERE);
    if matcher.take_posted(here).is_none() {
        matcher.push_early(here, black_box(1));
    }
    let taken = matcher.take_early(&black_box(wanted));
    black_box(taken.expect("the message has arrived"));
}

fn posted(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("post_then_arrive");
    for (name, wanted) in [("exact", EXACT), ("any_source", ANY_SOURCE)] {
        for depth in DEPTHS {
            let mut matcher = with_posted(depth);
            group.bench_function(BenchmarkId::new(name, depth), |bencher| {
                bencher.iter(|| expected(&mut matcher, wanted));
            });
        }
    }
    group.finish();
}

fn posted_behind_early(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("post_then_arrive_past_early");
    for depth in DEPTHS {
        let mut matcher = with_early(depth);
        group.bench_function(BenchmarkId::new("exact", depth), |bencher| {
            bencher.iter(|| expected(&mut matcher, EXACT));
        });
    }
    group.finish();
}

fn early(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("arrive_then_receive");
    for (name, wanted) in [("exact", EXACT), ("any_source", ANY_SOURCE)] {
        for depth in DEPTHS {
            let mut matcher = with_early(depth);
            group.bench_function(BenchmarkId::new(name, depth), |bencher| {
                bencher.iter(|| unexpected(&mut matcher, wanted));
            });
        }
    }
    group.finish();
}

/// Any source and any tag takes the earliest of all, which goes to the end of the queue again.
fn early_any_both(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rotate_early");
    for depth in DEPTHS {
        let mut matcher = with_early(depth + 1);
        group.bench_function(BenchmarkId::new("any_both", depth), |bencher| {
            bencher.iter(|| {
                let taken = matcher.take_early(&black_box(ANY_BOTH));
                let (envelope, entry) = taken.expect("at least one message waits");
                matcher.push_early(envelope, entry);
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    posted(&mut criterion);
    posted_behind_early(&mut criterion);
    early(&mut criterion);
    early_any_both(&mut criterion);
    criterion.final_summary();
}
