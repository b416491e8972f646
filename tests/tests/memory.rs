//! The memory of a rank follows the ranks that it speaks to and those of its host, not the size of the job: the formulas of
//! docs/hosts.md, by a count of what is allocated. And reductions of any length need little memory beside their buffers.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Barrier};

use mpj::tuning::Options;
use mpj::{Op, RemoteLeader, Root, UserOp, ValueIndex, collective, local};
use mpj_doubles::channels::own_bells;
use mpj_doubles::{hosts, mailboxes};
use transport_lapi::adapter::{MAX_TASKS, TaskId};

/// What a rank takes for itself, at most, in bytes.
const FIXED: usize = 13 << 10;
/// What it takes for each rank of its host.
const NEAR: usize = 272;
/// What it takes for each other rank that it has spoken to, at most, with the spare room of growing arrays.
const FAR: usize = 700;

/// Bytes that are allocated.
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);
/// The most bytes that were allocated at a time.
static HIGHEST: AtomicIsize = AtomicIsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the allocator of the system does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let size = layout.size() as isize;
        let allocated = ALLOCATED.fetch_add(size, Ordering::Relaxed) + size;
        HIGHEST.fetch_max(allocated, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) };
    }
}

fn allocated() -> usize {
    ALLOCATED.load(Ordering::Relaxed) as usize
}

/// Bytes that a rank allocates for its world, in a job of `num_tasks` of which `near` share its host.
fn world(num_tasks: usize, near: TaskId) -> usize {
    let adapter = mailboxes::alone(num_tasks, 0..near, own_bells(1).remove(0));
    let (rank, before) = (vec![vec![adapter.into()]], allocated());
    let after = local::run_over(&Options::default(), rank, |world| {
        let after = allocated();
        // It would wait for the others, which do not exist.
        std::mem::forget(world);
        after
    });
    after.expect("it ends well")[0] - before
}

/// Bytes for each rank of a job of 1,000 ranks on 40 hosts, after a barrier, a ring and a sum, and the mean number of ranks
/// of other hosts that a rank has spoken to.
fn after_collectives() -> (usize, usize) {
    const RANKS: usize = 1000;
    let mut peers = None;
    let plan = hosts::plan(RANKS, |rank| rank / 25);
    let adapters = hosts::job(&plan, 1, |context, bells| {
        let network = mailboxes::in_context(context, bells);
        peers = Some(network[0].peers());
        Ok(network)
    });
    let adapters = adapters.expect("resources suffice").into_iter();
    let adapters = adapters.map(|rank| rank.into_iter().map(Into::into).collect()).collect();
    let (before, all) = (allocated(), Arc::new(Barrier::new(RANKS)));
    let answers = local::run_over(&Options::default(), adapters, |world| {
        world.barrier().expect("all come");
        let (rank, size) = (world.rank(), world.size());
        let mut from = [0];
        let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
        world.sendrecv(&[rank], right, 0, &mut from, left, 0).expect("all are there");
        assert_eq!(from, [left]);
        let mut sum = [rank as u64];
        world.all_reduce(&mut sum[..], Op::Sum).expect("all come");
        assert_eq!(sum[0] as usize, RANKS * (RANKS - 1) / 2);
        all.wait();
        let after = allocated();
        all.wait();
        after
    });
    let after = answers.expect("all end well")[0];
    let peers = peers.expect("there is one context");
    let spoken: usize = (0..RANKS as TaskId).map(peers).sum();
    ((after - before) / RANKS, spoken / RANKS)
}

/// An element with padding.
#[derive(Clone, Copy, Debug, PartialEq, mpj::Datatype)]
struct Sample {
    count: u32,
    sum: f64,
}

/// A reduction by one of four ranks: makes its buffers, waits, reduces, waits, and checks the results.
type Reduce = fn(&mpj::World, &dyn Fn());

/// Elements of 16 bytes in a buffer that takes more than all the memory that a reduction may need.
const LONG: usize = 1 << 20;

fn pairs(world: &mpj::World, wait: &dyn Fn()) {
    let value = |at: usize| ((at + world.rank()) % 4) as f64;
    let index = world.rank() as i32;
    let mut pairs: Vec<_> = (0..LONG).map(|at| ValueIndex { value: value(at), index }).collect();
    wait();
    world.all_reduce(&mut pairs, Op::MaxLoc).unwrap();
    wait();
    let is_right = |(at, pair): (usize, &ValueIndex<f64>)| {
        (pair.value, pair.index) == (3.0, ((7 - at % 4) % 4) as i32)
    };
    assert!(pairs.iter().enumerate().all(is_right));
}

fn started(world: &mpj::World, wait: &dyn Fn()) {
    let numbers = vec![world.rank() as f64; 2 * LONG];
    wait();
    let sum = world.start(collective::all_reduce(numbers, Op::Sum)).unwrap();
    let (sums, _) = sum.wait().unwrap();
    wait();
    assert!(sums.iter().all(|sum| *sum == 6.0));
}

fn padded(world: &mpj::World, wait: &dyn Fn()) {
    let own = Sample { count: 1, sum: world.rank() as f64 };
    let mut samples = vec![own; LONG];
    let add = |a: &Sample, b: &Sample| Sample { count: a.count + b.count, sum: a.sum + b.sum };
    wait();
    world.all_reduce(&mut samples, UserOp::new(add)).unwrap();
    wait();
    assert!(samples.iter().all(|sample| *sample == Sample { count: 4, sum: 6.0 }));
}

fn between_groups(world: &mpj::World, wait: &dyn Fn()) {
    let is_odd = world.rank() % 2 == 1;
    let half = world.split(is_odd.into(), 0).unwrap();
    let other = RemoteLeader { peers: world, leader: (!is_odd).into(), tag: 0 };
    let between = half.create_inter(0, Some(other)).unwrap();
    // The other group's ranks are 1 and 3, or 0 and 2.
    let sum = if is_odd { 2.0 } else { 4.0 };
    let mine: Vec<_> = (0..2 * LONG).map(|at| (world.rank() * (1 + at % 2)) as f64).collect();
    let (mut all, mut root, mut part) = (vec![9.0; 2 * LONG], vec![9.0; 2 * LONG], vec![9.0; LONG]);
    wait();
    between.run(collective::all_reduce_into(&mine, &mut all, Op::Sum)).unwrap();
    let from = match world.rank() {
        0 => Root::Here,
        2 => Root::Beside,
        _ => Root::There(0),
    };
    between.run(collective::reduce(&mine, &mut root, Op::Sum, from)).unwrap();
    between.run(collective::reduce_scatter_block(&mine, &mut part, Op::Sum)).unwrap();
    wait();
    let is_sum = |(at, value): (usize, &f64)| *value == sum * (1 + at % 2) as f64;
    assert!(all.iter().enumerate().all(is_sum) && part.iter().enumerate().all(is_sum));
    assert!(world.rank() > 0 || root.iter().enumerate().all(is_sum));
}

/// A reduction of any length needs little memory beside its buffers.
fn reduce_in_little_memory() {
    const RANKS: usize = 4;
    const MOST: usize = RANKS * (8 << 20);
    let cases: [(&str, Reduce); 4] = [
        ("of pairs", pairs),
        ("that was started", started),
        ("of padded elements", padded),
        ("between groups", between_groups),
    ];
    for (name, case) in cases {
        let (all, before) = (Barrier::new(RANKS), AtomicIsize::new(-1));
        let ended = local::run(RANKS, |world| {
            let wait = || {
                all.wait();
                if world.rank() == 0 && before.load(Ordering::Relaxed) < 0 {
                    let now = ALLOCATED.load(Ordering::Relaxed);
                    HIGHEST.store(now, Ordering::Relaxed);
                    before.store(now, Ordering::Relaxed);
                } else if world.rank() == 0 {
                    let before = before.load(Ordering::Relaxed);
                    let more = (HIGHEST.load(Ordering::Relaxed) - before) as usize;
                    assert!(more <= MOST, "a reduction {name} takes {more} bytes more");
                }
                all.wait();
            };
            case(&world, &wait);
        });
        ended.unwrap_or_else(|error| panic!("a reduction {name}: {error}"));
    }
}

/// The only test of this file, since what another one allocates would be counted, too.
#[test]
fn memory_follows_the_ranks_that_are_spoken_to() {
    mpj_doubles::watch(|| {
        // The first world of a process makes what all share.
        let _ = world(1000, 0);
        let alone = world(MAX_TASKS, 0);
        assert_eq!(alone, world(1000, 0), "the size of the job does not count");
        assert_eq!(world(MAX_TASKS, 100), alone + 100 * NEAR);
        assert!(alone <= FIXED, "{alone}");
        let (bytes, spoken) = after_collectives();
        let limit = FIXED + 25 * NEAR + spoken * FAR;
        assert!(
            bytes <= limit,
            "{bytes} bytes for each rank, {spoken} spoken to, more than {limit}"
        );
        reduce_in_little_memory();
    });
}
