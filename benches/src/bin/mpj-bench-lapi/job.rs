//! A task of a job over `transport-lapi`: its context, the handlers of its messages, and the calls that every
//! measurement needs.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::time::Instant;

use mpj_bench_programs::{Failure, Job};
use transport_lapi::bootstrap::Control;
use transport_lapi::config::Settings;
use transport_lapi::wireup::{self, Client, Joined};
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, ForeignBytes, HeaderAction, IN_PLACE_FROM, InlineHandler,
    LapiError, Next, Options, Outbox, RemoteRegion, SendRegion, Session, TaskId,
};

use crate::memory::Memory;

/// The handler of measured messages. Their user header is the place of the data in the target's memory.
pub const MESSAGE: u8 = 1;
/// The handler of messages that it looks at and does not store.
pub const LOOK: u8 = 3;
/// The handler of words that tasks exchange between measurements.
const WORD: u8 = 2;
/// Looks at the memory between two rounds of progress.
const LOOKS: u32 = 64;

/// The bytes of each of the two memories of a task.
const MEMORY: usize = 8 << 20;

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
    control: Option<Control>,
    begin: Instant,
    /// The memory that this task sends from. Both memories are in the shared area, so puts, gets and additions have ended
    /// when their calls return.
    pub out: Memory,
    /// The memory that others write to.
    pub into: Memory,
    region: RemoteRegion,
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
        let Joined { contexts, control, processors, .. } =
            wireup::connect(&settings, Client::new("bench")).map_err(failed)?;
        let adapter = contexts.into_iter().next().expect("a task has at least one context");
        let Settings { wait, spin, .. } = settings;
        let options = Options { processors, wait, spin, ..Options::default() };
        let (into, words) = (Memory::EMPTY, Vec::new());
        let state = State { into, arrived: 0, seen: 0, under_way: 0, words };
        let context = Context::init(adapter, state, options);
        let mut session = context.session().map_err(failed)?;
        session.state.words = vec![VecDeque::new(); context.num_tasks()];
        session.addr_set(MESSAGE.into(), long_message).map_err(failed)?;
        session.addr_set_short(MESSAGE.into(), short_message).map_err(failed)?;
        session.addr_set_short(LOOK.into(), look).map_err(failed)?;
        session.addr_set_short(WORD.into(), word).map_err(failed)?;
        // Half of the area for each memory, in a large job.
        let most = match session.alloc_shared(usize::MAX) {
            Err(LapiError::AreaExhausted { longest, .. }) => MEMORY.min(longest / 2),
            _ => MEMORY,
        };
        let mut area = || session.alloc_shared(most).map(ManuallyDrop::new).map_err(failed);
        let (out, own) = (area()?, area()?);
        let (out, into, region) = (Memory::of_area(&out), Memory::of_area(&own), own.region());
        session.state.into = into;
        drop(session);
        let begin = Instant::now();
        let job = Self { context, control, begin, out, into, region };
        // Messages may arrive only when every task has set its handlers.
        job.barrier()?;
        Ok(job)
    }

    /// Returns the number of this task.
    pub fn task(&self) -> TaskId {
        self.context.task()
    }

    /// Returns `size`, the length of a message.
    ///
    /// # Errors
    /// The memory is shorter.
    pub fn inside(&self, size: usize) -> Result<usize, Failure> {
        let most = self.into.len();
        let long = || Failure::new(format_args!("--sizes up to {}M, not {size}", most >> 20));
        (size <= most).then_some(size).ok_or_else(long)
    }

    /// Starts operations: `start` gets the session.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    pub fn start<R, E: std::fmt::Display>(
        &self,
        start: impl FnOnce(&mut Session<State>) -> Result<R, E>,
    ) -> Result<R, Failure> {
        start(&mut *self.context.session().map_err(failed)?).map_err(failed)
    }

    /// Checks the byte that this task has looked at last.
    ///
    /// # Errors
    /// It is another one, or an error of the transport.
    pub fn check_seen(&self, expected: u8) -> Result<(), Failure> {
        match self.start(|session| Ok::<_, Failure>(session.state.seen))? {
            seen if seen == expected => Ok(()),
            seen => Err(Failure::new(format_args!("saw {seen:#04x} instead of {expected:#04x}"))),
        }
    }

    /// Sends a message (LAPI_Amsend) to the handler [`MESSAGE`], whose `word` is the place of the data in the target's
    /// memory, or, in one packet, to [`LOOK`]. With `in_place` the target copies long data from where it lies.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    pub fn send(
        &self,
        handler: u8,
        target: TaskId,
        word: u64,
        data: SendRegion,
        in_place: bool,
    ) -> Result<(), Failure> {
        self.start(|session| {
            let in_place = in_place && data.len() >= IN_PLACE_FROM;
            if !in_place && session.try_amsend(target, handler, word, data) {
                return Ok(());
            }
            session.state.under_way += 1;
            let uhdr = word.to_le_bytes();
            let call = Amsend::new(target, handler, &uhdr, data);
            session.amsend(Amsend { on_origin: ENDED, in_place, ..call }).map(drop)
        })
    }

    /// Waits for so many messages, and until those of this task have left.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    pub fn take(&self, messages: u64) -> Result<(), Failure> {
        self.wait(|state| {
            let have_come = state.arrived >= messages;
            if have_come {
                state.arrived -= messages;
            }
            have_come
        })
    }

    /// Makes progress until `is_there` holds and the messages of this task have left.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    pub fn wait(&self, mut is_there: impl FnMut(&mut State) -> bool) -> Result<(), Failure> {
        let over = |session: &mut Session<State>| {
            (session.state.under_way == 0 && is_there(&mut session.state)).then_some(())
        };
        self.context.wait(over).map_err(failed)
    }

    /// Watches this task's memory until `is_there` holds. Nobody needs this task's progress meanwhile, so it makes some
    /// now and then only.
    ///
    /// # Errors
    /// An error of the transport.
    #[inline]
    pub fn watch(&self, mut is_there: impl FnMut() -> bool) -> Result<(), Failure> {
        let mut looks = 0_u32;
        while !is_there() {
            std::hint::spin_loop();
            looks = looks.wrapping_add(1);
            if looks % LOOKS == 0 {
                self.start(|session| session.progress())?;
            }
        }
        Ok(())
    }

    /// Waits until a counter has reached `events`, and subtracts them (LAPI_Waitcntr).
    ///
    /// # Errors
    /// An error of the transport.
    pub fn count(&self, counter: CounterId, events: usize) -> Result<(), Failure> {
        self.context.waitcntr(counter, events as i64).map(drop).map_err(failed)
    }

    /// Returns the registered memory of each task. Collective.
    ///
    /// # Errors
    /// An error of the transport.
    pub fn regions(&self) -> Result<Vec<RemoteRegion>, Failure> {
        let mut all = vec![[0; 8]; self.context.num_tasks()];
        for (nth, word) in self.region.to_words().into_iter().enumerate() {
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
