//! Memory that other tasks access by one-sided operations.
//!
//! It lies in the task's shared area if the adapter has one with enough room, and is memory of the process otherwise,
//! which the session registers for writing.
//!
//! - MR1: memory of the process is held by its [`Memregion`] and by the state of its context, whichever lasts longer. The
//!   state gives it up when the registration has ended, or is dropped after the session, which ends all registrations.
//!   It is never borrowed as bytes: all accesses of this process are those of [`SharedBytes`].

#![expect(unsafe_code, reason = "registers and accesses memory that it owns")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use transport_lapi::{
    ForeignBytes, LapiError, Layout, LayoutError, Pack, RecvPart, RecvRegion, RemoteRegion,
    SharedBytes, SharedMemory, Sink, Source, Unpack,
};

use crate::context::Section;
use crate::error::Error;
use crate::state::at_end;
use crate::types::{Endpoint, Type};

/// Memory of this task that other tasks access. What they do to it while the program accesses it is seen in part.
pub struct Memregion {
    memory: Memory,
    remote: RemoteRegion,
    len: usize,
    /// The endpoint on which it was created.
    at: Endpoint,
}

/// Memory of the process, in words.
type Words = Arc<[AtomicU64]>;

#[derive(Clone)]
enum Memory {
    Shared(Arc<SharedMemory>),
    Words(Words),
}

impl Memory {
    /// Returns the bytes.
    ///
    /// # Panics
    /// In a fork, which does not have the memory.
    fn bytes(&self) -> SharedBytes<'_> {
        match self {
            Self::Shared(memory) => memory.bytes().expect("this process has the shared area"),
            Self::Words(words) => {
                let start = words.as_ptr().cast_mut().cast();
                // SAFETY: SB1: the words are there as long as they are borrowed, and accessed so only (MR1).
                unsafe { SharedBytes::new(start, size_of_val(&**words)) }
            }
        }
    }
}

/// Bytes of memory as a source or a sink.
struct Placed {
    memory: Memory,
    layout: Layout,
    /// Where the layout lies.
    origin: isize,
}

impl Pack for Placed {
    fn size(&self) -> usize {
        self.layout.size()
    }

    fn pack(&self, offset: usize, into: RecvPart<'_>) {
        let packed = self.layout.load(self.memory.bytes(), self.origin, offset, into);
        packed.expect(CHECKED);
    }
}

impl Unpack for Placed {
    fn size(&self) -> usize {
        self.layout.size()
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let unpacked = self.layout.store(from, offset, self.memory.bytes(), self.origin);
        unpacked.expect(CHECKED);
    }
}

const CHECKED: &str = "the bytes were checked when the source or the sink was made";

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
    pub fn remote(&self) -> RemoteRegion {
        self.remote
    }

    /// Returns a pointer to the first byte, for programs that know when no task accesses the memory, and keep it meanwhile.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.memory.bytes().as_mut_ptr()
    }

    /// Returns these bytes as the source of a message or a put.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn source(&self, offset: usize, len: usize) -> Source {
        Source::Layout(Arc::new(self.placed(offset, Layout::contiguous(len))))
    }

    /// Returns these bytes as the destination of a message or a get.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn sink(&self, offset: usize, len: usize) -> Sink {
        Sink::layout(self.placed(offset, Layout::contiguous(len)))
    }

    /// Returns the bytes that lie like this from `offset` on as the source of a message or a put.
    ///
    /// # Panics
    /// If some lie outside.
    pub fn typed_source(&self, offset: usize, form: &Type) -> Source {
        Source::Layout(Arc::new(self.placed(offset, Ok(form.layout().clone()))))
    }

    /// Returns the places that lie like this from `offset` on as the destination of a message or a get.
    ///
    /// # Panics
    /// If some lie outside, or the type has a byte twice.
    pub fn typed_sink(&self, offset: usize, form: &Type) -> Sink {
        assert!(form.layout().is_disjoint(), "a type with a byte twice cannot be received into");
        Sink::layout(self.placed(offset, Ok(form.layout().clone())))
    }

    fn placed(&self, offset: usize, layout: Result<Layout, LayoutError>) -> Placed {
        let layout = layout.expect("no memory has so many bytes");
        self.check(offset, layout.bounds().1.unsigned_abs());
        // It is not above the length of the memory.
        Placed { memory: self.memory.clone(), layout, origin: offset as isize }
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
        self.memory.bytes().part(offset, into.len()).load(RecvPart::of_slice(into));
        // What another task stored before something that is seen now is seen next.
        fence(Ordering::Acquire);
    }

    /// Copies `from` to the bytes from `offset` on.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        self.memory.bytes().part(offset, from.len()).store(ForeignBytes::from_slice(from));
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
        match self.session.alloc_shared(len) {
            Ok(memory) => {
                let remote = memory.region();
                return Ok(Memregion { memory: Memory::Shared(memory.into()), remote, len, at });
            }
            Err(LapiError::NoSharedArea | LapiError::AreaExhausted { .. }) => {}
            Err(cause) => return Err(self.failed(cause)),
        }
        let words: Words = (0..len.div_ceil(8)).map(|_| AtomicU64::new(0)).collect();
        // SAFETY: G2: the words stay until the registration has ended, and are only copied meanwhile (MR1).
        let region = unsafe { RecvRegion::new(words.as_ptr().cast_mut().cast(), len) };
        let region = self.session.register_writable(region).map_err(|cause| self.failed(cause))?;
        self.session.state.registered.push((region, Arc::clone(&words)));
        Ok(Memregion { memory: Memory::Words(words), remote: region, len, at })
    }

    /// Ends the access of other tasks to the memory (PAMI_Memregion_destroy). Operations that have begun are carried
    /// out; later ones fail, or have no effect. Parts of it that are sources or sinks are still usable.
    ///
    /// # Panics
    /// If the section is of another context than the one that has created the memory.
    pub fn memregion_destroy(&mut self, memory: Memregion) {
        assert_eq!(memory.at, self.endpoint(), "the context that has created memory destroys it");
        let (region, task) = (memory.remote, self.task());
        let registered = &mut self.session.state.registered;
        if let Some(place) = registered.iter().position(|(other, _)| *other == region) {
            let (_, words) = registered.swap_remove(place);
            let over = self.begin(task, false, Some(Box::new(move |_, _| drop(words))));
            let next = at_end(over);
            self.session.deregister(region, next);
        }
    }
}
