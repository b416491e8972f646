//! A rank that misbehaves on demand, for the multi-process tests.
//!
//! - `rank WHEN HOW WHO`: rank WHO misbehaves in the way HOW `before` it joins, `during` the joining (the last rank
//!   never comes, so the others wait for it), or `after` all have joined and the others are blocked in a receive from
//!   WHO. `amid` is for two ranks, which copy long messages meanwhile.
//! - `rank well` does everything right. `rank idle` blocks for ever in every rank.
//! - `rank hosts` prints with how many ranks it shares its host. `rank alone CALLS` makes so many calls with itself.
//! - `rank forget` does everything right but that it never finishes.
//! - `rank error-...` meets an error of the library and returns it from main or handles it, also while another thread
//!   polls, or in a thread that ends.
//! - `rank error-other` meets an error of its own in rank 1. In `rank error-cut` rank 1 prints its error slowly, while
//!   another rank fails.
//! - `rank thread-panic` panics in a thread that nobody waits for. `rank leaving` ends one rank while the other goes on.
//! - `rank replaced` becomes another program. `rank lists` has two other programs show their open files.
//! - `rank reads` prints how ranks read each other's memory; `rank unreadable` forbids it. In `rank renounced WHO`,
//!   rank WHO, or every rank for `all`, changes its user and forbids it between messages.
//! - `rank waiting` blocks all ranks but rank 0, which is busy. In `rank apart`, rank 0 waits while the others stand
//!   still, compute and sleep.
//! - In `rank aloof HOW`, rank 1 is stopped, or computes for some seconds, before it meets the others.
//! - `rank late-abort` aborts in one rank after another has failed.
//! - `rank exit CODE`, `rank abort CODE` and `rank ssend` do what other launchers and libraries do not cope with.

#![allow(clippy::disallowed_methods, reason = "ranks end in every way there is")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mpj::{ANY_TAG, World};
use rustix::process::{DumpableBehavior, Signal, Uid, getpid, kill_process, set_dumpable_behavior};
use rustix::thread::set_thread_uid;
use transport_lapi::config::inherited;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["idle"] => idle(),
        ["well"] => well(),
        ["alone", calls] => alone(calls),
        ["hosts"] => hosts(),
        ["forget"] => forget(),
        ["twice"] => twice(),
        ["nested"] => nested(),
        ["error-truncate"] => error_truncate(),
        ["error-rank"] => error_rank(),
        ["error-slow"] => error_slow(),
        ["error-handled"] => error_handled(),
        ["error-other"] => error_other(),
        ["error-cut"] => error_cut(),
        ["error-polled"] => error_polled(),
        ["error-joined"] => error_joined(),
        ["error-elsewhere"] => error_elsewhere(),
        ["thread-panic"] => thread_panic(),
        ["leaving"] => leaving(),
        ["replaced"] => replaced(),
        ["lists"] => lists(),
        ["waiting"] => waiting(),
        ["apart"] => apart(),
        ["late"] => late(),
        ["aloof", how] => aloof(how),
        ["exit", code] => exit(code, |code| std::process::exit(code)),
        ["abort", code] => exit(code, |code| mpj::abort(code)),
        ["late-abort"] => late_abort(),
        ["ssend"] => ssend(),
        ["reads"] => reads(),
        ["unreadable"] => unreadable(),
        ["renounced", who] => renounced(who),
        ["before", how, who] => before(how, who),
        ["during", how, who] => during(how, who),
        ["after", how, who] => after(how, who),
        ["amid", how, who] => amid(how, who),
        _ => return ExitCode::from(2),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The number that this rank will have, before it joins.
fn future_rank() -> String {
    inherited("MPJ_RANK").unwrap_or_default().to_string_lossy().into_owned()
}

fn alone(calls: &str) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    (0..calls.parse().unwrap_or(0)).try_for_each(|_: u32| world.self_comm()?.barrier())
}

/// Rank WHO misbehaves while it and its neighbour copy long messages.
fn amid(how: &str, who: &str) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let other = (world.rank() + 1) % world.size();
    let mut message = vec![0u8; 40 << 20];
    for round in 0.. {
        if world.rank().to_string() == who && round == 1 {
            let how = how.to_owned();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(10));
                misbehave(&how);
            });
        }
        if world.rank() == 0 {
            world.send(&message, other, 0)?;
        } else {
            world.recv(&mut message, other, 0)?;
        }
    }
    Ok(())
}

fn idle() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    println!("{}", std::process::id());
    wait_for(&world, (world.rank() + 1) % world.size())
}

fn well() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    println!("rank {} of {}", world.rank(), world.size());
    world.barrier()
}

fn aloof(how: &str) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        println!("{}", std::process::id());
        match how {
            "stopped" => kill_process(getpid(), Signal::STOP).expect("our own process"),
            _ => {
                let start = std::time::Instant::now();
                while start.elapsed() < Duration::from_secs(3) {
                    std::hint::spin_loop();
                }
            }
        }
    }
    world.barrier()?;
    println!("met");
    Ok(())
}

fn hosts() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let here = world.split_by_host(0)?;
    println!("rank {} is {} of {}", world.rank(), here.rank(), here.size());
    world.barrier()
}

fn forget() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let mut sum = [world.rank()];
    world.reduce(&[world.rank()], &mut sum, mpj::Op::Sum, 0)?;
    if world.rank() == 0 {
        println!("sum {}", sum[0]);
    }
    std::mem::forget(world);
    Ok(())
}

/// The world waits for rank 0 when it is dropped, since it does not know of the error.
fn error_other() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 0 {
        return wait_for(&world, 1);
    }
    drop(world);
    eprintln!("Error: no input\n\nCaused by:\n    no such file");
    std::process::exit(1);
}

/// Both ranks give up. Rank 0 gives up first, and ends while rank 1 prints. Files tell each how far the other one is.
fn error_cut() -> Result<(), mpj::Error> {
    let wait_until = |is_so: &dyn Fn() -> bool| {
        while !is_so() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let world = mpj::init()?;
    let rank = world.rank();
    let mut first = [std::process::id()];
    world.broadcast(&mut first, 0)?;
    let mark = |what| std::env::temp_dir().join(format!("mpj-test-{}-{what}", first[0]));
    let set = |what| std::fs::write(mark(what), "").expect("a folder for temporary files");
    if rank == 1 {
        wait_until(&|| mark("gone").exists());
    }
    let outcome = world.send(&[1u8], 99, 0);
    drop(world);
    if rank == 1 {
        eprint!("Error: ");
        set("printing");
        // A process that has ended has no command line any more.
        let words = format!("/proc/{}/cmdline", first[0]);
        wait_until(&|| std::fs::read(&words).map_or(true, |words| words.is_empty()));
        // The launcher acts on the end of rank 0 now.
        std::thread::sleep(Duration::from_millis(20));
        eprintln!("all of it");
    } else {
        set("gone");
        wait_until(&|| mark("printing").exists());
        for what in ["gone", "printing"] {
            std::fs::remove_file(mark(what)).expect("it is there");
        }
    }
    outcome
}

fn twice() -> Result<(), mpj::Error> {
    let _world = mpj::init()?;
    match mpj::init() {
        Ok(_) => panic!("a second world"),
        Err(error) => {
            println!("{error}");
            Ok(())
        }
    }
}

/// Starts a program that would be a rank, from a process that is one.
fn nested() -> Result<(), mpj::Error> {
    let _world = mpj::init()?;
    let this = std::env::current_exe().expect("a program knows its own path");
    let status = std::process::Command::new(this).arg("well").status().expect("it starts");
    println!("{status}");
    Ok(())
}

/// Rank 1 has too little room for a message, while rank 0 waits for an answer to it.
fn error_truncate() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 0 {
        world.send(&[7u8; 16], 1, 0)?;
        return wait_for(&world, 1);
    }
    let status = world.recv(&mut [0u8; 4], 0, 0)?;
    world.send(&[status.bytes], 0, 0)
}

/// Rank 1 sends to a rank that does not exist, while the others wait for rank 1.
fn error_rank() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        world.send(&[1u8], 99, 0)?;
    }
    world.barrier()
}

/// As [`error_rank`], but rank 1 takes long to end.
fn error_slow() -> Result<(), mpj::Error> {
    let outcome = error_rank();
    std::thread::sleep(Duration::from_secs(30));
    outcome
}

/// Every rank meets an error, handles it and goes on.
fn error_handled() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let refusal = world.send(&[1u8], 99, 0).expect_err("there is no such rank");
    println!("{refusal}");
    world.barrier()
}

/// As [`error_rank`], while a thread of rank 1 polls all the time.
fn error_polled() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        let polls = poll_for_ever(&world);
        let outcome = world.send(&[1u8], 99, 0);
        await_polls(&polls);
        outcome?;
    }
    world.barrier()
}

/// The same, but a thread that has ended has met the error.
fn error_joined() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        let polls = poll_for_ever(&world);
        let sends = || world.send(&[1u8], 99, 0);
        let outcome = std::thread::scope(|scope| scope.spawn(sends).join());
        await_polls(&polls);
        // A poll in vain does not report the error.
        world.iprobe(mpj::ANY_SOURCE, ANY_TAG)?;
        outcome.expect("it does not panic")?;
    }
    world.barrier()
}

/// A thread of every rank meets an error and ends; main handles it and goes on.
fn error_elsewhere() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let sends = || world.send(&[1u8], 99, 0);
    let outcome = std::thread::scope(|scope| scope.spawn(sends).join());
    println!("{}", outcome.expect("it does not panic").expect_err("there is no such rank"));
    world.barrier()
}

/// Starts a thread that polls for as long as this process lives, and counts how often.
fn poll_for_ever(world: &World) -> Arc<AtomicU64> {
    let (polls, communicator) = (Arc::new(AtomicU64::new(0)), mpj::Communicator::clone(world));
    let count = polls.clone();
    std::thread::spawn(move || {
        while communicator.iprobe(mpj::ANY_SOURCE, ANY_TAG).is_ok() {
            count.fetch_add(1, Ordering::Release);
        }
    });
    polls
}

/// Waits until a poll that began after this call has ended well.
fn await_polls(polls: &AtomicU64) {
    let behind = polls.load(Ordering::Acquire) + 2;
    while polls.load(Ordering::Acquire) < behind {
        std::thread::yield_now();
    }
}

/// A thread of rank 1 panics, and nobody joins it.
fn thread_panic() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        std::thread::spawn(|| misbehave("panic"));
    }
    wait_for(&world, (world.rank() + 1) % world.size())
}

/// Rank 1 leaves, while rank 0 waits for a message from itself.
fn leaving() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        return Ok(());
    }
    wait_for(&world, 0)
}

/// Replaces itself by another program, which closes the control line.
fn replaced() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    let error = std::process::Command::new("sleep").arg("0.3").exec();
    unreachable!("this process is another program now: {error}");
}

/// Starts a program that shows its open files, and then becomes it.
fn lists() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    println!("control {}", inherited("MPJ_CTRL_FD").unwrap_or_default().to_string_lossy());
    println!("own");
    for entry in std::fs::read_dir("/proc/self/fd").expect("there are some").flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        println!("{} -> {}", entry.file_name().to_string_lossy(), target.display());
    }
    let program = || {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "echo another; ls -l /proc/$$/fd; :"]);
        shell
    };
    assert!(program().status().expect("it starts").success(), "it shows them");
    let error = program().exec();
    unreachable!("this process is another program now: {error}");
}

/// Every rank waits for rank 0, which is busy with something else.
fn waiting() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    println!("{}", std::process::id());
    if world.rank() == 0 {
        std::thread::sleep(Duration::from_secs(600));
    }
    wait_for(&world, 0)
}

/// Rank 0 waits for rank 1, which stops itself, and ends the job when it goes on; the others do not wait.
fn apart() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    println!("{}", std::process::id());
    match world.rank() {
        0 => wait_for(&world, 1),
        1 => {
            kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
            mpj::abort(7)
        }
        2 => loop {
            std::hint::spin_loop();
        },
        _ => {
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
    }
}

/// Rank 1 stops itself, and comes to the others when it goes on.
fn late() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    println!("{}", std::process::id());
    if world.rank() == 1 {
        kill_process(getpid(), Signal::STOP).expect("a process may stop itself");
    }
    world.barrier()
}

/// Rank 1 ends in this way with this code while rank 0 waits for it.
fn exit(code: &str, end: impl Fn(i32)) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        end(code.parse().expect("a code"));
    }
    wait_for(&world, 1)
}

/// Rank 1 ends the job with code 7, after rank 0 has failed with code 4.
fn late_abort() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    if world.rank() == 0 {
        std::process::exit(4);
    }
    println!("{}", std::process::id());
    kill_process(getpid(), Signal::STOP).expect("a process may signal itself");
    mpj::abort(7)
}

/// Rank 0 sends in synchronous mode, and rank 1 never receives.
fn ssend() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    if world.rank() == 1 {
        std::thread::sleep(Duration::from_secs(600));
    }
    world.ssend(&[7u8], 1, 0)?;
    println!("the send has returned");
    Ok(())
}

/// Fetches a long message from a neighbour, and prints how it was read.
fn reads() -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let (up, down) = ((world.rank() + 1) % world.size(), world.size() - 1);
    let down = (world.rank() + down) % world.size();
    let (data, mut room) = (vec![world.rank() as u32; 1 << 19], vec![0_u32; 1 << 19]);
    world.sendrecv(&data, up, 0, &mut room, down, 0)?;
    assert!(room.iter().all(|word| *word as usize == down), "other bytes than were sent");
    println!("{}", world.one_sided_path());
    Ok(())
}

/// The same in a process whose memory nobody may read.
fn unreadable() -> Result<(), mpj::Error> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).expect("a process may ask for it");
    reads()
}

/// The rights to read go when some messages have been read already.
fn renounced(who: &str) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    let (rank, size) = (world.rank(), world.size());
    exchange(&world, 0)?;
    if [rank.to_string().as_str(), "all"].contains(&who) {
        // A user who is not root stays what he is.
        let _ = set_thread_uid(Uid::from_raw(65534));
        set_dumpable_behavior(DumpableBehavior::NotDumpable).expect("a process may ask for it");
    }
    world.barrier()?;
    for round in 1..4 {
        exchange(&world, round)?;
    }
    for root in 0..size {
        for len in [64, 1 << 19] {
            let mut words = vec![if rank == root { root as u32 } else { u32::MAX }; len];
            world.broadcast(&mut words, root)?;
            assert!(words.iter().all(|word| *word as usize == root), "a broadcast from {root}");
        }
    }
    let mut sums = vec![1 << rank; 1 << 18];
    world.all_reduce(&mut sums, mpj::Op::Sum)?;
    assert!(sums.iter().all(|sum| *sum == (1 << size) - 1), "sums");
    let (mine, mut all) = (vec![rank as u32; 1 << 17], vec![0; size << 17]);
    world.all_gather(&mine, &mut all)?;
    assert!(all.chunks(1 << 17).zip(0..).all(|(part, of)| part.iter().all(|word| *word == of)));
    println!("right");
    Ok(())
}

/// Each rank sends a long message to the next one: first both ways at once, then one after another around the ring.
fn exchange(world: &World, round: u32) -> Result<(), mpj::Error> {
    let (rank, size) = (world.rank(), world.size());
    let (up, down) = ((rank + 1) % size, (rank + size - 1) % size);
    let message = |of: usize| vec![of as u32 + 1000 * round; 1 << 19];
    let mut room = vec![0; 1 << 19];
    for (to, from) in [(up, down), (down, up)] {
        world.sendrecv(&message(rank), to, 0, &mut room, from, 0)?;
        assert!(room == message(from), "from {from} to {rank}");
    }
    if rank == 0 {
        world.send(&message(rank), up, 1)?;
    }
    world.recv(&mut room, down, 1)?;
    assert!(room == message(down), "from {down} to {rank}, around the ring");
    if rank > 0 {
        world.send(&message(rank), up, 1)?;
    }
    Ok(())
}

fn before(how: &str, who: &str) -> Result<(), mpj::Error> {
    if future_rank() == who {
        misbehave(how);
    }
    let world = mpj::init()?;
    world.barrier()
}

fn during(how: &str, who: &str) -> Result<(), mpj::Error> {
    let size = inherited("MPJ_SIZE").unwrap_or_default().to_string_lossy().into_owned();
    if future_rank().parse().ok().map(|rank: usize| (rank + 1).to_string()) == Some(size) {
        std::thread::sleep(Duration::from_secs(600));
    }
    if future_rank() == who {
        let how = how.to_owned();
        std::thread::spawn(move || {
            std::io::stdin().read_line(&mut String::new()).expect("the input of the job");
            misbehave(&how);
        });
    }
    mpj::init().map(drop)
}

fn after(how: &str, who: &str) -> Result<(), mpj::Error> {
    let world = mpj::init()?;
    world.barrier()?;
    let who: usize = who.parse().expect("a rank");
    if world.rank() != who {
        world.send(&[std::process::id()], who, 0)?;
        return wait_for(&world, who);
    }
    for other in (0..world.size()).filter(|other| *other != who) {
        let mut pid = [0u32];
        world.recv(&mut pid, other, 0)?;
        await_sleep(pid[0]);
    }
    match how {
        "forget" => std::mem::forget(world),
        "recover" => {
            let caught = std::panic::catch_unwind(|| misbehave("panic"));
            assert!(caught.is_err(), "it panics");
            for other in (0..world.size()).filter(|other| *other != world.rank()) {
                world.send(&[0u8], other, 0)?;
            }
        }
        _ => misbehave(how),
    }
    Ok(())
}

/// Waits until the first thread of a process sleeps.
fn await_sleep(pid: u32) {
    let is_asleep = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        stat.rsplit(") ").next().is_some_and(|fields| fields.starts_with('S'))
    };
    while !is_asleep() {
        std::thread::yield_now();
    }
}

fn wait_for(world: &World, rank: usize) -> Result<(), mpj::Error> {
    world.recv_vec::<u8>(rank, ANY_TAG).map(drop)
}

/// Does what a rank must not do.
fn misbehave(how: &str) {
    match how {
        "exit0" => std::process::exit(0),
        "exit3" => {
            eprintln!("no space is left on the disk");
            std::process::exit(3)
        }
        "panic" => panic!("rank {} goes overboard", future_rank()),
        "hushed" => {
            std::panic::set_hook(Box::new(|_| ()));
            panic!("nobody hears this");
        }
        "abort" => std::process::abort(),
        "kill" => {
            let killer = std::process::Command::new("sh").args(["-c", "kill -9 $PPID"]).status();
            unreachable!("this process is killed first: {killer:?}");
        }
        _ => panic!("unknown misbehaviour {how}"),
    }
}
