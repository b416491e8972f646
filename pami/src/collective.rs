//! Collectives: instructions that are posted, the algorithm that is chosen when an advance takes one, and the messages of
//! its rounds.
//!
//! Messages of collectives go by a dispatch of their own. `create.rs` makes and destroys geometries, `active.rs` has the
//! active-message collectives.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

use mpicore::op::{ElementKind, Predefined};
use transport_lapi::{ForeignBytes, Ranges, Sink, Source, TaskId};

use crate::COLLECTIVES;
use crate::algorithm::{Algorithm, Xfer};
use crate::context::{CallbackOf, Section};
use crate::dispatch::{Arriving, Dispatch, Message};
use crate::error::{Error, Violation};
use crate::geometry::agreement::Ready;
use crate::geometry::call::{Collective, Reduction};
use crate::geometry::engine::{CollectiveCallback, Finished, Head, Key, Running};
use crate::geometry::{Geometry, records, xfer_of};
use crate::send::SendCall;
use crate::state::State;
use crate::types::{Endpoint, Hints};

mod active;
mod create;

pub use active::AmMessage;
pub use create::GeometryCallback;

/// The parameters of PAMI_Collective (pami_xfer_t).
pub struct CollectiveCall {
    /// The geometry, of which this endpoint is a member.
    pub geometry: Geometry,
    /// What is to be done. All members give the same.
    pub collective: Collective,
    /// What this member has. See [`SendCall::data`]; it is read when an advance takes the call.
    pub input: Source,
    /// Where the results go, if not to the callback alone.
    pub output: Option<Sink>,
    /// The algorithm, if it is not to be chosen by the size.
    pub algorithm: Option<Algorithm>,
    /// Called when this member has done its part (cb_done).
    pub on_done: Option<CollectiveCallback>,
}

impl CollectiveCall {
    /// A collective without a callback, whose algorithm is chosen by its size.
    pub fn new(geometry: &Geometry, collective: Collective, input: impl Into<Source>) -> Self {
        let (geometry, input) = (geometry.clone(), input.into());
        Self { geometry, collective, input, output: None, algorithm: None, on_done: None }
    }
}

impl Section<'_> {
    /// Posts a collective (PAMI_Collective). When an advance takes it, its algorithm is chosen. All members post their
    /// collectives of a geometry in the same order; only its initiator posts an active-message collective.
    ///
    /// # Errors
    /// [`Error::NoGeometry`], [`Error::NoMember`], [`Error::Reversed`],
    /// [`Error::Elements`], [`Error::Collective`], [`Error::BufferLen`], [`Error::Unfit`]; of active-message
    /// collectives also those of [`Section::send`]. Nothing was posted then. [`Error::NoRange`], [`Error::Disagree`], a
    /// lost task and failures of the transport are told to the callback, or by an advance if there is none.
    pub fn collective(&mut self, call: CollectiveCall) -> Result<(), Error> {
        self.post_collective(call, true)
    }

    /// Posts a collective, which is recorded and counted if it is one of the program.
    fn post_collective(&mut self, call: CollectiveCall, is_recorded: bool) -> Result<(), Error> {
        let CollectiveCall { geometry, collective, input, output, algorithm, on_done } = call;
        self.check_geometry(&geometry)?;
        let (endpoint, id) = (self.endpoint(), geometry.id());
        let rank = geometry.rank(endpoint).ok_or(Error::NoMember { endpoint, id })?;
        let shape = collective.shape(rank, geometry.members().len())?;
        let given = output.as_ref().map_or(shape.output, Sink::len);
        let lens = [("input", input.len(), shape.input), ("output", given, shape.output)];
        if let Some((what, given, needed)) = lens.into_iter().find(|(_, given, need)| given != need)
        {
            return Err(Error::BufferLen { what, given, needed });
        }
        if let Some(algorithm) = algorithm {
            let unfit = |source| Error::Unfit { algorithm, source };
            geometry.check(algorithm, &collective).map_err(unfit)?;
        }
        self.check_active(&collective)?;
        let (measured, used) = (geometry.clone(), Arc::clone(&geometry.0.uses));
        self.post_toward(endpoint, move |section| {
            let (begun, size) = (Instant::now(), collective.size());
            let on_end = move |section: &mut Section<'_>, result: Result<_, Error>| {
                let finished = result.map(|(algorithm, bytes): (_, Vec<u8>)| {
                    if is_recorded {
                        section.core.geometries.note(algorithm);
                        measured.record(algorithm, size, begun.elapsed());
                    }
                    if let Some(mut output) = output {
                        for part in shape.results.into_iter().filter(|part| !part.is_empty()) {
                            output.store(part.start, ForeignBytes::from_slice(&bytes[part]));
                        }
                    }
                    Finished { output: bytes, algorithm }
                });
                // The callback may destroy the geometry.
                drop(used);
                match on_done {
                    Some(on_done) => on_done(section, finished),
                    None => section.note_failure(finished.map(drop)),
                }
            };
            let (what, buffers) = ((collective, algorithm), (input, shape.output));
            section.begin_collective((geometry, rank), what, buffers, Box::new(on_end));
            Ok(())
        })
    }

    /// Associates algorithms of one type of collectives with ranges of sizes, for this context and all geometries that have
    /// no association of their own. See [`Geometry::associate`].
    ///
    /// # Errors
    /// As there.
    pub fn associate_collective(&mut self, algorithms: Ranges<Algorithm>) -> Result<(), Error> {
        let xfer = xfer_of(&algorithms)?;
        self.session.state.collectives.associations.insert(xfer, algorithms);
        Ok(())
    }

    /// Returns how often this task's contexts have used each algorithm.
    pub fn chosen(&self) -> Vec<(Algorithm, u64)> {
        self.core.geometries.chosen()
    }

    /// Associates with each size the algorithm that was fastest for it so far, on all members together, for the collectives
    /// of a type in this geometry. This is a collective itself, and the next one is begun when its callback has come: it
    /// gets the association, or nothing if nothing was recorded.
    ///
    /// # Errors
    /// [`Error::NoGeometry`], [`Error::NoMember`].
    pub fn tune(
        &mut self,
        geometry: &Geometry,
        xfer: Xfer,
        on_done: impl FnOnce(&mut Section<'_>, Result<Option<Ranges<Algorithm>>, Error>)
        + Send
        + 'static,
    ) -> Result<(), Error> {
        let numbers = geometry.numbers(xfer);
        let input: Vec<_> = numbers.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let op = Reduction::of(Predefined::Sum, ElementKind::U64)?;
        let collective = Collective::Allreduce { len: input.len(), op };
        let tuned = geometry.clone();
        let end = move |section: &mut Section<'_>, result: Result<Finished, Error>| {
            let found = result.and_then(|finished| {
                let words = finished.output.chunks_exact(8);
                let word = |word: &[u8]| u64::from_ne_bytes(word.try_into().unwrap_or_default());
                let found = records::fastest(xfer, &words.map(word).collect::<Vec<_>>());
                found.iter().try_for_each(|found| tuned.associate(found.clone()))?;
                Ok(found)
            });
            on_done(section, found);
        };
        let algorithm = geometry.algorithms(Xfer::Allreduce)[0].first().copied();
        let on_done: Option<CollectiveCallback> = Some(Box::new(end));
        let call = CollectiveCall::new(geometry, collective, input);
        self.post_collective(CollectiveCall { algorithm, on_done, ..call }, false)
    }

    /// Checks that this client has a geometry, whose creation has ended here: functions of active-message collectives may see
    /// it before.
    fn check_geometry(&self, geometry: &Geometry) -> Result<(), Error> {
        let id = geometry.id();
        let known = self.core.geometries.get(id);
        let is_known = known.is_some_and(|known| known.is(geometry) && known.agreed().is_some());
        if is_known { Ok(()) } else { Err(Error::NoGeometry { id }) }
    }

    /// Chooses the algorithm of a collective, and begins it.
    fn begin_collective(
        &mut self,
        (geometry, rank): (Geometry, usize),
        (collective, algorithm): (Collective, Option<Algorithm>),
        (input, output_len): (Source, usize),
        on_end: CallbackOf<(Algorithm, Vec<u8>)>,
    ) {
        let engine = &mut self.session.state.collectives;
        let (xfer, arguments) = collective.arguments();
        let (generation, instance) = match arguments.active {
            None => (Some(geometry.generation()), geometry.count(rank)),
            Some(_) => {
                engine.initiated = engine.initiated.wrapping_add(1);
                (None, engine.initiated)
            }
        };
        let key = Key { geometry: geometry.id(), generation, instance };
        let others = engine.associations.get(&xfer);
        let chosen = algorithm.map_or_else(|| geometry.choose(&collective, others), Ok);
        let planned = chosen.and_then(|algorithm| {
            let plan =
                geometry.with_member(rank, algorithm, |one| collective.plan(algorithm, one))?;
            Ok((algorithm, plan))
        });
        let (algorithm, plan) = match planned {
            Ok(planned) => planned,
            Err(error) => return on_end(self, Err(error)),
        };
        let mut input = input.piece(0, input.len()).to_vec();
        let head = Head { key, algorithm, root: rank as u32 };
        let mut begun = self.initiate(&geometry, &collective, head, &input);
        // A broadcast has its input in the output.
        let is_broadcast = xfer == Xfer::Broadcast && !input.is_empty();
        let mut output = if is_broadcast { std::mem::take(&mut input) } else { Vec::new() };
        output.resize(output_len, 0);
        let (buffers, op) = ([input, output, vec![0; plan.scratch]], arguments.op.cloned());
        let (awaited, local) = (Vec::new(), Vec::new());
        let running =
            Running { key, geometry, algorithm, plan, op, buffers, awaited, local, on_end };
        let mut lost = self.session.state.collectives.lost.iter();
        if let Some(&task) = lost.find(|task| running.needs(**task)) {
            begun = Err(Error::Lost { task });
        }
        match begun {
            Err(error) => self.end_collective(running, Err(error)),
            Ok(()) => {
                self.session.state.collectives.running.insert(key, running);
                self.advance_collective(key);
            }
        }
    }

    /// Lets a collective go on as far as it can, if it is running.
    fn advance_collective(&mut self, key: Key) {
        let engine = &mut self.session.state.collectives;
        let Some(mut running) = engine.running.remove(&key) else { return };
        let mut sends = Vec::new();
        let advance = || running.advance(&mut engine.inbox, &mut sends);
        let advanced = catch_unwind(AssertUnwindSafe(advance));
        let header = Head { key, algorithm: running.algorithm, root: 0 }.to_bytes();
        let sent = sends.into_iter().try_for_each(|(to, bytes)| {
            let data = Source::from(bytes);
            self.send_internal(SendCall { header: &header, data, ..SendCall::new(to, COLLECTIVES) })
        });
        let advanced = advanced.unwrap_or_else(|panic| {
            // The operation of the program has panicked. With the collective, its use of the geometry ends.
            self.session.state.collectives.inbox.drop_all(key);
            resume_unwind(panic)
        });
        match sent.and(advanced) {
            Ok(false) => drop(self.session.state.collectives.running.insert(key, running)),
            Ok(true) => self.end_collective(running, Ok(())),
            Err(error) => self.end_collective(running, Err(error)),
        }
    }

    /// Ends a collective; its callback is called at the end of this iteration.
    fn end_collective(&mut self, running: Running, result: Result<(), Error>) {
        let key = running.key;
        if key.generation.is_none() || result.is_err() {
            // What it did not want.
            self.session.state.collectives.inbox.drop_all(key);
        }
        self.session.state.tell(running.into_end(), result);
    }

    fn blame_collective(&mut self, from: Endpoint, len: usize) {
        self.session.state.blame(from.task(), Violation::Collective { len });
    }
}

/// Makes the state of a context, which takes messages of collectives.
pub(crate) fn new_state(task: TaskId) -> State {
    let mut state = State::new(task);
    let (hints, function) = (Hints::default(), Some(Box::new(arrive) as _));
    state.dispatches[COLLECTIVES] = Some(Dispatch { hints, function });
    state
}

/// What is done with a message of a collective.
enum Fate {
    Keep,
    /// It is of a collective that has ended here, as failed ones do before their messages have come.
    Drop,
    Blame,
}

impl Section<'_> {
    fn fate_of(&self, key: Key, origin: Endpoint) -> Fate {
        let engine = &self.session.state.collectives;
        let is_running = engine.running.contains_key(&key);
        let geometry = self.core.geometries.get(key.geometry);
        let Some(generation) = key.generation else {
            let is_member = geometry.is_some_and(|geometry| geometry.rank(origin).is_some());
            return match is_running {
                true if is_member => Fate::Keep,
                false if (1..=engine.initiated).contains(&key.instance) => Fate::Drop,
                _ => Fate::Blame,
            };
        };
        let Some(geometry) = geometry else {
            // After a loss others may have created a geometry without this task's knowledge.
            let is_old = generation <= self.core.geometries.newest();
            return if is_old || !engine.lost.is_empty() { Fate::Drop } else { Fate::Blame };
        };
        match (geometry.compare(generation), geometry.rank(self.endpoint())) {
            (Ordering::Less, _) => Fate::Drop,
            (Ordering::Equal, Some(own)) if geometry.rank(origin).is_some() => {
                let has_ended = !is_running && geometry.has_begun(own, key.instance);
                if has_ended { Fate::Drop } else { Fate::Keep }
            }
            _ => Fate::Blame,
        }
    }
}

/// The dispatch function of the messages of collectives.
fn arrive(section: &mut Section<'_>, message: Message<'_>) {
    let Message { origin, header, data } = message;
    if let Some(ready) = Ready::decode(header) {
        return section.take_ready(origin, ready);
    }
    let Some(head) = Head::decode(header) else {
        return section.blame_collective(origin, header.len());
    };
    match section.fate_of(head.key, origin) {
        Fate::Keep => {}
        Fate::Drop => return,
        Fate::Blame => return section.blame_collective(origin, header.len()),
    }
    let Some(landing) = section.session.state.collectives.inbox.arrive(head, origin) else {
        let violation = Violation::EarlyCollective { geometry: head.key.geometry };
        return section.session.state.blame(origin.task(), violation);
    };
    let take = move |section: &mut Section<'_>, data: Result<Vec<u8>, Error>| {
        *landing.lock() = Some(data);
        section.advance_collective(head.key);
    };
    match data {
        Arriving::Immediate(bytes) => take(section, Ok(bytes.to_vec())),
        Arriving::Asynchronous(data) => data.receive_vec(take),
    }
}
