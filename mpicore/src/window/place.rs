//! The bytes that an operation accesses: one block, or those of a layout, in the memory that a rank exposes.
//!
//! - WB1: they are only copied, by [`SharedBytes`]. Several operations may access the same bytes at once, of several
//!   processes, and of several threads of this one, if programs do not order them. They get or leave any of the values
//!   then, as MPI says (MPI-4.1 section 12.7), and are no data race (SB1 of the transport). Long data of messages
//!   are copied by the device, apart from all that meets them (WM2).
//! - WB2: bytes of another process are copied by the system, which promises nothing for elements that its process
//!   reads or writes meanwhile. Updates change copies of them.

#![expect(unsafe_code, reason = "borrows operands")]

use mpjdev::{RecvRegion, SendRegion, Sink, Source};
use transport_lapi::{ForeignBytes, RecvPart, SharedBytes};

use super::head::Shape;
use super::remote::Remote;
use super::update::Update;
use crate::error::Error;
use crate::op::SharedInout;

/// Bytes of a window, for the operations of one call (WM2).
pub(super) struct Place<'m> {
    /// All bytes between the first and the last one.
    pub bytes: Bytes<'m>,
    /// Where the displacement is in them.
    origin: isize,
    shape: &'m Shape,
}

/// Bytes between the first and the last one of a place.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'m> {
    /// In memory that this process has mapped.
    Here(SharedBytes<'m>),
    /// In memory of another process.
    There(Remote<'m>),
}

/// Why bytes are not accessed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The layout does not lie inside, or names bytes twice that are written, or there is no memory for a copy.
    Refused,
    /// Another process does not have them, or they cannot be updated.
    Failed(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Fault {
    /// Returns the error of an operation on so many bytes, whose place has been checked before.
    pub fn into_error(self, bytes: usize) -> Error {
        match self {
            // It names no bytes twice, so there was no memory for a copy.
            Self::Refused => Error::Memory { bytes },
            Self::Failed(error) => error,
        }
    }
}

/// Whether bytes were accessed.
pub(super) type Accessed<R = ()> = Result<R, Fault>;

impl Bytes<'_> {
    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Here(bytes) => bytes.len(),
            Self::There(bytes) => bytes.len(),
        }
    }

    /// Copies bytes from `at` on into `into`, for which there are enough.
    #[inline(always)]
    pub fn load(&self, at: usize, into: RecvPart<'_>) -> Result<(), Error> {
        match self {
            Self::Here(bytes) => bytes.part(at, usize::MAX).load(into),
            Self::There(bytes) => bytes.load(at, into)?,
        }
        Ok(())
    }

    /// Copies bytes to those from `at` on, which are enough.
    #[inline(always)]
    pub fn store(&self, at: usize, from: ForeignBytes<'_>) -> Result<(), Error> {
        match self {
            Self::Here(bytes) => bytes.part(at, usize::MAX).store(from),
            Self::There(bytes) => bytes.store(at, from)?,
        }
        Ok(())
    }
}

/// The most bytes of an element that is compared.
const SMALL: usize = 64;

/// The most bytes that are updated, or copied through memory of this call, at once.
const LARGE: usize = 4096;

/// The same for memory of another process, of which each copy is a system call.
const LARGE_THERE: usize = 64 << 10;

impl<'m> Place<'m> {
    pub fn new(bytes: Bytes<'m>, origin: isize, shape: &'m Shape) -> Self {
        Self { bytes, origin, shape }
    }

    /// Copies bytes from `at` on, as many as there is room for.
    fn load(&self, at: usize, into: RecvPart<'_>) -> Accessed {
        match (self.shape, self.bytes) {
            (Shape::Block(_), bytes) => Ok(bytes.load(at, into)?),
            (Shape::Layout(layout), Bytes::Here(bytes)) => {
                layout.load(bytes, self.origin, at, into).map_err(|_| Fault::Refused)
            }
            (Shape::Layout(layout), Bytes::There(bytes)) => {
                Ok(bytes.load_layout((layout, self.origin), at, into)?)
            }
        }
    }

    /// Copies bytes to those from `at` on.
    fn store(&mut self, at: usize, from: ForeignBytes<'_>) -> Accessed {
        match (self.shape, self.bytes) {
            (Shape::Block(_), bytes) => Ok(bytes.store(at, from)?),
            (Shape::Layout(layout), Bytes::Here(bytes)) => {
                layout.store(from, at, bytes, self.origin).map_err(|_| Fault::Refused)
            }
            (Shape::Layout(layout), Bytes::There(bytes)) => {
                Ok(bytes.store_layout((layout, self.origin), at, from)?)
            }
        }
    }

    /// Copies the bytes to `into`, which is as long.
    pub fn get(&self, into: &mut Sink) -> Accessed {
        if let Sink::Span(region) = into {
            return self.load(0, region.part(0, usize::MAX));
        }
        self.in_pieces(|at, piece| {
            self.load(at, RecvPart::of_slice(piece))?;
            into.store(at, ForeignBytes::from_slice(piece));
            Ok(())
        })
    }

    /// Stores the bytes of `from`, which is as long.
    pub fn put(&mut self, from: &Source) -> Accessed {
        match from {
            Source::Span(region) => self.store(0, region.foreign()),
            Source::Layout(layout) => Place { ..*self }.in_pieces(|at, piece| {
                layout.pack(at, RecvPart::of_slice(piece));
                self.store(at, ForeignBytes::from_slice(piece))
            }),
        }
    }

    /// Calls `copy` for each part of the bytes, with where it begins and a buffer of its length.
    fn in_pieces(&self, mut copy: impl FnMut(usize, &mut [u8]) -> Accessed) -> Accessed {
        let (len, mut room) = (self.shape.size(), [0; LARGE]);
        let mut more;
        let room = match self.bytes {
            Bytes::There(_) if len > LARGE => {
                more = zeros(LARGE_THERE.min(len))?;
                &mut more[..]
            }
            _ => &mut room[..],
        };
        let most = room.len();
        (0..len).step_by(most).try_for_each(|at| copy(at, &mut room[..most.min(len - at)]))
    }

    /// Returns a copy of the bytes. There may be no memory for it, since a layout may name bytes many times.
    pub fn read(&self) -> Accessed<Vec<u8>> {
        let mut bytes = zeros(self.shape.size())?;
        self.load(0, RecvPart::of_slice(&mut bytes))?;
        Ok(bytes)
    }

    /// Stores bytes.
    pub fn write(&mut self, data: &[u8]) -> Accessed {
        self.store(0, ForeignBytes::from_slice(data))
    }

    /// Combines the bytes with data.
    pub fn update(&mut self, update: Update, data: &[u8]) -> Accessed {
        if update.replaces() {
            return self.write(data);
        }
        if let (Shape::Block(_), true, Bytes::Here(place)) =
            (self.shape, update.is_dense(), self.bytes)
        {
            update.apply_in_place(data, SharedInout { place, before: None });
            return Ok(());
        }
        let mut now = self.read()?;
        update.apply(data, &mut now);
        if update.needs_data() { self.write(&now) } else { Ok(()) }
    }

    /// Replaces the bytes of one element, a block, if they are equal to `compare`, and copies what was there to `into`.
    pub fn compare_and_swap(
        &mut self,
        compare: &Source,
        new: &Source,
        into: &mut Sink,
    ) -> Accessed {
        let [mut compared, mut given, mut now] = [[0; SMALL]; 3];
        let len = self.bytes.len().min(SMALL);
        let [compared, given, now] =
            [&mut compared, &mut given, &mut now].map(|room| &mut room[..len]);
        for (from, into) in [(compare, &mut *compared), (new, &mut *given)] {
            from.piece(0, len).copy_to(RecvPart::of_slice(into));
        }
        self.load(0, RecvPart::of_slice(now))?;
        into.store(0, ForeignBytes::from_slice(now));
        if now == compared { self.write(given) } else { Ok(()) }
    }

    /// Combines the bytes with those of `from`, which is as long, and copies what was there to `into`. `serialised` calls its
    /// argument while nobody else updates elements: for each piece of a block whose elements have `grain` bytes.
    #[inline]
    pub fn combine(
        &mut self,
        (update, grain): (Update, Option<usize>),
        (from, into): (Option<&Source>, Option<&mut Sink>),
        serialised: impl FnMut(&mut dyn FnMut() -> Accessed) -> Accessed,
    ) -> Accessed {
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

    fn combine_whole(
        &mut self,
        update: Update,
        (from, into): (Option<&Source>, Option<&mut Sink>),
        mut serialised: impl FnMut(&mut dyn FnMut() -> Accessed) -> Accessed,
    ) -> Accessed {
        let data = from.map(|from| from.piece(0, from.len()).to_vec()).unwrap_or_default();
        let mut before = None;
        serialised(&mut || {
            before = if into.is_some() { Some(self.read()?) } else { None };
            self.update(update, &data)
        })?;
        if let (Some(into), Some(before)) = (into, before) {
            into.store(0, ForeignBytes::from_slice(&before));
        }
        Ok(())
    }

    /// Combines a block of elements without padding, each of `grain` bytes, at most [`LARGE`], with one in the program's
    /// memory, which is empty if the update needs none, and copies what was there to `into`, which is elsewhere.
    #[inline(always)]
    pub fn combine_block(
        &mut self,
        (update, grain): (Update, usize),
        (from, mut into): (SendRegion, Option<RecvPart<'_>>),
        mut serialised: impl FnMut(&mut dyn FnMut() -> Accessed) -> Accessed,
    ) -> Accessed {
        let Bytes::Here(bytes) = self.bytes else {
            return self.combine_there((update, grain), (from, into), serialised);
        };
        let len = bytes.len();
        // Divisions take longer than a short block.
        let most = if len <= LARGE { len } else { LARGE / grain * grain };
        let mut at = 0;
        while at < len {
            let (part, len) = (bytes.part(at, most), most.min(len - at));
            // SAFETY: as `given` asks for.
            let given = unsafe { given(from, at, len) };
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
                Ok(())
            })?;
            at += len;
        }
        Ok(())
    }

    /// Combines a block like [`Place::combine_block`], but in another process (WB2).
    #[inline(never)]
    fn combine_there(
        &mut self,
        (update, grain): (Update, usize),
        (from, mut into): (SendRegion, Option<RecvPart<'_>>),
        mut serialised: impl FnMut(&mut dyn FnMut() -> Accessed) -> Accessed,
    ) -> Accessed {
        let Bytes::There(bytes) = self.bytes else { return Ok(()) };
        let most = LARGE_THERE / grain * grain;
        let mut room = [0; SMALL];
        let mut more;
        let room = match room.get_mut(..bytes.len()) {
            Some(room) => room,
            None => {
                more = zeros(most.min(bytes.len()))?;
                &mut more[..]
            }
        };
        for at in (0..bytes.len()).step_by(most) {
            let len = most.min(bytes.len() - at);
            // SAFETY: as `given` asks for.
            let (given, now) = (unsafe { given(from, at, len) }, &mut room[..len]);
            serialised(&mut || {
                if into.is_none() && update.replaces() {
                    return Ok(bytes.store(at, ForeignBytes::from_slice(given))?);
                }
                bytes.load(at, RecvPart::of_slice(now))?;
                if let Some(into) = &mut into {
                    into.store(at, ForeignBytes::from_slice(now));
                }
                if update.needs_data() {
                    update.apply(given, now);
                    bytes.store(at, ForeignBytes::from_slice(now))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Returns so many zeros, if there is memory for them.
fn zeros(len: usize) -> Accessed<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(len).map_err(|_| Fault::Refused)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Returns the elements of an origin for so many bytes at `at`, or none if there are none.
///
/// # Safety
/// Nobody writes them until the operation has ended (G1); results go elsewhere.
unsafe fn given<'f>(from: SendRegion, at: usize, len: usize) -> &'f [u8] {
    match from.is_empty() {
        true => &[],
        // SAFETY: the caller's promise.
        false => unsafe { std::slice::from_raw_parts(from.part(at, len).as_ptr(), len) },
    }
}

/// Returns whether bytes of a program may be where results go.
pub(super) fn overlap(from: SendRegion, into: &RecvRegion) -> bool {
    let (one, other) = (from.as_ptr().addr(), into.as_mut_ptr().addr());
    one < other + into.len() && other < one + from.len()
}
