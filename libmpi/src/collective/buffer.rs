//! The buffers of collectives: elements one after another ([`Data`]), or blocks, one for each rank ([`Lists`]).

use std::ffi::c_void;

use mpicore::collective::Blocks;
use mpicore::datatype::Datatype;
use mpicore::{Elements, Input, Output, Plain, TypedBlock};
use mpjdev::{RecvRegion, SendRegion};

use crate::abi::*;
use crate::call::{Fault, Outcome, negative_count, out};
use crate::datatype::{Data, Extent, Number, check_given, is_in_place, wide};
use crate::process;

/// Refuses the same buffer for what is sent and what is received.
///
/// # Errors
/// MPI_ERR_BUFFER.
pub(super) fn check_apart(send: *const c_void, receive: *const c_void, count: i64) -> Outcome {
    if send == receive && count > 0 && !send.is_null() {
        let text =
            "the send buffer is the receive buffer; pass MPI_IN_PLACE where the call allows it";
        return Err(Fault::argument(MPI_ERR_BUFFER, "sendbuf", text));
    }
    Ok(())
}

impl Data {
    /// Returns so many times the elements as those that are sent, if they are of a predefined datatype without padding
    /// and there is at least one.
    ///
    /// # Safety
    /// As [`Data::input`].
    #[inline(always)]
    pub(super) unsafe fn plain_input(self, times: u32) -> Option<Plain> {
        let (len, size) = self.plain_size(times)?;
        // SAFETY: the caller's promise.
        Some(Plain::input(unsafe { SendRegion::new(self.buffer.cast(), len) }, size))
    }

    /// The same for elements that are received.
    ///
    /// # Safety
    /// As [`Data::output`].
    #[inline(always)]
    pub(super) unsafe fn plain_output(self, times: u32) -> Option<Plain> {
        let (len, size) = self.plain_size(times)?;
        // SAFETY: the caller's promise.
        let memory = unsafe { RecvRegion::new(self.buffer.cast_mut().cast(), len) };
        Some(Plain::output(memory, size))
    }

    /// Returns the bytes of so many times the elements, and of one.
    #[inline(always)]
    fn plain_size(self, times: u32) -> Option<(usize, usize)> {
        if is_in_place(self.buffer) {
            return None;
        }
        Some((self.plain_len()?.checked_mul(times as usize)?, self.datatype.dense_size()?))
    }
}

/// Blocks with lengths and places of their own, as a program gives them: the arguments of functions whose names end with
/// `v` or `w`. The datatype is one for all blocks, or there is a list of them, and places are then in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Lists<N, D, T> {
    buffer: *const c_void,
    counts: *const N,
    displs: *const D,
    datatypes: T,
}

impl<N, D, T> Lists<N, D, T> {
    /// Puts the arguments of a function together.
    pub fn new(buffer: *const c_void, counts: *const N, displs: *const D, datatypes: T) -> Self {
        Self { buffer, counts, displs, datatypes }
    }
}

/// A buffer of blocks as a program gives it, one block for each rank.
pub(super) trait Blocked: Copy {
    /// The blocks of a rank that uses none.
    const NONE: Parts;

    /// Returns the address of the buffer.
    fn buffer(self) -> *const c_void;

    /// Returns the first block, if all blocks have the same length.
    #[inline(always)]
    fn first(self) -> Option<Data> {
        None
    }

    /// Returns the blocks, of which there are this many, checked. The function calls the number of elements in each block
    /// `argument`.
    ///
    /// # Safety
    /// FC1: the lists have an entry for each block.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER, MPI_ERR_ARG, MPI_ERR_TYPE.
    unsafe fn parts(self, blocks: u32, argument: &'static str) -> Outcome<Parts>;
}

impl Blocked for Data {
    const NONE: Parts = Parts { division: Division::Equal(0), memory: None };

    fn buffer(self) -> *const c_void {
        self.buffer
    }

    #[inline(always)]
    fn first(self) -> Option<Data> {
        Some(self)
    }

    unsafe fn parts(self, blocks: u32, argument: &'static str) -> Outcome<Parts> {
        let count = u64::try_from(self.count).map_err(|_| negative_count(argument, self.count))?;
        let Some(total) = self.count.checked_mul(blocks.into()) else {
            let text = format!("{blocks} blocks of {count} elements exceed the memory");
            return Err(Fault::argument(MPI_ERR_COUNT, "count", text));
        };
        let memory = Self { count: total, ..self }.elements()?;
        Ok(Parts { division: Division::Equal(count), memory: Some(memory) })
    }
}

impl<N: Number, D: Number> Blocked for Lists<N, D, MPI_Datatype> {
    const NONE: Parts = {
        let division = Division::Listed { counts: Vec::new(), displacements: Vec::new() };
        Parts { division, memory: None }
    };

    fn buffer(self) -> *const c_void {
        self.buffer
    }

    unsafe fn parts(self, blocks: u32, _: &'static str) -> Outcome<Parts> {
        check_given(self.buffer)?;
        // SAFETY: the caller's promise.
        let (counts, displacements) = unsafe {
            (list_of_counts(blocks, self.counts)?, wide(self.displs, blocks.into(), "displs")?)
        };
        let are_some = counts.iter().any(|count| *count > 0);
        let datatype = self.datatypes.of_elements(are_some).committed()?;
        let mut hull = Hull::default();
        for (count, displacement) in counts.iter().zip(&displacements) {
            hull.add(&datatype, *count, i128::from(*displacement) * datatype.extent() as i128);
        }
        // Where mistakes between ranks are found, elements keep their datatype.
        let is_checked = process::needed()?.device.is_checked();
        let dense = usize::try_from(datatype.extent()).ok().filter(|_| !is_checked);
        let elements = match dense.filter(|size| *size > 0 && datatype.span(1) == Some((0, *size)))
        {
            Some(size) => Elements::Plain { size },
            None => Elements::Typed(Datatype::clone(&datatype)),
        };
        let memory = Some((hull.memory(self.buffer)?, elements));
        Ok(Parts { division: Division::Listed { counts, displacements }, memory })
    }
}

impl<N: Number, D: Number> Blocked for Lists<N, D, *const MPI_Datatype> {
    const NONE: Parts = Parts { division: Division::Typed { entries: 0 }, memory: None };

    fn buffer(self) -> *const c_void {
        self.buffer
    }

    /// An empty block needs no datatype.
    unsafe fn parts(self, blocks: u32, _: &'static str) -> Outcome<Parts> {
        check_given(self.buffer)?;
        // SAFETY: the caller's promise.
        let (counts, displacements, datatypes) = unsafe {
            (
                list_of_counts(blocks, self.counts)?,
                wide(self.displs, blocks.into(), "displs")?,
                out::list(self.datatypes, blocks.into(), "types")?,
            )
        };
        let mut hull = Hull::default();
        let lists = counts.into_iter().zip(displacements).zip(datatypes);
        let blocks = lists.map(|((count, displacement), &datatype)| {
            let datatype = Datatype::clone(&*datatype.of_elements(count > 0).committed()?);
            hull.add(&datatype, count, displacement.into());
            Ok(TypedBlock { count, displacement: displacement as isize, datatype })
        });
        let blocks = blocks.collect::<Outcome<Vec<_>>>()?;
        let division = Division::Typed { entries: blocks.len() };
        let memory = Some((hull.memory(self.buffer)?, Elements::Blocks(blocks.into())));
        Ok(Parts { division, memory })
    }
}

/// A buffer that is divided into blocks, and has been checked.
pub(super) struct Parts {
    division: Division,
    /// The memory of all blocks, and how their elements lie there; `None` for a rank that uses no blocks.
    memory: Option<(Extent, Elements)>,
}

/// How a buffer is divided into blocks.
pub(super) enum Division {
    /// Into blocks of the same length, one after another.
    Equal(u64),
    /// Each block has a length and a place.
    Listed { counts: Vec<u64>, displacements: Vec<i64> },
    /// Each block has a length, a place and a datatype.
    Typed { entries: usize },
}

impl Division {
    /// Returns the division in the form of `mpicore`.
    pub fn blocks(&self) -> Blocks<'_> {
        match self {
            Self::Equal(count) => Blocks::Equal { count: *count },
            Self::Listed { counts, displacements } => Blocks::Listed { counts, displacements },
            Self::Typed { entries } => Blocks::Typed { entries: *entries },
        }
    }
}

impl Parts {
    /// Returns the buffer as one whose blocks are sent.
    ///
    /// # Safety
    /// As [`Data::input`].
    pub unsafe fn input(self) -> (Input, Division) {
        let input = |(extent, elements): (Extent, _)| {
            // SAFETY: the caller's promise.
            unsafe { extent.input(elements) }
        };
        (self.memory.map_or_else(Input::none, input), self.division)
    }

    /// Returns the buffer as one whose blocks are received.
    ///
    /// # Safety
    /// As [`Data::output`].
    pub unsafe fn output(self) -> (Output, Division) {
        let output = |(extent, elements): (Extent, _)| {
            // SAFETY: the caller's promise.
            unsafe { extent.output(elements) }
        };
        (self.memory.map_or_else(Output::none, output), self.division)
    }
}

/// The range of bytes that blocks cover, from the address of their buffer on. It is empty at first.
#[derive(Default)]
struct Hull(Option<(i128, i128)>);

impl Hull {
    /// Adds a block that begins at `displacement`, in bytes.
    fn add(&mut self, datatype: &Datatype, count: u64, displacement: i128) {
        if count == 0 || datatype.size() == 0 {
            return;
        }
        let last = i128::from(count - 1) * datatype.extent() as i128;
        let low = displacement + datatype.true_lower_bound() as i128;
        let high = low + datatype.true_extent() as i128 + last.max(0);
        let low = low + last.min(0);
        let known = self.0.unwrap_or((low, high));
        self.0 = Some((known.0.min(low), known.1.max(high)));
    }

    /// Returns the memory of all blocks.
    fn memory(self, buffer: *const c_void) -> Outcome<Extent> {
        let (low, high) = self.0.unwrap_or_default();
        let (Ok(low), Ok(len)) = (isize::try_from(low), isize::try_from(high - low)) else {
            let text = format!("blocks from byte {low} to byte {high} exceed the memory");
            return Err(Fault::argument(MPI_ERR_ARG, "displs", text));
        };
        // With MPI_BOTTOM there are absolute addresses, far above the first page of memory.
        if buffer.is_null() && len > 0 && low.unsigned_abs() < 4096 {
            let text = "the buffer is null, and not all counts are 0";
            return Err(Fault::argument(MPI_ERR_BUFFER, "buf", text));
        }
        Ok(Extent::of(buffer, low, len as usize))
    }
}

/// Returns a list of counts that are not negative.
///
/// # Safety
/// FC1: the list has that many entries.
pub(super) unsafe fn list_of_counts(len: u32, counts: *const impl Number) -> Outcome<Vec<u64>> {
    // SAFETY: the caller's promise.
    let counts = unsafe { out::list(counts, len.into(), "counts") }?;
    let counts = counts.iter().map(|count| count.wide());
    counts.map(|count| u64::try_from(count).map_err(|_| negative_count("counts", count))).collect()
}
