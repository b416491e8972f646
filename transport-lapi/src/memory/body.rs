//! Sources and sinks of message bodies.
//!
//! A [`Source`] or a [`Sink`] is either one span of memory, which is the common and fast case, or a layout: an object
//! that can copy any part of the message between its memory and a contiguous buffer. Frames, the data ring and the
//! slices of a get are filled from a source and emptied into a sink piece by piece, so a body that does not lie in one
//! span is never copied as a whole. Clients make sources and sinks; adapters see one [`Piece`] of a source at a time.
//!
//! The transport has two layouts: [`Layout`](crate::Layout), a program of blocks in one memory, and [`Spans`], a list
//! of separate spans.

use std::sync::Arc;

use crate::memory::copy::Toward;
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, SendRegion};

/// A layout to read from: it packs the bytes of a message from wherever they lie.
pub trait Pack: Send + Sync {
    /// Returns the number of bytes.
    fn size(&self) -> usize;

    /// Fills `into` with the bytes from `offset` on. Callers never ask for bytes beyond the end.
    fn pack(&self, offset: usize, into: RecvPart<'_>);
}

/// A layout to write to: it unpacks the bytes of a message to their places.
pub trait Unpack: Send + Sync {
    /// Returns the number of bytes that fit.
    fn size(&self) -> usize;

    /// Copies `from` to the bytes from `offset` on. Callers never pass more bytes than fit.
    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>);
}

/// The source of a message: the bytes to send.
#[derive(Clone)]
pub enum Source {
    /// The bytes are contiguous.
    Span(SendRegion),
    /// A layout determines where the bytes are.
    Layout(Arc<dyn Pack>),
}

impl Source {
    /// A source without bytes.
    pub const EMPTY: Self = Self::Span(SendRegion::EMPTY);

    /// Returns the length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Self::Span(region) => region.len(),
            Self::Layout(layout) => layout.size(),
        }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this is a null address with a length: LAPI's ORG_ADDR_NULL.
    #[inline(always)]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Span(region) if region.is_null())
    }

    /// Returns the span, if the source is one.
    #[inline(always)]
    pub fn span(&self) -> Option<SendRegion> {
        match self {
            Self::Span(region) => Some(*region),
            Self::Layout(_) => None,
        }
    }

    /// Returns the part `offset..offset + len`, which lies inside.
    #[inline(always)]
    pub fn piece(&self, offset: usize, len: usize) -> Piece<'_> {
        match self {
            Self::Span(region) => Piece::Span(region.part(offset, len)),
            Self::Layout(layout) => Piece::Layout { layout, offset, len },
        }
    }

    /// Copies as many bytes to `into` as fit, and returns how many those were. Bytes are copied once, unless both sides
    /// are layouts: then they pass through a buffer of a few kilobytes.
    pub fn copy_to(&self, into: &mut Sink) -> usize {
        let len = self.len().min(into.len());
        match (self, into) {
            (Self::Span(region), into) => into.store(0, region.part(0, len).foreign()),
            (Self::Layout(layout), Sink::Span(region)) => {
                layout.pack(0, region.part(0, len));
                len
            }
            (Self::Layout(layout), into) => {
                let mut piece = [0; COPIED_AT_ONCE];
                for offset in (0..len).step_by(COPIED_AT_ONCE) {
                    let piece = &mut piece[..COPIED_AT_ONCE.min(len - offset)];
                    layout.pack(offset, RecvPart::of_slice(piece));
                    into.store(offset, ForeignBytes::from_slice(piece));
                }
                len
            }
        }
    }
}

/// Size of the buffer for copies from one layout to another.
const COPIED_AT_ONCE: usize = 4096;

impl From<SendRegion> for Source {
    #[inline(always)]
    fn from(region: SendRegion) -> Self {
        Self::Span(region)
    }
}

impl From<Vec<u8>> for Source {
    /// Makes a source that owns its bytes.
    fn from(bytes: Vec<u8>) -> Self {
        if bytes.is_empty() { Self::EMPTY } else { Self::Layout(Arc::new(bytes)) }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Span(region) => region.fmt(formatter),
            Self::Layout(layout) => write!(formatter, "a layout of {} bytes", layout.size()),
        }
    }
}

impl Pack for Vec<u8> {
    fn size(&self) -> usize {
        self.len()
    }

    fn pack(&self, offset: usize, mut into: RecvPart<'_>) {
        into.store(0, ForeignBytes::from_slice(&self[offset..]));
    }
}

/// A part of a source, borrowed for one call: the body of a frame.
#[derive(Clone, Copy)]
pub enum Piece<'a> {
    /// The bytes are contiguous.
    Span(SendRegion),
    /// The bytes are these of a layout.
    Layout {
        /// The layout.
        layout: &'a Arc<dyn Pack>,
        /// Where the piece begins, in bytes of the message.
        offset: usize,
        /// Length of the piece in bytes.
        len: usize,
    },
}

impl Piece<'_> {
    /// A piece without bytes.
    pub const EMPTY: Self = Self::Span(SendRegion::EMPTY);

    /// Returns the length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match *self {
            Self::Span(region) => region.len(),
            Self::Layout { len, .. } => len,
        }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Describes a slice, for adapters that copy bodies inside the call.
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Piece<'_> {
        Piece::Span(SendRegion::of_test(bytes))
    }

    /// Returns the bytes in a form that outlives the call: a source, and the offset in it at which the piece begins.
    /// The length is that of the piece.
    pub fn to_source(self) -> (Source, usize) {
        match self {
            Self::Span(region) => (Source::Span(region), 0),
            Self::Layout { layout, offset, .. } => (Source::Layout(layout.clone()), offset),
        }
    }

    /// Copies the bytes to the start of `into`, which has room for them.
    #[inline(always)]
    pub fn copy_to(&self, mut into: RecvPart<'_>) {
        match self {
            Self::Span(region) => drop(into.store(0, region.foreign())),
            Self::Layout { layout, offset, len } => layout.pack(*offset, into.part(0, *len)),
        }
    }

    /// Likewise, where another processor reads them next.
    pub(crate) fn copy_to_peer(&self, mut into: RecvPart<'_>) {
        match self {
            Self::Span(region) => into.store_piece(region.foreign(), Toward::Peer),
            Self::Layout { .. } => self.copy_to(into),
        }
    }

    /// Returns a copy of the bytes, for an adapter that keeps the body.
    pub fn to_vec(self) -> Vec<u8> {
        let mut copy = vec![0; self.len()];
        self.copy_to(RecvPart::of_slice(&mut copy));
        copy
    }
}

/// The destination of a message.
pub enum Sink {
    /// The bytes go to one span.
    Span(RecvRegion),
    /// A layout determines where the bytes go; its first `len` bytes are used.
    Layout {
        /// The layout.
        layout: Box<dyn Unpack>,
        /// How many of its bytes are used.
        len: usize,
    },
}

impl Sink {
    /// A sink without room.
    pub const EMPTY: Self = Self::Span(RecvRegion::EMPTY);

    /// Makes a sink of a layout.
    pub fn layout(layout: impl Unpack + 'static) -> Self {
        let len = layout.size();
        Self::Layout { layout: Box::new(layout), len }
    }

    /// Returns the length in bytes.
    #[inline(always)]
    pub fn len(&self) -> usize {
        match self {
            Self::Span(region) => region.len(),
            Self::Layout { len, .. } => *len,
        }
    }

    /// Returns whether there are no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this is a null address with a length.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Span(region) if region.is_null())
    }

    /// Returns where the bytes go, if that is one span.
    pub(crate) fn address(&self) -> Option<u64> {
        match self {
            Self::Span(region) => Some(region.addr()),
            Self::Layout { .. } => None,
        }
    }

    /// Replaces the sink by an empty one and returns it.
    #[inline]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::EMPTY)
    }

    /// Shortens the sink to its first `len` bytes.
    #[inline]
    pub fn truncated(self, len: usize) -> Self {
        match self {
            Self::Span(region) => Self::Span(region.truncated(len)),
            Self::Layout { layout, len: whole } => Self::Layout { layout, len: len.min(whole) },
        }
    }

    /// Copies as much of `from` to `offset` as fits, and returns how many bytes that was.
    #[inline(always)]
    pub fn store(&mut self, offset: usize, from: ForeignBytes<'_>) -> usize {
        match self {
            Self::Span(region) => region.store(offset, from),
            Self::Layout { layout, len } => {
                let from = from.part(0, len.saturating_sub(offset));
                if !from.is_empty() {
                    layout.unpack(offset, from);
                }
                from.len()
            }
        }
    }

    /// Like [`Sink::store`], for a piece of a long message whose place is probably in this processor's caches.
    pub(crate) fn store_piece(&mut self, offset: usize, from: ForeignBytes<'_>) {
        match self {
            Self::Span(region) => {
                region.part(offset, from.len()).store_piece(from, Toward::Program);
            }
            Self::Layout { .. } => drop(self.store(offset, from)),
        }
    }
}

impl From<RecvRegion> for Sink {
    #[inline(always)]
    fn from(region: RecvRegion) -> Self {
        Self::Span(region)
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Span(region) => region.fmt(formatter),
            Self::Layout { len, .. } => write!(formatter, "a layout of {len} bytes"),
        }
    }
}

/// A list of spans, as in LAPI's vectors and writev: `R` is [`SendRegion`] for a source, [`RecvRegion`] for a sink.
///
/// Unlike a [`Layout`](crate::Layout), which is made once and describes displacements in one memory, this is made for
/// one message. Each span borrows memory of its own: no pointer may reach from one span to another.
#[derive(Debug)]
pub struct Spans<R> {
    /// The spans, each with the offset in the message at which it begins.
    spans: Vec<(usize, R)>,
    size: usize,
}

impl<R> Spans<R> {
    fn new(spans: impl IntoIterator<Item = R>, len: impl Fn(&R) -> usize) -> Self {
        let mut size = 0;
        let begin = |span| {
            let begin = size;
            size += len(&span);
            (begin, span)
        };
        let spans = spans.into_iter().map(begin).collect();
        Self { spans, size }
    }

    /// Index of the span that contains the byte at `offset`.
    fn place(&self, offset: usize) -> usize {
        self.spans.partition_point(|(begin, _)| *begin <= offset).saturating_sub(1)
    }
}

impl Spans<SendRegion> {
    /// Makes a source of these spans; `None` if one of them has a null address and is not empty.
    pub fn to_send(spans: impl IntoIterator<Item = SendRegion>) -> Option<Source> {
        let spans = Self::new(spans, SendRegion::len);
        let is_null = spans.spans.iter().any(|(_, span)| span.is_null());
        (!is_null).then(|| Source::Layout(Arc::new(spans)))
    }
}

impl Spans<RecvRegion> {
    /// Makes a sink of these spans; `None` if one of them has a null address and is not empty.
    pub fn to_receive(spans: impl IntoIterator<Item = RecvRegion>) -> Option<Sink> {
        let spans = Self::new(spans, RecvRegion::len);
        let is_null = spans.spans.iter().any(|(_, span)| span.is_null());
        (!is_null).then(|| Sink::layout(spans))
    }
}

impl Pack for Spans<SendRegion> {
    fn size(&self) -> usize {
        self.size
    }

    fn pack(&self, offset: usize, mut into: RecvPart<'_>) {
        let mut done = 0;
        for (begin, span) in &self.spans[self.place(offset)..] {
            if done == into.len() {
                break;
            }
            let from = span.foreign().part((offset + done).saturating_sub(*begin), usize::MAX);
            done += into.store(done, from);
        }
    }
}

impl Unpack for Spans<RecvRegion> {
    fn size(&self) -> usize {
        self.size
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let (first, mut done) = (self.place(offset), 0);
        for (begin, span) in &mut self.spans[first..] {
            if done == from.len() {
                break;
            }
            let at = (offset + done).saturating_sub(*begin);
            done += span.store(at, from.part(done, usize::MAX));
        }
    }
}

#[cfg(all(test, not(loom)))]
#[expect(unsafe_code, reason = "the tests describe buffers of their own as regions")]
mod tests;
