//! What a rank records of its calls, in memory that the launcher reads when the rank has ended: all calls
//! (`mpjrun --trace`), or the last ones, for the report of a job that finds mistakes and fails.
//!
//! The launcher makes one sealed memfd for each rank ([`create`]), which the rank inherits. The rank maps it and records
//! (`recorder.rs`, `entry.rs`); the launcher reads it ([`read`], `recorded.rs`), however the rank has ended: what was
//! recorded is there, also after a crash. An agent on another host copies it to the launcher ([`used`]). Several libraries of
//! a process may record in it (`lanes.rs`).
//!
//! ```text
//!  head     64 bytes of numbers: what the memory is, and how much of it is taken
//!  texts    names and places in the source, each a length and its bytes
//!  footprint  how much memory the rank occupies, which the launcher notes at the end
//!  blocks   of 16 KiB, each taken by one thread, which fills it: a head of 64 bytes, then records of 64 bytes
//! ```
//!
//! Where the newest records are kept, the blocks of a thread form a ring: when the thread gets no further one, it goes on in
//! its oldest. A thread that has a block leaves the last eighth of them to threads that have none. Where only the last calls
//! are kept, blocks have 2 KiB, and a thread has one.
//!
//! - TC1: all of it is words of 64 bits, which are read and written as atomics. So there are no data races, and each
//!   value that a reader gets was written.
//! - TC2: a thread takes whole blocks, by one atomic addition, and only it writes to a block, so recording takes no lock.
//! - TC3: memory that was never written is 0. A record counts if its first word, the start, is not 0; it is written last.
//! - TC4: the launcher never trusts what a rank wrote: it copies the bytes, and each number in them is checked before it
//!   is used.
//! - TC7: in a ring, a thread passes over records of what has not ended, so that it ends none that was overwritten. It notes
//!   when the last one began that it has overwritten: since then all of its records are there.

mod entry;
mod lanes;
mod mapping;
mod recorded;
mod recorder;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags};

pub use entry::Entry;
pub use lanes::{Loan, has_lent};
pub use mapping::ticks;
pub use recorded::{Received, Record, Recorded, ThreadRecords, note_footprint, read, used};
pub use recorder::{
    Join, Outer, Recorder, current, join, join_calls, lend, recorder, recorder_of_parts,
};

/// Bytes of a record, and of the heads of the memory and of a block.
const RECORD: usize = 64;
/// Words of these.
const WORDS: usize = RECORD / 8;
/// Bytes of a block.
const BLOCK: usize = 16 << 10;
/// Bytes of a block where only the last calls are kept.
const SMALL_BLOCK: usize = 2 << 10;
/// Where the first block begins; before it are texts and the footprint.
const BLOCKS: usize = 256 << 10;
/// Where the launcher notes how much memory the rank occupies, behind the texts: pairs of words, a time and bytes.
const FOOTPRINT: usize = BLOCKS - 16 * MOST_LOOKS;
/// The most values that are noted of how much memory a rank occupies.
pub const MOST_LOOKS: usize = 256;
/// The least memory that a rank can get: some hundred blocks beside the texts.
pub const LEAST: u64 = 1 << 20;
/// The most memory that a rank can get.
pub const MOST: u64 = 1 << 36;
/// The most bytes of a text that are kept.
const LONGEST_TEXT: usize = 1000;
/// What the memory begins with.
const MAGIC: u64 = u64::from_le_bytes(*b"mpjtrac3");

/// Words of the head.
mod head {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// Whose times the records have: a [`super::Clock`].
    pub const CLOCK: usize = 1;
    /// How many blocks were taken, also those for which there was no memory.
    pub const BLOCKS_TAKEN: usize = 2;
    /// How many words of texts were taken, also those for which there was no memory.
    pub const TEXT_TAKEN: usize = 3;
    /// How many calls were not recorded of threads that have no block.
    pub const LOST: usize = 4;
    /// How many threads have recorded.
    pub const THREADS: usize = 5;
    /// Which records are kept: a [`super::Form`].
    pub const FORM: usize = 6;
    /// Whether parts of calls are recorded: 0 or 1.
    pub const DETAILS: usize = 7;
}

/// Words of the head of a block.
mod block {
    /// The number of the thread, from 1.
    pub const THREAD: usize = 0;
    /// How many calls of the thread were not recorded after this block was full.
    pub const LOST: usize = 1;
    /// The id that the system has given to the thread.
    pub const SYSTEM_ID: usize = 2;
    /// How many records were overwritten in this block.
    pub const OVERWRITTEN: usize = 3;
    /// The start of the last of them.
    pub const OVERWRITTEN_UNTIL: usize = 4;
    /// Where the next block of the ring begins, in words from the start of the memory.
    pub const NEXT: usize = 5;
}

/// Words of a record.
mod word {
    pub const START: usize = 0;
    pub const END: usize = 1;
    /// Name in the lower half, place in the upper.
    pub const NAME: usize = 2;
    /// Communicator in the lower half, [`super::Kind`] and [`super::flag`] above.
    pub const KIND: usize = 3;
    /// Peer in the lower half, tag in the upper.
    pub const PEER: usize = 4;
    pub const BYTES: usize = 5;
    pub const REQUEST: usize = 6;
    pub const SEQUENCE: usize = 7;
}

/// Bits of a record that say what of it is known, above its kind.
mod flag {
    pub const COMMUNICATOR: u64 = 1 << 40;
    pub const PEER: u64 = 1 << 41;
    pub const TAG: u64 = 1 << 42;
    pub const SEQUENCE: u64 = 1 << 43;
    pub const CANCELLED: u64 = 1 << 44;
    /// The words of the request and of the sequence tell of a message that an exchange has received.
    pub const RECEIVED: u64 = 1 << 45;
    /// The protocol is known.
    pub const PROTOCOL: u64 = 1 << 46;
    /// It is rendezvous.
    pub const RENDEZVOUS: u64 = 1 << 47;
}

/// Which records a memory keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// As many as there is room for. The others are counted.
    Calls {
        /// Bytes of the memory.
        memory: u64,
        /// Whether these are the newest ones, or else the first ones.
        newest: bool,
        /// Whether it is also recorded what calls consist of: phases of a rendezvous, rounds of collective calls.
        details: bool,
    },
    /// The last calls of each thread, of the threads that have begun last.
    LastCalls,
}

impl Keep {
    /// The first calls, in the least memory.
    pub const LEAST: Self = Self::Calls { memory: LEAST, newest: false, details: false };
}

/// How a memory keeps records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// None is overwritten.
    First = 0,
    /// The blocks of a thread are a ring.
    Newest = 1,
    /// A thread has one small block, a ring.
    LastCalls = 2,
}

impl Form {
    /// The form that the head of a memory names.
    fn of(word: u64) -> Self {
        match word {
            1 => Self::Newest,
            2 => Self::LastCalls,
            _ => Self::First,
        }
    }

    /// Bytes of a block.
    fn block(self) -> usize {
        if self == Self::LastCalls { SMALL_BLOCK } else { BLOCK }
    }
}

/// Whose times records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// [`monotonic_nanos`](super::monotonic_nanos).
    System = 0,
    /// The time stamp counter of the processors, which is the same on all of them.
    Counter = 1,
}

impl Clock {
    /// Returns the clock that is best here: the counter of the processors, if it never stops and its rate never changes.
    pub fn here() -> Self {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = flags.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let has = |flag| flags.split_ascii_whitespace().any(|word| word == flag);
        let is_steady = has("constant_tsc") && has("nonstop_tsc");
        if cfg!(target_arch = "x86_64") && is_steady { Self::Counter } else { Self::System }
    }
}

/// What a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A call that is none of the following.
    Other = 0,
    /// A send, or its start.
    Send = 1,
    /// A receive, or its start.
    Receive = 2,
    /// A send together with a receive; peer, tag and bytes are those of the send.
    Exchange = 3,
    /// A wait or a test. With a request, its operation has ended in it, and peer, tag and bytes are those of the operation.
    Wait = 4,
    /// A look for a message.
    Probe = 5,
    /// A collective call.
    Collective = 6,
    /// An access to the memory of another rank, or a call about such accesses.
    OneSided = 7,
    /// A call for a file.
    File = 8,
    /// A part of the program that it has named itself.
    Span = 9,
    /// The making of a persistent send, which calls of kind [`Kind::Start`] start.
    SendInit = 10,
    /// The making of a persistent receive.
    ReceiveInit = 11,
    /// The start of a persistent request.
    Start = 12,
    /// No call: that a further operation ended in the wait whose record [`Record::sequence`] names.
    Ended = 13,
    /// No call: that a persistent request was started in the call whose record [`Record::sequence`] names.
    Started = 14,
    /// No call: a moment that the program has marked.
    Mark = 15,
    /// No call, but a part of the one that goes on.
    Part = 16,
    /// No call: how many receives were posted (the peer) and how many messages unexpected (the tag, with so many bytes) in a
    /// device (the request, from 1) about when the call whose record [`Record::sequence`] names began.
    Levels = 17,
}

impl Kind {
    const ALL: [Self; 18] = [
        Self::Other,
        Self::Send,
        Self::Receive,
        Self::Exchange,
        Self::Wait,
        Self::Probe,
        Self::Collective,
        Self::OneSided,
        Self::File,
        Self::Span,
        Self::SendInit,
        Self::ReceiveInit,
        Self::Start,
        Self::Ended,
        Self::Started,
        Self::Mark,
        Self::Part,
        Self::Levels,
    ];
}

/// Makes the memory for what a rank records, of which the system provides what is written.
///
/// # Errors
/// What the system answers.
pub fn create(keep: Keep, clock: Clock) -> io::Result<OwnedFd> {
    let (bytes, form, details) = match keep {
        Keep::Calls { memory, newest: false, details } => (memory, Form::First, details),
        Keep::Calls { memory, newest: true, details } => (memory, Form::Newest, details),
        Keep::LastCalls => (LEAST, Form::LastCalls, false),
    };
    let bytes = bytes.clamp(LEAST, MOST).next_multiple_of(BLOCK as u64);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = rustix::fs::memfd_create("mpj-trace", flags)?;
    rustix::fs::ftruncate(&memory, bytes)?;
    let mut facts = [0; WORDS];
    (facts[head::MAGIC], facts[head::CLOCK]) = (MAGIC, clock as u64);
    (facts[head::FORM], facts[head::DETAILS]) = (form as u64, details.into());
    let facts = facts.map(u64::to_le_bytes);
    rustix::io::pwrite(&memory, facts.as_flattened(), 0)?;
    rustix::fs::fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(memory)
}
