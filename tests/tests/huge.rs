//! Messages and layouts of more than 2 GiB, between processes, by each backend. They take minutes and up to 10 GiB of
//! memory, so they run on demand:
//! `cargo test --release -p mpj-tests --test huge -- --ignored --test-threads 1`.
//!
//! Where there is not enough memory, a test says so on standard error and passes.

#![allow(clippy::print_stderr, reason = "says what is skipped")]

use mpj::{Op, World};

/// More than 2^31, and no whole number of pages.
const LEN: usize = (3 << 30) + 5;
/// Elements of a reduction: more than 2^31.
const REDUCED: usize = (1 << 31) + 9;
/// The block of a matrix whose data are more than 3 GiB and lie further than 2^32 bytes apart.
const ROWS: usize = 400_000;
const COLUMNS: usize = 12_288;
const TAKEN: std::ops::Range<usize> = 2_000..10_192;

/// The pattern that large buffers repeat; its length is prime, so that pieces in a wrong place differ.
const PERIOD: usize = 1_000_003;

fn period() -> Vec<u8> {
    (0..PERIOD as u32).map(|place| (place.wrapping_mul(0x9E37_79B9) >> 24) as u8).collect()
}

fn patterned(len: usize) -> Vec<u8> {
    let (period, mut bytes) = (period(), Vec::with_capacity(len));
    while bytes.len() < len {
        bytes.extend_from_slice(&period[..PERIOD.min(len - bytes.len())]);
    }
    bytes
}

#[track_caller]
fn check(bytes: &[u8]) {
    let period = period();
    let wrong = bytes.chunks(PERIOD).position(|piece| *piece != period[..piece.len()]);
    assert_eq!(wrong, None, "the first piece of {PERIOD} bytes that is wrong");
}

/// Whether the machine and the control group of this process have this much memory.
fn is_there(gibibytes: u64) -> bool {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let meminfo = read("/proc/meminfo");
    let available = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available = available.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse().ok());
    let of_machine = available.unwrap_or(0_u64) << 10;
    let of_group = match read("/sys/fs/cgroup/memory.max").trim().parse::<u64>() {
        Ok(most) => {
            most.saturating_sub(read("/sys/fs/cgroup/memory.current").trim().parse().unwrap_or(0))
        }
        // Without a limit the file has a word.
        Err(_) => u64::MAX,
    };
    let is_there = of_machine.min(of_group) >= gibibytes << 30;
    if !is_there {
        eprintln!("skipped: this needs {gibibytes} GiB of free memory");
    }
    is_there
}

/// Rank 0 decides for both, since each sees the memory that the other one takes.
fn has_room(world: &World, gibibytes: u64) -> bool {
    let mut has_room = [u8::from(world.rank() == 0 && is_there(gibibytes))];
    world.broadcast(&mut has_room, 0).unwrap();
    has_room == [1]
}

/// A message from rank 0 to rank 1, which probes its length first.
fn message(world: &World) {
    if !has_room(world, 8) {
        return;
    }
    if world.rank() == 0 {
        world.send(&patterned(LEN), 1, 7).unwrap();
    } else {
        assert_eq!(world.probe(0, 7).unwrap().count::<u8>().unwrap(), LEN);
        let mut bytes = vec![0; LEN];
        assert_eq!(world.recv(&mut bytes, 0, 7).unwrap().count::<u8>().unwrap(), LEN);
        check(&bytes);
    }
}

#[mpj::test(ranks = 2, backend = "auto", timeout = "10m")]
#[ignore = "takes 8 GiB of memory"]
fn a_message_by_auto(world: &World) {
    message(world);
}

#[mpj::test(ranks = 2, backend = "eager", timeout = "10m")]
#[ignore = "takes 8 GiB of memory"]
fn a_message_by_eager(world: &World) {
    message(world);
}

#[mpj::test(ranks = 2, backend = "rendezvous", timeout = "10m")]
#[ignore = "takes 8 GiB of memory"]
fn a_message_by_rendezvous(world: &World) {
    message(world);
}

/// A block of a matrix to memory in one piece, and back into a block.
fn layout(world: &World) {
    if !has_room(world, 10) {
        return;
    }
    let data = ROWS * TAKEN.len();
    if world.rank() == 0 {
        let mut matrix = vec![0_u8; ROWS * COLUMNS];
        let (period, mut done) = (period(), 0);
        for row in matrix.chunks_mut(COLUMNS) {
            for byte in &mut row[TAKEN] {
                *byte = period[done % PERIOD];
                done += 1;
            }
        }
        world.send(&mpj::block(&matrix, COLUMNS, .., TAKEN).unwrap(), 1, 0).unwrap();
        matrix.fill(9);
        world.recv(&mut mpj::block_mut(&mut matrix, COLUMNS, .., TAKEN).unwrap(), 1, 0).unwrap();
        let mut done = 0;
        for row in matrix.chunks(COLUMNS) {
            let is_right = |byte: &u8| {
                done += 1;
                *byte == period[(done - 1) % PERIOD]
            };
            assert!(row[TAKEN].iter().all(is_right));
            let mut beside = row[..TAKEN.start].iter().chain(&row[TAKEN.end..]);
            assert!(beside.all(|byte| *byte == 9), "what lies between is left alone");
        }
    } else {
        let mut bytes = vec![0; data];
        assert_eq!(world.recv(&mut bytes, 0, 0).unwrap().count::<u8>().unwrap(), data);
        check(&bytes);
        world.send(&bytes, 0, 0).unwrap();
    }
}

#[mpj::test(ranks = 2, backend = "eager", timeout = "10m")]
#[ignore = "takes 10 GiB of memory"]
fn a_layout_by_eager(world: &World) {
    layout(world);
}

#[mpj::test(ranks = 2, backend = "rendezvous", timeout = "10m")]
#[ignore = "takes 10 GiB of memory"]
fn a_layout_by_rendezvous(world: &World) {
    layout(world);
}

#[mpj::test(ranks = 2, timeout = "10m")]
#[ignore = "takes 10 GiB of memory"]
fn collectives(world: &World) {
    if !has_room(world, 10) {
        return;
    }
    let mut bytes = if world.rank() == 0 { patterned(LEN) } else { vec![0; LEN] };
    world.broadcast(&mut bytes, 0).unwrap();
    check(&bytes);
    drop(bytes);
    let mut numbers = vec![1 + world.rank() as u8; REDUCED];
    world.all_reduce(&mut numbers, Op::Sum).unwrap();
    assert!(numbers.iter().all(|number| *number == 3));
}
