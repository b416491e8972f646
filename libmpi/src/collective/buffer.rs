//! The buffers of collectives: elements one after another, or divided into blocks.

use std::ffi::{c_int, c_void};
use std::ptr;

use mpicore::collective::Blocks;
use mpicore::datatype::Datatype;
use mpicore::{Elements, Input, Output, Plain, TypedBlock};
use mpjdev::{RecvRegion, SendRegion};

use crate::abi::*;
use crate::call::{Fault, Outcome, negative_count, out};

/// A number in a list of counts or displacements.
pub(super) trait Number: Copy {
    /// Returns it in the widest type.
    fn wide(self) -> i64;
}

impl Number for c_int {
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Number for i64 {
    fn wide(self) -> i64 {
        self
    }
}

impl Number for isize {
    fn wide(self) -> i64 {
        self as i64
    }
}

/// Returns whether a buffer argument is MPI_IN_PLACE.
#[inline]
pub(super) fn is_in_place(buffer: *const c_void) -> bool {
    buffer.addr() == MPI_IN_PLACE
}

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

/// Elements one after another.
#[derive(Clone, Copy)]
pub(super) struct Data {
    pub buffer: *const c_void,
    pub count: i64,
    pub datatype: MPI_Datatype,
}

impl Data {
    /// Returns the elements as those that are sent, and their number.
    ///
    /// # Safety
    /// FC1: the elements stay as they are until the operation has ended.
    ///
    /// # Errors
    /// MPI_ERR_BUFFER, MPI_ERR_COUNT, MPI_ERR_TYPE.
    #[inline]
    pub unsafe fn input(self) -> Outcome<(Input, u64)> {
        check_given(self.buffer)?;
        // SAFETY: the caller's promise.
        let input = unsafe { self.datatype.input(self.buffer, self.count) }?;
        Ok((input, self.count as u64))
    }

    /// Returns the places for elements that are received, and their number.
    ///
    /// # Safety
    /// FC1: nobody else uses the elements until the operation has ended.
    ///
    /// # Errors
    /// As [`Data::input`].
    #[inline]
    pub unsafe fn output(self) -> Outcome<(Output, u64)> {
        check_given(self.buffer)?;
        // SAFETY: the caller's promise.
        let output = unsafe { self.datatype.output(self.buffer.cast_mut(), self.count) }?;
        Ok((output, self.count as u64))
    }

    /// Returns so many times the elements as those that are sent, if they are of a predefined datatype without padding
    /// and there is at least one.
    ///
    /// # Safety
    /// As [`Data::input`].
    #[inline(always)]
    pub unsafe fn plain_input(self, times: u32) -> Option<Plain> {
        let (len, size) = self.plain_len(times)?;
        // SAFETY: the caller's promise.
        Some(Plain::input(unsafe { SendRegion::new(self.buffer.cast(), len) }, size))
    }

    /// The same for elements that are received.
    ///
    /// # Safety
    /// As [`Data::output`].
    #[inline(always)]
    pub unsafe fn plain_output(self, times: u32) -> Option<Plain> {
        let (len, size) = self.plain_len(times)?;
        // SAFETY: the caller's promise.
        let memory = unsafe { RecvRegion::new(self.buffer.cast_mut().cast(), len) };
        Some(Plain::output(memory, size))
    }

    /// Returns the bytes of so many times the elements, and of one.
    #[inline(always)]
    fn plain_len(self, times: u32) -> Option<(usize, usize)> {
        if is_in_place(self.buffer) {
            return None;
        }
        let len = self.datatype.plain_len(self.buffer, self.count)?;
        Some((len.checked_mul(times as usize)?, self.datatype.dense_size()?))
    }
}

/// A buffer that is divided into blocks, one for each rank.
pub(super) struct Parts {
    buffer: *const c_void,
    spread: Spread,
}

enum Spread {
    /// Blocks of the same length, one after another.
    Equal { blocks: u32, count: u64, datatype: MPI_Datatype },
    /// A length and a place for each block.
    Listed { counts: Vec<u64>, displacements: Vec<i64>, datatype: MPI_Datatype },
    /// A length, a place in bytes and a datatype for each block.
    Typed(Vec<TypedBlock>),
}

impl Parts {
    /// Equal blocks of a rank that uses none.
    pub const NO_EQUAL: Self = Self {
        buffer: ptr::null(),
        spread: Spread::Equal { blocks: 0, count: 0, datatype: MPI_BYTE },
    };

    /// Listed blocks of a rank that uses none.
    pub const NO_LISTED: Self = Self {
        buffer: ptr::null(),
        spread: Spread::Listed {
            counts: Vec::new(),
            displacements: Vec::new(),
            datatype: MPI_BYTE,
        },
    };

    /// Describes blocks of the same length, one after another.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER.
    pub fn equal(
        blocks: u32,
        Data { buffer, count, datatype }: Data,
        argument: &'static str,
    ) -> Outcome<Self> {
        check_given(buffer)?;
        let count = u64::try_from(count).map_err(|_| negative_count(argument, count))?;
        Ok(Self { buffer, spread: Spread::Equal { blocks, count, datatype } })
    }

    /// Describes blocks with lengths and places of their own.
    ///
    /// # Safety
    /// FC1: the lists have an entry for each block.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER, MPI_ERR_ARG.
    pub unsafe fn listed(
        blocks: u32,
        buffer: *const c_void,
        counts: *const impl Number,
        displacements: *const impl Number,
        datatype: MPI_Datatype,
    ) -> Outcome<Self> {
        check_given(buffer)?;
        // SAFETY: the caller's promise.
        let (counts, displacements) = unsafe {
            (list_of_counts(blocks, counts)?, out::list(displacements, blocks.into(), "displs")?)
        };
        let displacements = displacements.iter().map(|displacement| displacement.wide()).collect();
        let datatype = datatype.of_elements(counts.iter().any(|count| *count > 0));
        Ok(Self { buffer, spread: Spread::Listed { counts, displacements, datatype } })
    }

    /// Describes blocks with lengths, places in bytes and datatypes of their own. An empty block needs no datatype.
    ///
    /// # Safety
    /// FC1: the lists have an entry for each block.
    ///
    /// # Errors
    /// MPI_ERR_COUNT, MPI_ERR_BUFFER, MPI_ERR_ARG, MPI_ERR_TYPE.
    pub unsafe fn typed(
        blocks: u32,
        buffer: *const c_void,
        counts: *const impl Number,
        displacements: *const impl Number,
        datatypes: *const MPI_Datatype,
    ) -> Outcome<Self> {
        check_given(buffer)?;
        // SAFETY: the caller's promise.
        let (counts, displacements, datatypes) = unsafe {
            (
                list_of_counts(blocks, counts)?,
                out::list(displacements, blocks.into(), "displs")?,
                out::list(datatypes, blocks.into(), "types")?,
            )
        };
        let lists = counts.into_iter().zip(displacements).zip(datatypes);
        let typed = lists.map(|((count, displacement), &datatype)| {
            let datatype = Datatype::clone(&*datatype.of_elements(count > 0).committed()?);
            Ok(TypedBlock { count, displacement: displacement.wide() as isize, datatype })
        });
        Ok(Self { buffer, spread: Spread::Typed(typed.collect::<Outcome<_>>()?) })
    }

    /// Returns the division into blocks.
    pub fn blocks(&self) -> Blocks<'_> {
        match &self.spread {
            Spread::Equal { count, .. } => Blocks::Equal { count: *count },
            Spread::Listed { counts, displacements, .. } => {
                Blocks::Listed { counts, displacements }
            }
            Spread::Typed(blocks) => Blocks::Typed { entries: blocks.len() },
        }
    }

    /// Returns the buffer as one whose blocks are sent.
    ///
    /// # Safety
    /// As [`Data::input`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn input(&self) -> Outcome<Input> {
        if let Some(whole) = self.whole()? {
            // SAFETY: the caller's promise.
            return Ok(unsafe { whole.input() }?.0);
        }
        let Memory { at, len, origin, elements } = self.memory()?;
        // SAFETY: the caller's promise; between its blocks, nothing is read.
        Ok(Input::new(unsafe { SendRegion::new(at, len) }, origin, elements))
    }

    /// Returns the buffer as one whose blocks are received.
    ///
    /// # Safety
    /// As [`Data::output`].
    ///
    /// # Errors
    /// As there.
    pub unsafe fn output(&self) -> Outcome<Output> {
        if let Some(whole) = self.whole()? {
            // SAFETY: the caller's promise.
            return Ok(unsafe { whole.output() }?.0);
        }
        let Memory { at, len, origin, elements } = self.memory()?;
        // SAFETY: the caller's promise; between its blocks, nothing is written.
        Ok(Output::new(unsafe { RecvRegion::new(at.cast_mut(), len) }, origin, elements))
    }

    /// Returns the elements of all blocks, if the blocks have the same length.
    fn whole(&self) -> Outcome<Option<Data>> {
        let Spread::Equal { blocks, count, datatype } = self.spread else { return Ok(None) };
        let total = count.checked_mul(blocks.into()).and_then(|total| i64::try_from(total).ok());
        match total {
            Some(count) => Ok(Some(Data { buffer: self.buffer, count, datatype })),
            None => {
                let text = format!("{blocks} blocks of {count} elements exceed the memory");
                Err(Fault::argument(MPI_ERR_COUNT, "count", text))
            }
        }
    }

    /// Returns the memory from the first to the last byte of all blocks, and how the elements lie there.
    fn memory(&self) -> Outcome<Memory> {
        let mut hull = Hull::default();
        let elements = match &self.spread {
            Spread::Equal { .. } => Elements::Plain { size: 1 },
            Spread::Listed { counts, displacements, datatype } => {
                let datatype = datatype.committed()?;
                for (count, displacement) in counts.iter().zip(displacements) {
                    let bytes = i128::from(*displacement) * datatype.extent() as i128;
                    hull.add(&datatype, *count, bytes);
                }
                let dense = usize::try_from(datatype.extent()).ok();
                match dense.filter(|size| *size > 0 && datatype.span(1) == Some((0, *size))) {
                    Some(size) => Elements::Plain { size },
                    None => Elements::Typed(Datatype::clone(&datatype)),
                }
            }
            Spread::Typed(blocks) => {
                for TypedBlock { count, displacement, datatype } in blocks {
                    hull.add(datatype, *count, *displacement as i128);
                }
                Elements::Blocks(blocks.as_slice().into())
            }
        };
        let (low, len) = hull.bytes()?;
        // With MPI_BOTTOM there are absolute addresses, far above the first page of memory.
        if self.buffer.is_null() && len > 0 && low.unsigned_abs() < 4096 {
            let text = "the buffer is null, and not all counts are 0";
            return Err(Fault::argument(MPI_ERR_BUFFER, "buf", text));
        }
        let at = ptr::with_exposed_provenance(self.buffer.addr().wrapping_add_signed(low));
        Ok(Memory { at, len, origin: -low, elements })
    }
}

/// Memory of blocks: its first byte, its length, where the address of the buffer is in it, and how the elements lie.
struct Memory {
    at: *const u8,
    len: usize,
    origin: isize,
    elements: Elements,
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

    /// Returns the first byte and the number of bytes.
    fn bytes(&self) -> Outcome<(isize, usize)> {
        let (low, high) = self.0.unwrap_or_default();
        match (isize::try_from(low), isize::try_from(high - low)) {
            (Ok(low), Ok(len)) => Ok((low, len as usize)),
            _ => {
                let text = format!("blocks from byte {low} to byte {high} exceed the memory");
                Err(Fault::argument(MPI_ERR_ARG, "displs", text))
            }
        }
    }
}

/// Returns a list of counts that are not negative.
///
/// # Safety
/// FC1: the list has that many entries.
pub(super) unsafe fn list_of_counts(len: u32, counts: *const impl Number) -> Outcome<Vec<u64>> {
    // SAFETY: the caller's promise.
    let counts = unsafe { out::list(counts, len.into(), "counts") }?;
    let counts = counts.iter().map(|count| {
        let count = count.wide();
        u64::try_from(count).map_err(|_| negative_count("counts", count))
    });
    counts.collect()
}

/// Refuses MPI_IN_PLACE where a buffer is needed.
#[inline]
fn check_given(buffer: *const c_void) -> Outcome {
    if is_in_place(buffer) {
        let text = "MPI_IN_PLACE is not allowed here";
        return Err(Fault::argument(MPI_ERR_BUFFER, "buf", text));
    }
    Ok(())
}
