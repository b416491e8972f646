//! Puts and gets that a network carries out: which do, and that their targets need not help.

#![expect(unsafe_code, reason = "describes memory of the tests as regions")]

use std::sync::{Arc, Barrier};

use mpicore::datatype::Datatype;
use mpicore::op::{ElementKind, Predefined};
use mpicore::{Communicator, Error, LockKind, Process, Target, Window};
use mpj_tests::conformance::collective::job::{self, Answer};
use mpj_tests::conformance::network::Network;
use mpj_tests::conformance::ranks::{self, Watched};
use mpjdev::{BackendChoice, Options, RecvRegion, SendRegion, wireup};

/// How many puts and gets of this rank the network was to carry out.
pub fn accesses(world: &Communicator) -> Answer<u64> {
    Ok(world.device().stats().map_err(wrong)?.accesses)
}

fn wrong(error: impl ToString) -> String {
    error.to_string()
}

fn number() -> Datatype {
    Datatype::predefined(ElementKind::U64)
}

/// A number of rank 1.
fn at(place: i64, number: &Datatype) -> Target<'_> {
    Target { rank: 1, displacement: place, count: 1, datatype: number }
}

fn from(value: &u64) -> SendRegion {
    // SAFETY: G1: the callers keep the number until the window has been flushed.
    unsafe { SendRegion::new(std::ptr::from_ref(value).cast(), 8) }
}

fn into(value: &mut u64) -> RecvRegion {
    // SAFETY: G2: likewise.
    unsafe { RecvRegion::new(std::ptr::from_mut(value).cast(), 8) }
}

/// Puts numbers into the window of rank 1, the second one where the first one is, and gets them, in a passive epoch by
/// requests, too. Returns what has come back.
fn there_and_back(
    world: &Communicator,
    window: &Window,
    (value, is_passive): (u64, bool),
) -> Result<[u64; 2], Error> {
    let (number, first, mut back) = (&number(), value + 1, [0; 2]);
    window.put(from(&first).into(), at(0, number))?;
    window.put(from(&value).into(), at(0, number))?;
    let [one, other] = &mut back;
    window.get(into(one).into(), at(0, number))?;
    if is_passive {
        let put = window.rput(from(&first).into(), at(1, number))?;
        world.device().iwait(put)?;
        let get = window.rget(into(other).into(), at(1, number))?;
        world.device().iwait(get)?;
        window.flush(Some(1))?;
    } else {
        window.put(from(&first).into(), at(1, number))?;
        window.get(into(other).into(), at(1, number))?;
    }
    window.settle_local(Some(1))?;
    Ok(back)
}

/// The kinds of epochs in which rank 0 accesses rank 1.
#[derive(Debug, Clone, Copy)]
enum Epoch {
    Fence,
    Start,
    Lock(LockKind),
    LockAll,
    Unchecked,
}

impl Epoch {
    fn open(self, window: &Window, is_origin: bool) -> Result<(), Error> {
        let group = window.group();
        match self {
            Self::Fence => window.fence(true, true),
            Self::Start if is_origin => window.start(&group.incl(&[1])?),
            Self::Start => window.post(&group.incl(&[0])?),
            _ if !is_origin => Ok(()),
            Self::Lock(kind) => window.lock(kind, 1, true),
            Self::LockAll => window.lock_all(true),
            Self::Unchecked => window.lock(LockKind::Shared, 1, false),
        }
    }

    fn close(self, window: &Window, is_origin: bool) -> Result<(), Error> {
        match self {
            Self::Fence => window.fence(true, false),
            Self::Start if is_origin => window.complete(),
            Self::Start => window.wait(),
            _ if !is_origin => Ok(()),
            Self::LockAll => window.unlock_all(),
            Self::Lock(_) | Self::Unchecked => window.unlock(1),
        }
    }

    fn is_passive(self) -> bool {
        !matches!(self, Self::Fence | Self::Start)
    }
}

/// A long put waits for its lock, and then needs no message.
#[test]
fn a_long_put_waits_for_its_lock() {
    job::run_over(Network::OneSidedHosts, 2, BackendChoice::Eager, |world| {
        const NUMBERS: usize = 4096;
        let window = Window::allocate(world, 8 * NUMBERS, 8).map_err(wrong)?;
        if world.rank() == 0 {
            let values = vec![7_u64; NUMBERS];
            // SAFETY: G1: the numbers stay until the window is unlocked.
            let all = unsafe { SendRegion::new(values.as_ptr().cast(), 8 * NUMBERS) };
            let number = &number();
            let target = Target { count: NUMBERS as i64, ..at(0, number) };
            let before = accesses(world)?;
            window.lock(LockKind::Exclusive, 1, true).map_err(wrong)?;
            window.put(all.into(), target).map_err(wrong)?;
            window.unlock(1).map_err(wrong)?;
            if accesses(world)? != before + 1 {
                return Err("the put was a message".to_owned());
            }
        }
        world.run_barrier().map_err(wrong)?;
        if world.rank() == 1 {
            let mut last = 0;
            window.lock(LockKind::Shared, 1, true).map_err(wrong)?;
            let number = &number();
            let target = at(NUMBERS as i64 - 1, number);
            window.get(into(&mut last).into(), target).map_err(wrong)?;
            window.unlock(1).map_err(wrong)?;
            if last != 7 {
                return Err(format!("{last} has come"));
            }
        }
        window.free().map_err(wrong)
    });
}

/// Rank 1 waits for rank 0 without a call of the library, while rank 0 writes and reads its window.
#[test]
fn a_target_that_makes_no_progress_is_accessed() {
    let meeting = Arc::new(Barrier::new(2));
    let epochs = [
        Epoch::Fence,
        Epoch::Start,
        // Now the end of an epoch of start is known only by the next post.
        Epoch::Start,
        Epoch::Lock(LockKind::Shared),
        Epoch::Lock(LockKind::Exclusive),
        Epoch::LockAll,
        Epoch::Unchecked,
    ];
    job::run_over(Network::OneSidedHosts, 2, BackendChoice::Eager, move |world| {
        let window = Window::allocate(world, 64, 8).map_err(wrong)?;
        let is_origin = world.rank() == 0;
        for (value, epoch) in (10..).step_by(10).zip(epochs) {
            let wrong = |error: Error| format!("{epoch:?}: {error}");
            epoch.open(&window, is_origin).map_err(wrong)?;
            if is_origin && epoch.is_passive() {
                // The target grants the lock, and says so.
                window.put(from(&value).into(), at(2, &number())).map_err(wrong)?;
                window.flush(Some(1)).map_err(wrong)?;
            }
            world.run_barrier().map_err(wrong)?;
            meeting.wait();
            if is_origin {
                let before = accesses(world)?;
                let back = there_and_back(world, &window, (value, epoch.is_passive()));
                meeting.wait();
                let (back, since) = (back.map_err(wrong)?, accesses(world)? - before);
                if (back, since) != ([value, value + 1], 5) {
                    return Err(format!("{epoch:?}: {back:?} came back by {since} accesses"));
                }
            } else {
                meeting.wait();
            }
            epoch.close(&window, is_origin).map_err(wrong)?;
        }
        window.free().map_err(wrong)
    });
}

/// Operations on one place keep their order, whether they are messages or the network's.
#[test]
fn accesses_and_messages_keep_their_order() {
    let numbers = job::run_over(Network::OneSidedHosts, 2, BackendChoice::Eager, |world| {
        let window = Window::allocate(world, 64, 8).map_err(wrong)?;
        let (number, mut fetched) = (&number(), [0_u64; 4]);
        if world.rank() == 0 {
            let play = |fetched: &mut [u64; 4]| {
                let [one, two, three, four] = fetched;
                let (five, seven, nine) = (5, 7, 9);
                let sum =
                    |value| window.accumulate(from(value).into(), Predefined::Sum, at(0, number));
                window.lock(LockKind::Exclusive, 1, true)?;
                sum(&five)?;
                window.get(into(one).into(), at(0, number))?;
                window.flush(Some(1))?;
                window.put(from(&seven).into(), at(0, number))?;
                window.get(into(two).into(), at(0, number))?;
                sum(&five)?;
                window.get(into(three).into(), at(0, number))?;
                window.flush(Some(1))?;
                window.put(from(&nine).into(), at(0, number))?;
                sum(&nine)?;
                window.unlock(1)?;
                window.lock(LockKind::Shared, 1, true)?;
                window.get(into(four).into(), at(0, number))?;
                window.unlock(1)
            };
            play(&mut fetched).map_err(wrong)?;
        }
        window.free().map_err(wrong)?;
        Ok((fetched, accesses(world)?))
    });
    let (fetched, accesses) = numbers[0];
    assert_eq!((fetched, accesses), ([5, 7, 12, 18], 3));
}

/// The loss of the target ends what the network does there, and calls say who was lost.
#[test]
fn a_lost_target_ends_accesses() {
    let adapters = Network::OneSidedHosts.adapters(2, 1);
    let devices = wireup::over(adapters, &Options::default()).expect("a job of threads");
    let process = |mut devices: Vec<_>| Arc::new(Process::new(devices.remove(0), ()));
    let processes: Vec<Arc<Process>> = devices.into_iter().map(process).collect();
    let watched: Vec<_> = processes.iter().map(|rank| rank.clone() as Arc<dyn Watched>).collect();
    let meeting = Barrier::new(2);
    ranks::run(&watched, move |number_of_rank| {
        let world = Communicator::world(processes[number_of_rank].clone()).map_err(wrong)?;
        let window = Window::allocate(&world, 64, 8).map_err(wrong)?;
        if world.rank() == 1 {
            meeting.wait();
            world.device().abort();
            meeting.wait();
            return Ok(());
        }
        let (number, mut fetched, value) = (&number(), [0; 64], 7);
        window.lock(LockKind::Shared, 1, false).map_err(wrong)?;
        window.put(from(&value).into(), at(0, number)).map_err(wrong)?;
        window.flush(Some(1)).map_err(wrong)?;
        meeting.wait();
        meeting.wait();
        // The first ones may find the loss, or begin before it is noticed.
        let begun = fetched
            .iter_mut()
            .try_for_each(|fetched| window.get(into(fetched).into(), at(0, number)));
        let ended = begun.and_then(|()| window.unlock(1));
        match ended.map_err(|error| error.lost_rank()) {
            Err(Some(1)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    });
}
