//! The bytes that an operation accesses: one block, or those of a layout, in the memory that a rank exposes.
//!
//! - WB1: they are only copied, by [`SharedBytes`]. Several operations may access the same bytes at once, of several
//!   processes, and of several threads of this one, if programs do not order them. They get or leave any of the values
//!   then, as MPI says (MPI-4.1 section 12.7), and are no data race (SB1 of the transport). Long data of messages
//!   are copied by the device, apart from all that meets them (WM2).

#![expect(unsafe_code, reason = "borrows operands")]

use mpjdev::{RecvRegion, SendRegion, Sink, Source};
use transport_lapi::{ForeignBytes, RecvPart, SharedBytes};

use super::head::Shape;
use super::update::Update;
use crate::op::SharedInout;

/// Bytes of a window, for the operations of one call (WM2).
pub(super) struct Place<'m> {
    /// All bytes between the first and the last one.
    pub bytes: SharedBytes<'m>,
    /// Where the displacement is in them.
    origin: isize,
    shape: &'m Shape,
}

/// The most bytes of an element that is compared.
const SMALL: usize = 64;

/// The most bytes that are updated, or copied through memory of this call, at once.
const LARGE: usize = 4096;

impl<'m> Place<'m> {
    pub fn new(bytes: SharedBytes<'m>, origin: isize, shape: &'m Shape) -> Self {
        Self { bytes, origin, shape }
    }

    /// Copies bytes from `at` on, as many as there is room for; `None` if the layout does not lie inside.
    fn load(&self, at: usize, into: RecvPart<'_>) -> Option<()> {
        match self.shape {
            Shape::Block(len) => self.bytes.part(at, *len).load(into),
            Shape::Layout(layout) => layout.load(self.bytes, self.origin, at, into).ok()?,
        }
        Some(())
    }

    /// Copies bytes to those from `at` on; `None` also if the layout names a byte twice.
    fn store(&mut self, at: usize, from: ForeignBytes<'_>) -> Option<()> {
        match self.shape {
            Shape::Block(len) => self.bytes.part(at, *len).store(from),
            Shape::Layout(layout) => layout.store(from, at, self.bytes, self.origin).ok()?,
        }
        Some(())
    }

    /// Copies the bytes to `into`, which is as long.
    pub fn get(&self, into: &mut Sink) -> Option<()> {
        if let Sink::Span(region) = into {
            return self.load(0, region.part(0, usize::MAX));
        }
        self.in_pieces(|at, piece| {
            self.load(at, RecvPart::of_slice(piece))?;
            into.store(at, ForeignBytes::from_slice(piece));
            Some(())
        })
    }

    /// Stores the bytes of `from`, which is as long.
    pub fn put(&mut self, from: &Source) -> Option<()> {
        match from {
            Source::Span(region) => self.store(0, region.foreign()),
            Source::Layout(layout) => Place { ..*self }.in_pieces(|at, piece| {
                layout.pack(at, RecvPart::of_slice(piece));
                self.store(at, ForeignBytes::from_slice(piece))
            }),
        }
    }

    /// Calls `copy` for each part of the bytes, with where it begins and a buffer of its length.
    fn in_pieces(&self, mut copy: impl FnMut(usize, &mut [u8]) -> Option<()>) -> Option<()> {
        let (len, mut room) = (self.shape.size(), [0; LARGE]);
        (0..len).step_by(LARGE).try_for_each(|at| copy(at, &mut room[..LARGE.min(len - at)]))
    }

    /// Returns a copy of the bytes; `None` also if there is no memory for it, since a layout may name bytes many times.
    pub fn read(&self) -> Option<Vec<u8>> {
        let (len, mut bytes) = (self.shape.size(), Vec::new());
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, 0);
        self.load(0, RecvPart::of_slice(&mut bytes))?;
        Some(bytes)
    }

    /// Stores bytes.
    pub fn write(&mut self, data: &[u8]) -> Option<()> {
        self.store(0, ForeignBytes::from_slice(data))
    }

    /// Combines the bytes with data.
    pub fn update(&mut self, update: Update, data: &[u8]) -> Option<()> {
        if update.replaces() {
            return self.write(data);
        }
        if let (Shape::Block(_), true) = (self.shape, update.is_dense()) {
            update.apply_in_place(data, SharedInout { place: self.bytes, before: None });
            return Some(());
        }
        let mut now = self.read()?;
        update.apply(data, &mut now);
        if update.needs_data() { self.write(&now) } else { Some(()) }
    }

    /// Replaces the bytes of one element, a block, if they are equal to `compare`, and copies what was there to `into`.
    pub fn compare_and_swap(
        &mut self,
        compare: &Source,
        new: &Source,
        into: &mut Sink,
    ) -> Option<()> {
        let [mut compared, mut given, mut now] = [[0; SMALL]; 3];
        let len = self.bytes.len().min(SMALL);
        let [compared, given, now] =
            [&mut compared, &mut given, &mut now].map(|room| &mut room[..len]);
        for (from, into) in [(compare, &mut *compared), (new, &mut *given)] {
            from.piece(0, len).copy_to(RecvPart::of_slice(into));
        }
        self.load(0, RecvPart::of_slice(now))?;
        into.store(0, ForeignBytes::from_slice(now));
        if now == compared { self.write(given) } else { Some(()) }
    }

    /// Combines the bytes with those of `from`, which is as long, and copies what was there to `into`. `serialised` calls its
    /// argument while nobody else updates elements: for each piece of a block whose elements have `grain` bytes.
    #[inline]
    pub fn combine<E>(
        &mut self,
        (update, grain): (Update, Option<usize>),
        (from, into): (Option<&Source>, Option<&mut Sink>),
        serialised: impl FnMut(&mut dyn FnMut() -> Option<()>) -> Result<Option<()>, E>,
    ) -> Result<Option<()>, E> {
        let region = match (from, &into) {
            (None, _) => Some(SendRegion::EMPTY),
            // Results overwrite operands: these are copied before.
            (Some(from), Some(Sink::Span(into))) => {
                from.span().filter(|from| !overlap(*from, into))
            }
            (Some(_), Some(_)) => None,
            (Some(from), None) => from.span(),
        };
        match (self.shape, grain, region, into) {
            (Shape::Block(_), Some(grain), Some(from), None)
                if grain <= LARGE && update.is_dense() =>
            {
                self.combine_block((update, grain), (from, None), serialised)
            }
            (Shape::Block(_), Some(grain), Some(from), Some(Sink::Span(into)))
                if grain <= LARGE && update.is_dense() =>
            {
                let into = into.part(0, usize::MAX);
                self.combine_block((update, grain), (from, Some(into)), serialised)
            }
            (_, _, _, into) => self.combine_whole(update, (from, into), serialised),
        }
    }

    fn combine_whole<E>(
        &mut self,
        update: Update,
        (from, into): (Option<&Source>, Option<&mut Sink>),
        mut serialised: impl FnMut(&mut dyn FnMut() -> Option<()>) -> Result<Option<()>, E>,
    ) -> Result<Option<()>, E> {
        let data = from.map(|from| from.piece(0, from.len()).to_vec()).unwrap_or_default();
        let mut before = None;
        let done = serialised(&mut || {
            before = if into.is_some() { Some(self.read()?) } else { None };
            self.update(update, &data)
        })?;
        if let (Some(into), Some(before)) = (into, before) {
            into.store(0, ForeignBytes::from_slice(&before));
        }
        Ok(done)
    }

    /// Combines a block of elements without padding, each of `grain` bytes, at most [`LARGE`], with one in the program's
    /// memory, which is empty if the update needs none, and copies what was there to `into`, which is elsewhere.
    #[inline]
    pub fn combine_block<E>(
        &mut self,
        (update, grain): (Update, usize),
        (from, mut into): (SendRegion, Option<RecvPart<'_>>),
        mut serialised: impl FnMut(&mut dyn FnMut() -> Option<()>) -> Result<Option<()>, E>,
    ) -> Result<Option<()>, E> {
        let len = self.bytes.len();
        // Divisions take longer than a short block.
        let most = if len <= LARGE { len } else { LARGE / grain * grain };
        let mut at = 0;
        while at < len {
            let (part, len) = (self.bytes.part(at, most), most.min(len - at));
            let given = match from.is_empty() {
                true => &[],
                // SAFETY: G1: nobody writes the elements until the operation has ended; results go elsewhere.
                false => unsafe { std::slice::from_raw_parts(from.part(at, len).as_ptr(), len) },
            };
            serialised(&mut || {
                match (&mut into, update.needs_data()) {
                    (Some(into), false) => part.load(into.part(at, len)),
                    (None, true) if update.replaces() => {
                        part.store(ForeignBytes::from_slice(given))
                    }
                    (into, _) => {
                        let before = into.as_mut().map(|into| into.part(at, len));
                        update.apply_in_place(given, SharedInout { place: part, before });
                    }
                }
                Some(())
            })?;
            at += len;
        }
        Ok(Some(()))
    }
}

/// Returns whether bytes of a program may be where results go.
pub(super) fn overlap(from: SendRegion, into: &RecvRegion) -> bool {
    let (one, other) = (from.as_ptr().addr(), into.as_mut_ptr().addr());
    one < other + into.len() && other < one + from.len()
}
