//! MPI_Alltoallw on memory that a started or persistent call owns: which parts of it go to the ranks, and which parts
//! receive from them.
//!
//! The program passes functions that divide the memory into views, as it would for a call that borrows them. So no two
//! views to receive into share an element. The call notes where the views lie and drops them; it keeps only one address
//! of the memory.

use std::ops::Range;

use mpicore::TypedBlock;

use super::{CollectiveRequest, PersistentCollective, RecvArg, SendArg};
use crate::communicator::Communicator;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::memory::{SendBuffer, Strided, StridedMut, Unit};

/// Where the parts of the memory of a call lie, one for each rank.
pub(crate) struct Parts {
    sent: Vec<TypedBlock>,
    received: Vec<TypedBlock>,
}

impl Parts {
    /// Finds the parts into which these functions divide the memory.
    pub(crate) fn of<T: Datatype>(
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
    pub(crate) fn divide(self, (data, _): SendArg, (into, _): RecvArg) -> (SendArg, RecvArg) {
        let entries = (self.sent.len() as u64, self.received.len() as u64);
        ((data.in_blocks(self.sent), entries.0), (into.in_blocks(self.received), entries.1))
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

impl Communicator {
    /// Starts [`Communicator::all_to_allw`] on memory that the call owns (MPI_Ialltoallw): `sent` divides `data` into a
    /// part for each rank, and `received` divides `into` into a part from each rank. Both functions run once, before
    /// this returns.
    ///
    /// # Errors
    /// As [`Communicator::all_to_allw`]; the errors of `sent` and `received`; [`Error::Elsewhere`].
    ///
    /// ```
    /// use mpj::Strided;
    /// mpj::local::run(2, |world| {
    ///     // The halves of a row go to the ranks, and what comes is a column of a matrix.
    ///     let (row, matrix) = ([1, 2, 3, 4].map(|x| x + 10 * world.rank()).to_vec(), vec![0; 4]);
    ///     let request = world.iall_to_allw(
    ///         row,
    ///         |row| row.chunks(2).map(|half| Strided::new(half, 0, 1, 2)).collect(),
    ///         matrix,
    ///         |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
    ///     );
    ///     let matrix = request.unwrap().wait().unwrap();
    ///     assert_eq!(matrix, [[1, 11, 2, 12], [3, 13, 4, 14]][world.rank()]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn iall_to_allw<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
        mut into: Vec<T>,
        received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
    ) -> Result<CollectiveRequest<T>, Error> {
        let parts = Parts::of(&data, sent, &mut into, received);
        self.start(data, into, |data, into| {
            let (data, into) = parts?.divide(data, into);
            self.plan_all_to_allw(data, into)
        })
    }

    /// Makes a persistent request for [`Communicator::all_to_allw`] on memory that it owns (MPI_Alltoallw_init):
    /// `sent` and `received` divide it as for [`Communicator::iall_to_allw`], once for all starts.
    ///
    /// # Errors
    /// As [`Communicator::iall_to_allw`].
    ///
    /// ```
    /// mpj::local::run(2, |world| {
    ///     // The columns of a matrix go to the ranks, and what comes are columns of another one.
    ///     let kept = world.all_to_allw_init(
    ///         vec![0; 4],
    ///         |matrix| (0..2).map(|column| mpj::column(matrix, 2, column)).collect(),
    ///         vec![0; 4],
    ///         |matrix| mpj::split_columns_mut(matrix, 2, [1, 1]),
    ///     );
    ///     let (mut kept, mine) = (kept.unwrap(), [1, 2, 3, 4].map(|x| x + 10 * world.rank()));
    ///     for step in 0..3 {
    ///         kept.data_mut().unwrap().copy_from_slice(&mine.map(|x| x + step));
    ///         kept.start().unwrap();
    ///         kept.wait().unwrap();
    ///         let expected = [[1, 11, 3, 13], [2, 12, 4, 14]][world.rank()].map(|x| x + step);
    ///         assert_eq!(kept.buffer().unwrap(), expected);
    ///     }
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn all_to_allw_init<T: Datatype>(
        &self,
        data: Vec<T>,
        sent: impl FnOnce(&[T]) -> Result<Vec<Strided<'_, T>>, Error>,
        mut into: Vec<T>,
        received: impl FnOnce(&mut [T]) -> Result<Vec<StridedMut<'_, T>>, Error>,
    ) -> Result<PersistentCollective<T>, Error> {
        let parts = Parts::of(&data, sent, &mut into, received);
        self.keep(data, into, |data, into| {
            let (data, into) = parts?.divide(data, into);
            self.plan_all_to_allw(data, into)
        })
    }
}
