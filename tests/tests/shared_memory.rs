//! Windows and arrays in memory that ranks of a host share, as programs use them: ranks are processes.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU8, AtomicU64};

use mpj::{Op, World};

/// Parts of different lengths follow each other, and all ranks see the same elements.
#[mpj::test(ranks = 3, timeout = "30s")]
fn ranks_share_an_array(world: &World) {
    let array = world.allocate_shared::<AtomicU64>(world.rank() + 1).expect("there is room");
    assert_eq!((array.len(), array.part(2).len()), (6, 3));
    assert!(array.iter().all(|element| element.load(Relaxed) == 0));
    world.barrier().expect("all have looked");
    for _ in 0..1000 {
        for element in array.iter() {
            element.fetch_add(1, AcqRel);
        }
    }
    array.part(world.rank())[0].fetch_add(world.rank() as u64, AcqRel);
    world.barrier().expect("all have added");
    let sums: Vec<_> = array.iter().map(|element| element.load(Acquire)).collect();
    assert_eq!(sums, [3000, 3001, 3000, 3002, 3000, 3000]);
}

/// Rank 0, which has made the memory, drops the array first. Others go on, and later arrays begin as zeros.
#[mpj::test(ranks = 3, timeout = "30s")]
fn an_array_stays_until_all_have_dropped_it(world: World) -> Result<(), mpj::Error> {
    let array = world.allocate_shared::<AtomicU8>(5000)?;
    if world.rank() == 0 {
        drop(array);
        let another = world.self_comm()?.allocate_shared::<AtomicU8>(5000)?;
        world.barrier()?;
        world.barrier()?;
        assert!(another.iter().all(|element| element.load(Acquire) == 0));
    } else {
        world.barrier()?;
        array.iter().for_each(|element| element.store(7, Release));
        world.barrier()?;
        drop(array);
    }
    for _ in 0..5 {
        let array = world.allocate_shared::<AtomicU8>(1 << 20)?;
        assert!(array.iter().all(|element| element.load(Acquire) == 0));
        world.barrier()?;
        array.part(world.rank()).iter().for_each(|element| element.store(7, Release));
    }
    let last = world.allocate_shared::<AtomicU8>(1)?;
    world.finish()?;
    assert!(last.iter().all(|element| element.load(Acquire) == 0), "it is still there");
    Ok(())
}

#[mpj::test(ranks = 4, timeout = "30s")]
fn processes_have_windows(world: &World) -> Result<(), mpj::Error> {
    let (rank, mut window) = (world.rank(), world.allocate_window::<u64>(20_000)?);
    let (next, counter) = ((rank + 1) % 4, world.shared_counter()?);
    let data = vec![rank as u64; 20_000];
    for round in 0..10 {
        window.expose(&[(rank + 3) % 4], |exposure| {
            exposure.access(&[next], |epoch| epoch.put(&data, next, 0))
        })?;
        assert!(window.local()?.iter().all(|number| *number == (rank as u64 + 3) % 4));
        window.fence(|epoch| {
            (0..4).try_for_each(|target| epoch.accumulate(&data[..100], target, 50, Op::Sum))?;
            counter.next().map(drop)
        })?;
        let (own, all) = ((rank as u64 + 3) % 4, 4 * (round + 1));
        assert_eq!(window.local()?[49..51], [own, own + 6]);
        assert_eq!(window.lock(next, |epoch| epoch.get_vec(1, next, 149))?, [rank as u64 + 6]);
        assert_eq!(counter.add(0)?, all);
        world.barrier()?;
    }
    Ok(())
}
