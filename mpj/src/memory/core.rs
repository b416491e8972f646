//! Buffers in the form that collective calls of the core take: memory and the layout of its elements.

#![expect(unsafe_code, reason = "passes borrowed buffers to collective calls")]

use mpicore::{Elements, Input, Output};
use mpjdev::{RecvRegion, SendRegion};

use super::{RecvBuffer, SendBuffer, Unit, bytes, bytes_mut};
use crate::datatype::{Datatype, is_plain};
use crate::error::Error;

/// Makes the input of a collective call, with its number of units. The caller keeps the borrow until that call has
/// ended.
pub(crate) fn input<B: SendBuffer + ?Sized>(buffer: &B) -> Result<(Input, u64), Error> {
    if let (Some(bytes), Some(elements)) = (bytes(buffer), buffer.as_elements()) {
        let size = size_of::<B::Element>();
        // SAFETY: BF1, for as long as the buffer is borrowed, as the caller promises.
        let memory = unsafe { SendRegion::new(bytes.as_ptr(), bytes.len()) };
        return Ok((Input::new(memory, 0, Elements::Plain { size }), elements.len() as u64));
    }
    let view = buffer.describe()?;
    // SAFETY: as above. Only bytes that units name are read.
    let memory = unsafe { SendRegion::new(view.start, view.len) };
    let input = Input::new(memory, view.origin as isize, elements_of(view.unit));
    Ok((input, view.units as u64))
}

/// Makes the output of a collective call, with its number of units. The caller keeps the borrow until that call has
/// ended.
pub(crate) fn output<B: RecvBuffer + ?Sized>(buffer: &mut B) -> Result<(Output, u64), Error> {
    let len = buffer.as_elements().map_or(0, <[_]>::len) as u64;
    if let Some(bytes) = bytes_mut(buffer) {
        let size = size_of::<B::Element>();
        // SAFETY: BF2, for as long as the buffer is borrowed, as the caller promises.
        let memory = unsafe { RecvRegion::new(bytes.as_mut_ptr(), bytes.len()) };
        return Ok((Output::new(memory, 0, Elements::Plain { size }), len));
    }
    let view = buffer.describe_mut()?;
    // SAFETY: as above. Only bytes that units name are written.
    let memory = unsafe { RecvRegion::new(view.start, view.len) };
    let output = Output::new(memory, view.origin as isize, elements_of(view.unit));
    Ok((output, view.units as u64))
}

/// Makes one input of a list of buffers, one to send to each rank, with their number; like [`input`].
pub(crate) fn inputs<B: SendBuffer>(list: &[B]) -> Result<(Input, u64), Error> {
    let blocks = list.iter().map(input).collect::<Result<Vec<_>, _>>()?;
    Ok((Input::of_blocks(blocks), list.len() as u64))
}

/// Makes one output of a list of buffers, one for the results from each rank, with their number; like [`output`].
pub(crate) fn outputs<B: RecvBuffer>(list: &mut [B]) -> Result<(Output, u64), Error> {
    let entries = list.len() as u64;
    let blocks = list.iter_mut().map(output).collect::<Result<Vec<_>, _>>()?;
    Ok((Output::of_blocks(blocks), entries))
}

fn elements_of(unit: Unit) -> Elements {
    match unit {
        Unit::Plain { size } => Elements::Plain { size },
        Unit::Typed(datatype) => Elements::Typed(datatype),
    }
}

/// Returns how adjacent elements lie in memory.
pub(crate) fn elements<T: Datatype>() -> Result<Elements, Error> {
    if is_plain::<T>() {
        return Ok(Elements::Plain { size: size_of::<T>() });
    }
    Ok(Elements::Typed(T::datatype()?))
}
