//! The buffer: a message of typed sections, like mpjdev's `Buffer`.
//!
//! A program writes sections into a [`Buffer`], commits it and sends it; the receiver reads the sections in the same
//! order. All elements of a section have one type. A *static* section stores its elements in memory of a fixed
//! capacity, a *dynamic* one in memory that grows; objects need a dynamic section. A buffer travels in the byte order
//! of its sender and is converted when it is read.
//!
//! ```text
//!             put_section_header, write,          get_section_header, read,
//!             gather, str_gather, ...             scatter, str_scatter, send, ...
//!    new ──▶  writable  ───────── commit ────────▶  readable  ◀── commit: reads from the beginning again
//!                ▲                                      │ ◀────── from_wire, recv_buffer
//!                └──────────────── clear ───────────────┘
//! ```
//!
//! There is no state *freed* as in mpjdev: dropping a buffer frees it, and the compiler refuses later uses.
//!
//! # The bytes
//!
//! ```text
//! byte 0  encoding: 0 big endian, 1 little endian       the primary header
//!      4  length of the primary payload, a multiple of 8
//!      8  sections, each from a multiple of 8 on: type (1 byte), 3 bytes unused, count of elements (4 bytes), and in a
//!         static section the elements, filled up with zeros to a multiple of 8
//!    8+p  4 bytes unused                                the secondary header
//!   12+p  length of the secondary payload
//!   16+p  the elements of all dynamic sections in the order of the sections, one behind the other
//! ```
//!
//! Numbers, including those of headers, have the byte order that the encoding states. Unused bytes are zero in sent
//! buffers and ignored in received ones. An object consists of its length in bytes (4 bytes) and the value in CBOR (RFC
//! 8949), which has its own byte order. CBOR marks each value with its type, so reading an object as another type gives
//! an error instead of a wrong value. Nesting that would exhaust the stack is refused.

use std::sync::Arc;

pub mod codec;
mod element;
mod error;
mod object;
mod selection;
#[cfg(test)]
mod tests;
mod transfer;
mod wire;

pub use self::element::{Element, ElementType};
pub use self::error::{
    BufferError, IllegalArgument, ParseError, TransferError, Underflow, WrongState,
};
pub use self::wire::Encoding;

use self::selection::{Region, Selection};
use self::wire::{ALIGNMENT, HEADER, MAX_PAYLOAD, Parts};

/// A message of typed sections (mpjdev's `Buffer`).
///
/// A call that fails leaves the buffer as it was. Clones share their bytes until one of them is written to.
///
/// ```
/// use mpjdev::buffer::{Buffer, ElementType};
///
/// let mut buffer = Buffer::new(64)?;
/// buffer.put_section_header(ElementType::Int)?;
/// buffer.write(&[1, 2, 3])?;
/// buffer.put_section_header(ElementType::Double)?;
/// buffer.gather(&[0.5, 1.5, 2.5], &[2, 0])?;
/// buffer.put_section_header(ElementType::Object)?;
/// buffer.write_object(&("a name".to_owned(), Some(7)))?;
/// buffer.commit();
///
/// // A receiver has the same bytes, and does the same in the other direction.
/// let mut received = Buffer::from_wire(buffer.to_wire()?)?;
/// assert_eq!(received.get_section_header()?, ElementType::Int);
/// let mut ints = vec![0; received.section_size()?];
/// received.read(&mut ints)?;
/// assert_eq!(received.get_section_header()?, ElementType::Double);
/// let mut doubles = [0.0; 3];
/// received.scatter(&mut doubles, &[2, 0])?;
/// assert_eq!(received.get_section_header()?, ElementType::Object);
/// let object: (String, Option<i32>) = received.read_object()?;
///
/// assert_eq!((ints, doubles), (vec![1, 2, 3], [0.5, 0.0, 2.5]));
/// assert_eq!(object, ("a name".to_owned(), Some(7)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Buffer {
    /// Shared with sends that are under way and with clones.
    parts: Arc<Parts>,
    /// How many bytes the primary payload may have: a multiple of 8.
    capacity: usize,
    encoding: Encoding,
    is_readable: bool,
    section: Option<Section>,
    /// Where the unread rest of the primary part begins.
    unread: usize,
    /// Where the unread rest of the secondary part begins.
    unread_dynamic: usize,
}

/// The section that calls write to or read from.
#[derive(Debug, Clone, Copy)]
struct Section {
    element: ElementType,
    /// Where the section's header begins.
    at: usize,
    /// Number of elements; while the section is written, the number so far.
    count: usize,
    /// Number of elements that are unread.
    remaining: usize,
}

impl Buffer {
    /// Makes an empty, writable buffer whose sections may have `capacity` bytes together, rounded up to a multiple of
    /// 8. Each section takes 8 of these bytes for its header. A static section also takes those of its elements,
    /// rounded up to a multiple of 8.
    ///
    /// # Errors
    /// [`IllegalArgument::Capacity`] above 2^31 - 8 bytes, or if there is no memory for it.
    pub fn new(capacity: usize) -> Result<Self, BufferError> {
        let refused = IllegalArgument::Capacity { capacity };
        if capacity > MAX_PAYLOAD {
            return Err(refused.into());
        }
        let capacity = capacity.next_multiple_of(ALIGNMENT);
        let mut parts = Parts::empty();
        parts.primary.try_reserve_exact(capacity).map_err(|_| refused)?;
        Ok(Self::of(parts, capacity, Encoding::NATIVE, false))
    }

    /// Makes a buffer from the bytes of a message, readable from its first section on. Its capacity is the length of
    /// its primary payload. All lengths, types and counts are checked first. So [`Buffer::section_size`] never returns
    /// more elements than the message has bytes, and callers may allocate memory for them.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong with the bytes.
    pub fn from_wire(message: Vec<u8>) -> Result<Self, ParseError> {
        let (parts, encoding) = wire::parse(message)?;
        let capacity = (parts.primary.len() - HEADER).min(MAX_PAYLOAD);
        Ok(Self::of(parts, capacity, encoding, true))
    }

    fn of(parts: Parts, capacity: usize, encoding: Encoding, is_readable: bool) -> Self {
        Self {
            parts: Arc::new(parts),
            capacity,
            encoding,
            is_readable,
            section: None,
            unread: HEADER,
            unread_dynamic: HEADER,
        }
    }

    /// Returns a copy of the bytes that are sent, in the layout that the module describes.
    ///
    /// # Errors
    /// [`WrongState::Writable`].
    pub fn to_wire(&self) -> Result<Vec<u8>, BufferError> {
        self.check_readable()?;
        Ok([&*self.parts.primary, &*self.parts.secondary].concat())
    }

    /// Ends the last section and makes the buffer readable from its first section on. A readable buffer is rewound.
    pub fn commit(&mut self) {
        if !self.is_readable {
            self.end_section();
            Arc::make_mut(&mut self.parts).seal();
            self.is_readable = true;
        }
        self.section = None;
        self.unread = HEADER;
        self.unread_dynamic = HEADER;
    }

    /// Makes the buffer empty and writable, with the byte order of this machine. A send that is under way keeps its
    /// bytes, and the buffer takes new memory.
    pub fn clear(&mut self) {
        match Arc::get_mut(&mut self.parts) {
            Some(parts) => parts.clear(),
            None => self.parts = Arc::new(Parts::empty()),
        }
        self.encoding = Encoding::NATIVE;
        self.is_readable = false;
        self.section = None;
    }

    /// Returns whether the buffer is readable, not writable.
    pub fn is_readable(&self) -> bool {
        self.is_readable
    }

    /// Returns the number of bytes that all sections together may have.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the number of bytes of all sections so far, with headers, without the elements of dynamic sections.
    pub fn size(&self) -> usize {
        self.parts.primary.len() - HEADER
    }

    /// Returns the byte order of the contents: that of this machine, or of the sender.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Begins a section. Its elements are those that are written until the next header or the commit.
    ///
    /// # Errors
    /// [`WrongState::Readable`]; [`BufferError::Overflow`] without room for 8 bytes; [`IllegalArgument::Type`].
    pub fn put_section_header(&mut self, element: ElementType) -> Result<(), BufferError> {
        self.check_writable()?;
        if element == ElementType::Undefined {
            return Err(IllegalArgument::Type.into());
        }
        // Sections end at multiples of 8, so the padding of the last one fits whenever its elements did.
        let free = self.capacity - self.size().next_multiple_of(ALIGNMENT);
        if free < HEADER {
            return Err(BufferError::Overflow { needed: HEADER, free });
        }
        self.end_section();
        let at = Arc::make_mut(&mut self.parts).begin_section(element);
        self.section = Some(Section { element, at, count: 0, remaining: 0 });
        Ok(())
    }

    /// Moves to the next section, or to the first one, and returns its type.
    ///
    /// # Errors
    /// [`WrongState::Writable`]; [`BufferError::SectionSizeMismatch`] while elements of the current section are
    /// unread; [`Underflow::Sections`] after the last one.
    pub fn get_section_header(&mut self) -> Result<ElementType, BufferError> {
        self.check_readable()?;
        let remaining = self.remaining()?;
        if remaining > 0 {
            return Err(BufferError::SectionSizeMismatch { remaining });
        }
        let at = self.unread.next_multiple_of(ALIGNMENT);
        if at >= self.parts.primary.len() {
            return Err(Underflow::Sections.into());
        }
        let header = wire::section_header(&self.parts.primary, at, self.encoding);
        let (element, count) = header.expect("sections were written here, or checked (BW1)");
        self.unread = at + HEADER;
        self.section = Some(Section { element, at, count, remaining: count });
        Ok(element)
    }

    /// Returns the number of elements of the current section; while it is written, the number so far.
    ///
    /// # Errors
    /// [`WrongState::NoSection`].
    pub fn section_size(&self) -> Result<usize, BufferError> {
        Ok(self.section.ok_or(WrongState::NoSection)?.count)
    }

    /// Returns the number of unread elements of the current section; 0 before the first section.
    ///
    /// # Errors
    /// [`WrongState::Writable`].
    pub fn remaining(&self) -> Result<usize, BufferError> {
        self.check_readable()?;
        Ok(self.section.map_or(0, |section| section.remaining))
    }

    /// Writes all elements of `data` to the current section.
    ///
    /// # Errors
    /// [`BufferError::WrongState`]; [`BufferError::TypeMismatch`]; [`BufferError::Overflow`].
    pub fn write<T: Element>(&mut self, data: &[T]) -> Result<(), BufferError> {
        self.put(data, Selection::All)
    }

    /// Reads as many elements of the current section as `into` has, and fills it.
    ///
    /// # Errors
    /// [`BufferError::WrongState`]; [`BufferError::TypeMismatch`]; [`Underflow::Elements`].
    pub fn read<T: Element>(&mut self, into: &mut [T]) -> Result<(), BufferError> {
        self.take(into, Selection::All)
    }

    /// Writes the elements of `data` with these indexes, in the order of the indexes. An index may occur more than
    /// once.
    ///
    /// # Errors
    /// As [`Buffer::write`]; [`BufferError::OutOfBounds`].
    pub fn gather<T: Element>(&mut self, data: &[T], indexes: &[usize]) -> Result<(), BufferError> {
        self.put(data, Selection::Indexes(indexes))
    }

    /// Reads one element for each of these indexes, and stores it at that index in `into`.
    ///
    /// # Errors
    /// As [`Buffer::read`]; [`BufferError::OutOfBounds`].
    pub fn scatter<T: Element>(
        &mut self,
        into: &mut [T],
        indexes: &[usize],
    ) -> Result<(), BufferError> {
        self.take(into, Selection::Indexes(indexes))
    }

    /// Writes the elements of a multi-strided region of `data` (mpjdev's `strGather`). The region has `rank`
    /// dimensions, with the extents `shape[exts..exts + rank]` and the strides `shape[strs..strs + rank]`, in elements.
    /// The index of an element is `offset` plus, for each dimension, a number below the extent times the stride. The
    /// last dimension runs fastest. A region of rank 0 is the one element at `offset`; a region with an extent of 0 is
    /// empty.
    ///
    /// # Errors
    /// As [`Buffer::write`]; [`BufferError::OutOfBounds`]; [`BufferError::IllegalArgument`] for a shape with too few
    /// entries, and for a negative extent.
    ///
    /// ```
    /// # use mpjdev::buffer::{Buffer, ElementType};
    /// // The second and third columns of a matrix that is stored row by row, column by column.
    /// let matrix = [11, 12, 13, 21, 22, 23];
    /// let shape = [2, 2, 1, 3];
    /// let mut buffer = Buffer::new(64)?;
    /// buffer.put_section_header(ElementType::Int)?;
    /// buffer.str_gather(&matrix, 1, 2, 0, 2, &shape)?;
    /// buffer.commit();
    /// buffer.get_section_header()?;
    /// let mut columns = [0; 4];
    /// buffer.read(&mut columns)?;
    /// assert_eq!(columns, [12, 22, 13, 23]);
    /// # Ok::<(), mpjdev::buffer::BufferError>(())
    /// ```
    pub fn str_gather<T: Element>(
        &mut self,
        data: &[T],
        offset: usize,
        rank: usize,
        exts: usize,
        strs: usize,
        shape: &[isize],
    ) -> Result<(), BufferError> {
        let region = Region::new(offset, rank, exts, strs, shape)?;
        self.put(data, Selection::Strided(region))
    }

    /// Reads elements into a multi-strided region of `into` (mpjdev's `strScatter`), described as for
    /// [`Buffer::str_gather`]. Other elements of the slice stay unchanged.
    ///
    /// # Errors
    /// As [`Buffer::read`]; [`BufferError::OutOfBounds`]; [`BufferError::IllegalArgument`] as [`Buffer::str_gather`].
    pub fn str_scatter<T: Element>(
        &mut self,
        into: &mut [T],
        offset: usize,
        rank: usize,
        exts: usize,
        strs: usize,
        shape: &[isize],
    ) -> Result<(), BufferError> {
        let region = Region::new(offset, rank, exts, strs, shape)?;
        self.take(into, Selection::Strided(region))
    }

    /// Writes the selected elements.
    fn put<T: Element>(&mut self, data: &[T], selection: Selection<'_>) -> Result<(), BufferError> {
        self.check_writable()?;
        let mut section = self.section_of(T::TYPE)?;
        selection.check(data.len())?;
        let count = selection.count(data.len());
        let bytes = count.saturating_mul(size_of::<T>());
        self.check_room(section.element, bytes)?;
        let parts = Arc::make_mut(&mut self.parts);
        let is_dynamic = section.element.is_dynamic();
        let to = if is_dynamic { &mut parts.secondary } else { &mut parts.primary };
        selection.for_each_run(data.len(), |run| {
            to.extend_from_slice(bytemuck::cast_slice(&data[run]));
        });
        section.count += count;
        self.section = Some(section);
        Ok(())
    }

    /// Reads elements to the selected places. The section has as many elements as it counts: this was ensured when they
    /// were written or received (BW1).
    fn take<T: Element>(
        &mut self,
        into: &mut [T],
        selection: Selection<'_>,
    ) -> Result<(), BufferError> {
        self.check_readable()?;
        let mut section = self.section_of(T::TYPE)?;
        let len = into.len();
        selection.check(len)?;
        let (wanted, remaining) = (selection.count(len), section.remaining);
        if wanted > remaining {
            return Err(Underflow::Elements { wanted, remaining }.into());
        }
        let is_foreign = self.encoding != Encoding::NATIVE;
        let (part, unread) = if section.element.is_dynamic() {
            (&self.parts.secondary, &mut self.unread_dynamic)
        } else {
            (&self.parts.primary, &mut self.unread)
        };
        selection.for_each_run(len, |run| {
            let to = &mut into[run];
            let end = *unread + size_of_val(to);
            T::load(&part[*unread..end], to);
            if is_foreign {
                to.iter_mut().for_each(|element| *element = element.swapped());
            }
            *unread = end;
        });
        section.remaining -= wanted;
        self.section = Some(section);
        Ok(())
    }

    /// Ends the last section, if there is one: pads it and stores its number of elements.
    fn end_section(&mut self) {
        if let Some(section) = self.section.take() {
            Arc::make_mut(&mut self.parts).end_section(section.at, section.count);
        }
    }

    fn check_writable(&self) -> Result<(), BufferError> {
        if self.is_readable { Err(WrongState::Readable.into()) } else { Ok(()) }
    }

    fn check_readable(&self) -> Result<(), BufferError> {
        if self.is_readable { Ok(()) } else { Err(WrongState::Writable.into()) }
    }

    /// Returns the current section if its elements are of this static type.
    fn section_of(&self, element: ElementType) -> Result<Section, BufferError> {
        let section = self.section.ok_or(WrongState::NoSection)?;
        if section.element.to_static() == element {
            Ok(section)
        } else {
            Err(BufferError::TypeMismatch { section: section.element, element })
        }
    }

    /// Checks that `needed` bytes of elements of this type fit.
    fn check_room(&self, element: ElementType, needed: usize) -> Result<(), BufferError> {
        let free = if element.is_dynamic() {
            MAX_PAYLOAD - (self.parts.secondary.len() - HEADER)
        } else {
            self.capacity - self.size()
        };
        if needed > free { Err(BufferError::Overflow { needed, free }) } else { Ok(()) }
    }
}
