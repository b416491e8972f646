//! MPI_Alltoallw on memory that a started or persistent call owns: which parts of it go to the ranks, and which parts
//! receive from them.
//!
//! The program passes functions that divide the memory into views, as it would for a call that borrows them. So no two
//! views to receive into share an element. The call notes where the views lie and drops them; it keeps only one address
//! of the memory.

use std::ops::Range;

use mpicore::TypedBlock;

use super::{CallOn, Planned, RecvArg, SendArg};
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{SendBuffer, Strided, StridedMut, Unit};

/// Where the parts of the memory of a call lie, one for each rank.
pub struct Parts {
    sent: Vec<TypedBlock>,
    received: Vec<TypedBlock>,
}

impl Parts {
    /// Finds the parts into which these functions divide the memory.
    pub fn of<T: Datatype>(
        data: &[T],
        sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
        into: &mut [T],
        received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
    ) -> Result<Self, Error> {
        let (data_memory, into_memory) = (data.as_ptr_range(), into.as_ptr_range());
        let sent = blocks(&data_memory, &sent(data)?)?;
        Ok(Self { sent, received: blocks(&into_memory, &received(into)?)? })
    }

    /// Returns the same memory, in the form lent to the call, in these parts.
    pub fn divide(self, (data, _): SendArg, (into, _): RecvArg) -> (SendArg, RecvArg) {
        let entries = (self.sent.len() as u64, self.received.len() as u64);
        ((data.in_blocks(self.sent), entries.0), (into.in_blocks(self.received), entries.1))
    }
}

/// The call `K` on memory that it owns, in these parts.
pub struct InParts<K> {
    pub(super) kind: K,
    pub(super) parts: Result<Parts, Error>,
}

impl<C, K: CallOn<C>> CallOn<C> for InParts<K> {
    fn plan(self, on: &C, data: SendArg, into: RecvArg) -> Planned<'_> {
        let (data, into) = self.parts?.divide(data, into);
        self.kind.plan(on, data, into)
    }
}

fn blocks<B: SendBuffer>(
    memory: &Range<*const B::Element>,
    parts: &[B],
) -> Result<Vec<TypedBlock>, Error> {
    parts.iter().map(|part| block(memory, part)).collect()
}

/// Returns where a part lies in the memory.
fn block<B: SendBuffer>(memory: &Range<*const B::Element>, part: &B) -> Result<TypedBlock, Error> {
    let view = part.describe()?;
    let (start, low, end) = (memory.start.addr(), view.start.addr(), memory.end.addr());
    let is_inside = start <= low && low <= end && view.len <= end - low;
    let displacement = match view.len {
        // A part without bytes may lie anywhere.
        0 => 0,
        _ if is_inside => (low - start + view.origin) as isize,
        _ => return Err(Error::Elsewhere),
    };
    let datatype = match view.unit {
        Unit::Typed(datatype) => datatype,
        Unit::Plain { .. } => B::Element::datatype()?,
    };
    Ok(TypedBlock { count: view.units as u64, displacement, datatype })
}
