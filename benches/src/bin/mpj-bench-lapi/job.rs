//! A task of a job over `transport-lapi`: its context, the handlers of its messages, and the calls that every
//! measurement needs.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::time::Instant;

use mpj_bench::transfers::memory::Memory;
use mpj_bench::transfers::{By, Transfers, WINDOW};
use mpj_bench_programs::{Failure, Job};
use transport_lapi::bootstrap::Control;
use transport_lapi::config::Settings;
use transport_lapi::wireup::{self, Client, Joined};
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, ForeignBytes, HeaderAction, IN_PLACE_FROM, InlineHandler,
    LapiError, Next, Options, Outbox, Put, RemoteRegion, Rmw, RmwOp, SendRegion, Session, TaskId,
};

/// The handler of measured messages. Their user header is the place of the data in the target's memory.
const MESSAGE: u8 = 1;
/// The handler of messages that it looks at and does not store.
const LOOK: u8 = 3;
/// The handler of words that tasks exchange between measurements.
const WORD: u8 = 2;

/// The bytes of each of the two memories of a task.
const MEMORY: usize = 8 << 20;
/// The contexts of a task, if the job has as many.
const CONTEXTS: usize = 3;

/// What the handlers of a task know.
pub struct State {
    /// Where messages are stored.
    into: Memory,
    /// Messages that have arrived and not been taken.
    arrived: u64,
    /// The last byte of the message that was looked at last.
    seen: u8,
    /// Messages of this task whose memory is still read.
    under_way: u64,
    /// Words that have arrived from each task and not been taken.
    words: Vec<VecDeque<u64>>,
}

/// One task of the job.
pub struct LapiJob {
    context: Context<State>,
    /// Further contexts, which only streams use.
    others: Vec<Context<State>>,
    control: Option<Control>,
    begin: Instant,
    /// The memory that this task sends from. Both memories are in the shared area, so puts, gets and additions have
    /// ended when their calls return.
    out: Memory,
    /// The memory that others write to.
    into: Memory,
    /// The other one of tasks 0 and 1, and its memory.
    peer: TaskId,
    remote: RemoteRegion,
    /// Counts the windows of puts at their target.
    stored: CounterId,
}

/// Makes an error of the transport one of the program.
fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(error)
}

impl LapiJob {
    /// Joins the job that the environment describes.
    ///
    /// # Errors
    /// An error of the transport.
    pub fn join() -> Result<Self, Failure> {
        let settings = Settings::from_env().map_err(failed)?;
        let client = Client::new("bench").with_contexts(CONTEXTS);
        let Joined { contexts, control, processors, .. } =
            wireup::connect(&settings, client).map_err(failed)?;
        let Settings { wait, spin, .. } = settings;
        let options = Options { processors, wait, spin, ..Options::default() };
        let mut contexts = contexts.into_iter().map(|adapter| -> Result<_, LapiError> {
            let (into, words) = (Memory::EMPTY, Vec::new());
            let state = State { into, arrived: 0, seen: 0, under_way: 0, words };
            let context = Context::init(adapter, state, options.clone());
            let mut session = context.session()?;
            session.state.words = vec![VecDeque::new(); context.num_tasks()];
            session.addr_set(MESSAGE.into(), long_message)?;
            session.addr_set_short(MESSAGE.into(), short_message)?;
            session.addr_set_short(LOOK.into(), look)?;
            session.addr_set_short(WORD.into(), word)?;
            drop(session);
            Ok(context)
        });
        let context = contexts.next().expect("a task has a context").map_err(failed)?;
        let others = contexts.collect::<Result<_, _>>().map_err(failed)?;
        let mut session = context.session().map_err(failed)?;
        // Half of the area for each memory, in a large job.
        let most = match session.alloc_shared(usize::MAX) {
            Err(LapiError::AreaExhausted { longest, .. }) => MEMORY.min(longest / 2),
            _ => MEMORY,
        };
        let mut area = || session.alloc_shared(most).map(ManuallyDrop::new).map_err(failed);
        let (out, own) = (area()?, area()?);
        let (out, into, region) = (Memory::of_area(&out), Memory::of_area(&own), own.region());
        session.state.into = into;
        let stored = session.counter();
        drop(session);
        let (begin, peer, remote) = (Instant::now(), TaskId::from(context.task() == 0), region);
        let mut job = Self { context, others, control, begin, out, into, peer, remote, stored };
        // Messages may arrive only when every task has set its handlers.
        job.barrier()?;
        let regions = job.regions(region)?;
        job.remote = regions.get(peer as usize).copied().unwrap_or(region);
        Ok(job)
    }

    /// Starts operations: `start` gets the session.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    fn start<R, E: std::fmt::Display>(
        &self,
        start: impl FnOnce(&mut Session<State>) -> Result<R, E>,
    ) -> Result<R, Failure> {
        start(&mut *self.context.session().map_err(failed)?).map_err(failed)
    }

    /// Returns the memory of each task. Collective.
    ///
    /// # Errors
    /// An error of the transport.
    fn regions(&self, own: RemoteRegion) -> Result<Vec<RemoteRegion>, Failure> {
        let mut all = vec![[0; 8]; self.context.num_tasks()];
        for (nth, word) in own.to_words().into_iter().enumerate() {
            for (words, word) in all.iter_mut().zip(self.exchange(word)?) {
                words[nth] = word;
            }
        }
        Ok(all.into_iter().map(RemoteRegion::from_words).collect())
    }

    fn tell(&self, target: TaskId, word: u64) -> Result<(), Failure> {
        let uhdr = word.to_le_bytes();
        let call = Amsend::new(target, WORD, &uhdr, SendRegion::EMPTY);
        self.start(|session| session.amsend(call).map(drop))
    }

    fn hear(&self, origin: TaskId) -> Result<u64, Failure> {
        let next = |session: &mut Session<State>| session.state.words[origin as usize].pop_front();
        self.context.wait(next).map_err(failed)
    }
}

/// What follows the end of an operation that counts as under way.
const ENDED: Next<State> = Next::Inline(ended, 0);

fn ended(state: &mut State, _: &mut Outbox<State>, _: u64) {
    state.under_way -= 1;
}

fn arrived(state: &mut State, _: &mut Outbox<State>, _: u64) {
    state.arrived += 1;
}

/// Stores the data of a message that has arrived whole. A place outside the memory is a mistake of the origin; the data
/// is then discarded, which the check of the payload notices.
fn short_message(
    state: &mut State,
    _: TaskId,
    place: u64,
    data: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    if let Some(mut landing) = state.into.landing(place as usize, data.len()) {
        landing.store(0, data);
    }
    state.arrived += 1;
    None
}

/// Looks at the last byte of a message, in the packet.
fn look(
    state: &mut State,
    _: TaskId,
    _: u64,
    data: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    let mut last = [0];
    data.part(data.len() - 1, 1).copy_to(&mut last);
    state.seen = last[0];
    state.arrived += 1;
    None
}

/// Names the place of a message that arrives in several packets.
fn long_message(state: &mut State, message: Arrival<'_>) -> HeaderAction<State> {
    let place =
        message.uhdr.try_into().map_or(usize::MAX, |word| u64::from_le_bytes(word) as usize);
    let next = Next::Inline(arrived, 0);
    match state.into.landing(place, message.len as usize) {
        Some(landing) => HeaderAction::Deliver { into: landing.into(), next },
        None => HeaderAction::Then(next),
    }
}

fn word(
    state: &mut State,
    origin: TaskId,
    word: u64,
    _: ForeignBytes<'_>,
) -> Option<(InlineHandler<State>, u64)> {
    state.words[origin as usize].push_back(word);
    None
}

impl Transfers for LapiJob {
    fn memories(&self) -> [Memory; 2] {
        [self.out, self.into]
    }

    /// Sends a message (LAPI_Amsend) to the handler [`MESSAGE`], whose word is the place of the data in the target's
    /// memory, or, in one packet, to [`LOOK`].
    #[inline]
    fn send(&self, by: By, place: usize, size: usize) -> Result<(), Failure> {
        let handler = if by == By::Look { LOOK } else { MESSAGE };
        let (word, data) = (place as u64, self.out.source(place, size));
        self.start(|session| {
            let in_place = by == By::Message { in_place: true } && size >= IN_PLACE_FROM;
            if !in_place && session.try_amsend(self.peer, handler, word, data) {
                return Ok(());
            }
            session.state.under_way += 1;
            let uhdr = word.to_le_bytes();
            let call = Amsend::new(self.peer, handler, &uhdr, data);
            session.amsend(Amsend { on_origin: ENDED, in_place, ..call }).map(drop)
        })
    }

    #[inline]
    fn take(&self, messages: u64) -> Result<(), Failure> {
        take(&self.context, messages)
    }

    fn seen(&self) -> Result<u8, Failure> {
        self.start(|session| Ok::<_, Failure>(session.state.seen))
    }

    #[inline]
    fn put(&self, place: usize, size: usize, is_last: bool) -> Result<(), Failure> {
        let data = self.out.source(place, size);
        // Made where it is used: what follows a put is then a constant, as in a program that puts into a shared area.
        // Otherwise it would be stored for the call and loaded again, which is not what is measured.
        let call = || Put::new(self.peer, self.remote, place as u64, data);
        if is_last {
            let tgt_cntr = Some(self.stored);
            return self.start(|session| session.put(Put { tgt_cntr, ..call() })).map(drop);
        }
        self.start(|session| session.put(call())).map(drop)
    }

    fn take_puts(&self) -> Result<(), Failure> {
        self.context.waitcntr(self.stored, 1).map(drop).map_err(failed)
    }

    fn progress(&self) -> Result<(), Failure> {
        self.start(|session| session.progress()).map(drop)
    }

    #[inline]
    fn get(&self, size: usize) -> Result<(), Failure> {
        let into = self.out.landing(0, size).expect("it is inside");
        self.start(|session| session.get(self.peer, self.remote, 0, into, Next::Nothing))
    }

    #[inline]
    fn add(&self) -> Result<i64, Failure> {
        // Made where it is used, as in `put`.
        let call = || Rmw::new(self.peer, self.remote, 0, RmwOp::FetchAndAdd(1_i64));
        Ok(self.start(|session| session.rmw(call()))?.expect("it is in the shared area"))
    }

    fn contexts(&self) -> usize {
        1 + self.others.len()
    }

    fn stream(&self, context: usize, windows: u64) -> Result<(), Failure> {
        let context = context.checked_sub(1).map_or(&self.context, |nth| &self.others[nth]);
        let send = || {
            let data = self.out.source(0, size_of::<u64>());
            let mut session = context.session().map_err(failed)?;
            if !session.try_amsend(self.peer, LOOK, 0, data) {
                let sent = session.amsend(Amsend::new(self.peer, LOOK, &[0; 8], data));
                let _ = sent.map_err(failed)?;
            }
            Ok::<_, Failure>(())
        };
        for _ in 0..windows {
            match self.context.task() {
                0 => {
                    (0..WINDOW).try_for_each(|_| send())?;
                    take(context, 1)?;
                }
                _ => {
                    take(context, WINDOW as u64)?;
                    send()?;
                }
            }
        }
        Ok(())
    }
}

/// Waits for so many messages, and until those of this task have left.
#[inline]
fn take(context: &Context<State>, messages: u64) -> Result<(), Failure> {
    let over = |session: &mut Session<State>| {
        let State { under_way, arrived, .. } = &mut session.state;
        let have_come = *under_way == 0 && *arrived >= messages;
        if have_come {
            *arrived -= messages;
        }
        have_come.then_some(())
    };
    context.wait(over).map_err(failed)
}

impl Job for LapiJob {
    fn thresholds(&self) -> Vec<(usize, String)> {
        let steps = self
            .context
            .session()
            .map(|session| session.steps(self.context.task(), size_of::<u64>()));
        let steps = steps.unwrap_or_default().into_iter();
        steps.map(|step| (step.bytes, step.above.to_owned())).collect()
    }

    fn facts(&self) -> Vec<(String, String)> {
        let in_place = format!("from {IN_PLACE_FROM} B, unless buffers are rewritten");
        vec![("messages that their target copies out of the shared area".to_owned(), in_place)]
    }

    fn rank(&self) -> usize {
        self.context.task() as usize
    }

    fn size(&self) -> usize {
        self.context.num_tasks()
    }

    fn barrier(&self) -> Result<(), Failure> {
        self.context.gfence().map_err(failed)
    }

    fn exchange(&self, word: u64) -> Result<Vec<u64>, Failure> {
        let tasks = self.context.num_tasks() as TaskId;
        (0..tasks).try_for_each(|target| self.tell(target, word))?;
        (0..tasks).map(|origin| self.hear(origin)).collect()
    }

    fn wtime(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn leave(self) -> Result<(), Failure> {
        if let Some(control) = &self.control {
            control.leaving(Default::default());
        }
        let have_come = self.context.gfence_unless_dismissed().map_err(failed)?;
        if let Some(control) = self.control.as_ref().filter(|_| have_come) {
            control.finished();
        }
        Ok(())
    }
}
