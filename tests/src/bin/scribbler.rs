//! A rank of a job in which one rank writes garbage over the memory that all of them share.
//!
//! `scribbler RANK SEED`: all ranks send each other messages of all kinds for a while, and rank RANK
//! does the damage that the seed selects, through `/proc/self/mem`.

#![allow(clippy::print_stderr, reason = "a program talks to its user")]

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use mpj::{ANY_SOURCE, Error, World};
use mpj_tests::conformance::Numbers;
use transport_lapi::config::inherited;

/// How long the ranks send messages: longer than the longest wait for the damage.
const TALK: Duration = Duration::from_millis(100);
/// The longest wait for the damage, in microseconds.
const LATEST: usize = 60_000;
/// Lengths of messages: in a cell, in the data ring, in pieces, shared gets.
const LENGTHS: [usize; 6] = [0, 8, 2_000, 30_000, 120_000, 700_000];
/// The segment of few ranks is shorter than this, and the room for others longer.
const ROOM: u64 = 1 << 30;
/// The part of the segment that concerns the whole job.
const HEADER: u64 = 4 << 10;
/// The part that controls everything else: blocks, indices, words of shared gets.
const STEERING: u64 = 64 << 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rank, seed] = &words[..] else { return ExitCode::from(2) };
    let Ok(seed) = seed.parse() else { return ExitCode::from(2) };
    if inherited("MPJ_RANK").unwrap_or_default().to_str() == Some(rank) {
        std::thread::spawn(move || scribble(&mut Numbers(seed)));
    }
    match mpj::init().and_then(|world| talk(&world)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn talk(world: &World) -> Result<(), Error> {
    let (rank, size) = (world.rank(), world.size());
    let (up, down) = ((rank + 1) % size, (rank + size - 1) % size);
    let data = vec![7u8; LENGTHS[LENGTHS.len() - 1]];
    let mut room = data.clone();
    let start = Instant::now();
    for turn in 0.. {
        // Rank 0 decides for all when to stop.
        let mut goes_on = [u8::from(start.elapsed() < TALK)];
        match rank {
            0 => (1..size).try_for_each(|other| world.send(&goes_on, other, 2))?,
            _ => world.recv(&mut goes_on, 0, 2).map(drop)?,
        }
        if goes_on == [0] {
            break;
        }
        let len = LENGTHS[turn % LENGTHS.len()];
        world.sendrecv(&data[..len], up, 0, &mut room, down, 0)?;
        if turn % 5 == 0 {
            world.barrier()?;
        }
        match (turn % 7, rank) {
            (0, 0) => (1..size).try_for_each(|_| world.recv(&mut room, ANY_SOURCE, 1).map(drop))?,
            (0, _) => world.ssend(&data[..len], 0, 1)?,
            _ => {}
        }
    }
    Ok(())
}

/// Waits for the moment and does the damage, once or several times. Without a segment it does nothing.
fn scribble(numbers: &mut Numbers) {
    // Every third time during start-up: as soon as the segment is there.
    let pause = if numbers.below(3) == 0 { 0 } else { numbers.below(LATEST) };
    let place = loop {
        std::thread::sleep(Duration::from_micros(50));
        if let Some(place) = segment() {
            break place;
        }
    };
    std::thread::sleep(Duration::from_micros(pause as u64));
    let Ok(memory) = fs::OpenOptions::new().read(true).write(true).open("/proc/self/mem") else {
        return;
    };
    for _ in 0..1 + numbers.below(3) {
        // The segment is gone when the rank has left.
        if damage(&memory, &place, numbers).is_err() {
            return;
        }
        std::thread::sleep(Duration::from_micros(numbers.below(3_000) as u64));
    }
}

/// Where this process has mapped the segment of the ranks that the job has begun with, once the room for further ranks is a
/// mapping of its own.
fn segment() -> Option<Range<u64>> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("memfd:mpj-job"))?;
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let place = number(start)?..number(end)?;
    (place.end - place.start < ROOM).then_some(place)
}

fn damage(memory: &fs::File, place: &Range<u64>, numbers: &mut Numbers) -> io::Result<()> {
    // Half of the time the header is spared: any damage to it means that a rank is lost.
    let place = &(place.start + [0, HEADER][numbers.below(2)]..place.end);
    let len = place.end - place.start;
    let near = STEERING.min(len);
    match numbers.below(5) {
        0 => memory.write_all_at(&numbers.bytes(len as usize), place.start),
        1 => memory.write_all_at(&numbers.bytes(near as usize), place.start),
        2 => {
            let start = numbers.below(len as usize / 2) & !7;
            let zeros = vec![0; numbers.below(len as usize / 2)];
            memory.write_all_at(&zeros, place.start + start as u64)
        }
        3 => (0..300).try_for_each(|_| {
            let reach = if numbers.below(2) == 0 { near } else { len };
            let at = place.start + (numbers.below(reach as usize) as u64 & !7);
            memory.write_all_at(&numbers.bytes(8), at)
        }),
        _ => (0..100).try_for_each(|_| {
            let at = place.start + numbers.below(near as usize) as u64;
            let mut byte = [0];
            memory.read_exact_at(&mut byte, at)?;
            memory.write_all_at(&[byte[0] ^ 1 << numbers.below(8)], at)
        }),
    }
}
