//! Entries of the fuzz targets in `tests/fuzz`, one for each form of bytes that peers send. Each entry decodes
//! arbitrary bytes, checks what must hold of whatever it accepts, and returns whether it has accepted them. They are no
//! part of the interface.
//!
//! - FU1: a region that an entry makes describes a local array, which outlives it, and which nobody else uses
//!   meanwhile.

#![expect(unsafe_code, reason = "describes arrays as regions")]

use crate::bootstrap::exchange::mapping;
use crate::bootstrap::exchange::record::{Form, LENGTH, Record};
use crate::error::End;
use crate::job::bootstrap::control::agents::{News, Order};
use crate::job::bootstrap::control::line::{self, Travels};
use crate::memory::region::{ForeignBytes, RecvRegion, RemoteRegion, SendRegion};
use crate::progress::direct::Direct;
use crate::progress::serve::request::Request;
use crate::progress::serve::vector::Vector;
use crate::wire;

/// Bytes of the memory that vectors and areas describe.
const MEMORY: usize = 4096;

/// The head of a packet, with the length of its body.
pub fn packet(head: &[u8], body: usize) -> bool {
    wire::decode(head, body).is_ok()
}

/// The user header of a one-sided request. There is one encoding of each request.
pub fn request(uhdr: &[u8]) -> bool {
    let Some(request) = Request::decode(uhdr) else { return false };
    assert_eq!(request.encode().bytes(), uhdr, "the request encodes differently");
    true
}

/// What an agent tells `mpjrun`, behind a byte that is 0, or what it is told. There is one encoding of each message.
pub fn agents(input: &[u8]) -> bool {
    match input.split_first() {
        Some((0, body)) => line_message::<News>(body),
        Some((_, body)) => line_message::<Order>(body),
        None => false,
    }
}

fn line_message<M: Travels>(body: &[u8]) -> bool {
    let Ok(message) = line::decode::<M>(body) else { return false };
    assert_eq!(line::encode(&message), body, "the message encodes differently");
    true
}

/// The words of a vector that was sent ahead. Its blocks are gathered from a memory, scattered into another one and
/// gathered there again, unless they do not lie inside. Returns whether that was done.
pub fn vector(bytes: &[u8]) -> bool {
    let chunks = bytes.chunks_exact(8);
    let is_whole = chunks.remainder().is_empty();
    let word = |chunk: &[u8]| u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
    let words: Vec<u64> = chunks.map(word).collect();
    let Some(vector) = Vector::from_words(&words).filter(|_| is_whole) else { return false };
    assert_eq!(vector.words(), words, "the vector encodes differently");
    assert_eq!(vector.words_len(), words.len());
    let memory: [u8; MEMORY] = std::array::from_fn(|at| at as u8 ^ (at >> 8) as u8);
    let mut target = [0; MEMORY];
    // SAFETY: FU1.
    let [from, to] = unsafe {
        [SendRegion::new(memory.as_ptr(), MEMORY), SendRegion::new(target.as_ptr(), MEMORY)]
    };
    // SAFETY: FU1.
    let into = unsafe { RecvRegion::new(target.as_mut_ptr(), MEMORY) };
    // Only blocks that do not overlap can be scattered, and these are no more bytes than the memory has.
    let Ok(mut sink) = vector.scatter_at(End::Target, into) else { return false };
    let source =
        vector.gather_at(End::Target, from).expect("what can be scattered can be gathered");
    assert_eq!(Some(source.len() as u64), vector.size());
    let gathered = source.piece(0, source.len()).to_vec();
    sink.store(0, ForeignBytes::from_slice(&gathered));
    drop(sink);
    let again = vector.gather_at(End::Target, to).expect("the memory is as long");
    assert_eq!(again.piece(0, again.len()).to_vec(), gathered, "the bytes went elsewhere");
    let mut rest = gathered.len();
    for (at, len) in vector.blocks() {
        assert!(at + len <= MEMORY as u64, "block at {at} of {len} bytes");
        rest -= len as usize;
    }
    assert_eq!(rest, 0, "the blocks have other lengths");
    true
}

/// What a process manager says: a line of PMI-1 behind `L`, a record of PMI-2 behind `C`, the places of five ranks behind
/// `M`. What was read is read again when it is written.
pub fn manager(bytes: &[u8]) -> bool {
    let Some((kind, text)) = bytes.split_first() else { return false };
    let form = match kind {
        b'L' => Form::Line,
        b'C' => Form::Counted,
        b'M' => {
            let hosts = std::str::from_utf8(text).ok().and_then(|text| mapping::hosts(text, 5));
            assert!(hosts.iter().flatten().all(|host| *host < 5), "five ranks have five hosts");
            return hosts.is_some_and(|hosts| hosts.len() == 5);
        }
        _ => return false,
    };
    let words = match form {
        Form::Line => Some(text),
        Form::Counted => text.split_at_checked(LENGTH).and_then(|(length, words)| {
            (Record::length(length) == Some(words.len())).then_some(words)
        }),
    };
    let Some(record) = words.and_then(|words| Record::decode(form, words)) else { return false };
    let written = record.encode(form);
    let start = if form == Form::Counted { LENGTH } else { 0 };
    let again = Record::decode(form, &written.as_bytes()[start..]);
    assert_eq!(again, Some(record), "the record reads differently");
    true
}

/// A description of memory in a shared area, and the place of an access: address, length, key, offset, and the number
/// of bytes, as words of 64 bits. Nothing outside of the area is read or written. Returns whether something was.
pub fn area(bytes: &[u8]) -> bool {
    let word = |at: usize| bytes.get(8 * at..8 * at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let words = [0, 1, 2, 3, 4].map(word);
    let [Some(addr), Some(len), Some(key), Some(offset), Some(size)] = words else { return false };
    let mut memory = [0_u64; 3 * MEMORY / 8];
    memory[MEMORY / 8..][..MEMORY / 8].fill(u64::MAX);
    let (bytes, mut copy) = ([1; MEMORY], [0; MEMORY]);
    let start = memory[MEMORY / 8..].as_mut_ptr().cast();
    let direct = Direct::of_fuzz(start, MEMORY);
    let size = (size as usize).min(MEMORY);
    // SAFETY: FU1.
    let (from, mut into) = unsafe {
        (SendRegion::new(bytes.as_ptr(), size), RecvRegion::new(copy.as_mut_ptr(), size))
    };
    let remote = RemoteRegion::over_frames(addr, len, key);
    let loaded = direct.load(1, remote, offset, &mut into);
    let expected = if loaded { u8::MAX } else { 0 };
    assert!(copy[..size].iter().all(|byte| *byte == expected), "read outside of the area");
    let stored = direct.store(1, remote, offset, from);
    assert_eq!(loaded, stored, "a get and a put of the same bytes");
    let added = direct.rmw(1, remote, offset, crate::RmwOp::FetchAndAdd(1_i64).into()).is_some();
    let (before, rest) = memory.split_at(MEMORY / 8);
    let (_, behind) = rest.split_at(MEMORY / 8);
    assert!(before.iter().chain(behind).all(|word| *word == 0), "written outside of the area");
    stored || added
}
