//! Data functions: bytes that a program makes or consumes piece by piece (pami_data_function).

use std::sync::Arc;

use transport_lapi::{ForeignBytes, Pack, RecvPart, Sink, Source, Unpack};

/// Bytes that a data function gets at once, at most.
const AT_ONCE: usize = 1024;

/// Makes a source of `len` bytes, which `make` produces: it gets the offset of a piece in the message, and fills the piece.
/// Pieces are asked for in any order, perhaps several times.
pub fn data_source(len: usize, make: impl Fn(usize, &mut [u8]) + Send + Sync + 'static) -> Source {
    Source::Layout(Arc::new(Producer { len, make }))
}

struct Producer<F> {
    len: usize,
    make: F,
}

impl<F: Fn(usize, &mut [u8]) + Send + Sync> Pack for Producer<F> {
    fn size(&self) -> usize {
        self.len
    }

    fn pack(&self, offset: usize, mut into: RecvPart<'_>) {
        let mut buffer = [0; AT_ONCE];
        for at in (0..into.len()).step_by(AT_ONCE) {
            let piece = &mut buffer[..AT_ONCE.min(into.len() - at)];
            (self.make)(offset + at, piece);
            into.store(at, ForeignBytes::from_slice(piece));
        }
    }
}

/// Makes a sink of `len` bytes, which `take` consumes: it gets the offset of a piece in the message, and the piece. Neither
/// may communicate.
pub fn data_sink(len: usize, take: impl FnMut(usize, &[u8]) + Send + Sync + 'static) -> Sink {
    Sink::layout(Consumer { len, take })
}

struct Consumer<F> {
    len: usize,
    take: F,
}

impl<F: FnMut(usize, &[u8]) + Send + Sync> Unpack for Consumer<F> {
    fn size(&self) -> usize {
        self.len
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let mut buffer = [0; AT_ONCE];
        for at in (0..from.len()).step_by(AT_ONCE) {
            let count = from.part(at, AT_ONCE).copy_to(&mut buffer);
            (self.take)(offset + at, &buffer[..count]);
        }
    }
}
