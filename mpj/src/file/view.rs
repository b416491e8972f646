//! The elements of a file that a rank sees, and the calls that access them.

use std::marker::PhantomData;
use std::ops::Range;

use mpicore::datatype::Order;
use mpicore::{Info, Part, Position, Representation};
use mpjdev::{Sink, Source};

use super::File;
use crate::datatype::{Datatype, TypeMap, count};
use crate::error::Error;
use crate::memory::{RecvBuffer, SendBuffer, sink, source};

/// The elements of a file that this rank sees: see [`File::view`] and the methods below it. They are numbered from 0 on.
///
/// Those calls whose names end with `_all` or `_ordered` are collective: all ranks make them, also those that access
/// nothing, and then the ranks whose elements lie between each other's exchange them, so that few of them access long parts
/// of the file. The other calls work alone.
///
/// What a rank has written, others see when they have learned that its call has returned; on other hosts, behind
/// [`File::sync_all`] on both.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("file");
/// mpj::local::run(2, move |world| {
///     let mut file = mpj::File::create(&world, &path).unwrap();
///     let view = file.view::<u8>(0).unwrap();
///     view.write_ordered(&vec![world.rank() as u8; 2]).unwrap();
///     view.write_shared(&[9]).unwrap();
///     world.barrier().unwrap();
///     let mut bytes = [0; 6];
///     view.read_at(&mut bytes, 0).unwrap();
///     assert_eq!(bytes, [0, 0, 1, 1, 9, 9]);
///     assert_eq!(view.read_shared(&mut [0]).unwrap(), 0, "the pointer is at the end");
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FileView<'f, T: Datatype> {
    file: &'f File,
    elements: TypeMap,
    /// The number of its elements, unless it ends with the file.
    len: Option<usize>,
    types: PhantomData<fn(T) -> T>,
}

/// # Views
impl File {
    /// Lets this rank see all elements from byte `at` on (MPI_File_set_view). Collective; ranks may begin at different bytes.
    ///
    /// # Errors
    /// Ranks give elements of different sizes; a rank is lost; the device has failed.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(2, move |world| {
    ///     let mut file = mpj::File::create(&world, &path).unwrap();
    ///     let view = file.view::<u32>(100).unwrap();
    ///     view.write_at(&[7, 8], 2 * world.rank()).unwrap();
    ///     world.barrier().unwrap();
    ///     let mut numbers = [0; 10];
    ///     assert_eq!(view.read_at(&mut numbers, 0).unwrap(), 4, "there are no more");
    ///     assert_eq!(numbers[..4], [7, 8, 7, 8]);
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "MPI_File_set_view")]
    #[track_caller]
    pub fn view<T: Datatype>(&mut self, at: u64) -> Result<FileView<'_, T>, Error> {
        let elements = self.communicator.step(T::datatype())?;
        self.set_view(at, &elements.clone(), elements, None)
    }

    /// Divides `len` elements from byte `at` on evenly among the ranks, and lets each see its block of them, the longer
    /// ones first. Collective.
    ///
    /// # Errors
    /// As [`view`](Self::view).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("file");
    /// mpj::local::run(3, move |world| {
    ///     let mut file = mpj::File::create(&world, &path).unwrap();
    ///     let lens = file.view_block::<f32>(0, 10).unwrap().len().unwrap();
    ///     assert_eq!(lens, [4, 3, 3][world.rank()]);
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn view_block<T: Datatype>(
        &mut self,
        at: u64,
        len: usize,
    ) -> Result<FileView<'_, T>, Error> {
        let elements = self.communicator.step(T::datatype())?;
        let (rank, size) = (self.communicator.rank(), self.communicator.size());
        let border = |rank: usize| rank * (len / size) + rank.min(len % size);
        let (first, end) = (border(rank), border(rank + 1));
        let begin = at.saturating_add((first as u64).saturating_mul(elements.extent() as u64));
        self.set_view(begin, &elements.clone(), elements, Some(end - first))
    }

    /// Lets this rank see a part of an array of `shape`, which begins at byte `at` and whose last index varies fastest
    /// (MPI_Type_create_subarray). `part` has the range of each dimension, which may be empty. Collective; no two ranks write
    /// the same elements.
    ///
    /// # Errors
    /// As [`view`](Self::view). [`Error::FileArray`] if the part is none of the array.
    ///
    /// See [`File`] for an example.
    #[doc(alias = "MPI_Type_create_subarray")]
    #[track_caller]
    pub fn view_subarray<T: Datatype>(
        &mut self,
        at: u64,
        shape: &[usize],
        part: &[Range<usize>],
    ) -> Result<FileView<'_, T>, Error> {
        let elements = self.communicator.step(T::datatype())?;
        let made = subarray(&elements, shape, part);
        // A rank that fails makes the call with what is no filetype, so that no other one waits for it.
        let nothing = TypeMap::contiguous(0, &elements)?;
        let (filetype, len) = match &made {
            Ok((filetype, len)) => (filetype, *len),
            Err(_) => (&nothing, 0),
        };
        let communicator = self.communicator.clone();
        let view = self.set_view(at, filetype, elements, Some(len))?;
        communicator.step(made)?;
        Ok(view)
    }

    #[track_caller]
    fn set_view<T: Datatype>(
        &mut self,
        at: u64,
        filetype: &TypeMap,
        elements: TypeMap,
        len: Option<usize>,
    ) -> Result<FileView<'_, T>, Error> {
        let _site = self.communicator.site("set_view", || None);
        let native = Representation::Native;
        let set = self.core().set_view(Some(at), &elements, filetype, native, &Info::default());
        self.communicator.answer(set)?;
        Ok(FileView { file: self, elements, len, types: PhantomData })
    }
}

/// Returns the datatype of a part of an array, and the number of its elements.
fn subarray(
    elements: &TypeMap,
    shape: &[usize],
    part: &[Range<usize>],
) -> Result<(TypeMap, usize), Error> {
    let is_inside =
        |(len, range): (&usize, &Range<usize>)| range.start <= range.end && range.end <= *len;
    if shape.len() != part.len() || !shape.iter().zip(part).all(is_inside) {
        return Err(Error::FileArray { shape: shape.to_vec(), part: part.to_vec() });
    }
    let len = part.iter().map(Range::len).product();
    if len == 0 || shape.is_empty() {
        let len = if shape.is_empty() { 1 } else { 0 };
        return Ok((TypeMap::contiguous(len, elements)?, len as usize));
    }
    let sizes = shape.iter().map(|len| count(*len)).collect::<Vec<_>>();
    let lens = part.iter().map(|range| count(range.len())).collect::<Vec<_>>();
    let starts = part.iter().map(|range| count(range.start)).collect::<Vec<_>>();
    Ok((TypeMap::subarray(&sizes, &lens, &starts, Order::C, elements)?, len))
}

/// Returns the memory of an access, or none and what is wrong with it.
fn or_nothing<M>(memory: Result<M, Error>, none: M) -> (M, Option<Error>) {
    match memory {
        Ok(memory) => (memory, None),
        Err(error) => (none, Some(error)),
    }
}

impl<T: Datatype> FileView<'_, T> {
    /// Returns the number of its elements, whether the file has them or not; `None` for [`File::view`], which ends with the
    /// file.
    ///
    /// See [`File::view_block`] for an example.
    #[expect(clippy::len_without_is_empty, reason = "a rank knows whether its part is empty")]
    pub fn len(&self) -> Option<usize> {
        self.len
    }

    /// Reads elements from element `index` on (MPI_File_read_at). Returns how many there were before the end of the
    /// file.
    ///
    /// # Errors
    /// [`Error::FilePart`] if the view has no such elements; the file was not opened for reading; the system refuses it;
    /// [`Error::Overlap`] for a buffer.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_read_at")]
    #[track_caller]
    pub fn read_at<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
        index: usize,
    ) -> Result<usize, Error> {
        self.read(sink(into.memory_mut()), Position::At(count(index)), false)
    }

    /// Writes elements from element `index` on (MPI_File_write_at).
    ///
    /// # Errors
    /// As for [`read_at`](Self::read_at), but for the overlap; there is no space.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_write_at")]
    #[track_caller]
    pub fn write_at<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        from: &B,
        index: usize,
    ) -> Result<(), Error> {
        self.write(source(from.memory()), Position::At(count(index)), false)
    }

    /// Reads elements from element `index` on, together with the other ranks (MPI_File_read_at_all). Returns
    /// how many there were before the end of the file. Collective.
    ///
    /// # Errors
    /// [`Error::FilePart`] if the view has no such elements; the file was not opened for reading; the system refuses it;
    /// [`Error::Overlap`] for a buffer. A rank is lost, or the call has failed on another one; the device has failed.
    ///
    /// See [`File`] for an example.
    #[doc(alias = "MPI_File_read_at_all")]
    #[track_caller]
    pub fn read_at_all<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
        index: usize,
    ) -> Result<usize, Error> {
        self.read(sink(into.memory_mut()), Position::At(count(index)), true)
    }

    /// Writes elements from element `index` on, together with the other ranks (MPI_File_write_at_all). Collective.
    ///
    /// # Errors
    /// As for [`read_at_all`](Self::read_at_all), but for the overlap; there is no space.
    ///
    /// See [`File`] for an example.
    #[doc(alias = "MPI_File_write_at_all")]
    #[track_caller]
    pub fn write_at_all<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        from: &B,
        index: usize,
    ) -> Result<(), Error> {
        self.write(source(from.memory()), Position::At(count(index)), true)
    }

    /// Reads elements where the ranks share a pointer, which moves behind them (MPI_File_read_shared). Returns
    /// how many there were before the end of the file. Each access gets elements of its own. All ranks must see the same
    /// elements.
    ///
    /// # Errors
    /// The file was not opened for reading; the system refuses it;
    /// [`Error::Overlap`] for a buffer.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_read_shared")]
    #[track_caller]
    pub fn read_shared<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
    ) -> Result<usize, Error> {
        self.read(sink(into.memory_mut()), Position::Shared, false)
    }

    /// Writes elements where the ranks share a pointer, which moves behind them (MPI_File_write_shared). Each
    /// access gets elements of its own. All ranks must see the same elements.
    ///
    /// # Errors
    /// As for [`read_shared`](Self::read_shared), but for the overlap; there is no space.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_write_shared")]
    #[track_caller]
    pub fn write_shared<B: SendBuffer<Element = T> + ?Sized>(&self, from: &B) -> Result<(), Error> {
        self.write(source(from.memory()), Position::Shared, false)
    }

    /// Reads elements where the ranks share a pointer, in the order of the ranks (MPI_File_read_ordered). Returns
    /// how many there were before the end of the file. Collective; each rank has as many elements as it likes. All ranks
    /// must see the same elements.
    ///
    /// # Errors
    /// The file was not opened for reading; the system refuses it;
    /// [`Error::Overlap`] for a buffer. A rank is lost, or the call has failed on another one; the device has failed.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_read_ordered")]
    #[track_caller]
    pub fn read_ordered<B: RecvBuffer<Element = T> + ?Sized>(
        &self,
        into: &mut B,
    ) -> Result<usize, Error> {
        self.read(sink(into.memory_mut()), Position::Shared, true)
    }

    /// Writes elements where the ranks share a pointer, in the order of the ranks (MPI_File_write_ordered).
    /// Collective; each rank has as many elements as it likes. All ranks must see the same elements.
    ///
    /// # Errors
    /// As for [`read_ordered`](Self::read_ordered), but for the overlap; there is no space.
    ///
    /// See [`FileView`] for an example.
    #[doc(alias = "MPI_File_write_ordered")]
    #[track_caller]
    pub fn write_ordered<B: SendBuffer<Element = T> + ?Sized>(
        &self,
        from: &B,
    ) -> Result<(), Error> {
        self.write(source(from.memory()), Position::Shared, true)
    }

    #[track_caller]
    fn read(
        &self,
        into: Result<Sink, Error>,
        position: Position,
        is_collective: bool,
    ) -> Result<usize, Error> {
        let (into, wrong) = or_nothing(into, Sink::EMPTY);
        let (core, count) = (self.file.core(), self.elements_in(into.len()));
        let bytes =
            self.access((position, is_collective), count, wrong, |part| match part.count {
                0 => core.read(part, Sink::EMPTY),
                _ => core.read(part, into),
            })?;
        Ok(self.elements_in(bytes as usize))
    }

    #[track_caller]
    fn write(
        &self,
        from: Result<Source, Error>,
        position: Position,
        is_collective: bool,
    ) -> Result<(), Error> {
        let (from, wrong) = or_nothing(from, Source::EMPTY);
        let (core, count) = (self.file.core(), self.elements_in(from.len()));
        self.access((position, is_collective), count, wrong, |part| match part.count {
            0 => core.write(part, Source::EMPTY),
            _ => core.write(part, from),
        })?;
        Ok(())
    }

    /// Accesses elements of the view. A rank that asks for others, or whose buffer is wrong, takes part in a collective call
    /// with none.
    #[track_caller]
    fn access(
        &self,
        (position, is_collective): (Position, bool),
        elements: usize,
        wrong: Option<Error>,
        access: impl FnOnce(Part<'_>) -> Result<u64, mpicore::Error>,
    ) -> Result<u64, Error> {
        let communicator = &self.file.communicator;
        let _site = communicator.site("access", || None);
        let part =
            Part { position, is_collective, count: count(elements), datatype: &self.elements };
        let outside = match (position, self.len) {
            (Position::At(index), Some(len)) if (index as usize).saturating_add(elements) > len => {
                Some(Error::FilePart { index: index as usize, elements, len })
            }
            _ => None,
        };
        match wrong.or(outside) {
            None => communicator.answer(access(part)),
            Some(wrong) => {
                if is_collective {
                    let position = match position {
                        Position::At(_) => Position::At(0),
                        pointer => pointer,
                    };
                    communicator.answer(access(Part { position, count: 0, ..part }))?;
                }
                communicator.answer(Err(wrong))
            }
        }
    }

    /// Returns how many elements so many bytes are.
    fn elements_in(&self, bytes: usize) -> usize {
        bytes.checked_div(T::SIZE).unwrap_or(0)
    }
}
