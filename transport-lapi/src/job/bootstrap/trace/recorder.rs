//! The rank's half: what a thread records of a call. Called by `mpjdev` and the layers above it, and by the library that
//! records the calls of programs in C.
//!
//! A call costs two looks at the clock and some stores into one cache line that no other thread uses, which is asked for one
//! call ahead.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::Location;
use std::path::Path;
use std::slice::ChunksExact;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustc_hash::FxBuildHasher;

use super::entry::Entry;
use super::lanes::{self, Lane, Lanes, Loan};
use super::{
    BLOCKS, Clock, FOOTPRINT, Form, Kind, LONGEST_TEXT, WORDS, block, head, mapping, word,
};
use crate::job::config;
use crate::platform::fork::ProcessMark;

/// The recorder of this process, once it has joined.
static RECORDER: OnceLock<Recorder> = OnceLock::new();
/// The recorder of the parts of calls that another library of this process records.
static BORROWED: OnceLock<Recorder> = OnceLock::new();
/// How many bytes of blocks get their memory at the beginning, since that takes about as long as to write the records: it
/// is enough for 65,000 records.
const PROVIDED: usize = 4 << 20;
/// Whether the process has tried to join.
static HAS_TRIED: AtomicBool = AtomicBool::new(false);

/// How a process came to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// Nobody asked for it.
    Unasked,
    /// It records from now on, or has before.
    Records,
}

/// Begins to record, if the launcher has asked this rank for it. Called when the process joins its job, more than once if
/// several libraries do.
pub fn join() -> Join {
    if !HAS_TRIED.swap(true, Relaxed) {
        let number = config::environment(config::TRACE_FD);
        let memory = number.and_then(|number| mapping::take(number.parse().ok()?));
        if let Some(words) = memory {
            let recorder = Recorder::over(words, Lanes::OWN);
            let first = words[BLOCKS / 8..].chunks(PROVIDED / 8).next();
            // Without it each block gets its memory when it is taken.
            first.filter(|_| recorder.form != Form::LastCalls).map(mapping::provide);
            mapping::keep_from_forks(words);
            let _ = RECORDER.set(recorder);
        }
    }
    if recorder().is_some() { Join::Records } else { Join::Unasked }
}

/// Returns the recorder of this process, if it records. A fork of such a process does not.
#[inline]
pub fn recorder() -> Option<&'static Recorder> {
    RECORDER.get().filter(|recorder| !recorder.process.is_fork())
}

/// Returns the call that this thread is in, if this library records calls.
#[inline]
pub fn current() -> Option<(Entry, &'static Recorder)> {
    let recorder = recorder()?;
    Some((recorder.current()?, recorder))
}

/// Begins to record the parts of calls, if another library of this process records calls. Called when the process joins its
/// job, if it records no calls itself.
pub fn join_calls() {
    if config::environment(config::TRACE_FD).is_some() && RECORDER.get().is_none() {
        let borrowed = lanes::borrow().map(|(words, lanes)| Recorder::over(words, lanes));
        borrowed.into_iter().for_each(|recorder| drop(BORROWED.set(recorder)));
    }
}

/// Lends what this library needs to record calls to a library that records their parts.
pub fn lend() -> Loan {
    lanes::lend(RECORDER.get().filter(|recorder| !recorder.keeps_last_calls()).map(|it| it.words))
}

/// Returns the recorder of the parts of calls, which records them behind the calls, whichever library records these. A fork
/// has none, nor has a process that keeps only the last calls.
#[inline]
pub fn recorder_of_parts() -> Option<&'static Recorder> {
    let recorder = RECORDER.get().or_else(|| BORROWED.get())?;
    Some(recorder).filter(|recorder| !recorder.keeps_last_calls() && !recorder.process.is_fork())
}

/// Of so many records for which there is no ring, one looks for one.
const RARELY: u64 = 64;

/// How many places and names a thread remembers.
const KNOWN: usize = 32;

/// Tells texts that stay where they are apart: address and length of a name; of a place its address, and 0; of a line the
/// address of the file's name, and the line, counted down from the largest number.
type Key = (usize, usize);

thread_local! {
    /// The numbers of texts that this thread has used last, each where its key leads.
    static TEXTS: [Cell<(Key, u32)>; KNOWN] = const { [const { Cell::new(((0, 0), 0)) }; KNOWN] };
}

/// Records the calls of a process.
pub struct Recorder {
    words: &'static [AtomicU64],
    lanes: Lanes,
    clock: Clock,
    form: Form,
    /// Whether parts of calls are recorded.
    has_details: bool,
    /// The number in the job of the first rank of this process's world.
    first_task: u32,
    process: ProcessMark,
    /// The number of each text that has a key.
    texts: Mutex<HashMap<Key, u32, FxBuildHasher>>,
}

/// The call around another one.
#[derive(Debug, Clone, Copy)]
pub struct Outer(usize);

impl Recorder {
    /// Makes the recorder over the memory of a rank.
    pub(super) fn over(words: &'static [AtomicU64], lanes: Lanes) -> Self {
        let is_counter = words[head::CLOCK].load(Relaxed) == Clock::Counter as u64;
        let clock = if is_counter { Clock::Counter } else { Clock::System };
        let first_task = config::environment(config::FIRST_TASK);
        let first_task = first_task.and_then(|number| number.parse().ok()).unwrap_or(0);
        let form = Form::of(words[head::FORM].load(Relaxed));
        let has_details = words[head::DETAILS].load(Relaxed) != 0;
        let (process, texts) = (ProcessMark::new(), Mutex::default());
        Self { words, lanes, clock, form, has_details, first_task, process, texts }
    }

    /// Returns whether parts of calls are recorded, too.
    #[inline]
    pub fn has_details(&self) -> bool {
        self.has_details
    }

    /// Reads the clock of the records.
    #[inline]
    pub fn now(&self) -> u64 {
        mapping::ticks(self.clock)
    }

    /// Records a part of a call that has begun at this time, or with the call, and ends now.
    pub fn phase(&self, name: u32, of: Entry, since: u64) -> Option<Entry> {
        let entry = self.claim(self.lanes.of_thread(), name, Kind::Part)?;
        entry.end();
        let start = of.word(word::START).load(Relaxed).max(since);
        entry.word(word::START).store(start, Release); // TC3
        Some(entry)
    }

    /// Returns whether only the last calls of each thread are kept, so that there is no room for more than one record of
    /// each.
    #[inline]
    pub fn keeps_last_calls(&self) -> bool {
        self.form == Form::LastCalls
    }

    /// Returns the number in the job of the first rank of this process's world.
    pub fn first_task(&self) -> u32 {
        self.first_task
    }

    /// Begins the record of a call with this name, a number that [`Recorder::text`] has returned. Returns `None` if there
    /// is no memory left; then the call is counted as lost.
    #[inline]
    pub fn begin(&self, name: u32, kind: Kind) -> Option<Entry> {
        self.begin_in(self.lanes.of_thread(), name, kind)
    }

    #[inline(always)]
    fn begin_in(&self, place: &Cell<Lane>, name: u32, kind: Kind) -> Option<Entry> {
        let entry = self.claim(place, name, kind)?;
        // TC3: what is written before shows up before it.
        entry.word(word::START).store(mapping::ticks(self.clock).max(1), Release);
        Some(entry)
    }

    /// Begins the record of a call, as [`Recorder::begin`] does, and notes that this thread is in it. Also returns what
    /// [`Recorder::leave`] needs when it ends.
    #[inline]
    pub fn enter(&self, name: u32, kind: Kind) -> Option<(Entry, Outer)> {
        let place = self.lanes.of_thread();
        let outer = Outer(place.get().call);
        let entry = self.begin_in(place, name, kind)?;
        place.set(Lane { call: entry.at, ..place.get() });
        Some((entry, outer))
    }

    /// Notes that this thread is in the call again in which it was before.
    #[inline]
    pub fn leave(&self, outer: Outer) {
        let place = self.lanes.of_thread();
        place.set(Lane { call: outer.0, ..place.get() });
    }

    /// Returns the call that this thread is in.
    #[inline]
    pub fn current(&self) -> Option<Entry> {
        match self.lanes.of_thread().get().call {
            0 => None,
            at => self.entry(at),
        }
    }

    /// Makes a record of something that belongs to the call of another one, which begins when that does.
    #[inline]
    pub fn part(&self, kind: Kind, of: Entry) -> Option<Entry> {
        let entry = self.claim(self.lanes.of_thread(), 0, kind)?;
        entry.word(word::SEQUENCE).store((of.at * 8) as u64, Relaxed);
        // TC3, except that what is written behind this may be missing if the process ends here.
        entry.word(word::START).store(of.word(word::START).load(Relaxed), Release);
        Some(entry)
    }

    /// Takes the place of a record that has not begun.
    #[inline(always)]
    fn claim(&self, place: &Cell<Lane>, name: u32, kind: Kind) -> Option<Entry> {
        let lane = place.get();
        let lane = if lane.next < lane.end { lane } else { self.next_block(lane)? };
        let lane = if self.form == Form::First { lane } else { self.make_room(lane)? };
        let entry = self.entry(lane.next)?;
        place.set(Lane { next: lane.next + WORDS, ..lane });
        self.words.get(lane.next + WORDS..).into_iter().for_each(mapping::expect_writes);
        entry.word(word::NAME).store(name.into(), Relaxed);
        entry.word(word::KIND).store((kind as u64) << 32, Relaxed);
        Some(entry)
    }

    /// Forgets the record that this thread has begun last, whose place is used again; ends any other one.
    #[inline]
    pub fn forget(&self, entry: Entry) {
        let place = self.lanes.of_thread();
        let lane = place.get();
        if lane.next == entry.at + WORDS {
            entry.clear();
            place.set(Lane { next: entry.at, ..lane });
        } else {
            entry.end();
        }
    }

    /// Words of a block.
    fn block_len(&self) -> usize {
        self.form.block() / 8
    }

    /// Returns the next place of a ring that is free: passes over records of what has not ended (TC7), and overwrites the
    /// first one behind them.
    #[inline(never)]
    fn make_room(&self, mut lane: Lane) -> Option<Lane> {
        for _ in 0..self.block_len() / WORDS {
            let entry = self.entry(lane.next)?;
            if !entry.is_open() {
                self.overwrite(&self.words[lane.end - self.block_len()..], entry);
                return Some(lane);
            }
            lane.next += WORDS;
            if lane.next >= lane.end {
                lane = self.next_block(lane)?;
            }
        }
        self.lose(lane);
        None
    }

    /// Forgets a record of a block, if there is one, and counts it.
    #[inline]
    fn overwrite(&self, block: &[AtomicU64], entry: Entry) {
        let start = entry.word(word::START).load(Relaxed);
        if start != 0 {
            let count = &block[block::OVERWRITTEN];
            count.store(count.load(Relaxed) + 1, Relaxed);
            block[block::OVERWRITTEN_UNTIL].fetch_max(start, Relaxed);
            entry.clear();
        }
    }

    /// Returns the record at this place, in words from the start of the memory.
    #[inline(always)]
    fn entry(&self, at: usize) -> Option<Entry> {
        let words = self.words.get(at..)?.first_chunk()?;
        Some(Entry { words, at, clock: self.clock })
    }

    /// Takes a further block for this thread (TC2), or goes on in the next one of its ring. If there is none, counts the
    /// record as lost.
    #[cold]
    #[inline(never)]
    fn next_block(&self, lane: Lane) -> Option<Lane> {
        let size = self.block_len();
        let id = || rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        let number = match (self.form, lane.thread) {
            (Form::First, _) => self.take_block(0),
            (_, 0) => self.take_ring(id()),
            // Those that are left are for threads that have none.
            (Form::Newest, _) => {
                let number = self.take_block(self.blocks().len() / 8);
                number.filter(|number| self.own(*number, 0, id()))
            }
            (Form::LastCalls, _) => None,
        };
        let block = number.and_then(|number| self.blocks().nth(number));
        let block = block.filter(|block| mapping::provide(block));
        // That of the last block of this thread.
        let next = lane.end.checked_sub(size).map(|last| &self.words[last + block::NEXT]);
        let Some(words) = block else {
            let Some(next) = next.filter(|_| self.form != Form::First) else {
                self.lose(lane);
                return None;
            };
            let start = next.load(Relaxed) as usize;
            return Some(Lane { next: start + WORDS, end: start + size, ..lane });
        };
        let start = BLOCKS / 8 + number.unwrap_or(0) * size;
        let thread = match lane.thread {
            0 => self.words[head::THREADS].fetch_add(1, Relaxed) + 1,
            thread => thread,
        };
        let oldest = next.map_or(start as u64, |next| next.swap(start as u64, Relaxed));
        words[block::NEXT].store(oldest, Relaxed);
        words[block::SYSTEM_ID].store(id().into(), Relaxed);
        words[block::THREAD].store(thread, Release);
        Some(Lane { next: start + WORDS, end: start + size, thread, ..lane })
    }

    fn blocks(&self) -> ChunksExact<'static, AtomicU64> {
        self.words[BLOCKS / 8..].chunks_exact(self.block_len())
    }

    /// Takes a block, if more than so many are left that nobody has.
    fn take_block(&self, others: usize) -> Option<usize> {
        // Once all are taken, the count is not changed any more, so it never wraps.
        let taken = &self.words[head::BLOCKS_TAKEN];
        let is_left = taken.load(Relaxed) < (self.blocks().len() - others) as u64;
        is_left.then(|| taken.fetch_add(1, Relaxed) as usize)
    }

    /// Makes the block with a number that of the thread with this id, if it still is that of the one before.
    fn own(&self, number: usize, before: u32, id: u32) -> bool {
        let owner = self.blocks().nth(number).map(|block| &block[block::SYSTEM_ID]);
        owner.is_some_and(|owner| {
            owner.compare_exchange(before.into(), id.into(), Relaxed, Relaxed).is_ok()
        })
    }

    /// Takes the first block of a ring for the thread with this id: one that nobody has, or else one whose thread has ended.
    /// Goes through them in turn, so that what ended long ago is overwritten first.
    fn take_ring(&self, id: u32) -> Option<usize> {
        let (most, tasks) = (self.blocks().len(), Path::new("/proc/self/task"));
        // Who has found none asks again only now and then.
        if self.words[head::LOST].load(Relaxed) % RARELY != 0 || !tasks.exists() {
            return None;
        }
        let taken = &self.words[head::BLOCKS_TAKEN];
        let first = taken.fetch_add(1, Relaxed) as usize;
        let number = (0..most).map(|step| first.wrapping_add(step) % most).find(|&number| {
            let Some(ring) = self.blocks().nth(number) else { return false };
            let owner = ring[block::SYSTEM_ID].load(Relaxed) as u32;
            let is_free = owner == 0 || !tasks.join(owner.to_string()).exists();
            is_free && self.own(number, owner, id)
        })?;
        // A reader looks at as many as were taken.
        taken.fetch_max(number as u64 + 1, Relaxed);
        let start = BLOCKS / 8 + number * self.block_len();
        let places = (start..start + self.block_len()).step_by(WORDS).skip(1);
        let entries = places.filter_map(|at| self.entry(at));
        entries.for_each(|entry| self.overwrite(&self.words[start..], entry));
        Some(number)
    }

    /// Counts a record for which there is no memory.
    fn lose(&self, lane: Lane) {
        let count = match lane.end.checked_sub(self.block_len()) {
            Some(last) => &self.words[last + block::LOST],
            None => &self.words[head::LOST],
        };
        count.fetch_add(1, Relaxed);
    }

    /// Stores a text and returns its number; 0 if there is no memory for it.
    pub fn text(&self, text: &str) -> u32 {
        let mut len = text.len().min(LONGEST_TEXT);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let words = 1 + len.div_ceil(8);
        let taken = &self.words[head::TEXT_TAKEN];
        let room = FOOTPRINT / 8 - WORDS;
        if taken.load(Relaxed) > room as u64 {
            return 0;
        }
        let at = WORDS + taken.fetch_add(words as u64, Relaxed) as usize;
        let Some(place) = self.words[..FOOTPRINT / 8].get(at..at + words) else { return 0 };
        for (word, bytes) in place[1..].iter().zip(text.as_bytes()[..len].chunks(8)) {
            let mut padded = [0; 8];
            padded[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(padded), Relaxed);
        }
        place[0].store(len as u64, Release);
        at as u32
    }

    /// Stores a text that stays where it is, once, and returns its number.
    #[inline]
    pub fn text_once(&self, text: &'static str) -> u32 {
        self.known((text.as_ptr().addr(), text.len()), || self.text(text))
    }

    /// Stores a place in the source, once, and returns its number.
    #[inline]
    pub fn place(&self, place: &'static Location<'static>) -> u32 {
        let text = || self.text(&format!("{}:{}", place.file(), place.line()));
        self.known((std::ptr::from_ref(place).addr(), 0), text)
    }

    /// Stores a line of a file, once, and returns its number.
    #[inline]
    pub fn line(&self, file: &'static str, line: u32) -> u32 {
        let key = (file.as_ptr().addr(), usize::MAX - line as usize);
        self.known(key, || self.text(&format!("{file}:{line}")))
    }

    /// Returns the number of a text. Takes no lock if this thread has used the text lately.
    #[inline]
    fn known(&self, key: Key, text: impl FnOnce() -> u32) -> u32 {
        // Names lie close together, one after the other; places have addresses that are multiples of 8; lines of a file
        // have one address.
        let at = (key.0 ^ key.0 >> 3 ^ key.0 >> 8).wrapping_add(key.1) % KNOWN;
        TEXTS.with(|texts| match texts[at].get() {
            (known, number) if known == key => number,
            _ => {
                let number = self.once(key, text);
                texts[at].set((key, number));
                number
            }
        })
    }

    #[cold]
    #[inline(never)]
    fn once(&self, key: Key, text: impl FnOnce() -> u32) -> u32 {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        *texts.entry(key).or_insert_with(text)
    }
}
