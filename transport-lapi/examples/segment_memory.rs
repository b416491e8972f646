//! Measures how much memory the segment of a job occupies: reserved addresses, and memory in use after the start, after
//! every task has communicated with both neighbours, and after all pairs have communicated.
//!
//! `cargo run --release -p transport-lapi --example segment_memory` prints it in tables. The tasks are
//! threads here; the segment is that of processes.
#![allow(clippy::print_stdout, reason = "a program prints")]

use std::os::fd::OwnedFd;
use std::sync::Barrier;
use std::thread;

use transport_lapi::Source;
use transport_lapi::adapter::{Adapter, AdapterError, Frame, Post, TaskId, Ticket};
use transport_lapi::adapters::segment_bytes;
use transport_lapi::adapters::shm::{ShmAdapter, create_segment};
use transport_lapi::config::GetMode;

/// Bytes of memory that the segment occupies now.
fn taken(fd: &OwnedFd) -> u64 {
    rustix::fs::fstat(fd).map_or(0, |stat| stat.st_blocks as u64 * 512)
}

/// Sends a frame to each of `peers` and receives one from each.
fn exchange(adapter: &mut ShmAdapter, peers: &[usize]) -> Result<(), AdapterError> {
    let body = Source::from(b"body".to_vec());
    for &peer in peers {
        let body = body.piece(0, 4);
        while adapter.try_send(peer as TaskId, b"head", body, Ticket(0))? == Post::Full {
            thread::yield_now();
        }
    }
    let mut came = 0;
    while came < peers.len() {
        came += adapter.poll(None, 64, &mut |_: Frame<'_>| {})?;
        thread::yield_now();
    }
    Ok(())
}

/// Memory in use in a job of `tasks` tasks with `contexts` contexts each, once all tasks have attached.
fn start(tasks: usize, contexts: usize) -> Result<u64, AdapterError> {
    let fd = create_segment("example", tasks, contexts)?;
    let attach = |me: usize| {
        let own = copy(&fd)?;
        ShmAdapter::attach_contexts(own, me as TaskId, tasks, contexts, GetMode::Auto)
    };
    thread::scope(|scope| {
        let attach = &attach;
        let started: Vec<_> = (0..tasks).map(|me| scope.spawn(move || attach(me))).collect();
        let ended = started.into_iter().map(|task| task.join().expect("no task panics"));
        let _attached = ended.collect::<Result<Vec<_>, _>>()?;
        Ok(taken(&fd))
    })
}

fn copy(fd: &OwnedFd) -> Result<OwnedFd, AdapterError> {
    let action = "copy the descriptor";
    fd.try_clone().map_err(|source| AdapterError::System { action, source })
}

/// Runs one task; returns the memory in use after each step, in bytes.
fn task(
    fd: &OwnedFd,
    me: usize,
    tasks: usize,
    together: &Barrier,
) -> Result<[u64; 3], AdapterError> {
    let mut adapter = ShmAdapter::attach(copy(fd)?, me as TaskId, tasks, GetMode::Auto)?;
    let measured = || {
        together.wait();
        let bytes = taken(fd);
        together.wait();
        bytes
    };
    adapter.poll(None, 64, &mut |_: Frame<'_>| {})?;
    let start = measured();
    exchange(&mut adapter, &[(me + 1) % tasks, (me + tasks - 1) % tasks])?;
    let neighbours = measured();
    exchange(&mut adapter, &(0..tasks).collect::<Vec<_>>())?;
    Ok([start, neighbours, measured()])
}

/// Runs a job of `tasks` tasks; returns the memory in use after each step.
fn job(tasks: usize) -> Result<[u64; 3], AdapterError> {
    let (fd, together) = (create_segment("example", tasks, 1)?, Barrier::new(tasks));
    thread::scope(|scope| {
        let start = |me| {
            let (fd, together) = (&fd, &together);
            scope.spawn(move || task(fd, me, tasks, together))
        };
        let started: Vec<_> = (0..tasks).map(start).collect();
        let ended = started.into_iter().map(|task| task.join().expect("no task panics"));
        ended.last().expect("a job has tasks")
    })
}

fn main() -> Result<(), AdapterError> {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    println!("| ranks | reserved | start | neighbours | all pairs |");
    println!("|---|---|---|---|---|");
    for tasks in [2, 4, 8, 16, 64, 256] {
        let [start, neighbours, all] = job(tasks)?.map(mib);
        let reserved = mib(segment_bytes(tasks, 1)? as u64);
        println!("| {tasks} | {reserved} | {start} | {neighbours} | {all} |");
    }
    println!("\n| ranks | 1 context | 2 contexts | 4 contexts |\n|---|---|---|---|");
    for tasks in [2, 4, 8, 16, 32, 64, 128, 256] {
        let mut row = format!("| {tasks} |");
        for contexts in [1, 2, 4] {
            let reserved = mib(segment_bytes(tasks, contexts)? as u64);
            row += &format!(" {reserved}; {} |", mib(start(tasks, contexts)?));
        }
        println!("{row}");
    }
    Ok(())
}
