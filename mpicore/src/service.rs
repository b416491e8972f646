//! Services: functions of the ranks of a communicator that other ranks call, by messages of their own.
//!
//! All ranks register the handlers of a communicator in the same order, and a service is known by its number in that
//! order. A call is a message in the communicator's context of services, which the device delivers to [`Services`]
//! instead of keeping it for a receive. A thread that makes progress, in whatever call, runs the handler when it holds no
//! lock, and sends the answer. The answer ends the operation of the device that the caller waits for.
//!
//! - RC1, RC2 of `nest.rs` say which handlers a thread runs on top of others.
//! - RC3: the calls of a rank that are under way to another one cost at most [`WINDOW`] units, for each depth. A caller
//!   without units waits and makes progress. The answer returns the units of a call. Those of notices, which have no
//!   answer, return together, a quarter of the window at a time; so a call costs at most what is left then. A handler
//!   does not wait to send a notice: what it has produced stays with its rank until there are units. Otherwise handlers
//!   that make more work for each other could all wait for room.
//! - RC4: services end with the world. Until then any rank may call them, whatever has become of the handles on the rank
//!   that is called. So [`Services`] keep their communicator, and its context has no other use.
//! - RC5: a rank counts calls before it sends them, and those that it has carried out after their handlers have returned
//!   and their answers were sent. If the sums over all ranks are equal, and twice the same, then no call is under way,
//!   and nothing but a new call from outside of handlers can change that (the method of four counters by Mattern). A rank
//!   reads counts only while none of their handlers runs, so that ranks wait for each other asleep. At the end of a world
//!   the sums are those of all services, since a handler may call services of other communicators.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use mpjdev::{Call, Delivery, Ending, PeerError, Request, Status, Within, panic_text};
use rustc_hash::FxHashMap;
use transport_lapi::bootstrap::control::cut;

use crate::communicator::Communicator;
use crate::error::{Error, ServiceError};
use crate::process::{Process, lock};

mod head;
mod nest;
#[cfg(test)]
mod tests;

use head::{DEPTHS, HEAD, Head, Kind};
use nest::When;

/// The units of a rank's calls to another one (RC3).
const WINDOW: u32 = 256;
/// The most that a call costs.
const MOST: u32 = WINDOW - WINDOW / 4;
/// How many bytes cost one unit more.
const BYTES_OF_UNIT: usize = 16 << 10;
/// The most bytes of a text in an answer.
const MOST_TEXT: usize = 1000;

/// Reads the request of a rank and appends the answer to a message.
pub type Handler = dyn Fn(u32, &[u8], &mut Vec<u8>) -> Result<(), Refusal> + Send + Sync;

/// Why a handler gives no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It refuses the call.
    Failed(String),
    /// The request cannot be read.
    Unreadable(String),
}

/// The services of a communicator on this rank.
pub struct Services {
    communicator: Communicator,
    handlers: RwLock<Vec<Arc<Handler>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of the next call.
    next: u32,
    /// The calls that have no answer yet.
    calls: FxHashMap<u32, Pending>,
    /// By job rank and depth (RC3).
    accounts: FxHashMap<(u32, u8), Account>,
    /// Calls that were sent and calls that were carried out (RC5), notices too.
    sent: u64,
    done: u64,
    /// Calls that have come and were not carried out, and what waits for there to be none.
    active: usize,
    idle: Vec<(Arc<Process>, Ending)>,
}

/// A call without an answer.
struct Pending {
    peer: u32,
    depth: u8,
    cost: u32,
    ending: Ending,
    answer: Place,
}

/// Units of calls to and of notices from a rank.
struct Account {
    free: u32,
    /// What waits for units to come back.
    waiting: Vec<Ending>,
    /// Notices of handlers that wait for units, with their services and costs.
    queued: VecDeque<(u32, u32, Vec<u8>)>,
    /// Units of that rank's notices that are to be returned.
    owed: u32,
}

impl Default for Account {
    fn default() -> Self {
        Self { free: WINDOW, waiting: Vec::new(), queued: VecDeque::new(), owed: 0 }
    }
}

/// Where the message with an answer is put.
type Place = Arc<Mutex<Option<(Kind, Vec<u8>)>>>;

/// A call that has come.
struct Incoming {
    head: Head,
    /// The job rank of the caller, and its rank in the communicator.
    peer: u32,
    rank: u32,
    service: i32,
    message: Vec<u8>,
}

/// The answer to a call, when the request that belongs to it has ended.
pub struct Answer {
    rank: u32,
    service: u32,
    place: Place,
}

/// What a handler returned.
pub struct Payload(Vec<u8>);

impl Payload {
    /// Returns the bytes that the handler appended.
    pub fn bytes(&self) -> &[u8] {
        &self.0[HEAD..]
    }
}

impl Answer {
    /// Takes what the handler returned, once.
    ///
    /// # Errors
    /// [`ServiceError`]; [`mpjdev::Error::Request`] if there is no answer yet, or if it was taken.
    pub fn take(&self) -> Result<Payload, Error> {
        let Self { rank, service, .. } = *self;
        let (kind, message) = lock(&self.place).take().ok_or(mpjdev::Error::Request)?;
        let text = || cut(&String::from_utf8_lossy(&message[HEAD..]), MOST_TEXT).to_owned();
        Err(match kind {
            Kind::Failed => ServiceError::Failed { rank, service, message: text() },
            Kind::Panicked => ServiceError::Panicked { rank, service, message: text() },
            Kind::Unreadable => ServiceError::Request { rank, service, cause: text() },
            Kind::Unknown => ServiceError::Unknown { rank, service },
            _ => return Ok(Payload(message)),
        })?
    }

    /// Returns the error of a payload that is not of this type.
    pub fn unreadable(&self, type_name: &'static str, cause: String) -> Error {
        let Self { rank, service, .. } = *self;
        ServiceError::Answer { rank, service, type_name, cause }.into()
    }
}

impl Services {
    /// Prepares an intracommunicator for services, once. Collective, together with the first [`Services::register`].
    ///
    /// # Errors
    /// [`Error::Kind`]; what made the device unusable.
    pub fn new(communicator: Communicator) -> Result<Arc<Self>, Error> {
        communicator.intra("a service")?;
        let (handlers, state) = (RwLock::default(), Mutex::default());
        let services = Arc::new(Self { communicator, handlers, state });
        let (weak, on) = (Arc::downgrade(&services), &services.communicator);
        let take = move |message| {
            // Messages that come after the end of the world are for nobody.
            if let Some(services) = weak.upgrade() {
                services.arrived(message);
            }
        };
        on.device().deliver(on.service_context(), take)?;
        Ok(services)
    }

    /// Registers the handler that `make` makes for the service with this number, and returns when all ranks have registered
    /// theirs (collective). Calls may come before it returns.
    ///
    /// # Errors
    /// As for a barrier; the handler is registered all the same.
    pub fn register(&self, make: impl FnOnce(u32) -> Arc<Handler>) -> Result<u32, Error> {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        let number = handlers.len() as u32;
        handlers.push(make(number));
        drop(handlers);
        self.communicator.gather_words(Call::RegisterService, vec![u64::from(number)])?;
        Ok(number)
    }

    /// Returns a message to which a request or an answer is appended.
    pub fn message() -> Vec<u8> {
        let mut message = Vec::with_capacity(64);
        message.resize(HEAD, 0);
        message
    }

    /// Calls a service of a rank of the communicator, without waiting for its answer. Waits while too many calls are
    /// under way to that rank (RC3).
    ///
    /// # Errors
    /// [`Error::Group`] if there is no such rank; [`ServiceError::TooDeep`]; the loss of the rank; what made the device
    /// unusable.
    pub fn start(
        &self,
        service: u32,
        rank: u32,
        mut message: Vec<u8>,
    ) -> Result<(Request, Answer), Error> {
        let (peer, cost) = (self.communicator.group().job_rank(rank)?, cost(&message));
        let depth = nest::depth().ok_or(ServiceError::TooDeep { most: DEPTHS })?;
        self.spend(service, peer, depth, cost)?;
        let begun = self.begin(service, peer);
        let (request, ending) = begun.inspect_err(|_| self.not_sent(peer, depth, cost))?;
        let answer = Answer { rank, service, place: Place::default() };
        let call = Pending { peer, depth, cost, ending, answer: answer.place.clone() };
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.calls.insert(number, call);
        state.sent += 1;
        drop(state);
        Head { number, kind: Kind::Call, depth }.write(&mut message);
        if let Err(error) = self.post(peer, service, message) {
            let mut state = self.state();
            state.sent -= 1;
            let call = state.calls.remove(&number);
            drop(state);
            call.into_iter().for_each(|call| self.end(call.ending));
            self.not_sent(peer, depth, cost);
            return Err(error.into());
        }
        Ok((request, answer))
    }

    /// Calls a service like [`Services::start`], but gets no answer, also no error of the handler. In a handler this does
    /// not wait, and the depth of the call is 0, since nobody waits for it.
    ///
    /// # Errors
    /// As [`Services::start`], but not that it is too deep.
    pub fn notify(&self, service: u32, rank: u32, mut message: Vec<u8>) -> Result<(), Error> {
        let (peer, cost) = (self.communicator.group().job_rank(rank)?, cost(&message));
        Head { number: 0, kind: Kind::Notice, depth: 0 }.write(&mut message);
        let mut state = match nest::depth() {
            Some(0) => {
                self.spend(service, peer, 0, cost)?;
                self.state()
            }
            _ => {
                let mut state = self.state();
                let account = state.accounts.entry((peer, 0)).or_default();
                if !account.queued.is_empty() || account.free < cost {
                    if let Err(loss) = self.check_peer(peer, service) {
                        // They would wait for ever.
                        let lost = std::mem::take(&mut account.queued);
                        state.sent -= lost.len() as u64;
                        return Err(loss.into());
                    }
                    account.queued.push_back((service, cost, message));
                    state.sent += 1;
                    return Ok(());
                }
                account.free -= cost;
                state
            }
        };
        state.sent += 1;
        drop(state);
        self.post(peer, service, message).map_err(|error| {
            self.state().sent -= 1;
            self.not_sent(peer, 0, cost);
            error.into()
        })
    }

    /// Sends a message to job rank `peer`.
    fn post(&self, peer: u32, service: u32, message: Vec<u8>) -> Result<(), mpjdev::Error> {
        let (device, context) = (self.communicator.device(), self.communicator.service_context());
        device.send_bytes(message, peer as usize, service as i32, context)
    }

    /// Returns the units of a call that was not sent.
    fn not_sent(&self, peer: u32, depth: u8, cost: u32) {
        let is_legal = self.refund(peer, depth, cost);
        debug_assert!(is_legal, "they were spent");
    }

    /// Begins an operation that a rank ends.
    fn begin(&self, service: u32, peer: u32) -> Result<(Request, Ending), Error> {
        let (device, context) = (self.communicator.device(), self.communicator.service_context());
        Ok(device.begin_with(Call::CallOfService, context, service as i32, peer as usize)?)
    }

    /// Checks that job rank `peer` is not lost.
    fn check_peer(&self, peer: u32, service: u32) -> Result<(), mpjdev::Error> {
        let (device, context) = (self.communicator.device(), self.communicator.service_context());
        device.check_peer(peer as usize, context, service as i32)
    }

    /// Spends units for a call, and waits for them (RC3).
    fn spend(&self, service: u32, peer: u32, depth: u8, cost: u32) -> Result<(), Error> {
        loop {
            let mut state = self.state();
            let account = state.accounts.entry((peer, depth)).or_default();
            if let Some(left) = account.free.checked_sub(cost) {
                account.free = left;
                return Ok(());
            }
            let (returned, ending) = self.begin(service, peer)?;
            account.waiting.push(ending);
            drop(state);
            let _within = Within::call(Call::CallOfService);
            self.communicator.device().iwait(returned)?;
        }
    }

    /// Returns units to the account of calls to a rank, and sends notices that have waited for them. Returns whether as
    /// many were spent.
    fn refund(&self, peer: u32, depth: u8, units: u32) -> bool {
        let mut state = self.state();
        let account = state.accounts.entry((peer, depth)).or_default();
        let is_legal = units <= WINDOW - account.free;
        account.free += if is_legal { units } else { 0 };
        let mut notices = Vec::new();
        while account.queued.front().is_some_and(|(_, cost, _)| *cost <= account.free) {
            let notice = account.queued.pop_front();
            account.free -= notice.as_ref().map_or(0, |(_, cost, _)| *cost);
            notices.extend(notice.map(|(service, _, message)| (service, message)));
        }
        let waiting = std::mem::take(&mut account.waiting);
        drop(state);
        for (service, message) in notices {
            // Nobody waits for a notice to a rank that is lost.
            let _ = self.post(peer, service, message);
        }
        waiting.into_iter().for_each(|ending| self.end(ending));
        is_legal
    }

    fn end(&self, ending: Ending) {
        self.communicator.device().end(ending, Ok(Status::new(0, 0, 0)));
    }

    /// Receives a message that the device delivers.
    fn arrived(self: &Arc<Self>, message: Delivery) {
        let (services, Status { source, tag, .. }) = (self.clone(), message.status());
        let take = move |received: Result<Vec<u8>, mpjdev::Error>| {
            // The message of a rank that is lost does not come, and the device tells all who need the rank.
            let Ok(message) = received else { return };
            if let Err((len, stray)) = services.take(source, tag, message) {
                let violation = match stray {
                    true => PeerError::StrayAnswer,
                    false => PeerError::Service { len },
                };
                services.communicator.device().refuse(source, violation);
            }
        };
        // If the device has failed, its calls say so.
        let _ = self.communicator.device().receive_bytes(message, take);
    }

    /// Takes a message of job rank `peer`. The error is its length, and whether it answers no call.
    fn take(
        self: &Arc<Self>,
        peer: u32,
        service: i32,
        message: Vec<u8>,
    ) -> Result<(), (usize, bool)> {
        let len = message.len();
        let head = Head::read(&message).ok_or((len, false))?;
        let rank = self.communicator.group().rank_of(peer).ok_or((len, false))?;
        match head.kind {
            Kind::Call | Kind::Notice => {
                self.state().active += 1;
                self.clone().nest(Incoming { head, peer, rank, service, message });
                Ok(())
            }
            Kind::Credit if self.refund(peer, head.depth, head.number) => Ok(()),
            Kind::Credit => Err((len, false)),
            kind => self.answered(peer, head, (kind, message)).ok_or((len, true)),
        }
    }

    /// Carries out a call when this thread may (RC1), or another one that makes progress.
    fn nest(self: Arc<Self>, incoming: Incoming) {
        nest::run(incoming.head.depth, move |when| match when {
            When::Now => self.carry_out(incoming),
            When::Later => {
                let device = self.communicator.process().clone();
                let device = device.device();
                // If the device has failed, its calls say so.
                let Ok((request, ending)) = self.begin_quiescence() else { return };
                let _ = device.then(request, move |_| self.nest(incoming));
                device.end(ending, Ok(Status::new(0, 0, 0)));
            }
        });
    }

    /// Ends the call that a message answers; `None` if there is none.
    fn answered(&self, peer: u32, head: Head, answer: (Kind, Vec<u8>)) -> Option<()> {
        let mut state = self.state();
        state.calls.get(&head.number).filter(|call| call.peer == peer)?;
        let Pending { depth, cost, ending, answer: place, .. } =
            state.calls.remove(&head.number)?;
        drop(state);
        *lock(&place) = Some(answer);
        self.end(ending);
        self.refund(peer, depth, cost).then_some(())
    }

    /// Runs the handler of a call, and answers it.
    fn carry_out(&self, incoming: Incoming) {
        let Incoming { head, peer, rank, service, message } = incoming;
        let cost = cost(&message);
        let (kind, answer) = self.run_handler(rank, service, &message);
        drop(message);
        let credit = self.owe(peer, head, cost);
        let (head, answer) = match (head.kind, credit) {
            (Kind::Notice, 0) => (head, None),
            (Kind::Notice, number) => {
                (Head { number, kind: Kind::Credit, ..head }, Some(Self::message()))
            }
            _ => (Head { kind, ..head }, Some(answer)),
        };
        if let Some(mut answer) = answer {
            head.write(&mut answer);
            // A caller that is lost needs no answer, and a device that has failed says so in its calls.
            let _ = self.post(peer, service as u32, answer);
        }
        let mut state = self.state();
        state.done += 1;
        state.active -= 1;
        let idle = if state.active == 0 { std::mem::take(&mut state.idle) } else { Vec::new() };
        drop(state);
        for (process, ending) in idle {
            process.device().end(ending, Ok(Status::new(0, 0, 0)));
        }
    }

    /// Runs the handler of a call, and returns its answer with room for the head.
    fn run_handler(&self, rank: u32, service: i32, message: &[u8]) -> (Kind, Vec<u8>) {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let handler = usize::try_from(service).ok().and_then(|at| handlers.get(at)).cloned();
        drop(handlers);
        let mut answer = Self::message();
        let Some(handler) = handler else { return (Kind::Unknown, answer) };
        let _function = Within::function();
        let run = AssertUnwindSafe(|| handler(rank, &message[HEAD..], &mut answer));
        let (kind, text) = match catch_unwind(run) {
            Ok(Ok(())) => return (Kind::Value, answer),
            Ok(Err(Refusal::Failed(text))) => (Kind::Failed, text),
            Ok(Err(Refusal::Unreadable(text))) => (Kind::Unreadable, text),
            Err(panic) => (Kind::Panicked, panic_text(&*panic)),
        };
        answer.truncate(HEAD);
        answer.extend_from_slice(cut(&text, MOST_TEXT).as_bytes());
        (kind, answer)
    }

    /// Notes the units of a notice. Returns how many are to be returned to the rank now.
    fn owe(&self, peer: u32, head: Head, cost: u32) -> u32 {
        if head.kind != Kind::Notice {
            return 0;
        }
        let mut state = self.state();
        let account = state.accounts.entry((peer, head.depth)).or_default();
        account.owed += cost;
        if account.owed < WINDOW / 4 { 0 } else { std::mem::take(&mut account.owed) }
    }

    /// Waits until no call of a service of the communicator is under way on any rank (collective).
    ///
    /// # Errors
    /// [`ServiceError::InHandler`]; as for a barrier.
    pub fn quiesce(&self) -> Result<(), Error> {
        let device = self.communicator.device();
        self.wait_until_quiet(&[], |request| device.iwait(request).map(|_| true)).map(drop)
    }

    /// [`Services::quiesce`] at the end of the world, for these and `others` of this rank together, which may be on other
    /// communicators and in other contexts; theirs are called by ranks of this communicator only. `wait` waits for a
    /// request of this device, and returns `false` if the launcher has dismissed this rank; then so does this.
    ///
    /// # Errors
    /// As [`Services::quiesce`].
    pub fn quiesce_at_end(
        &self,
        others: &[Arc<Self>],
        wait: impl Fn(Request) -> Result<bool, mpjdev::Error>,
    ) -> Result<bool, mpjdev::Error> {
        self.wait_until_quiet(others, wait).map_err(Error::into_device)
    }

    /// Returns their communicator.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// Compares the counts of all ranks until no call of these services and of others is under way (RC5).
    fn wait_until_quiet(
        &self,
        others: &[Arc<Self>],
        wait: impl Fn(Request) -> Result<bool, mpjdev::Error>,
    ) -> Result<bool, Error> {
        if nest::depth() != Some(0) {
            return Err(ServiceError::InHandler.into());
        }
        let mut before = None;
        loop {
            let mut counts = vec![0; 2];
            for services in others.iter().map(|other| &**other).chain([self]) {
                let mut state = services.state();
                while state.active > 0 {
                    let (idle, ending) = self.begin_quiescence()?;
                    state.idle.push((self.communicator.process().clone(), ending));
                    drop(state);
                    if !wait(idle)? {
                        return Ok(false);
                    }
                    state = services.state();
                }
                counts[0] += state.sent;
                counts[1] += state.done;
            }
            let told = Arc::<Mutex<Option<Result<Vec<u64>, Error>>>>::default();
            let (request, ending) = self.begin_quiescence()?;
            let (place, process) = (told.clone(), self.communicator.process().clone());
            self.communicator.gather_words_then(Call::Quiesce, counts, move |counts| {
                *lock(&place) = Some(counts);
                process.device().end(ending, Ok(Status::new(0, 0, 0)));
            })?;
            if !wait(request)? {
                return Ok(false);
            }
            let counts = lock(&told).take().ok_or(mpjdev::Error::Request)??;
            let sums = counts.chunks_exact(2).fold([0_u64; 2], |sums, counts| {
                [sums[0].wrapping_add(counts[0]), sums[1].wrapping_add(counts[1])]
            });
            if sums[0] == sums[1] && before == Some(sums) {
                return Ok(true);
            }
            before = Some(sums);
        }
    }

    /// Begins an operation that ends when the rank, or all ranks, have come somewhere.
    fn begin_quiescence(&self) -> Result<(Request, Ending), Error> {
        let context = self.communicator.collective_context();
        Ok(self.communicator.device().begin(Call::Quiesce, context, 0)?)
    }

    /// Drops the handlers, at the end of the world.
    pub fn end_all(&self) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        let ended = std::mem::take(&mut *handlers);
        // What the program drops with them may call services.
        drop(handlers);
        drop(ended);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Returns what a call costs (RC3).
fn cost(message: &[u8]) -> u32 {
    let units = 1 + message.len() / BYTES_OF_UNIT;
    u32::try_from(units).unwrap_or(MOST).min(MOST)
}
