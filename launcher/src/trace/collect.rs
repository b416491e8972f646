//! Makes calls of what ranks have recorded. Pure. The records are claims of ranks: whatever they are, this neither fails
//! nor makes more than they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use transport_lapi::TaskId;
use transport_lapi::bootstrap::trace::{Kind as Recording, Record, Recorded};

use super::clocks::HostClock;
use super::pairs::{Pairs, Side};
use super::{Call, CallAt, Collected, Kind, Levels, RankTrace, ThreadTrace};

/// Communicators from this number on were given numbers that mean nothing to a reader.
const UNREADABLE: u32 = 1 << 31;

/// Two moments at which both clocks were read: that of the records, and nanoseconds since the job began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    pub(super) began: u64,
    pub(super) ended: u64,
    pub(super) nanos: u64,
    /// How the clock of the records is read on this host, if it is that of another one.
    pub(super) elsewhere: Option<HostClock>,
}

impl Times {
    /// Returns nanoseconds since the job began, and never a time outside of the job.
    fn nanos(&self, ticks: u64) -> u64 {
        let ticks = self.elsewhere.map_or(ticks, |clock| clock.here(ticks));
        self.span(ticks.saturating_sub(self.began)).min(self.nanos)
    }

    /// Returns the nanoseconds of so many ticks of the clock here.
    pub(super) fn span(&self, ticks: u64) -> u64 {
        let all = u128::from(self.ended.saturating_sub(self.began)).max(1);
        let nanos = u128::from(ticks) * u128::from(self.nanos) / all;
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// What a rank has recorded, where, and in which times.
pub(super) struct OfRank<'a> {
    pub(super) task: TaskId,
    pub(super) host: &'a str,
    pub(super) times: Times,
    pub(super) recorded: Recorded,
}

/// An operation that a request is of.
#[derive(Debug, Clone, Copy)]
struct Operation {
    is_receive: bool,
    /// Whether the call that began it also sends, and tells of that.
    is_exchange: bool,
    communicator: Option<u32>,
    peer: Option<u32>,
    tag: Option<i32>,
    bytes: u64,
    /// The call that began it, and when.
    call: CallAt,
    start: u64,
}

/// Makes the trace of a job of these ranks, whose hosts' times differ by so much, if it has agents.
pub(super) fn collect<'a>(
    ranks: impl IntoIterator<Item = OfRank<'a>>,
    error_between_hosts: Option<u64>,
) -> Collected {
    let mut collected = Collected { error_between_hosts, ..Collected::default() };
    let (mut pairs, mut numbers) = (Pairs::default(), BTreeMap::new());
    for OfRank { task, host, times, recorded } in ranks {
        let place = collected.trace.ranks.len();
        let footprint = recorded.footprint.iter().map(|(at, bytes)| (times.nanos(*at), *bytes));
        let mut footprint: Vec<_> = footprint.collect();
        footprint.sort_unstable();
        let mut rank = Calls::new(place, recorded, times, &mut numbers);
        let mut levels = std::mem::take(&mut rank.levels);
        levels.sort_by_key(|levels| levels.at);
        let (host, threads) = (host.to_owned(), rank.follow(task, &mut pairs));
        collected.trace.ranks.push(RankTrace { rank: task, host, threads, levels, footprint });
    }
    pairs.join(&mut collected);
    collected
}

/// The calls of a rank, and what else it has recorded.
struct Calls {
    place: usize,
    threads: Vec<ThreadTrace>,
    /// What begins or ends operations, with its time.
    events: Vec<(u64, Event)>,
    levels: Vec<Levels>,
    /// When the last call began that was overwritten, if one was.
    overwritten_until: Option<u64>,
}

/// What begins or ends operations. In the order in which those that have the same time count.
#[derive(Debug)]
enum Event {
    /// The operation of a request has ended in this call.
    Ended { request: u64, call: CallAt, record: Box<Record> },
    /// A call began.
    Began { call: CallAt, record: Box<Record> },
    /// A persistent request was started in this call.
    Started { request: u64, call: CallAt },
}

impl Event {
    fn order(&self) -> u8 {
        match self {
            Self::Ended { .. } => 0,
            Self::Began { .. } => 1,
            Self::Started { .. } => 2,
        }
    }
}

impl Calls {
    fn new(
        place: usize,
        recorded: Recorded,
        times: Times,
        numbers: &mut BTreeMap<u32, u32>,
    ) -> Self {
        let (threads, events, levels, overwritten_until) = Default::default();
        let mut rank = Self { place, threads, events, levels, overwritten_until };
        for thread in recorded.threads {
            let mut records = thread.records;
            // In a ring, a part may come before its call, and begins with it.
            records.sort_by_key(|record| (record.start, record.kind == Recording::Part));
            untangle(&mut records);
            let of_rank = rank.threads.len();
            let mut calls = Vec::with_capacity(records.len());
            let mut known = Vec::with_capacity(records.len());
            let mut parts = Vec::new();
            for mut record in records {
                record.communicator = record.communicator.map(|number| readable(number, numbers));
                (record.start, record.end) =
                    (times.nanos(record.start), record.end.map(|end| times.nanos(end)));
                match record.kind {
                    Recording::Levels => {
                        rank.levels.push(levels_of(&record));
                        continue;
                    }
                    Recording::Ended | Recording::Started => {
                        parts.push(record);
                        continue;
                    }
                    _ => {}
                }
                let call = CallAt { rank: place, thread: of_rank, call: calls.len() };
                calls.push(call_of(&record));
                known.push((record.number, call));
                rank.note(call, record);
            }
            let (lost, overwritten) = (thread.lost, thread.overwritten);
            if overwritten > 0 {
                let until = times.nanos(thread.overwritten_until);
                rank.overwritten_until = rank.overwritten_until.max(Some(until));
            }
            rank.threads.push(ThreadTrace { calls, lost, overwritten });
            rank.note_parts(parts, known);
        }
        if recorded.lost > 0 {
            let lost = recorded.lost;
            rank.threads.push(ThreadTrace { lost, ..ThreadTrace::default() });
        }
        rank
    }

    /// Notes what a call begins and ends.
    fn note(&mut self, call: CallAt, record: Record) {
        match record.kind {
            // It ends at the beginning of the wait: at its end another thread may have a request of this number already.
            Recording::Wait if record.request != 0 && record.end.is_some() => {
                let (at, request) = (record.start, record.request);
                self.events.push((at, Event::Ended { request, call, record: Box::new(record) }));
            }
            Recording::Send
            | Recording::Receive
            | Recording::Exchange
            | Recording::SendInit
            | Recording::ReceiveInit => {
                self.events.push((record.start, Event::Began { call, record: Box::new(record) }));
            }
            Recording::Start if record.request != 0 => {
                let request = record.request;
                self.events.push((record.start, Event::Started { request, call }));
            }
            _ => {}
        }
    }

    /// Notes what belongs to other calls.
    fn note_parts(&mut self, parts: Vec<Record>, mut known: Vec<(u64, CallAt)>) {
        if parts.is_empty() {
            return;
        }
        known.sort_unstable();
        let call_of = |number| {
            let at = known.binary_search_by_key(&number, |(number, _)| *number).ok()?;
            Some(known[at].1)
        };
        let started = |CallAt { thread, call, .. }: CallAt| self.threads[thread].calls[call].start;
        for part in parts {
            let call = part.sequence.and_then(call_of);
            // Another call may have overwritten it.
            let is_there =
                |call: &CallAt| self.overwritten_until.is_none() || started(*call) == part.start;
            let Some(call) = call.filter(is_there) else { continue };
            let (at, request) = (part.start, part.request);
            let event = match part.kind {
                Recording::Started => Event::Started { request, call },
                _ => Event::Ended { request, call, record: Box::new(part) },
            };
            self.events.push((at, event));
        }
    }

    /// Follows the operations of a rank from their starts to their ends, and returns its calls.
    fn follow(mut self, task: TaskId, pairs: &mut Pairs) -> Vec<ThreadTrace> {
        let mut events = std::mem::take(&mut self.events);
        pairs.follow(self.overwritten_until);
        events.sort_by_key(|(at, event)| (*at, event.order()));
        let mut open = BTreeMap::<u64, Operation>::new();
        let mut kept = BTreeMap::<u64, Operation>::new();
        // How many receives each wait has ended.
        let mut ends = BTreeMap::new();
        for (at, event) in events {
            match event {
                Event::Began { call, record } => {
                    let operation = operation(call, &record);
                    match record.kind {
                        Recording::SendInit | Recording::ReceiveInit => {
                            kept.insert(record.request, operation);
                        }
                        _ if operation.is_receive && record.request != 0 => {
                            open.insert(record.request, operation);
                        }
                        _ if operation.is_receive => {
                            let ended = record.end.map(|_| call);
                            pairs.add(task, side(&operation, ended));
                        }
                        _ => pairs.add(task, side(&operation, Some(call))),
                    }
                    if let (true, Some(came)) = (operation.is_exchange, record.received) {
                        let (peer, tag) = (Some(came.source), Some(came.tag));
                        let receive = Operation { is_receive: true, peer, tag, ..operation };
                        pairs.add(task, side(&receive, record.end.map(|_| call)));
                    } else if operation.is_exchange && record.request != 0 {
                        // Its end says what it receives.
                        let receive =
                            Operation { is_receive: true, peer: None, tag: None, ..operation };
                        open.insert(record.request, receive);
                    }
                }
                Event::Started { request, call } => {
                    let Some(operation) = kept.get(&request) else { continue };
                    let operation = Operation { call, start: at, ..*operation };
                    match operation.is_receive {
                        true => drop(open.insert(request, operation)),
                        false => pairs.add(task, side(&operation, Some(call))),
                    }
                }
                Event::Ended { request, call, record } => {
                    let Some(mut operation) = open.remove(&request) else { continue };
                    if record.is_cancelled {
                        continue;
                    }
                    // Who waits for a receive from one rank does not know which rank of the world that is. Nor does it of a
                    // communicator that is unknown.
                    let peer = record.peer.filter(|_| operation.communicator.is_some());
                    operation.peer = operation.peer.or(peer);
                    operation.tag = operation.tag.or(record.tag);
                    operation.bytes = record.bytes;
                    if !operation.is_exchange {
                        self.tell(&operation);
                    }
                    *ends.entry(call).or_insert(0) += 1;
                    pairs.add(task, side(&operation, Some(call)));
                }
            }
        }
        open.values().for_each(|operation| pairs.add(task, side(operation, None)));
        pairs.note_single(ends.into_iter().filter(|(_, receives)| *receives == 1));
        self.threads
    }

    /// Says of the call that began a receive what its end has shown.
    fn tell(&mut self, operation: &Operation) {
        let CallAt { thread, call, .. } = operation.call;
        let call = &mut self.threads[thread].calls[call];
        (call.peer, call.tag, call.bytes) = (operation.peer, operation.tag, operation.bytes);
        debug_assert_eq!(operation.call.rank, self.place);
    }
}

fn operation(call: CallAt, record: &Record) -> Operation {
    Operation {
        is_receive: matches!(record.kind, Recording::Receive | Recording::ReceiveInit),
        is_exchange: record.kind == Recording::Exchange,
        communicator: record.communicator,
        peer: record.peer,
        tag: record.tag,
        bytes: record.bytes,
        call,
        start: record.start,
    }
}

fn side(operation: &Operation, ended: Option<CallAt>) -> Side {
    let Operation { is_receive, communicator, peer, tag, call, start, .. } = *operation;
    Side { is_receive, communicator, peer, tag, call, start, ended }
}

/// Has parts of calls that overlap follow each other, since a track shows only what lies inside of each other.
fn untangle(records: &mut [Record]) {
    // The ends of those before that may go on.
    let mut ends: Vec<u64> = Vec::new();
    let mut has_moved = false;
    for part in records.iter_mut().filter(|record| record.kind == Recording::Part) {
        let Some(end) = part.end else { continue };
        ends.retain(|other| *other > part.start);
        // It begins when those have ended that end before it.
        if let Some(start) = ends.iter().copied().filter(|other| *other < end).max() {
            (part.start, has_moved) = (start, true);
        }
        ends.push(end);
    }
    if has_moved {
        records.sort_by_key(|record| record.start);
    }
}

fn levels_of(record: &Record) -> Levels {
    let number = |number: Option<u32>| number.map_or(0, u64::from);
    Levels {
        at: record.start,
        device: record.request,
        posted: number(record.peer),
        unexpected: number(record.tag.map(|tag| tag as u32)),
        bytes: record.bytes,
    }
}

fn call_of(record: &Record) -> Call {
    let kind = match record.kind {
        Recording::Send => Kind::Send,
        Recording::Receive => Kind::Receive,
        Recording::Exchange => Kind::Exchange,
        Recording::Wait => Kind::Wait,
        Recording::Probe => Kind::Probe,
        Recording::Collective => Kind::Collective,
        Recording::OneSided => Kind::OneSided,
        Recording::File => Kind::File,
        Recording::Span | Recording::Mark => Kind::Span,
        Recording::Part => Kind::Part,
        _ => Kind::Other,
    };
    let is_mark = record.kind == Recording::Mark;
    // What has ended in a wait is told of the call that began it.
    let is_told = record.kind == Recording::Wait && record.request != 0;
    let (start, end) = (record.start, record.end.map(|end| end.max(record.start)));
    Call {
        name: Arc::clone(&record.name),
        kind,
        place: record.place.clone(),
        start,
        end: if is_mark { Some(start) } else { end },
        communicator: record.communicator,
        peer: record.peer.filter(|_| !is_told),
        tag: record.tag.filter(|_| !is_told),
        bytes: if is_told { 0 } else { record.bytes },
        message: None,
        sequence: record.sequence,
        by_rendezvous: record.by_rendezvous,
    }
}

/// Gives a communicator a number that can be read: the next one.
fn readable(number: u32, numbers: &mut BTreeMap<u32, u32>) -> u32 {
    if number < UNREADABLE {
        return number;
    }
    let next = UNREADABLE.min(1 + numbers.len() as u32);
    *numbers.entry(number).or_insert(next)
}
