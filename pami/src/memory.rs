//! Memory that other tasks access by one-sided operations.
//!
//! It lies in the task's shared area if the adapter has one with enough room, and is memory of the process otherwise,
//! which the session registers for writing.
//!
//! - MR1: memory of the process is held by its [`Memregion`] and by the state of its context, whichever lasts longer. The
//!   state gives it up when the registration has ended, or is dropped after the session, which ends all registrations.
//!   It is never borrowed as bytes: the program copies words of it by atomic operations.

#![expect(unsafe_code, reason = "registers memory that it owns")]

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use transport_lapi::{LapiError, Next, RecvRegion, RemoteRegion, SharedMemory, Sink, Source};

use crate::context::Section;
use crate::data::{data_sink, data_source};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::packet::{PLACE_BYTES, place, place_bytes};
use crate::state::ended;
use crate::types::Type;

/// Memory of another task, or of this one, as an operation names it (pami_memregion_t): a value that may be sent in
/// messages. Operations with it go to the endpoint on which it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteMemory(pub(crate) RemoteRegion);

impl RemoteMemory {
    /// Bytes of the value (PAMI_CLIENT_MEMREGION_SIZE).
    pub const BYTES: usize = PLACE_BYTES;

    /// Returns the length of the memory in bytes.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the value for a message.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        place_bytes(self.0)
    }

    /// The value that a message has brought. It is checked where the memory is accessed.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        Self(place(bytes))
    }
}

/// Memory of this task that other tasks access. What they do to it while the program accesses it is seen in part.
pub struct Memregion {
    memory: Memory,
    remote: RemoteMemory,
    len: usize,
    /// The endpoint on which it was created.
    at: Endpoint,
}

#[derive(Clone)]
enum Memory {
    Shared(Arc<SharedMemory>),
    Words(Words),
}

/// Memory of the process.
#[derive(Clone)]
struct Words(Arc<[AtomicU64]>);

const WORD: usize = size_of::<u64>();

impl Words {
    fn new(len: usize) -> Self {
        Self((0..len.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Calls `visit` with each word that has some of `len` bytes from `offset` on: the word, where these bytes begin in
    /// it, and where they lie among the `len`.
    fn each(
        &self,
        offset: usize,
        len: usize,
        mut visit: impl FnMut(&AtomicU64, usize, Range<usize>),
    ) {
        let mut done = 0;
        while done < len {
            let (word, within) = ((offset + done) / WORD, (offset + done) % WORD);
            let count = (WORD - within).min(len - done);
            visit(&self.0[word], within, done..done + count);
            done += count;
        }
    }

    fn read(&self, offset: usize, into: &mut [u8]) {
        self.each(offset, into.len(), |word, within, range| {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            let count = range.len();
            into[range].copy_from_slice(&bytes[within..within + count]);
        });
    }

    fn write(&self, offset: usize, from: &[u8]) {
        self.each(offset, from.len(), |word, within, range| {
            let mut bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            bytes[within..within + range.len()].copy_from_slice(&from[range]);
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        });
    }
}

impl Memory {
    /// Reads bytes, of which the caller has checked that they exist.
    fn read(&self, offset: usize, into: &mut [u8]) {
        match self {
            Self::Shared(memory) => memory.read(offset, into).expect(EXISTS),
            Self::Words(words) => words.read(offset, into),
        }
    }

    /// Likewise writes them.
    fn write(&self, offset: usize, from: &[u8]) {
        match self {
            Self::Shared(memory) => memory.write(offset, from).expect(EXISTS),
            Self::Words(words) => words.write(offset, from),
        }
    }
}

const EXISTS: &str = "the bytes exist, and a fork has no context that would ask for them";

impl Memregion {
    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value by which other tasks name the memory.
    pub fn remote(&self) -> RemoteMemory {
        self.remote
    }

    /// Returns a pointer to the first byte, for programs that know when no task accesses the memory, and keep it meanwhile.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        match &self.memory {
            Memory::Shared(memory) => memory.as_mut_ptr(),
            Memory::Words(words) => words.0.as_ptr().cast_mut().cast(),
        }
    }

    /// Returns these bytes as the source of a message or a put.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn source(&self, offset: usize, len: usize) -> Source {
        self.check(offset, len);
        let memory = self.memory.clone();
        data_source(len, move |at, piece| memory.read(offset + at, piece))
    }

    /// Returns these bytes as the destination of a message or a get.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn sink(&self, offset: usize, len: usize) -> Sink {
        self.check(offset, len);
        let memory = self.memory.clone();
        data_sink(len, move |at, piece| memory.write(offset + at, piece))
    }

    /// Returns the bytes that lie like this from `offset` on as the source of a message or a put.
    ///
    /// # Panics
    /// If some lie outside.
    pub fn typed_source(&self, offset: usize, form: &Type) -> Source {
        self.check(offset, form.end());
        let (memory, form) = (self.memory.clone(), form.clone());
        data_source(form.size(), move |at, piece| {
            form.each_part(at, piece.len(), |place, range| {
                memory.read(offset + place, &mut piece[range]);
            });
        })
    }

    /// Returns the places that lie like this from `offset` on as the destination of a message or a get.
    ///
    /// # Panics
    /// If some lie outside.
    pub fn typed_sink(&self, offset: usize, form: &Type) -> Sink {
        self.check(offset, form.end());
        let (memory, form) = (self.memory.clone(), form.clone());
        data_sink(form.size(), move |at, piece| {
            form.each_part(at, piece.len(), |place, range| {
                memory.write(offset + place, &piece[range]);
            });
        })
    }

    fn check(&self, offset: usize, len: usize) {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(fits, "{len} bytes at {offset} of memory of {} bytes", self.len);
    }

    /// Copies the bytes from `offset` on into `into`.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        self.memory.read(offset, into);
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        self.memory.write(offset, from);
    }
}

impl Section<'_> {
    /// Makes memory of `len` bytes, zeros or what was there before, that other tasks access
    /// (PAMI_Memregion_create). Never less than asked for.
    ///
    /// # Errors
    /// [`Error::Transport`] if the system has not so much memory.
    pub fn memregion_create(&mut self, len: usize) -> Result<Memregion, Error> {
        let at = self.endpoint();
        let shared = match self.session.alloc_shared(len) {
            Ok(memory) => {
                let remote = RemoteMemory(memory.region());
                return Ok(Memregion { memory: Memory::Shared(Arc::new(memory)), remote, len, at });
            }
            Err(LapiError::NoSharedArea | LapiError::AreaExhausted { .. }) => Words::new(len),
            Err(cause) => return Err(self.failed(cause)),
        };
        let start = shared.0.as_ptr().cast_mut().cast();
        // SAFETY: G2: the words stay until the registration has ended, and are only copied meanwhile (MR1).
        let region = unsafe { RecvRegion::new(start, len) };
        let region = self.session.register_writable(region).map_err(|cause| self.failed(cause))?;
        self.session.state.registered.push((region, Arc::clone(&shared.0)));
        let (memory, remote) = (Memory::Words(shared), RemoteMemory(region));
        Ok(Memregion { memory, remote, len, at })
    }

    /// Ends the access of other tasks to the memory (PAMI_Memregion_destroy). Operations that have begun are carried
    /// out; later ones fail, or have no effect. Parts of it that are sources or sinks are still usable.
    ///
    /// # Panics
    /// If the section is of another context than the one that has created the memory.
    pub fn memregion_destroy(&mut self, memory: Memregion) {
        assert_eq!(memory.at, self.endpoint(), "the context that has created memory destroys it");
        let (region, task) = (memory.remote.0, self.task());
        let registered = &mut self.session.state.registered;
        if let Some(place) = registered.iter().position(|(other, _)| *other == region) {
            let (_, words) = registered.swap_remove(place);
            let over = self.begin(task, Some(Box::new(move |_, _| drop(words))));
            let next = over.map_or(Next::Nothing, |number| Next::Outcome(ended, number));
            self.session.deregister(region, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written_at_any_offset() {
        let words = Words::new(24);
        for offset in 0..20 {
            for len in 0..=24 - offset {
                words.write(0, &[7; 24]);
                let bytes: Vec<u8> = (100..100 + len as u8).collect();
                words.write(offset, &bytes);
                let mut all = [0; 24];
                words.read(0, &mut all);
                assert_eq!(all[offset..offset + len], bytes);
                assert!(all[..offset].iter().chain(&all[offset + len..]).all(|byte| *byte == 7));
                let mut part = vec![0; len];
                words.read(offset, &mut part);
                assert_eq!(part, bytes);
            }
        }
    }
}
