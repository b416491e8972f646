//! Memory that messages are sent from and received into: slices, scalars, strided data, arrays of any shape.
//!
//! Calls take any [`SendBuffer`] or [`RecvBuffer`]. Contiguous elements are sent as one span; this is decided at
//! compile time. All others are sent piece by piece, as their [`View`] describes, and are never copied as a whole.
//!
//! - BF1: the view of a buffer names bytes of memory that the buffer borrows or owns. The memory stays allocated and in
//!   its place for as long as the buffer is borrowed as it was for the view, even if that borrow is kept only as an
//!   address. Its elements are initialised.
//! - BF2: the view of a [`RecvBuffer`] names bytes that may be written: any bytes are valid elements there (DT1), and
//!   there is no other use of those bytes for as long as the buffer is borrowed exclusively. The bytes between them may
//!   be in use elsewhere; neither sending nor receiving touches them.
//! - BF3: `memory` and `memory_mut` return the buffer itself, or a part of it that has the same elements in the same
//!   order and whose borrow lasts as long.

#![expect(unsafe_code, reason = "finds the bytes of borrowed buffers")]

use mpjdev::{Layout, RecvRegion, SendRegion, Sink, Source};

use crate::datatype::{Datatype, TypeMap, count, is_plain};
use crate::error::Error;

mod axes;
pub(crate) mod borrowed;
mod buffer;
mod contiguous;
pub(crate) mod core;
#[cfg(feature = "ndarray")]
mod grid;
mod halo;
mod indexed;
mod strided;

pub use self::buffer::{Buffer, Pages, alloc_buffer};
pub use self::halo::{Border, Ghost, HaloPart, split_halo_mut};
pub use self::indexed::{Indexed, IndexedMut};
pub use self::strided::{Strided, StridedMut, block, block_mut, column, column_mut};
pub use self::strided::{split_blocks_mut, split_columns_mut};

/// Describes where the elements of a buffer lie: a number of units in one piece of memory (MPI-4 section 5.1).
///
/// Unit `i` begins `origin + i * extent` bytes after `start`. Implementations of [`SendBuffer`] make views with `P =
/// *const u8`, those of [`RecvBuffer`] with `P = *mut u8`.
///
/// ```
/// use mpj::{SendBuffer, Unit};
///
/// let matrix = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let column = mpj::column(&matrix, 3, 2)?;
/// let view = column.describe()?;
/// assert_eq!((view.units, view.elements_per_unit, view.origin), (2, 1, 0));
/// assert!(matches!(view.unit, Unit::Typed(unit) if unit.extent() == 24));
/// # Ok::<(), mpj::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct View<P> {
    /// The lowest byte of the memory; dangling if there are no bytes.
    pub start: P,
    /// Length of the memory in bytes.
    pub len: usize,
    /// Offset of the first element from `start`, in bytes. With negative strides it is not the lowest element.
    pub origin: usize,
    /// Number of units along the outermost axis; collective calls divide these among ranks.
    pub units: usize,
    /// Number of elements of a unit.
    pub elements_per_unit: usize,
    /// The layout of a unit.
    pub unit: Unit,
}

/// The layout of one unit of a [`View`].
///
/// ```
/// use mpj::{SendBuffer, Unit};
/// assert!(matches!([1u16, 2].describe()?.unit, Unit::Plain { size: 2 }));
/// let column = mpj::column(&[1u16, 2, 3, 4], 2, 0)?;
/// assert!(matches!(column.describe()?.unit, Unit::Typed(unit) if unit.extent() == 4));
/// # Ok::<(), mpj::Error>(())
/// ```
#[derive(Debug, Clone)]
pub enum Unit {
    /// The unit consists of plain bytes, and the units follow one another.
    Plain {
        /// Number of bytes of a unit.
        size: usize,
    },
    /// A datatype, whose extent is the distance in bytes from one unit to the next.
    Typed(TypeMap),
}

impl<P> View<P> {
    /// Describes adjacent elements.
    fn of_elements<T: Datatype>(start: P, elements: usize) -> Result<Self, Error> {
        let unit = if is_plain::<T>() {
            Unit::Plain { size: size_of::<T>() }
        } else {
            Unit::Typed(T::datatype()?)
        };
        let len = elements * size_of::<T>();
        Ok(Self { start, len, origin: 0, units: elements, elements_per_unit: 1, unit })
    }

    /// Returns the layout of all units, with displacements from the first one.
    fn layout(&self) -> Result<Layout, Error> {
        match &self.unit {
            Unit::Plain { size } => {
                let bytes = self.units.saturating_mul(*size);
                Layout::contiguous(bytes).map_err(Error::of_layout)
            }
            Unit::Typed(unit) => Ok(unit.layout(count(self.units))?),
        }
    }
}

/// Memory whose elements can be sent.
///
/// Implemented by slices, arrays, `Vec`, `Box` and [`Buffer`](crate::Buffer), by single numbers and `bool`, by `str` and
/// `String` as their bytes (see [`PointToPoint::recv_string`](crate::PointToPoint::recv_string)), by [`Strided`] data,
/// and, with the feature `ndarray`, by the arrays and views of that crate. A program passes a reference to such a
/// buffer to a call and needs nothing else of this trait; it passes a single structure as `&[structure]`.
///
/// ```
/// mpj::local::run(2, |world| {
///     let (mut scalar, mut array, mut vector) = (0, [0; 2], vec![0; 3]);
///     if world.rank() == 0 {
///         world.send(&1, 1, 0).unwrap();
///         world.send(&[1, 2], 1, 0).unwrap();
///         world.send(&vec![1, 2, 3], 1, 0).unwrap();
///     } else {
///         world.recv(&mut scalar, 0, 0).unwrap();
///         world.recv(&mut array, 0, 0).unwrap();
///         world.recv(&mut vector, 0, 0).unwrap();
///         assert_eq!((scalar, array, vector), (1, [1, 2], vec![1, 2, 3]));
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// # Safety
/// [`describe`](Self::describe) must name bytes of memory that the buffer borrows or owns: `len` bytes from `start` on,
/// which contain all units. The memory must stay allocated and in its place for as long as the buffer is borrowed, and
/// all bytes that units name must be initialised and must not be written meanwhile. The units must have the elements in
/// order. [`memory`](Self::memory) must return the buffer itself, or a part of it that has the same elements.
#[doc(alias = "MPI_Type_contiguous")]
pub unsafe trait SendBuffer {
    /// The type of the elements.
    type Element: Datatype;

    /// The type that is used while the elements are sent: a slice if the memory is one, otherwise `Self`.
    type Memory: SendBuffer<Element = Self::Element> + ?Sized;

    /// Returns the memory that contains the elements.
    ///
    /// ```
    /// use mpj::SendBuffer;
    /// let vector = vec![1, 2, 3];
    /// let slice: &[i32] = vector.memory();
    /// assert_eq!(slice, [1, 2, 3]);
    /// ```
    fn memory(&self) -> &Self::Memory;

    /// Returns the elements as a slice, if they are contiguous and in order.
    ///
    /// ```
    /// use mpj::SendBuffer;
    /// let matrix = [1, 2, 3, 4];
    /// assert_eq!(mpj::block(&matrix, 2, 1.., ..)?.as_elements(), Some(&[3, 4][..]));
    /// assert_eq!(mpj::column(&matrix, 2, 1)?.as_elements(), None);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    fn as_elements(&self) -> Option<&[Self::Element]>;

    /// Describes where the elements lie.
    ///
    /// ```
    /// use mpj::SendBuffer;
    /// let view = [1u8, 2, 3].describe()?;
    /// assert_eq!((view.units, view.len), (3, 3));
    /// # Ok::<(), mpj::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Datatype`] if the elements have more bytes than memory can have, which is possible in a view that
    /// repeats its elements, or if a structure is nested too deeply.
    fn describe(&self) -> Result<View<*const u8>, Error>;
}

/// Memory into which elements can be received: the types of [`SendBuffer`], borrowed exclusively, and [`StridedMut`]
/// for strided data.
///
/// ```
/// mpj::local::run(2, |world| {
///     let mut matrix = [0; 6];
///     if world.rank() == 0 {
///         world.send(&[1, 2], 1, 0).unwrap();
///     } else {
///         world.recv(&mut mpj::column_mut(&mut matrix, 3, 1).unwrap(), 0, 0).unwrap();
///         assert_eq!(matrix, [0, 1, 0, 0, 2, 0]);
///     }
/// })?;
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
///
/// # Safety
/// As [`SendBuffer`], for [`describe_mut`](Self::describe_mut) and [`memory_mut`](Self::memory_mut). In addition, the
/// bytes that units name may be written, and must have no other user, for as long as the buffer is borrowed
/// exclusively. A view may name a byte twice: calls refuse such a view.
pub unsafe trait RecvBuffer: SendBuffer {
    /// The type that is used while elements are received: a slice if the memory is one, otherwise `Self`.
    type MemoryMut: RecvBuffer<Element = Self::Element> + ?Sized;

    /// Returns the memory that contains the elements.
    ///
    /// ```
    /// use mpj::RecvBuffer;
    /// let mut numbers = vec![1, 2, 3];
    /// numbers.memory_mut()[0] = 7;
    /// assert_eq!(numbers, [7, 2, 3]);
    /// ```
    fn memory_mut(&mut self) -> &mut Self::MemoryMut;

    /// Returns the elements as a slice, if they are contiguous and in order.
    ///
    /// ```
    /// use mpj::RecvBuffer;
    /// let mut matrix = [1, 2, 3, 4];
    /// assert!(mpj::column_mut(&mut matrix, 2, 1)?.as_elements_mut().is_none());
    /// # Ok::<(), mpj::Error>(())
    /// ```
    fn as_elements_mut(&mut self) -> Option<&mut [Self::Element]>;

    /// Describes where the elements lie.
    ///
    /// ```
    /// use mpj::RecvBuffer;
    /// assert_eq!(vec![1u16, 2].describe_mut()?.len, 4);
    /// # Ok::<(), mpj::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SendBuffer::describe`].
    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error>;
}

/// Returns the bytes of the elements, if they are one span. For slices, and types used as slices, this is known at
/// compile time.
#[inline(always)]
pub(crate) fn bytes<B: SendBuffer + ?Sized>(buffer: &B) -> Option<&[u8]> {
    // SAFETY: the elements are plain.
    buffer.as_elements().filter(|_| is_plain::<B::Element>()).map(|all| unsafe { bytes_of(all) })
}

/// Returns the bytes of elements.
///
/// # Safety
/// The elements are plain.
#[inline(always)]
unsafe fn bytes_of<T: Datatype>(elements: &[T]) -> &[u8] {
    // SAFETY: DT2: all bytes of the elements are initialised. The slice borrows what `elements` borrows.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// [`bytes`] for writing.
#[inline(always)]
pub(crate) fn bytes_mut<B: RecvBuffer + ?Sized>(buffer: &mut B) -> Option<&mut [u8]> {
    if !is_plain::<B::Element>() {
        return None;
    }
    let elements = buffer.as_elements_mut()?;
    let (start, len) = (elements.as_mut_ptr().cast(), size_of_val(elements));
    // SAFETY: DT2: any bytes are elements, and these are initialised. The slice borrows exclusively what `buffer`
    // borrows.
    Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
}

/// Makes a region of bytes that are sent. The caller keeps the borrow, or owns the bytes, until the operation that uses
/// the region has ended.
#[inline(always)]
pub(crate) fn send_region(data: &[u8]) -> SendRegion {
    // SAFETY: BF1, for as long as the bytes are borrowed, as the caller promises.
    unsafe { SendRegion::new(data.as_ptr(), data.len()) }
}

/// Makes a region of bytes that are received into; like [`send_region`].
#[inline(always)]
pub(crate) fn recv_region(into: &mut [u8]) -> RecvRegion {
    // SAFETY: BF2, for as long as the bytes are borrowed, as the caller promises.
    unsafe { RecvRegion::new(into.as_mut_ptr(), into.len()) }
}

/// Returns the elements as the body of a message, wherever they lie. The caller keeps the borrow until the operation
/// that uses the body has ended. For slices, and types used as slices, the compiler sees that this makes a span.
#[inline(always)]
pub(crate) fn source<B: SendBuffer + ?Sized>(buffer: &B) -> Result<Source, Error> {
    bytes(buffer).map_or_else(|| source_of_view(buffer), |data| Ok(send_region(data).into()))
}

#[inline(never)]
fn source_of_view<B: SendBuffer + ?Sized>(buffer: &B) -> Result<Source, Error> {
    let view = buffer.describe()?;
    // SAFETY: BF1, for as long as the buffer is borrowed, as the caller promises. Only bytes that the layout names are
    // read.
    let memory = unsafe { SendRegion::new(view.start, view.len) };
    view.layout()?.to_send(memory, view.origin as isize).map_err(Error::of_layout)
}

/// Returns the elements as the destination of a message, wherever they lie; like [`source`].
#[inline(always)]
pub(crate) fn sink<B: RecvBuffer + ?Sized>(buffer: &mut B) -> Result<Sink, Error> {
    match bytes_mut(buffer) {
        Some(into) => Ok(recv_region(into).into()),
        None => sink_of_view(buffer),
    }
}

#[inline(never)]
fn sink_of_view<B: RecvBuffer + ?Sized>(buffer: &mut B) -> Result<Sink, Error> {
    let view = buffer.describe_mut()?;
    // SAFETY: BF2, for as long as the buffer is borrowed, as the caller promises. Only bytes that the layout names are
    // written.
    let memory = unsafe { RecvRegion::new(view.start, view.len) };
    view.layout()?.to_receive(memory, view.origin as isize).map_err(Error::of_layout)
}
