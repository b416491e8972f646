//! What one frame costs between two tasks, with both ends of the ring in one thread.
//!
//! This is the work of the ring alone: no cache line travels between cores, and nobody waits.
//! `single` moves one frame at a time, `burst` fills the ring with sixteen before it is emptied,
//! `self` sends to the own task. `cargo bench -p mpj-bench --bench ring` runs it.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput};
use transport_lapi::adapter::{Adapter, Frame, Post, Ticket};
use transport_lapi::adapters::threads;
use transport_lapi::{Source, TaskId};

/// Body lengths in bytes: in one line of the cell, in the cell, in the bulk area, the largest.
const BODIES: [usize; 4] = [8, 256, 4 << 10, 64 << 10];
/// Bytes of head, as the device's smallest packets have.
const HEAD: [u8; 16] = [7; 16];
/// Frames per burst: together they fit the ring and, but for the largest bodies, the bulk area.
const BURST: usize = 16;

/// Puts one frame into the ring. It is empty enough, so a full one is a broken benchmark.
fn send(from: &mut impl Adapter, to: TaskId, body: &Source) {
    let body = black_box(body).piece(0, body.len());
    let post = from.try_send(to, black_box(&HEAD), body, Ticket(0)).expect("the task is alive");
    assert_eq!(post, Post::Taken);
}

/// Takes `frames` frames out of the rings, and copies each body to where a receive wants it.
fn receive(to: &mut impl Adapter, frames: usize, buffer: &mut [u8]) {
    let mut left = frames;
    while left > 0 {
        let polled = to.poll(None, left, &mut |frame: Frame<'_>| {
            black_box(frame.head);
            black_box(frame.body.copy_to(buffer));
        });
        left -= polled.expect("the frames are whole");
    }
    black_box(buffer);
}

fn between_two(criterion: &mut Criterion, name: &str, burst: usize, bodies: &[usize]) {
    let mut tasks = threads::job(2).expect("two tasks are possible");
    let mut target = tasks.pop().expect("the job has a second task");
    let mut origin = tasks.pop().expect("the job has a first task");
    let mut group = criterion.benchmark_group(name);
    for &len in bodies {
        let body = Source::from(vec![1; len]);
        let mut buffer = vec![0; len];
        group.throughput(Throughput::Bytes((len * burst) as u64));
        group.bench_function(BenchmarkId::from_parameter(len), |bencher| {
            bencher.iter(|| {
                for _ in 0..burst {
                    send(&mut origin, target.task(), &body);
                }
                receive(&mut target, burst, &mut buffer);
            });
        });
    }
    group.finish();
}

fn to_self(criterion: &mut Criterion) {
    let mut task = threads::job(1).expect("one task is possible").remove(0);
    let mut group = criterion.benchmark_group("self");
    for len in BODIES {
        let body = Source::from(vec![1; len]);
        let mut buffer = vec![0; len];
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(BenchmarkId::from_parameter(len), |bencher| {
            bencher.iter(|| {
                send(&mut task, 0, &body);
                receive(&mut task, 1, &mut buffer);
            });
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    between_two(&mut criterion, "single", 1, &BODIES);
    between_two(&mut criterion, "burst", BURST, &BODIES[..3]);
    to_self(&mut criterion);
    criterion.final_summary();
}
