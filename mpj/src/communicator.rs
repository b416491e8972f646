//! Communicators: a group of ranks, and a context that keeps their messages apart from all others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mpjdev::wireup::Native;
use mpjdev::{CALL_NUMBERS, Device, Members, Stats};

use crate::error::Error;
use crate::rank_device::RankDevice;

/// Ranks that talk to each other in a context of their own (MPI-4 chapter 7). All methods can be
/// called by several threads at once.
#[derive(Clone)]
pub struct Communicator {
    pub(crate) device: Arc<RankDevice>,
    /// Context of point-to-point messages; the next number is that of collective ones.
    pub(crate) context: u32,
    /// The first context that is free, or [`NONE_LEFT`]. Only rank 0 gives contexts out: it is in every
    /// communicator, so none is given twice.
    contexts: Arc<AtomicU32>,
    /// Collective calls on this communicator so far, whose number is the tag of their messages.
    calls: Arc<AtomicU32>,
}

/// All ranks of the job: who belongs to every communicator.
struct Everybody {
    size: usize,
    name: &'static str,
}

impl Members for Everybody {
    fn contains(&self, rank: u32) -> bool {
        (rank as usize) < self.size
    }

    fn ranks(&self) -> Vec<u32> {
        (0..self.size as u32).collect()
    }

    fn name(&self) -> String {
        self.name.to_owned()
    }
}

/// Contexts that one communicator takes.
const CONTEXTS_EACH: u32 = 2;
/// Stands for the context of a communicator that cannot be made: it is the world's, which nobody else
/// gets, and what follows the last one in 32 bits.
const NONE_LEFT: u32 = 0;
/// Communicators for which there are contexts, that of the world included.
const MOST_COMMUNICATORS: u64 = (1 << 32) / CONTEXTS_EACH as u64;

impl Communicator {
    /// The communicators of all ranks: one for each context of theirs, in order.
    pub(crate) fn of_world(
        devices: Vec<Device<Native>>,
        get_report: &str,
    ) -> impl Iterator<Item = Self> {
        RankDevice::of_world(devices, get_report).map(|device| {
            let contexts = Arc::new(AtomicU32::new(CONTEXTS_EACH));
            let world =
                Self { device: Arc::new(device), context: 0, contexts, calls: Arc::default() };
            // A device that has failed says so in every call.
            let _ = world.register("world");
            world
        })
    }

    /// Says that collective calls on this communicator need every rank.
    fn register(&self, name: &'static str) -> Result<(), mpjdev::Error> {
        let everybody = Everybody { size: self.size(), name };
        self.device.set_members(self.collective_context(), Arc::new(everybody))
    }

    /// This process's rank: `0..size` (MPI_Comm_rank).
    pub fn rank(&self) -> usize {
        self.device.rank() as usize
    }

    /// How many ranks there are (MPI_Comm_size).
    pub fn size(&self) -> usize {
        self.device.size()
    }

    /// A communicator of the same ranks whose messages never match those of this one
    /// (MPI_Comm_dup). Collective: every rank calls it, in the same order.
    ///
    /// It belongs to the same context of the ranks (see [`crate::World::on_context`]). A job can make 2^31 - 1 of
    /// them in each, also if those made before are gone.
    ///
    /// # Errors
    /// As [`Communicator::send`]; [`Error::Contexts`], on every rank, when all were made. Those that there
    /// are stay usable then.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     let other = world.dup().unwrap();
    ///     if world.rank() == 0 {
    ///         world.send(&[1], 1, 0).unwrap();
    ///         other.send(&[2], 1, 0).unwrap();
    ///     } else {
    ///         let mut value = [0];
    ///         other.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [2]);
    ///         world.recv(&mut value, 0, 0).unwrap();
    ///         assert_eq!(value, [1]);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn dup(&self) -> Result<Self, Error> {
        match self.given_by_rank_0(|| self.take_contexts())? {
            NONE_LEFT => {
                let exhausted = Error::Contexts { most: MOST_COMMUNICATORS };
                self.device.answer(Err(exhausted))
            }
            context => {
                let (device, contexts) = (self.device.clone(), self.contexts.clone());
                let made = Self { device, context, contexts, calls: Arc::default() };
                self.device.answer(made.register(""))?;
                Ok(made)
            }
        }
    }

    /// The contexts of a new communicator, which nobody else gets; on rank 0.
    fn take_contexts(&self) -> u32 {
        let behind = |free| (free != NONE_LEFT).then(|| u32::wrapping_add(free, CONTEXTS_EACH));
        let taken = self.contexts.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind);
        taken.unwrap_or(NONE_LEFT)
    }

    /// Context of the messages that collective calls send.
    pub(crate) fn collective_context(&self) -> u32 {
        self.context + 1
    }

    /// The number of the collective call that begins, among those of this communicator.
    pub(crate) fn next_call(&self) -> i32 {
        (self.calls.fetch_add(1, Ordering::Relaxed) % CALL_NUMBERS) as i32
    }

    /// What the protocols did on this rank so far.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.device.answer(self.device.stats())
    }

    /// Both queues and the open requests of this rank as text.
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn dump(&self) -> Result<String, Error> {
        self.device.answer(self.device.dump())
    }

    /// How the rendezvous protocol reads another rank's memory: `process_vm_readv`, or another way
    /// and the reason for it. `MPJ_GET` chooses.
    pub fn get_report(&self) -> &str {
        &self.device.get_report
    }

    /// The message sizes in bytes, ascending, above which a message travels in another way: where
    /// the latency over the size may step. Where it does under a circumstance only is not among them:
    /// see [`mpjdev::Table::exceptions`].
    ///
    /// # Errors
    /// What made the device unusable.
    pub fn thresholds(&self) -> Result<Vec<mpjdev::Step>, Error> {
        self.device.answer(self.device.thresholds())
    }

    /// The protocol table: which protocol carries a message of which size.
    pub fn table(&self) -> &mpjdev::Table {
        self.device.table()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::local;

    /// How long a job may take.
    const LIMIT: Duration = Duration::from_secs(20);

    /// A job of three ranks whose counter of contexts is about to give out the last one.
    fn last_context(body: fn(&Communicator)) {
        let (done, outcome) = mpsc::channel();
        thread::spawn(move || {
            let outcome = local::run(3, |world| {
                world.contexts.store(u32::MAX - 1, Ordering::Relaxed);
                body(&world);
            });
            // Nobody listens any more after the limit.
            let _ = done.send(outcome);
        });
        outcome.recv_timeout(LIMIT).expect("the job ends").expect("no rank panics");
    }

    /// Rank 0 sends its number to all others, and gets theirs.
    fn exchange(within: &Communicator, number: u32) {
        for other in 1..within.size() {
            let mut got = [0];
            if within.rank() == 0 {
                within.send(&[number], other, 0).unwrap();
                within.recv(&mut got, other, 0).unwrap();
            } else if within.rank() == other {
                within.recv(&mut got, 0, 0).unwrap();
                within.send(&[number], 0, 0).unwrap();
            } else {
                continue;
            }
            assert_eq!(got, [number]);
        }
    }

    #[test]
    fn when_no_context_is_left_every_rank_is_told_and_what_there_is_goes_on() {
        last_context(|world| {
            let last = world.dup().unwrap();
            assert_eq!((last.context, last.collective_context()), (u32::MAX - 1, u32::MAX));
            for of in [world, &last, world] {
                let refusal = of.dup().map(|one| one.context).expect_err("no context is left");
                assert!(refusal.to_string().contains("2147483648 communicators"), "{refusal}");
            }
            if world.rank() == 0 {
                (1..3).for_each(|other| world.send(&[1], other, 0).unwrap());
                exchange(&last, 2);
            } else {
                exchange(&last, 2);
                let mut got = [0];
                world.recv(&mut got, 0, 0).unwrap();
                assert_eq!(got, [1], "messages of the world stay in it");
            }
            last.barrier().unwrap();
            world.barrier().unwrap();
        });
    }
}
