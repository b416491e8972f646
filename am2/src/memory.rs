//! The memory that payloads are stored in: buffers of the library for medium messages, segments for long ones.
//!
//! A message of several packets is stored piece by piece while others may run, so its place is shared between the queue
//! entry and the transport's sink, behind a lock of its own. The header handler and the sinks take that lock while the
//! session's lock is held. So whoever holds it must not wait for the session: bundles hold it only while a handler or a
//! closure of the user runs, and neither can communicate.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use transport_lapi::{ForeignBytes, Sink, Unpack};

use crate::queue::Entry;

/// Buffers that a task keeps for later messages, at most.
const MOST_SPARES: usize = 64;
/// Entries that it keeps, at most: those of the frames that one poll takes.
const MOST_ENTRIES: usize = 64;

/// Takes a lock; a user's handler that panicked leaves nothing half done that matters here.
fn locked<T: ?Sized>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer of a medium message. It consists of words, so that the payload is aligned to 8 bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Buffer(Arc<Mutex<Vec<u64>>>);

impl Buffer {
    /// Makes room for `len` bytes. Only for buffers that nobody else holds.
    fn make_room(&mut self, len: usize) {
        let mut words = locked(&self.0);
        let len = len.div_ceil(size_of::<u64>());
        if words.len() < len {
            words.resize(len, 0);
        }
    }

    fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Runs `read` on the first `len` bytes.
    pub fn read<R>(&self, len: usize, read: impl FnOnce(&[u8]) -> R) -> R {
        let words = locked(&self.0);
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        read(&bytes[..len.min(bytes.len())])
    }
}

/// What the next messages use again.
#[derive(Debug, Default)]
pub(crate) struct Spares {
    buffers: Vec<Buffer>,
    // Boxed as in the queues, between which and here they move.
    #[expect(clippy::vec_box, reason = "an entry is not moved")]
    entries: Vec<Box<Entry>>,
}

impl Spares {
    /// Returns a buffer with room for `len` bytes.
    pub fn take(&mut self, len: usize) -> Buffer {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        buffer.make_room(len);
        buffer
    }

    /// Keeps a buffer for a later message, unless somebody still holds it.
    fn put(&mut self, buffer: Buffer) {
        if self.buffers.len() < MOST_SPARES && !buffer.is_shared() {
            self.buffers.push(buffer);
        }
    }

    /// Returns an entry, whose contents are those of an earlier message.
    #[inline]
    pub fn take_entry(&mut self) -> Box<Entry> {
        self.entries.pop().unwrap_or_else(Entry::new)
    }

    /// Keeps an entry, and its buffer, for later messages.
    #[inline]
    pub fn put_entry(&mut self, mut entry: Box<Entry>) {
        if let Place::Buffer(buffer) = std::mem::replace(&mut entry.place, Place::Nothing) {
            self.put(buffer);
        }
        if self.entries.len() < MOST_ENTRIES {
            self.entries.push(entry);
        }
    }
}

/// The segment of an endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    bytes: Arc<Mutex<Vec<u8>>>,
    len: usize,
}

impl Segment {
    pub fn new(bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        Self { bytes: Arc::new(Mutex::new(bytes)), len }
    }

    /// Length in bytes, which never changes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Runs `access` on all bytes.
    pub fn with<R>(&self, access: impl FnOnce(&mut [u8]) -> R) -> R {
        access(&mut locked(&self.bytes))
    }

    /// Returns the bytes.
    ///
    /// # Errors
    /// The segment again, if an accepted message still refers to it.
    pub fn into_bytes(self) -> Result<Vec<u8>, Self> {
        let len = self.len;
        let bytes = Arc::try_unwrap(self.bytes).map_err(|bytes| Self { bytes, len })?;
        Ok(bytes.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Where the payload of an accepted message lies.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// There is none.
    Nothing,
    /// In the entry of the queue: it came in one packet.
    Entry,
    /// In a buffer, from its start.
    Buffer(Buffer),
    /// In a segment, from this offset on. The header handler has checked that it ends inside.
    Segment(Segment, usize),
}

impl Place {
    /// Copies bytes of the payload, from `offset` on, to their place.
    pub fn store(&self, offset: usize, from: ForeignBytes<'_>) {
        match self {
            Self::Nothing | Self::Entry => {}
            Self::Buffer(buffer) => {
                let mut words = locked(&buffer.0);
                copy(from, bytemuck::cast_slice_mut(&mut words), offset);
            }
            Self::Segment(segment, start) => {
                segment.with(|bytes| copy(from, bytes, start.saturating_add(offset)));
            }
        }
    }

    /// Returns a sink that stores `len` bytes here.
    pub fn sink(&self, len: usize) -> Sink {
        Sink::layout(Landing { place: self.clone(), len })
    }
}

/// Copies what fits.
fn copy(from: ForeignBytes<'_>, into: &mut [u8], at: usize) {
    if let Some(into) = into.get_mut(at..) {
        from.copy_to(into);
    }
}

/// A place in the form that the transport stores a message of several packets in.
struct Landing {
    place: Place,
    len: usize,
}

impl Unpack for Landing {
    fn size(&self) -> usize {
        self.len
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        self.place.store(offset, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_reused_unless_they_are_held() {
        let mut spares = Spares::default();
        for len in [0, 1, 8, 65, 4096] {
            let buffer = spares.take(len);
            buffer.read(len, |bytes| {
                assert_eq!(bytes.len(), len);
                assert_eq!(bytes.as_ptr().addr() % 8, 0);
            });
            spares.put(buffer);
            assert_eq!(spares.buffers.len(), 1);
        }
        let buffer = spares.take(1);
        let held = buffer.clone();
        spares.put(buffer);
        assert_eq!(spares.buffers.len(), 0, "somebody still writes there");
        drop(held);
    }

    #[test]
    fn pieces_go_where_they_belong_and_nothing_is_written_outside() {
        let segment = Segment::new(vec![0; 6]);
        let place = Place::Segment(segment.clone(), 2);
        place.store(1, ForeignBytes::from_slice(&[1, 2]));
        place.store(3, ForeignBytes::from_slice(&[3, 4, 5]));
        place.store(usize::MAX, ForeignBytes::from_slice(&[6]));
        segment.with(|bytes| assert_eq!(bytes, [0, 0, 0, 1, 2, 3]));
        let segment = segment.into_bytes().expect_err("the place refers to it");
        drop(place);
        assert_eq!(segment.into_bytes().unwrap(), [0, 0, 0, 1, 2, 3]);
    }
}
