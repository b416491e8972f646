//! The interpreter: copies any part of a message between memory that a layout describes and a contiguous buffer.
//!
//! One walk serves both directions, which differ in how a block is copied ([`Copies`]). It allocates nothing, and
//! recurses as deep as the layout is nested. Called through [`Source`](crate::Source) and [`Sink`](crate::Sink).

use std::sync::Arc;

use crate::memory::body::{Pack, Unpack};
use crate::memory::region::{ForeignBytes, RecvPart, RecvRegion, SendRegion, clipped};
use crate::memory::shared::SharedBytes;

use super::body::{Body, Form};

/// A repetition of a body with at most so many blocks copies one block for several rounds at a time.
const FEW_BLOCKS: usize = 8;
/// The bytes of memory that those rounds span; they stay in the first-level cache.
const NEAR: usize = 4 << 10;

/// A layout placed in memory that has room for it.
pub(super) struct Placed<R> {
    pub(super) body: Arc<Body>,
    /// Offset of the message's first byte in the memory.
    pub(super) at: usize,
    pub(super) memory: R,
}

impl<R> Placed<R> {
    fn span(&self, offset: usize, len: usize) -> Span {
        Span::of(&self.body, self.at, offset, len)
    }
}

impl Pack for Placed<SendRegion> {
    fn size(&self) -> usize {
        self.body.size
    }

    fn pack(&self, offset: usize, into: RecvPart<'_>) {
        let span = self.span(offset, into.len());
        self.body.walk(&mut Packing { memory: self.memory.foreign(), into }, span);
    }
}

impl Unpack for Placed<RecvRegion> {
    fn size(&self) -> usize {
        self.body.size
    }

    fn unpack(&mut self, offset: usize, from: ForeignBytes<'_>) {
        let span = self.span(offset, from.len());
        let memory = self.memory.part(0, usize::MAX);
        self.body.walk(&mut Unpacking { memory, from }, span);
    }
}

/// Fills `into` from `memory` with the bytes from `offset` on of a message whose first byte is at `at`.
pub(super) fn pack(body: &Body, at: usize, memory: &[u8], offset: usize, into: &mut [u8]) {
    let span = Span { at, offset, done: 0, len: into.len() };
    let memory = ForeignBytes::from_slice(memory);
    body.walk(&mut Packing { memory, into: RecvPart::of_slice(into) }, span);
}

/// Copies `from` into `memory`, to the bytes from `offset` on of a message whose first byte is at `at`.
pub(super) fn unpack(body: &Body, at: usize, memory: &mut [u8], offset: usize, from: &[u8]) {
    let span = Span { at, offset, done: 0, len: from.len() };
    let from = ForeignBytes::from_slice(from);
    body.walk(&mut Unpacking { memory: RecvPart::of_slice(memory), from }, span);
}

/// Like [`pack`], out of memory that other threads may write meanwhile; copies as much as fits and exists.
pub(super) fn load(
    body: &Body,
    at: usize,
    memory: SharedBytes<'_>,
    offset: usize,
    into: RecvPart<'_>,
) {
    let span = Span::of(body, at, offset, into.len());
    body.walk(&mut Loading { memory, into }, span);
}

/// Like [`unpack`], to memory that other threads may access meanwhile; copies as much as fits and exists.
pub(super) fn store(
    body: &Body,
    at: usize,
    memory: SharedBytes<'_>,
    offset: usize,
    from: ForeignBytes<'_>,
) {
    let span = Span::of(body, at, offset, from.len());
    body.walk(&mut Storing { memory, from }, span);
}

/// The bytes of a body to be copied, and their positions on both sides.
#[derive(Clone, Copy)]
struct Span {
    /// Position of the body's first byte in memory.
    at: usize,
    /// The first byte to be copied, as an offset in the body.
    offset: usize,
    /// Position of that byte in the contiguous buffer.
    done: usize,
    /// Number of bytes to be copied.
    len: usize,
}

/// Blocks at equal distances on both sides.
#[derive(Clone, Copy)]
struct Blocks {
    /// Position of the first one in memory, and distance to the next one, which is not 0.
    at: usize,
    stride: usize,
    /// The same in the contiguous buffer.
    done: usize,
    step: usize,
    len: usize,
    count: usize,
}

/// A direction of copies between memory and the contiguous buffer.
trait Copies {
    /// Copies `len` bytes between `at` in memory and `done` in the buffer.
    fn block(&mut self, at: usize, done: usize, len: usize);

    /// Copies blocks of `len` bytes between `places` in memory and the buffer, where they are contiguous from `done`
    /// on.
    #[inline(always)]
    fn each(&mut self, places: impl Iterator<Item = usize>, done: usize, len: usize) {
        places.enumerate().for_each(|(nth, at)| self.block(at, done + nth * len, len));
    }

    /// Copies blocks at equal distances.
    fn blocks(&mut self, blocks: Blocks);
}

/// Copies from memory into the buffer.
struct Packing<'a> {
    memory: ForeignBytes<'a>,
    into: RecvPart<'a>,
}

impl Copies for Packing<'_> {
    #[inline(always)]
    fn block(&mut self, at: usize, done: usize, len: usize) {
        self.into.store(done, self.memory.part(at, len));
    }

    #[inline(always)]
    fn each(&mut self, places: impl Iterator<Item = usize>, done: usize, len: usize) {
        self.into.part(done, usize::MAX).gather(self.memory, places, len);
    }

    fn blocks(&mut self, Blocks { at, stride, done, step, len, count }: Blocks) {
        let from = self.memory.part(at, usize::MAX);
        self.into.part(done, usize::MAX).store_blocks(step, from, stride, len, count);
    }
}

/// Copies from the buffer into memory.
struct Unpacking<'a> {
    memory: RecvPart<'a>,
    from: ForeignBytes<'a>,
}

impl Copies for Unpacking<'_> {
    #[inline(always)]
    fn block(&mut self, at: usize, done: usize, len: usize) {
        self.memory.store(at, self.from.part(done, len));
    }

    #[inline(always)]
    fn each(&mut self, places: impl Iterator<Item = usize>, done: usize, len: usize) {
        self.memory.scatter(places, self.from.part(done, usize::MAX), len);
    }

    fn blocks(&mut self, Blocks { at, stride, done, step, len, count }: Blocks) {
        let from = self.from.part(done, usize::MAX);
        self.memory.part(at, usize::MAX).store_blocks(stride, from, step, len, count);
    }
}

/// Copies from memory that other threads may write into the buffer.
struct Loading<'a> {
    memory: SharedBytes<'a>,
    into: RecvPart<'a>,
}

impl Copies for Loading<'_> {
    #[inline(always)]
    fn block(&mut self, at: usize, done: usize, len: usize) {
        self.memory.part(at, len).load(self.into.part(done, len));
    }

    fn blocks(&mut self, Blocks { at, stride, done, step, len, count }: Blocks) {
        let (memory, into) = (self.memory.part(at, usize::MAX), self.into.part(done, usize::MAX));
        memory.load_blocks(stride, &into, step, len, count);
    }
}

/// Copies from the buffer into memory that other threads may access.
struct Storing<'a> {
    memory: SharedBytes<'a>,
    from: ForeignBytes<'a>,
}

impl Copies for Storing<'_> {
    #[inline(always)]
    fn block(&mut self, at: usize, done: usize, len: usize) {
        self.memory.part(at, len).store(self.from.part(done, len));
    }

    fn blocks(&mut self, Blocks { at, stride, done, step, len, count }: Blocks) {
        let (memory, from) = (self.memory.part(at, usize::MAX), self.from.part(done, usize::MAX));
        memory.store_blocks(stride, from, step, len, count);
    }
}

/// Moves `at` by a displacement. The result is the position of a byte of the message, so nothing overflows (LAY1).
#[inline(always)]
fn moved(at: usize, by: isize) -> usize {
    at.wrapping_add_signed(by)
}

impl Body {
    /// Copies the bytes of `span`, which lie inside this body.
    fn walk(&self, copies: &mut impl Copies, span: Span) {
        let Span { at, offset, done, len } = span;
        match &self.form {
            Form::Block => copies.block(at + offset, done, len),
            Form::Repeat { body, stride, .. } => {
                let place = |round: usize| moved(at, stride.wrapping_mul(round as isize));
                body.rounds(copies, span, place, |copies, first, count, done| {
                    body.repeat_whole(copies, place(first), *stride, count, done);
                });
            }
            Form::Placed { body, displacements } => {
                let place = |index: usize| moved(at, displacements[index]);
                body.rounds(copies, span, place, |copies, first, count, done| {
                    let places = displacements[first..first + count].iter();
                    // The closure copies `at`: a reference would be followed for each place.
                    body.each_whole(copies, places.map(move |by| moved(at, *by)), done);
                });
            }
            Form::Blocks { begins, displacements } => {
                let first = begins.partition_point(|begin| *begin <= offset) - 1;
                let parts = begins.windows(2).zip(displacements).skip(first);
                for (ends, by) in parts.take_while(|(ends, _)| ends[0] < offset + len) {
                    let (inside, done, len) = span.part(ends[0], ends[1]);
                    copies.block(moved(at, *by) + inside, done, len);
                }
            }
            Form::List(parts) => {
                let first = parts.partition_point(|part| part.begin <= offset) - 1;
                for part in parts[first..].iter().take_while(|part| part.begin < offset + len) {
                    let (offset, done, len) = span.part(part.begin, part.begin + part.body.size);
                    part.body.walk(copies, Span { at: moved(at, part.at), offset, done, len });
                }
            }
        }
    }

    /// Copies a span of a body that contains this one several times; copy `n` is at `place(n)` in memory, and they are
    /// contiguous in the message. Copies the end of the first one and the beginning of the last one by a walk. Calls
    /// `whole` for those between, with the index of the first, their number, and the position in the buffer.
    #[inline(always)]
    fn rounds<C: Copies>(
        &self,
        copies: &mut C,
        span: Span,
        place: impl Fn(usize) -> usize,
        whole: impl FnOnce(&mut C, usize, usize, usize),
    ) {
        let Span { offset, mut done, mut len, .. } = span;
        let (mut round, offset) = (offset / self.size, offset % self.size);
        if offset > 0 {
            let rest = len.min(self.size - offset);
            self.walk(copies, Span { at: place(round), offset, done, len: rest });
            (round, done, len) = (round + 1, done + rest, len - rest);
        }
        let count = len / self.size;
        if count > 0 {
            whole(copies, round, count, done);
        }
        let (done, len) = (done + count * self.size, len % self.size);
        if len > 0 {
            self.walk(copies, Span { at: place(round + count), offset: 0, done, len });
        }
    }

    /// Copies `count` of these bodies, each `stride` bytes after the previous one, the first at `at`. If a body has few
    /// blocks, each block is copied for several rounds at a time, which takes fewer steps than a walk per round.
    fn repeat_whole(
        &self,
        copies: &mut impl Copies,
        at: usize,
        stride: isize,
        count: usize,
        done: usize,
    ) {
        let place = move |round: usize| moved(at, stride.wrapping_mul(round as isize));
        let step = self.size;
        let Ok(stride @ 1..) = usize::try_from(stride) else {
            return self.each_whole(copies, (0..count).map(place), done);
        };
        if self.is_block() {
            return copies.blocks(Blocks { at, stride, done, step, len: step, count });
        }
        let at_once = NEAR / stride;
        if at_once < 2 || self.blocks > FEW_BLOCKS {
            return self.each_whole(copies, (0..count).map(place), done);
        }
        for round in (0..count).step_by(at_once) {
            let count = at_once.min(count - round);
            let mut done = done + round * step;
            self.each_block(0, &mut |by, len| {
                let at = moved(place(round), by);
                copies.blocks(Blocks { at, stride, done, step, len, count });
                done += len;
            });
        }
    }

    /// Copies one of these bodies at each of `places`. Not inlined, since its loops in the walk would run short of
    /// registers.
    #[inline(never)]
    fn each_whole<C: Copies>(
        &self,
        copies: &mut C,
        places: impl Iterator<Item = usize>,
        mut done: usize,
    ) {
        if !self.is_block() {
            for at in places {
                self.walk(copies, Span { at, offset: 0, done, len: self.size });
                done += self.size;
            }
            return;
        }
        // With a length known at compile time, the compiler makes one move of each block.
        match self.size {
            1 => copies.each(places, done, 1),
            2 => copies.each(places, done, 2),
            4 => copies.each(places, done, 4),
            8 => copies.each(places, done, 8),
            16 => copies.each(places, done, 16),
            24 => copies.each(places, done, 24),
            32 => copies.each(places, done, 32),
            64 => copies.each(places, done, 64),
            len => copies.each(places, done, len),
        }
    }
}

impl Span {
    /// The bytes `offset..offset + len` of the message of a body, clipped to its size.
    fn of(body: &Body, at: usize, offset: usize, len: usize) -> Self {
        let (offset, len) = clipped(body.size, offset, len);
        Self { at, offset, done: 0, len }
    }

    /// The part of the span in `begin..end` of the message, which is not empty: its offset in that part, its position
    /// in the buffer, and its length.
    #[inline(always)]
    fn part(&self, begin: usize, end: usize) -> (usize, usize, usize) {
        let from = begin.max(self.offset);
        let to = end.min(self.offset + self.len);
        (from - begin, self.done + (from - self.offset), to - from)
    }
}
