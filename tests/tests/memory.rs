//! The memory of a rank follows the ranks that it speaks to and those of its host, not the size of the job: the formulas of
//! docs/hosts.md, by a count of what is allocated.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Barrier};

use mpj::{Op, Options, local};
use mpj_doubles::channels::own_bells;
use mpj_doubles::{hosts, mailboxes};
use transport_lapi::adapter::{MAX_TASKS, TaskId};

/// What a rank takes for itself, at most, in bytes.
const FIXED: usize = 12 << 10;
/// What it takes for each rank of its host.
const NEAR: usize = 264;
/// What it takes for each other rank that it has spoken to, at most, with the spare room of growing arrays.
const FAR: usize = 700;

/// Bytes that are allocated.
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the allocator of the system does all the work.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
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
    });
}
