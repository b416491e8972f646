//! Tests as users write them. Those that fail on purpose are ignored; the tests beside this file run each of them in a
//! process of its own.

#![allow(clippy::disallowed_methods, reason = "ranks end in every way there is")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "what ranks print is looked at")]

use std::thread;
use std::time::Duration;

use mpj::{ANY_SOURCE, Partition, World};
use rustix::process::{Signal, getppid, kill_process};
use transport_lapi::config;

/// Waits for a message that never comes.
fn wait_for(source: usize, world: &World) {
    let mut value = [0_u64];
    world.recv(&mut value, source, 0).expect("a rank that goes ends the job");
}

/// How many descriptors of the project's memory this rank has open. It has closed that of its own segment.
fn foreign_segments() -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("Linux");
    let links = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|link| link.to_string_lossy().starts_with("/memfd:mpj")).count()
}

#[mpj::test(ranks = 4, timeout = "30s")]
fn passes(world: &World) {
    let (rank, size) = (world.rank(), world.size());
    let sent = world.isend(vec![rank], (rank + 1) % size, 0).expect("a send");
    let mut received = [0];
    world.recv(&mut received, (rank + size - 1) % size, 0).expect("a message");
    sent.wait().expect("it was received");
    assert_eq!((size, received[0]), (4, (rank + 3) % 4));
    assert_eq!(foreign_segments(), 0, "descriptors of another job");
    println!("rank {rank} of {size}");
    eprintln!("no trouble at rank {rank}");
}

#[mpj::test(ranks = 2)]
fn returns_a_result(world: &World) -> Result<(), mpj::Error> {
    world.barrier()
}

#[mpj::test(ranks = 3, backend = "eager")]
fn owns_its_world(world: World) -> Result<(), mpj::Error> {
    assert_eq!(config::inherited("MPJ_BACKEND"), Some("eager".into()));
    world.barrier()?;
    world.finish()
}

#[mpj::test(ranks = 1)]
fn joins_by_itself() -> Result<(), Box<dyn std::error::Error>> {
    assert_eq!(mpj::init()?.size(), 1);
    Ok(())
}

#[mpj::test(ranks = 2)]
fn r#match(world: &World) {
    assert_eq!(world.size(), 2);
}

#[mpj::test(ranks = 2)]
fn deals_with_an_error_in_its_last_call(world: &World) {
    world.send(&[0_u8], 2, 0).expect_err("there is no such rank");
}

#[mpj::test(ranks = 2)]
#[should_panic(expected = "rank 1 panicked at tests/tests/user_tests/samples.rs")]
fn panics_as_it_should(world: &World) {
    assert_eq!(world.rank(), 0, "only one is wanted");
    wait_for(1, world);
}

#[mpj::test(ranks = 4)]
#[ignore = "fails on purpose"]
fn one_rank_panics(world: &World) {
    assert_ne!(world.rank(), 2, "the ranks\ndiffer");
    wait_for(2, world);
}

#[mpj::test(ranks = 3)]
#[ignore = "fails on purpose"]
fn two_ranks_panic(world: &World) {
    world.barrier().expect("all are here");
    assert_eq!(world.rank(), 1, "another one is wanted");
    wait_for(0, world);
}

/// The ranks pass thirty messages around. After that rank 1 fails, when it has heard from the others.
#[mpj::test(ranks = 3)]
#[ignore = "fails on purpose"]
fn fails_after_many_calls(world: &World) {
    let (rank, size) = (world.rank(), world.size());
    let (left, right) = ((rank + size - 1) % size, (rank + 1) % size);
    let mut number = [0_u32; 2];
    for lap in 0..30 {
        if rank > 0 {
            world.recv(&mut number, left, lap).expect("a message");
        }
        world.send(&number, right, lap).expect("a receiver");
        if rank == 0 {
            world.recv(&mut number, left, lap).expect("a message");
        }
    }
    if rank == 1 {
        world.recv(&mut number, 0, 50).expect("a message");
        world.recv(&mut number, 2, 50).expect("a message");
        panic!("all have come");
    }
    world.send(&number, 1, 50).expect("a receiver");
    wait_for(1, world);
}

#[mpj::test(ranks = 2)]
#[ignore = "fails on purpose"]
fn fails_after_calls_of_many_kinds(world: &World) {
    let other = 1 - world.rank();
    let mut receives = [0, 1].map(|tag| world.irecv(vec![0_u8; 8], other, tag).expect("a receive"));
    for tag in 0..2 {
        world.send(&[7_u8; 8], other, tag).expect("a receiver");
    }
    mpj::wait_all(&mut receives).expect("they come");
    let receive = world.irecv(vec![0_u16; 3], other, 2).expect("a receive");
    world.send(&[7_u16; 3], other, 2).expect("a receiver");
    receive.wait().expect("it comes");
    world.broadcast(&mut [1_u32; 3], 0).expect("all are here");
    world.all_gather(&[1_u32, 2], &mut [0_u32; 4]).expect("all are here");
    world.all_reduce(&mut [1.0; 4], mpj::Op::Sum).expect("all are here");
    let (sent, count) = (Partition::packed([1, 2]), world.rank() + 1);
    let (received, mut into) = (Partition::packed([count; 2]), vec![0_u64; 2 * count]);
    world.all_to_allv(&[1_u64; 3], &sent, &mut into, &received).expect("all are here");
    world.barrier().expect("all are here");
    assert_ne!(world.rank(), 1, "one fails");
    wait_for(1, world);
}

#[mpj::test(ranks = 3)]
#[ignore = "fails on purpose"]
fn one_rank_returns_an_error(world: &World) -> Result<(), String> {
    if world.rank() == 1 {
        return Err("no luck".to_owned());
    }
    wait_for(1, world);
    Ok(())
}

#[mpj::test(ranks = 3)]
#[ignore = "fails on purpose"]
fn one_rank_exits(world: &World) {
    if world.rank() == 2 {
        std::process::exit(3);
    }
    wait_for(2, world);
}

#[mpj::test(ranks = 2)]
#[ignore = "fails on purpose"]
fn one_rank_is_killed(world: &World) {
    if world.rank() == 1 {
        std::process::abort();
    }
    wait_for(1, world);
}

#[mpj::test(ranks = 2)]
#[ignore = "fails on purpose"]
fn nobody_joins() {
    panic!("before anybody joined");
}

#[mpj::test(ranks = 2, timeout = "2s")]
#[ignore = "fails on purpose"]
fn takes_too_long(world: &World) {
    println!("rank {} begins", world.rank());
    if world.rank() == 0 {
        thread::sleep(Duration::from_secs(60));
    }
    wait_for(0, world);
}

#[mpj::test(ranks = 2, timeout = "5s")]
#[ignore = "fails on purpose"]
fn waits_for_ever(world: &World) {
    wait_for(1 - world.rank(), world);
}

#[mpj::test(ranks = 2, timeout = "1s")]
#[ignore = "fails on purpose"]
fn stops_its_launcher(world: &World) {
    if world.rank() == 0 {
        let launcher = getppid().expect("a rank has a parent");
        kill_process(launcher, Signal::STOP).expect("it runs");
    }
    wait_for(0, world);
}

#[mpj::test(ranks = 2, timeout = "10m")]
#[ignore = "fails on purpose"]
fn sleeps(world: &World) {
    println!("pid {}", std::process::id());
    world.barrier().expect("all are here");
    thread::sleep(Duration::from_secs(600));
    world.recv(&mut [0_u8], ANY_SOURCE, 0).expect("nobody sends");
}
