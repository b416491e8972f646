//! Joining and leaving the job: MPI_Init and MPI_Finalize.

mod abort;
#[cfg(feature = "tracing")]
mod layer;
pub mod local;
mod quiescence;
mod span;
#[cfg(feature = "test")]
pub mod testing;

pub use abort::abort;
#[cfg(feature = "tracing")]
pub use layer::SpanLayer;
pub use span::{Span, span};

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once, OnceLock};

use mpicore::job::{self, Job};
use mpjdev::wireup::Control;
use mpjdev::{Call, CallKind, Recorded, Within};

use crate::communicator::{Communicator, InterCommunicator};
use crate::error::Error;
use crate::rank_device::RankDevice;
use crate::world::quiescence::Quiescence;

/// The communicator of all ranks of the job: MPI_COMM_WORLD, in context 0. Dropping it ends this rank's part in the
/// job, in all contexts.
///
/// ```
/// let ranks = mpj::local::run(2, |world: mpj::World| {
///     let ranks: &mpj::Communicator = &world;
///     ranks.barrier().unwrap();
///     ranks.rank()
/// })?;
/// assert_eq!(ranks, [0, 1]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_COMM_WORLD")]
pub struct World {
    communicator: Communicator,
    /// The communicators of the same ranks in contexts 1 and higher.
    further: Vec<Communicator>,
    /// The communicator of this rank alone, once the program has asked for it.
    own: OnceLock<Communicator>,
    /// The communicator with the ranks that have spawned this world, if any have.
    parents: Option<InterCommunicator>,
    control: Option<Control>,
    /// How the ranks of a local job leave it.
    departures: Arc<Departures>,
    /// Whether `finish` was called.
    left: bool,
}

/// How the ranks of a local job have left it.
#[derive(Default)]
pub(crate) struct Departures {
    /// The first rank that left without waiting.
    first_gone: OnceLock<usize>,
    /// The first rank that found a mistake when it left, and the mistake.
    mistaken: OnceLock<(usize, Error)>,
}

/// How many references to its device a communicator holds: one itself, and one in its core.
const HELD_BY_COMMUNICATOR: usize = 2;

/// Joins the job of this process and waits until all ranks have joined (MPI_Init). A program that starts without a
/// launcher is a job of one rank. Call it once per process. Other clients of the transport, such as AM-2, may join beside
/// it, in the same order on all ranks.
///
/// # Errors
/// A setting is not legal; the launcher of another MPI started this process; `init` was called before; the job segment
/// cannot be used.
///
/// ```no_run
/// let world = mpj::init()?;
/// println!("rank {} of {}", world.rank(), world.size());
/// # Ok::<(), mpj::Error>(())
/// ```
#[doc(alias("MPI_Init", "MPI_Init_thread"))]
pub fn init() -> Result<World, Error> {
    join(cfg!(debug_assertions))
}

/// Joins the job. Where `MPJ_CHECK` does not say it, `asks` says whether this rank asks for checks of mistakes.
fn join(asks: bool) -> Result<World, Error> {
    mpjdev::recorded::join();
    let _recorded = Recorded::begin("init", CallKind::Other, None, None);
    let Job { devices, control, parent, one_sided_path, progress_thread, .. } = job::join(asks)?;
    control.clone().into_iter().for_each(tell_panics);
    let mut world = World::new(devices, control, &one_sided_path, Arc::default())?;
    world.parents = parent.map(|parent| world.communicator.parents(parent)).transpose()?;
    if progress_thread {
        world.progress_thread()?;
    }
    Ok(world)
}

/// Returns the seconds since an arbitrary moment in the past of this process (MPI_Wtime).
///
/// ```
/// let start = mpj::wtime();
/// assert!(mpj::wtime() >= start);
/// ```
#[doc(alias = "MPI_Wtime")]
pub fn wtime() -> f64 {
    job::wtime()
}

impl World {
    /// Makes the world of one rank of a job in this process.
    pub(crate) fn local(
        devices: Vec<mpjdev::Device>,
        departures: Arc<Departures>,
    ) -> Result<Self, Error> {
        let one_sided_path = match devices[0].get_kind()? {
            Some(_) => "memory copy",
            None => "active messages",
        };
        Self::new(devices, None, one_sided_path, departures)
    }

    fn new(
        devices: Vec<mpjdev::Device>,
        control: Option<Control>,
        one_sided_path: &str,
        departures: Arc<Departures>,
    ) -> Result<Self, Error> {
        let mut contexts = Communicator::of_world(devices, one_sided_path)?.into_iter();
        let communicator = contexts.next().expect("a rank has context 0");
        let further = contexts.collect();
        let own = OnceLock::new();
        let parents = None;
        Ok(Self { communicator, further, own, parents, control, departures, left: false })
    }

    /// Returns the communicator with the ranks that have spawned this world, or `None` for one that the launcher has
    /// started by itself (MPI_Comm_get_parent).
    ///
    /// ```
    /// mpj::local::run(2, |world| assert!(world.parents().is_none()))?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Comm_get_parent")]
    pub fn parents(&self) -> Option<&InterCommunicator> {
        self.parents.as_ref()
    }

    /// Returns the number of contexts of each rank, which `mpjrun --contexts` sets; 1 by default.
    ///
    /// ```
    /// assert_eq!(mpj::local::run(2, |world| world.contexts())?, [1, 1]);
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn contexts(&self) -> usize {
        1 + self.further.len()
    }

    /// Returns a communicator of the same ranks in context `context`. The world itself is in context 0.
    ///
    /// A context has its own memory, lock and queues. A message sent in one context is received only in the same
    /// context of the other rank, and threads that use different contexts never wait for each other's lock. So give
    /// each of several threads that communicate a lot its own context. Progress belongs to a context, too: **a thread
    /// that waits in one context makes no progress in the others**. Operations there continue when some thread waits or
    /// polls there, or when the world ends. Requests of different contexts cannot be waited for in one call.
    ///
    /// # Errors
    /// [`Error::Context`] when there is no such context.
    ///
    /// ```
    /// let options = mpj::tuning::Options { contexts: 2, ..Default::default() };
    /// mpj::local::run_with(&options, 2, |world| {
    ///     std::thread::scope(|scope| {
    ///         for context in 0..world.contexts() {
    ///             let ranks = world.on_endpoint(context).unwrap();
    ///             scope.spawn(move || {
    ///                 let mut got = [0];
    ///                 if ranks.rank() == 0 {
    ///                     ranks.send(&[context], 1, 7).unwrap();
    ///                 } else {
    ///                     ranks.recv(&mut got, 0, 7).unwrap();
    ///                     assert_eq!(got, [context]);
    ///                 }
    ///             });
    ///         }
    ///     });
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn on_endpoint(&self, context: usize) -> Result<Communicator, Error> {
        let found = self.all_contexts().nth(context).cloned();
        found.ok_or(Error::Context { asked: context, contexts: self.contexts() })
    }

    /// Starts a thread that makes progress while no other thread is in a call, in each context of this rank. Operations
    /// that were started then go on beside computation, if a processor is free; without it they go on in calls only. It
    /// sleeps while nothing arrives. It costs calls of other threads some time, since they share the context with it.
    ///
    /// Futures of requests ([`Completion`](crate::Completion)) start it in their context by themselves, and the setting
    /// `MPJ_PROGRESS_THREAD=1` starts it in [`init`]. It ends when the rank leaves the job. Starting it again does nothing.
    ///
    /// # Errors
    /// The system starts no further thread.
    ///
    /// ```
    /// use mpj::{Op, collective};
    /// mpj::local::run(2, |world| {
    ///     world.progress_thread().unwrap();
    ///     let sum = world.start(collective::all_reduce(vec![1.0; 100_000], Op::Sum)).unwrap();
    ///     let squares: u64 = (0..10_000).map(|number| number * number).sum();
    ///     assert_eq!((sum.wait().unwrap().0[99_999], squares), (2.0, 333_283_335_000));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn progress_thread(&self) -> Result<(), Error> {
        self.devices().try_for_each(|device| {
            self.communicator.step(device.start_progress().map_err(Error::from))
        })
    }

    /// Returns the communicator of this rank alone (MPI_COMM_SELF), in context 0.
    ///
    /// Its attributes are deleted first when the world ends, while the rank can still communicate. So a library can
    /// attach work for the end of the job here, in a key's delete callback or the value's `Drop` (MPI-4.1 section
    /// 11.2.4).
    ///
    /// # Errors
    /// What made the device unusable.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let own = world.self_comm().unwrap();
    ///     assert_eq!((own.rank(), own.size()), (0, 1));
    ///     assert!(own.group().iter().eq([world.rank()]));
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_COMM_SELF")]
    pub fn self_comm(&self) -> Result<&Communicator, Error> {
        if let Some(own) = self.own.get() {
            return Ok(own);
        }
        // Another thread may make one at the same time: the first one is kept.
        let made = self.communicator.self_comm()?;
        Ok(self.own.get_or_init(|| made))
    }

    fn all_contexts(&self) -> impl Iterator<Item = &Communicator> {
        std::iter::once(&self.communicator).chain(&self.further)
    }

    fn devices(&self) -> impl Iterator<Item = &RankDevice> {
        self.all_contexts().map(|communicator| &communicator.device)
    }

    /// Ends this rank's part in the job, in all contexts (MPI_Finalize). Deletes the attributes of
    /// [`World::self_comm`], then those of the world, and waits until all its messages have been delivered and every
    /// rank has called this. Dropping the world does the same, but cannot return an error: the launcher reports it.
    /// Afterwards no communicator of this rank can be used.
    ///
    /// # Errors
    /// The device has failed, for example because a rank died; messages were sent to this rank and never received, in a
    /// job that finds mistakes between ranks; a delete callback of an attribute has failed, which does
    /// not keep the rank from leaving.
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // The program deals with this error, so the rank waits for the others in the end.
    ///     assert!(world.send(&[1], 5, 0).is_err());
    ///     world.finish().unwrap();
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    #[doc(alias = "MPI_Finalize")]
    pub fn finish(mut self) -> Result<(), Error> {
        self.left = true;
        self.stop_progress();
        let deleted = self.delete_attributes();
        let quiescence = Quiescence::new(&self);
        self.leave(|device, _| {
            quiescence.wait(device, |request| {
                let _within = Within::end(Call::Finish, false);
                device.iwait(request).map(|_| true)
            })?;
            device.finish().map(|()| true)
        })?;
        drop(quiescence);
        deleted
    }

    /// Deletes the attributes of the rank's own communicator and of the world; their callbacks may still communicate.
    fn delete_attributes(&self) -> Result<(), Error> {
        let all = self.own.get().into_iter().chain(self.all_contexts());
        // All are deleted, and the first error is returned.
        all.map(Communicator::delete_attributes).fold(Ok(()), Result::and)
    }

    /// Returns whether no other thread can use a device of this world, since nobody else holds a reference to one.
    fn is_alone(&self) -> bool {
        let own = usize::from(self.own.get().is_some()) + usize::from(self.parents.is_some());
        let mut devices = (0..).zip(self.devices());
        devices.all(|(context, device)| {
            // The communicator of this rank alone, and the one with its parents, are in context 0.
            let held_by = if context == 0 { 1 + own } else { 1 };
            device.references() == held_by * HELD_BY_COMMUNICATOR
        })
    }

    /// Ends the progress threads, which hold references to the devices.
    fn stop_progress(&self) {
        self.devices().for_each(RankDevice::stop_progress);
    }

    /// Leaves the job after `finish`, as [`job::leave`] does.
    fn leave<'w>(
        &'w self,
        finish: impl Fn(&'w RankDevice, bool) -> Result<bool, mpjdev::Error> + Sync,
    ) -> Result<(), Error> {
        let _recorded = Recorded::begin("finish", CallKind::Other, None, None);
        let devices: Vec<&mpjdev::Device> = self.devices().map(|device| &**device).collect();
        let left = job::leave(&devices, self.control.as_ref(), |ended, others_stay| {
            let mut devices = self.devices();
            let device = devices.find(|device| ptr::eq::<mpjdev::Device>(&***device, ended));
            finish(device.expect("it is one of these"), others_stay)
        });
        self.communicator.device.answer(left)
    }

    /// Leaves without waiting. The other ranks and the launcher learn that this rank is gone.
    fn abandon(&self) {
        self.departures.first_gone.get_or_init(|| self.rank());
        self.devices().for_each(|device| device.abort());
    }
}

impl Deref for World {
    type Target = Communicator;

    fn deref(&self) -> &Communicator {
        &self.communicator
    }
}

impl Drop for World {
    /// Leaves the job. While panicking, or after an error that counts for this thread (see the head of
    /// `rank_device.rs`), it does not wait for other ranks.
    fn drop(&mut self) {
        if self.communicator.device.is_fork() {
            // The job of a fork belongs to its parent.
            return;
        }
        let _ends_services = EndsServices(self);
        if self.left {
            return;
        }
        self.stop_progress();
        if std::thread::panicking() {
            self.control.iter().for_each(tell_hushed_panic);
            return self.abandon();
        }
        let complaint = self.communicator.device.complaint();
        let leave = || {
            // The error handler has already seen a failure here, which does not keep the rank from leaving.
            let _ = self.delete_attributes();
            // A `main` that returns an error drops its world before it prints the error. If the job hangs because of
            // that error, this call must return. `is_alone` is asked after the attributes are gone, and again after
            // the services, which may have held communicators.
            let (quiescence, was_alone) = (Quiescence::new(self), self.is_alone());
            self.leave(|device, others_stay| {
                let quiet = quiescence.wait(device, |request| {
                    device.iwait_unless_dismissed(request, was_alone && !others_stay)
                })?;
                Ok(quiet && device.finish_unless_dismissed(self.is_alone() && !others_stay)?)
            })
        };
        let left = || {
            let error = leave().err()?;
            if matches!(error, Error::Device(mpjdev::Error::Unreceived(_))) {
                // All ranks have come, and this one has left.
                let _ = self.departures.mistaken.set((self.rank(), error));
                return None;
            }
            Some(error.to_string())
        };
        let Some(complaint) = complaint.or_else(left) else { return };
        if let Some(control) = &self.control {
            control.failed(&complaint, "");
        }
        self.abandon();
    }
}

/// Drops the handlers of services when it is dropped: they may hold what holds them.
struct EndsServices<'a>(&'a World);

impl Drop for EndsServices<'_> {
    fn drop(&mut self) {
        self.0.devices().for_each(RankDevice::end_services);
    }
}

/// Whether the hook of `tell_panics` has reported a panic.
static TOLD: AtomicBool = AtomicBool::new(false);

/// Extends the panic hook so that it records the message of a panic for the launcher's report. This alone does not end
/// the job, since the panic may be caught.
fn tell_panics(control: Control) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            control.failed(&mpjdev::panic_text(panic.payload()), &place);
            TOLD.store(true, Ordering::Relaxed);
            before(panic);
        }));
    });
}

/// Reports a panic that is under way if the hook of `tell_panics` did not see it. Does nothing if the hook has reported
/// a panic before: that may be the same panic, resumed in this thread.
fn tell_hushed_panic(control: &Control) {
    if !TOLD.load(Ordering::Relaxed) {
        let why = "its panic hook was set after mpj::init, which keeps the text from this report";
        control.failed(why, "an unknown place");
    }
}

#[cfg(test)]
mod tests {
    use crate::world::local;

    #[test]
    fn a_world_is_alone_until_somebody_else_holds_a_communicator() {
        let options = crate::tuning::Options { contexts: 2, ..Default::default() };
        let outcome = local::run_with(&options, 1, |world| {
            assert!(world.is_alone());
            world.self_comm().unwrap();
            assert!(world.is_alone());
            for held in [
                world.communicator.clone(),
                world.on_endpoint(1).unwrap(),
                world.self_comm().unwrap().clone(),
                world.dup().unwrap(),
            ] {
                assert!(!world.is_alone(), "{} is held", held.name());
            }
            assert!(world.is_alone());
        });
        outcome.unwrap();
    }
}
