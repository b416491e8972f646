//! A rank of the fault campaign: carries out its stage until the fault comes.
//!
//! The arguments are those of [`Fault::words`]. Before it fails, the victim prints its process number, so that the test
//! can compare it with what the launcher says. Stages never end by themselves, except those in which nothing fails.

#![allow(clippy::disallowed_methods, reason = "ranks end in every way there is")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program talks to its user")]

use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpj::World;
use mpj_tests::faults::{Fault, How, Stage};
use rustix::process::{Pid, Signal, getpid, getppid, kill_process};
use transport_lapi::config::inherited;

/// Turns of a stage in which nothing fails.
const TURNS: usize = 40;
/// How long a rank that has sent an envelope waits before it asks for the data of its neighbour.
const BEFORE_GET: Duration = Duration::from_millis(15);
/// A tag that no stage uses.
const PIDS: i32 = 99;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(fault) = Fault::from_words(&words) else {
        eprintln!("victim STAGE HOW NUMBER RANK MICROS");
        return ExitCode::from(2);
    };
    match take_part(fault) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn take_part(fault: Fault) -> Result<(), mpj::Error> {
    let rank = inherited("MPJ_RANK").unwrap_or_default();
    let is_victim = rank.to_str() == Some(&fault.rank.to_string());
    if is_victim {
        println!("victim {}", std::process::id());
    }
    let mut fuse = Fuse { fault, is_victim, lit: None };
    if fault.stage == Stage::Init {
        fuse.light();
        fuse.wait_to_panic(0);
    }
    let world = mpj::init()?;
    let pauses = if fault.how == How::Pause { exchange_pids(&world, fault)? } else { None };
    fuse.light();
    act(world, &fuse)?;
    // A stopped victim needs a neighbour that continues it.
    pauses.map_or(Ok(()), JoinHandle::join).expect("the pauses do not panic");
    Ok(())
}

fn act(world: World, fuse: &Fuse) -> Result<(), mpj::Error> {
    match fuse.fault.stage {
        Stage::Eager => eager(&world, fuse),
        Stage::BeforeGet => before_get(&world, fuse),
        Stage::DuringGet => fetched(&world, fuse, 2 << 20, |fuse| fuse.check()),
        Stage::AfterGet => fetched(&world, fuse, 64 << 10, Fuse::burn),
        Stage::Init | Stage::Barrier => barriers(&world, fuse),
        Stage::Exit => exit(world, fuse),
    }
}

/// Makes the victim fail at its time.
struct Fuse {
    fault: Fault,
    is_victim: bool,
    /// When the stage began.
    lit: Option<Instant>,
}

impl Fuse {
    /// Begins the stage. Another thread causes a fault that may come in the middle of a call.
    fn light(&mut self) {
        let Fault { how, micros, stage, .. } = self.fault;
        if !self.is_victim || self.lit.is_some() {
            return;
        }
        self.lit = Some(Instant::now());
        if how != How::Panic && how != How::Pause && stage != Stage::AfterGet {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_micros(micros));
                fail(how);
            });
        }
    }

    fn is_due(&self) -> bool {
        self.lit.is_some_and(|lit| lit.elapsed() >= Duration::from_micros(self.fault.micros))
    }

    /// Panics when it is time.
    fn check(&self) {
        if self.fault.how == How::Panic && self.is_due() {
            fail(How::Panic);
        }
    }

    /// Fails when it is time, in the thread that communicates.
    fn burn(&self) {
        if self.fault.how != How::Pause && self.is_due() {
            fail(self.fault.how);
        }
    }

    /// Waits for the time to panic if the time is even or odd, as `parity` says.
    fn wait_to_panic(&self, parity: u64) {
        if self.is_victim && self.fault.how == How::Panic && self.fault.micros % 2 == parity {
            std::thread::sleep(Duration::from_micros(self.fault.micros));
            fail(How::Panic);
        }
    }

    /// Whether a stage goes on after this number of turns.
    fn goes_on(&self, turn: usize) -> bool {
        self.fault.how != How::Pause || turn < TURNS
    }
}

fn fail(how: How) {
    match how {
        How::Signal(signal) => {
            let signal = Signal::from_named_raw(signal).expect("the campaign names signals");
            kill_process(getpid(), signal).expect("a process may signal itself");
            // Whichever thread takes the signal, the process ends.
            std::thread::sleep(Duration::from_secs(60));
        }
        How::Code(code) => std::process::exit(code),
        How::Panic => panic!("the victim goes overboard"),
        How::Abort => std::process::abort(),
        How::Call(code) => mpj::abort(code),
        How::Orphan => {
            let launcher = getppid().expect("a rank has a parent");
            kill_process(launcher, Signal::KILL).expect("the launcher of this test");
            std::thread::sleep(Duration::from_secs(60));
        }
        How::Pause => {}
    }
}

/// The victim sends its process number to its neighbour, which stops it again and again while both carry out the
/// stage.
fn exchange_pids(world: &World, fault: Fault) -> Result<Option<JoinHandle<()>>, mpj::Error> {
    let neighbour = (fault.rank + 1) % world.size();
    if world.rank() == fault.rank {
        world.send(&[std::process::id()], neighbour, PIDS)?;
    } else if world.rank() == neighbour {
        let mut pid = [0u32];
        world.recv(&mut pid, fault.rank, PIDS)?;
        let victim = Pid::from_raw(pid[0] as i32).expect("a process number");
        return Ok(Some(std::thread::spawn(move || {
            for pause in [3, 12, 1] {
                std::thread::sleep(Duration::from_micros(fault.micros));
                // The victim may have ended already.
                let _ = kill_process(victim, Signal::STOP);
                std::thread::sleep(Duration::from_millis(pause));
                let _ = kill_process(victim, Signal::CONT);
            }
        })));
    }
    Ok(None)
}

/// The ranks above and below, in a ring.
fn neighbours(world: &World) -> (usize, usize) {
    let (rank, size) = (world.rank(), world.size());
    ((rank + 1) % size, (rank + size - 1) % size)
}

fn eager(world: &World, fuse: &Fuse) -> Result<(), mpj::Error> {
    let (up, down) = neighbours(world);
    let data = vec![7u8; 60_000];
    let mut room = data.clone();
    for turn in 0.. {
        if !fuse.goes_on(turn) {
            break;
        }
        fuse.check();
        let len = [8, 300, 5_000, 60_000][turn % 4];
        world.sendrecv(&data[..len], up, 0, &mut room, down, 0)?;
    }
    Ok(())
}

/// Every rank announces a long message, and fetches its neighbour's only after a while.
fn before_get(world: &World, fuse: &Fuse) -> Result<(), mpj::Error> {
    let (up, down) = neighbours(world);
    let mut room = vec![0u8; 1 << 20];
    for turn in 0.. {
        if !fuse.goes_on(turn * 10) {
            break;
        }
        let sent = world.isend(vec![7u8; 1 << 20], up, 0)?;
        fuse.wait_to_panic(fuse.fault.micros % 2);
        std::thread::sleep(BEFORE_GET);
        world.recv(&mut room, down, 0)?;
        drop(sent.wait()?);
    }
    Ok(())
}

/// Messages of `len` bytes go around the ring; `between` is called when one has come.
fn fetched(
    world: &World,
    fuse: &Fuse,
    len: usize,
    between: impl Fn(&Fuse),
) -> Result<(), mpj::Error> {
    let (up, down) = neighbours(world);
    let data = vec![7u8; len];
    let mut room = data.clone();
    for turn in 0.. {
        if !fuse.goes_on(turn) {
            break;
        }
        world.sendrecv(&data, up, 0, &mut room, down, 0)?;
        between(fuse);
    }
    Ok(())
}

fn barriers(world: &World, fuse: &Fuse) -> Result<(), mpj::Error> {
    for turn in 0.. {
        if !fuse.goes_on(turn) {
            break;
        }
        fuse.check();
        world.barrier()?;
    }
    Ok(())
}

/// The victim fails while it waits for the others to leave, or when it has left.
fn exit(world: World, fuse: &Fuse) -> Result<(), mpj::Error> {
    fuse.wait_to_panic(0);
    world.finish()?;
    fuse.wait_to_panic(1);
    if fuse.is_victim && fuse.fault.how != How::Pause {
        std::thread::sleep(Duration::from_secs(60));
    }
    Ok(())
}
