//! Random programs, whose results an oracle knows.
//!
//! A program has rounds. In a round, each number of each window has a role: it may be written by one rank, it is added to
//! by any ranks, one rank makes operations of the accumulate family on it, which have an order, or it is only read. So
//! everything that is fetched, and what windows contain after the round, follows from the program. Several threads of a rank
//! make its operations, all those on one number by one thread. They flush now and then, where it is allowed. Half of the
//! operations on one number try the short path first, as the bindings do.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use mpicore::datatype::Datatype;
use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, ErrorClass, LockKind, Target, Window};
use mpjdev::{Sink, Source};
use transport_lapi::{ForeignBytes, Unpack};

use crate::conformance::Numbers;

mod made;

pub use made::Kind;
use made::Made;

/// Numbers in a window.
const NUMBERS: usize = 12;

/// Rounds of a program.
const ROUNDS: usize = 6;

/// Numbers that an operation fetches.
#[derive(Clone)]
struct Fetched(Arc<Mutex<Vec<u8>>>);

impl Fetched {
    fn of(numbers: usize) -> (Self, Sink) {
        let fetched = Self(Arc::new(Mutex::new(vec![0xff; 8 * numbers])));
        let sink = Sink::layout(fetched.clone());
        (fetched, sink)
    }

    /// Notes the numbers that the short path has fetched.
    fn note(&self, numbers: Vec<u64>) {
        let bytes = numbers.into_iter().flat_map(u64::to_ne_bytes).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    fn numbers(&self) -> Vec<u64> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = |bytes: &[u8]| bytes.try_into().map(u64::from_ne_bytes).unwrap_or_default();
        bytes.chunks_exact(8).map(number).collect()
    }
}

impl Unpack for Fetched {
    fn size(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        from.copy_to(&mut bytes[offset..]);
    }
}

fn number() -> Datatype {
    Datatype::predefined(ElementKind::U64)
}

fn source(numbers: &[u64]) -> Source {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect::<Vec<_>>().into()
}

/// So many numbers of a rank from a displacement on.
fn at(rank: u32, displacement: i64, count: i64, datatype: &Datatype) -> Target<'_> {
    Target { rank, displacement, count, datatype }
}

/// Returns the numbers of this rank's own window.
fn own(window: &Made) -> Result<Vec<u64>, Error> {
    let (fetched, sink) = Fetched::of(NUMBERS);
    window.lock(LockKind::Shared, window.rank(), true)?;
    window.get(sink, window.at(window.rank(), 0, NUMBERS as i64, &number()))?;
    window.unlock(window.rank())?;
    Ok(fetched.numbers())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    WrittenBy(usize),
    AddedTo,
    CombinedBy(usize),
    Read,
}

/// Draws a role for each number of each window.
fn roles(dice: &mut Numbers, ranks: usize) -> Vec<[Role; NUMBERS]> {
    let mut role = || match dice.below(4) {
        0 => Role::WrittenBy(dice.below(ranks)),
        1 => Role::AddedTo,
        2 => Role::CombinedBy(dice.below(ranks)),
        _ => Role::Read,
    };
    (0..ranks).map(|_| std::array::from_fn(|_| role())).collect()
}

/// Opens an epoch of this kind for accesses to all ranks, or to one.
fn open(kind: usize, window: &Window, target: u32) -> Result<(), Error> {
    match kind {
        0 => window.fence(true, true),
        1 => {
            window.post(window.group())?;
            window.start(window.group())
        }
        2 => window.lock_all(true),
        3 => window.lock(LockKind::Shared, target, true),
        _ => window.lock(LockKind::Exclusive, target, true),
    }
}

/// Closes it.
fn close(kind: usize, window: &Window, target: u32) -> Result<(), Error> {
    match kind {
        0 => window.fence(true, false),
        1 => {
            window.complete()?;
            window.wait()
        }
        2 => window.unlock_all(),
        _ => window.unlock(target),
    }
}

/// An access whose result is known when the epoch has ended.
type Expected = (Fetched, Vec<u64>);

/// An operation of a rank.
type Operation = Box<dyn FnOnce(&Made) -> Result<(), Error> + Send>;

/// The operations of each thread of a rank.
type OfThreads = [Vec<Operation>; 3];

/// Makes the operations of each thread. With a target, which is locked, they flush their accesses to it now and then.
fn operate(
    window: &Made,
    of_threads: OfThreads,
    (flushes, target): (Numbers, Option<u32>),
) -> Result<(), Error> {
    let of_thread = |(thread, operations): (u64, Vec<Operation>)| {
        let mut dice = Numbers(flushes.0 ^ thread << 48);
        operations.into_iter().try_for_each(|operation| {
            operation(window)?;
            match (dice.below(6), target) {
                (0, Some(target)) => window.flush(Some(target)),
                (1, Some(target)) => window.flush_local(Some(target)),
                (2, Some(_)) => window.flush(None),
                _ => Ok(()),
            }
        })
    };
    thread::scope(|scope| {
        let those = (0..).zip(of_threads).filter(|(_, operations)| !operations.is_empty());
        let started: Vec<_> = those.map(|one| scope.spawn(|| of_thread(one))).collect();
        let ended = started.into_iter().map(|thread| thread.join().expect("no operation panics"));
        ended.fold(Ok(()), Result::and)
    })
}

/// An operation of the accumulate family on a number; without `op`, compare_and_swap.
#[derive(Clone, Copy)]
struct Combination {
    op: Option<Predefined>,
    value: u64,
    compare: u64,
    /// What is there afterwards.
    after: u64,
    /// Whether it may be made on the lower half of the number.
    is_narrow: bool,
}

impl Combination {
    /// Draws one.
    fn of(dice: &mut Numbers, was: u64) -> Self {
        let value = dice.below(1000) as u64;
        let ops = [
            Predefined::Sum,
            Predefined::Max,
            Predefined::Bxor,
            Predefined::Replace,
            Predefined::NoOp,
        ];
        let op = ops.get(dice.below(ops.len() + 1)).copied();
        let compare = if dice.below(2) == 0 { was } else { was + 1 };
        let after = match op {
            Some(Predefined::Sum) => was + value,
            Some(Predefined::Max) => was.max(value),
            Some(Predefined::Bxor) => was ^ value,
            Some(Predefined::Replace) => value,
            None if compare == was => value,
            _ => was,
        };
        // The numbers are small.
        let is_narrow = cfg!(target_endian = "little") && dice.below(2) == 0;
        Self { op, value, compare, after, is_narrow }
    }
}

/// Writes numbers of a target: one by one by the short path, or by one operation with a list of places.
fn put_each(
    (target, is_short): (u32, bool),
    places: Vec<usize>,
    values: Vec<u64>,
    list: Datatype,
) -> Operation {
    Box::new(move |window| {
        let mut shortly = places.iter().zip(&values);
        if is_short && shortly.all(|(place, value)| window.put_shortly(target, *place, *value)) {
            return Ok(());
        }
        window.put(source(&values), window.at(target, 0, 1, &list))
    })
}

/// Reads numbers of a target likewise.
fn get_each(
    (target, is_short): (u32, bool),
    places: Vec<usize>,
    list: Datatype,
    (fetched, sink): (Fetched, Sink),
) -> Operation {
    Box::new(move |window| {
        let numbers = if is_short { window.get_shortly(target, &places)? } else { None };
        match numbers {
            Some(numbers) => fetched.note(numbers),
            None => window.get(sink, window.at(target, 0, 1, &list))?,
        }
        Ok(())
    })
}

/// Adds to a number of a target.
fn add((target, is_short): (u32, bool), place: usize, more: u64) -> Operation {
    Box::new(move |window| {
        if is_short && window.add_shortly(target, place, more)? {
            return Ok(());
        }
        window.on_number(target, place, |here| {
            window.accumulate(source(&[more]), Predefined::Sum, here)
        })
    })
}

/// Makes an operation on a number of a target, and fetches what was there.
fn combine(
    (target, is_short): (u32, bool),
    place: usize,
    combination: Combination,
    (fetched, sink): (Fetched, Sink),
) -> Operation {
    Box::new(move |window| {
        if is_short {
            if let Some(was) = window.combine_shortly(target, place, combination)? {
                fetched.note(vec![was]);
                return Ok(());
            }
        }
        let Combination { op, value, compare, .. } = combination;
        let from = source(&[value]);
        window.on_number(target, place, |here| match op {
            Some(op) => window.get_accumulate(from, sink, op, here),
            None => window.compare_and_swap(from, source(&[compare]), sink, here),
        })
    })
}

/// Returns the accesses of a rank to a target, and what they fetch, and applies those of all ranks to the oracle's window of
/// the target.
fn access(
    dice: &mut Numbers,
    window: &Made,
    (target, now): (u32, &mut [u64; NUMBERS]),
    roles: &[Role; NUMBERS],
) -> Result<(OfThreads, Vec<Expected>), Error> {
    let (number, own, ranks) = (number(), window.rank() as usize, window.group().size() as usize);
    let (before, mut expected, mut of_threads) = (*now, Vec::new(), OfThreads::default());
    let is_short = dice.below(2) == 0;
    // Which thread has a number; the same ranks draw the same.
    // Many ranks have one thread each: more would wait for processors most of the time.
    let threads = if ranks <= 3 { 1 + dice.below(of_threads.len()) } else { 1 };
    // All that a rank writes, by one operation with a list of places; all that is only read, likewise.
    for rank in 0..ranks {
        let places: Vec<_> =
            (0..NUMBERS).filter(|place| roles[*place] == Role::WrittenBy(rank)).collect();
        let values: Vec<_> = places.iter().map(|_| dice.below(1000) as u64).collect();
        places.iter().zip(&values).for_each(|(place, value)| now[*place] = *value);
        if rank == own {
            let displacements: Vec<_> = places.iter().map(|place| *place as i64).collect();
            let list = Datatype::indexed_block(1, &displacements, &number)?;
            of_threads[0].push(put_each((target, is_short), places, values, list));
        }
    }
    let read: Vec<_> = (0..NUMBERS).filter(|place| roles[*place] == Role::Read).collect();
    let (fetched, sink) = Fetched::of(read.len());
    let displacements: Vec<_> = read.iter().map(|place| *place as i64).collect();
    let list = Datatype::indexed_block(1, &displacements, &number)?;
    expected.push((fetched.clone(), read.iter().map(|place| before[*place]).collect()));
    of_threads[1 % threads].push(get_each((target, is_short), read, list, (fetched, sink)));
    for (place, role) in roles.iter().enumerate() {
        let operations = &mut of_threads[place % threads];
        match *role {
            Role::AddedTo => {
                for rank in 0..ranks {
                    let more = dice.below(50) as u64;
                    now[place] += more;
                    if rank == own {
                        operations.push(add((target, is_short), place, more));
                    }
                }
            }
            Role::CombinedBy(rank) => {
                for _ in 0..dice.below(4) {
                    let was = now[place];
                    let combination = Combination::of(dice, was);
                    now[place] = combination.after;
                    if rank != own {
                        continue;
                    }
                    let (fetched, sink) = Fetched::of(1);
                    expected.push((fetched.clone(), vec![was]));
                    let into = (fetched, sink);
                    operations.push(combine((target, is_short), place, combination, into));
                }
            }
            Role::WrittenBy(_) | Role::Read => {}
        }
    }
    Ok((of_threads, expected))
}

/// Lets other ranks go first, now and then.
fn pause(dice: &mut Numbers) {
    if dice.below(8) == 0 {
        std::thread::sleep(Duration::from_micros(dice.below(200) as u64));
    }
}

/// Plays the program with this seed on a rank.
///
/// # Errors
/// What is wrong.
pub fn play(world: &Communicator, kind: Kind, seed: u64) -> Result<(), String> {
    let wrong = |error: Error| error.to_string();
    let (mut dice, ranks) = (Numbers(seed), world.size() as usize);
    let mut pauses = Numbers(seed ^ u64::from(world.rank() + 1) << 32);
    let window = Made::new(world, 8 * NUMBERS, kind).map_err(wrong)?;
    let (mut windows, mut expected) = (vec![[0; NUMBERS]; ranks], Vec::new());
    for round in 0..ROUNDS {
        let (roles, kind) = (roles(&mut dice, ranks), dice.below(5));
        let is_of_one = kind > 2;
        for target in 0..ranks as u32 {
            pause(&mut pauses);
            if is_of_one || target == 0 {
                open(kind, &window, target).map_err(wrong)?;
            }
            pause(&mut pauses);
            let now = (target, &mut windows[target as usize]);
            let (of_threads, fetched) =
                access(&mut dice, &window, now, &roles[target as usize]).map_err(wrong)?;
            let flushes = Numbers(pauses.below(usize::MAX) as u64);
            operate(&window, of_threads, (flushes, (kind > 1).then_some(target))).map_err(wrong)?;
            expected.extend(fetched);
            if is_of_one || target as usize == ranks - 1 {
                close(kind, &window, target).map_err(wrong)?;
                let is_wrong = |(fetched, numbers): &Expected| fetched.numbers() != *numbers;
                if let Some((fetched, numbers)) = expected.drain(..).find(is_wrong) {
                    let fetched = fetched.numbers();
                    return Err(format!(
                        "round {round}: fetched {fetched:?} instead of {numbers:?}"
                    ));
                }
            }
        }
        world.run_barrier().map_err(wrong)?;
        let (own, due) = (own(&window).map_err(wrong)?, windows[world.rank() as usize]);
        if own != due {
            return Err(format!("round {round}: the window has {own:?} instead of {due:?}"));
        }
        world.run_barrier().map_err(wrong)?;
    }
    window.window.free().map_err(wrong)
}

/// Plays the program with this seed in a job that looks for mistakes, which finds none. Then two ranks access the same
/// number in one epoch of fences, or of start, at least one of them by a put, and all ranks are told, or the target.
///
/// # Errors
/// What is wrong.
pub fn play_planted(world: &Communicator, kind: Kind, seed: u64) -> Result<(), String> {
    play(world, kind, seed)?;
    let wrong = |error: Error| error.to_string();
    let (mut dice, ranks) = (Numbers(!seed), world.size() as usize);
    let window = Made::new(world, 8 * NUMBERS, kind).map_err(wrong)?;
    let (epoch, target, place) = (dice.below(2), dice.below(ranks) as u32, dice.below(NUMBERS));
    let first = dice.below(ranks);
    let second = (first + 1 + dice.below(ranks - 1)) % ranks;
    // What is read in an epoch of start may have been read before others write.
    let other = dice.below(if epoch == 0 { 3 } else { 2 });
    open(epoch, &window, 0).map_err(wrong)?;
    pause(&mut Numbers(seed ^ u64::from(world.rank() + 1) << 32));
    let rank = world.rank() as usize;
    let accessed = window.on_number(target, place, |here| match other {
        _ if rank == first => window.put(source(&[1]), here),
        _ if rank != second => Ok(()),
        0 => window.put(source(&[2]), here),
        1 => window.accumulate(source(&[2]), Predefined::Sum, here),
        _ => window.get(Fetched::of(1).1, here),
    });
    accessed.map_err(wrong)?;
    let closed = close(epoch, &window, 0);
    let is_told = epoch == 0 || world.rank() == target;
    let names = |rank: usize| format!("rank {rank} calls ");
    match closed {
        Ok(()) if !is_told => {}
        Err(error)
            if is_told
                && error.class() == ErrorClass::RmaConflict
                && [first, second]
                    .map(names)
                    .iter()
                    .all(|name| error.to_string().contains(name)) => {}
        other => return Err(format!("ranks {first} and {second} at {target}: {other:?}")),
    }
    window.window.free().map_err(wrong)
}

/// Numbers that are long data.
const LONG: usize = 10_000;

/// Puts, adds to and gets long data in epochs of each kind, while all ranks do, to all ranks.
///
/// # Errors
/// What is wrong.
pub fn play_long(world: &Communicator, kind: Kind) -> Result<(), String> {
    let wrong = |error: Error| error.to_string();
    let (number, ranks, own) = (&number(), world.size(), world.rank());
    let bytes = 8 * LONG * ranks as usize;
    let window = Made::new(world, bytes, kind).map_err(wrong)?;
    let value =
        |kind: usize, from: u32, to: u32| 1000 * kind as u64 + 10 * u64::from(from) + u64::from(to);
    for kind in 0..5 {
        let mut expected: Vec<Expected> = Vec::new();
        for step in 0..3 {
            for target in 0..ranks {
                if kind > 2 || target == 0 {
                    open(kind, &window, target).map_err(wrong)?;
                }
                let here = window.at(target, (own as usize * LONG) as i64, LONG as i64, number);
                let numbers = vec![value(kind, own, target); LONG];
                let done = match step {
                    0 => window.put(source(&numbers), here),
                    1 => window.accumulate(source(&numbers), Predefined::Sum, here),
                    _ => {
                        let (fetched, sink) = Fetched::of(LONG);
                        expected.push((fetched, vec![2 * value(kind, own, target); LONG]));
                        window.get(sink, here)
                    }
                };
                done.map_err(wrong)?;
                if kind > 2 || target == ranks - 1 {
                    close(kind, &window, target).map_err(wrong)?;
                }
            }
            world.run_barrier().map_err(wrong)?;
        }
        if expected.iter().any(|(fetched, numbers)| fetched.numbers() != *numbers) {
            return Err(format!("wrong long data in epochs of kind {kind}"));
        }
    }
    window.window.free().map_err(wrong)
}
