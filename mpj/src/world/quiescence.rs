//! The end of the calls of services when a rank leaves the job. Handlers may call services of other communicators and
//! contexts, so no services end before all are quiet: the thread of one context compares the counts of all services,
//! and those of the other contexts make progress meanwhile.
//!
//! The counts are compared over a communicator of all ranks that has services. All ranks know whether there is one. If
//! there is none, the services of each communicator are found quiet by themselves, in the order of communicators.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mpicore::Services;
use mpjdev::{Call, Ending, Error, Request, Status};

use crate::rank_device::RankDevice;
use crate::world::World;

/// What the contexts of a rank know of each other at its end.
pub(super) struct Quiescence<'w> {
    world: &'w World,
    /// The services of each context, which are gone when they have ended, with their communicators.
    all: Vec<Vec<Weak<Services>>>,
    /// The context that compares the counts, and its services that do.
    leader: Option<(usize, Weak<Services>)>,
    found: Mutex<Found<'w>>,
}

#[derive(Default)]
struct Found<'w> {
    /// Whether all services are quiet, when that is known.
    quiet: Option<bool>,
    /// The contexts that wait for that.
    waiting: Vec<(&'w RankDevice, Ending)>,
}

impl<'w> Quiescence<'w> {
    /// Lists the services of a world that is about to end.
    pub fn new(world: &'w World) -> Self {
        let all: Vec<_> = world.devices().map(RankDevice::all_services).collect();
        let has_all_ranks =
            |services: &&Arc<Services>| services.communicator().size() as usize == world.size();
        let leader = (0..).zip(&all).find_map(|(context, of_context)| {
            of_context
                .iter()
                .find(has_all_ranks)
                .map(|services| (context, Arc::downgrade(services)))
        });
        let all = all.iter().map(|one| one.iter().map(Arc::downgrade).collect()).collect();
        Self { world, all, leader, found: Mutex::default() }
    }

    /// Waits, in the thread of one context, until no call of a service is under way, and ends the services. `wait` waits
    /// for a request of the context; if it returns `false`, this does, too.
    pub fn wait(
        &self,
        device: &'w RankDevice,
        wait: impl Fn(Request) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let context = self.world.devices().position(|one| one.is(device)).unwrap_or(0);
        let Some((leads, leader)) = &self.leader else {
            let mut own = self.all[context].iter().filter_map(Weak::upgrade);
            let quiet = own.try_fold(true, |quiet, services| {
                Ok::<_, Error>(quiet && services.quiesce_at_end(&[], &wait)?)
            })?;
            device.end_services();
            return Ok(quiet);
        };
        if let (true, Some(leader)) = (*leads == context, leader.upgrade()) {
            let mut told = Told { quiescence: self, quiet: false };
            let others = self.all.iter().flatten().filter_map(Weak::upgrade);
            let others: Vec<_> = others.filter(|other| !Arc::ptr_eq(other, &leader)).collect();
            told.quiet = leader.quiesce_at_end(&others, wait)?;
            self.world.devices().for_each(RankDevice::end_services);
            return Ok(told.quiet);
        }
        let mut found = self.found();
        if found.quiet.is_none() {
            let (request, ending) = device.begin(Call::Quiesce, 0, 0)?;
            found.waiting.push((device, ending));
            drop(found);
            if !wait(request)? {
                return Ok(false);
            }
            found = self.found();
        }
        Ok(found.quiet.unwrap_or(false))
    }

    fn found(&self) -> MutexGuard<'_, Found<'w>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When dropped, also by an error or a panic, tells the other contexts what was found.
struct Told<'q, 'w> {
    quiescence: &'q Quiescence<'w>,
    quiet: bool,
}

impl Drop for Told<'_, '_> {
    fn drop(&mut self) {
        let mut found = self.quiescence.found();
        found.quiet = Some(self.quiet);
        let waiting = std::mem::take(&mut found.waiting);
        drop(found);
        for (device, ending) in waiting {
            device.end(ending, Ok(Status::new(0, 0, 0)));
        }
    }
}
