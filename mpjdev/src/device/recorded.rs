//! The records of a program's calls, in jobs whose launcher asks for them: of all calls (`mpjrun --trace`), or of the last
//! ones, if the job finds mistakes between its ranks. The layer above begins the record of a call where it describes the
//! call; what carries the call out adds what it knows. A call that consists of others is one record.
//!
//! The calls of programs in C are recorded by a library above libmpi. There this one only adds what they consist of.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::panic::Location;

use transport_lapi::bootstrap::trace::{self, Entry, Outer, Recorder};

use crate::call_names::Call;
use crate::device::wait::Completion;
use crate::device::{Device, Records};
use crate::error::Error;
use crate::matching::Pattern;
use crate::protocol::Protocol;
use crate::request::{Request, Status};

pub use transport_lapi::bootstrap::trace::Kind as CallKind;

thread_local! {
    /// How many operations have ended in that call, if it is a wait or a test.
    static ENDED: Cell<usize> = const { Cell::new(0) };
}

/// A call that is recorded. It ends when this is dropped.
#[must_use = "the call ends when this is dropped"]
pub struct Recorded {
    entry: Entry,
    outer: Outer,
}

impl std::fmt::Debug for Recorded {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Recorded").finish_non_exhaustive()
    }
}

impl Recorded {
    /// Begins the record of a call of the program. Returns `None` if nothing is recorded, or if this thread is in a call that
    /// is.
    pub fn begin(
        name: &'static str,
        kind: CallKind,
        place: Option<&'static Location<'static>>,
        communicator: Option<u32>,
    ) -> Option<Self> {
        let recorder = trace::recorder()?;
        if recorder.current().is_some() {
            return None;
        }
        let (entry, outer) = recorder.enter(recorder.text_once(name), kind)?;
        if let Some(place) = place {
            entry.at(recorder.place(place));
        }
        if let Some(number) = communicator {
            entry.communicator(number);
        }
        ENDED.set(0);
        Some(Self { entry, outer })
    }

    /// Forgets the record: the call has done nothing.
    #[cold]
    pub fn forget(self) {
        trace::recorder().into_iter().for_each(|recorder| {
            recorder.forget(self.entry);
            recorder.leave(self.outer);
        });
        std::mem::forget(self);
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // In a fork, calls of its parent go on.
        trace::recorder().into_iter().for_each(|recorder| {
            self.entry.end();
            recorder.leave(self.outer);
        });
    }
}

/// A part of the program that is recorded. It ends when this is dropped.
#[must_use = "the part ends when this is dropped"]
pub struct RecordedSpan(Entry);

impl RecordedSpan {
    /// Begins the record of a part of the program that begins at this line of a file, if that is known. Calls in it have
    /// records of their own. There is none where only the last calls are kept, whose records are not nested.
    pub fn begin(name: &'static str, place: Option<(&'static str, u32)>) -> Option<Self> {
        let recorder = trace::recorder().filter(|recorder| !recorder.keeps_last_calls())?;
        let entry = recorder.begin(recorder.text_once(name), CallKind::Span)?;
        place.into_iter().for_each(|(file, line)| entry.at(recorder.line(file, line)));
        Some(Self(entry))
    }
}

impl std::fmt::Debug for RecordedSpan {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("RecordedSpan").finish_non_exhaustive()
    }
}

impl Drop for RecordedSpan {
    fn drop(&mut self) {
        // As above.
        trace::recorder_of_parts().into_iter().for_each(|_| self.0.end());
    }
}

/// Begins to record the calls of this process, if the launcher has asked for it. Called before the process joins its job.
pub fn join() {
    trace::join();
}

/// Whether parts of the program are recorded.
pub fn has_spans() -> bool {
    trace::recorder().is_some_and(|recorder| !recorder.keeps_last_calls())
}

/// Whether it is recorded, too, what calls consist of.
#[inline]
pub fn has_details() -> bool {
    trace::recorder_of_parts().is_some_and(Recorder::has_details)
}

/// Begins the record of a round of the collective call that this thread is in, where it is recorded what calls consist of.
#[inline]
pub fn round(number: usize) -> Option<RecordedSpan> {
    let recorder = trace::recorder_of_parts().filter(|recorder| recorder.has_details())?;
    recorder.current()?;
    let entry = recorder.begin(recorder.text_once("round"), CallKind::Part)?;
    entry.sequence(number as u64);
    Some(RecordedSpan(entry))
}

/// Says of the send to this rank with this tag, if this thread is in one, by which protocol it goes. Where another library
/// records the calls, short ones that leave at once do not come here: they go eagerly.
#[cold]
pub(crate) fn goes_by(protocol: Protocol, dest: u32, tag: i32) {
    let call = trace::recorder_of_parts().and_then(Recorder::current);
    let call = call.filter(|call| call.is_to(dest, tag));
    if let Some(call) = call.filter(|call| call.is(CallKind::Send) || call.is(CallKind::Exchange)) {
        call.protocol(protocol == Protocol::Rendezvous);
    }
}

/// What the devices of this process record, in a job that finds mistakes between its ranks if `checks` says so.
pub(crate) fn records(checks: bool) -> Records {
    trace::join_calls();
    match (trace::recorder(), trace::recorder_of_parts()) {
        (Some(recorder), _) if checks || !recorder.keeps_last_calls() => Records::Calls,
        (None, Some(_)) => Records::Parts,
        _ => Records::Nothing,
    }
}

/// A number of a request that no other one of this process has at the same time.
fn number(device: NonZeroU32, key: u64) -> u64 {
    // No slab has so many slots that the upper bits of a key say nothing.
    key.wrapping_add(1) ^ u64::from(device.get()).rotate_right(8)
}

/// Says of the wait or test that this thread is in that the operation `key` of this device has ended in it. Where only the
/// last calls are kept, it is said to be about the operation, if that is the only one.
fn ended(status: &Status, device: NonZeroU32, key: u64) {
    let Some((entry, recorder)) = trace::current() else { return };
    if !entry.is(CallKind::Wait) {
        return;
    }
    let others = ENDED.replace(ENDED.get() + 1);
    if !recorder.keeps_last_calls() {
        let first = Some(entry).filter(|_| others == 0);
        let Some(part) = first.or_else(|| recorder.part(CallKind::Ended, entry)) else { return };
        part.request(number(device, key));
        tell(part, status);
    } else if others == 0 {
        tell(entry, status);
    } else {
        entry.peer(None, None);
        entry.bytes(0);
    }
}

/// Says of the call that this thread is in that it has found a message.
#[cold]
pub fn found(status: &Status) {
    trace::current().into_iter().for_each(|(entry, _)| tell(entry, status));
}

/// Says of the call that this thread is in that it is a collective one, of which this rank has so many bytes: those of its
/// block, where each rank has one, or those that it sends.
#[cold]
pub fn collective_bytes(bytes: u64) {
    // Of a call that consists of several collective ones, the first one counts.
    if let Some((entry, _)) = trace::current().filter(|(entry, _)| entry.is(CallKind::Other)) {
        entry.bytes(bytes);
    }
}

/// Says of the call that this thread is in that it sends.
#[cold]
pub(crate) fn sends(dest: u32, tag: i32, bytes: usize) {
    let Some((entry, _)) = trace::current() else { return };
    entry.kind(CallKind::Send);
    entry.peer(Some(dest), Some(tag));
    entry.bytes(bytes as u64);
}

/// Says of the call that this thread is in that it has started a receive.
#[cold]
pub(crate) fn receives(pattern: &Pattern, device: NonZeroU32, key: u64) {
    let Some((entry, _)) = trace::current() else { return };
    entry.kind(CallKind::Receive);
    entry.peer(pattern.source, pattern.tag);
    entry.request(number(device, key));
}

/// Says of the call that this thread is in that it has received a message, and waits for nothing.
#[cold]
pub fn received(status: &Status) {
    let Some((entry, _)) = trace::current() else { return };
    entry.kind(CallKind::Receive);
    entry.request(0);
    tell(entry, status);
}

fn tell(entry: Entry, status: &Status) {
    if status.source == u32::MAX {
        // It has come from nobody.
        return;
    }
    entry.peer(Some(status.source), Some(status.tag));
    entry.bytes(status.bytes as u64);
    if status.cancelled {
        entry.cancelled();
    }
}

/// Says of the call that this thread is in that it is this collective call.
#[cold]
pub fn collective(name: &'static str, number: i32) {
    let Some((entry, recorder)) = trace::current() else { return };
    // A call that consists of several collective ones is that of the first.
    if !entry.is(CallKind::Other) {
        return;
    }
    entry.kind(CallKind::Collective);
    entry.name(recorder.text_once(name));
    entry.sequence(number as u32 as u64);
}

/// The record of a wait for a list of requests, or of a test, unless this thread is in a call that has a record.
pub(super) struct RecordedWait {
    _recorded: Option<Recorded>,
    device: NonZeroU32,
    /// What the places of the list refer to; nothing for empty ones. It is not known where only the last calls are kept.
    keys: Option<Vec<Option<Option<u64>>>>,
    /// The place whose outcome is noted next.
    next: usize,
}

impl RecordedWait {
    #[cold]
    #[inline(never)]
    pub(super) fn begin(device: &Device, requests: &[Option<Request>]) -> Self {
        let _recorded = Recorded::begin("wait", CallKind::Wait, None, None);
        Self { _recorded, ..Self::of_test(device, requests) }
    }

    /// That of a test, which has no record of its own, since it may find nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn of_test(device: &Device, requests: &[Option<Request>]) -> Self {
        let device = device.number();
        let key = |request: &Request| request.pending_on(device);
        let keys = || requests.iter().map(|place| place.as_ref().map(key)).collect();
        let keys =
            trace::recorder().filter(|recorder| !recorder.keeps_last_calls()).map(|_| keys());
        Self { _recorded: None, device, keys, next: 0 }
    }

    /// Notes the outcome of the next request of the list.
    pub(super) fn noted(&mut self, outcome: Result<Status, Error>) -> Result<Status, Error> {
        self.note_next(&outcome);
        outcome
    }

    /// The same, without the outcome.
    pub(super) fn note_next(&mut self, outcome: &Result<Status, Error>) {
        let keys = self.keys.iter().flatten();
        self.next += keys.skip(self.next).take_while(|key| key.is_none()).count();
        self.note(self.next, outcome);
        self.next += 1;
    }

    /// Notes the outcomes of requests at these places.
    pub(super) fn note_places(&self, ended: &[Completion]) {
        ended.iter().for_each(|(place, outcome)| self.note(*place, outcome));
    }

    fn note(&self, place: usize, outcome: &Result<Status, Error>) {
        let key = match &self.keys {
            Some(keys) => keys.get(place).copied().flatten().flatten(),
            None => Some(0),
        };
        if let (Some(key), Ok(status)) = (key, outcome) {
            ended(status, self.device, key);
        }
    }
}

impl Device {
    /// [`Device::iwait`] where calls are recorded, or for a request of another device.
    #[cold]
    #[inline(never)]
    pub(super) fn iwait_recorded(
        &self,
        request: &Request,
        place: Option<&'static Location<'static>>,
    ) -> Result<Status, Error> {
        let key = request.pending_on(self.number()).ok_or(Error::Request)?;
        let _recorded = Recorded::begin("wait", CallKind::Wait, place, None);
        let outcome = self.wait_ended(self.session()?, key, Call::Wait, None);
        outcome.inspect(|status| ended(status, self.number(), key))
    }

    /// [`Device::itest`] where calls are recorded.
    #[cold]
    #[inline(never)]
    pub(super) fn itest_recorded(
        &self,
        request: &mut Option<Request>,
        place: Option<&'static Location<'static>>,
    ) -> Result<Option<Status>, Error> {
        let key = request.as_ref().and_then(|request| request.pending_on(self.number()));
        let tested = self.test(request);
        if let (Some(key), Ok(Some(status))) = (key, &tested) {
            let _recorded = Recorded::begin("test", CallKind::Wait, place, None);
            ended(status, self.number(), key);
        }
        tested
    }
}
