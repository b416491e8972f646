//! Arrays and views of the crate `ndarray`, with any number of axes in any order, and any strides.

#![expect(unsafe_code, reason = "promises that arrays are buffers")]

use ndarray::{ArrayBase, Data, DataMut, Dimension};

use super::axes::view;
use super::{RecvBuffer, SendBuffer, View};
use crate::datatype::Datatype;
use crate::error::Error;

// SAFETY: BF1: an array owns or borrows the elements that its lengths and strides describe; pointers to its first one
// reach all of them. BF3: returns itself.
unsafe impl<S, D> SendBuffer for ArrayBase<S, D>
where
    S: Data<Elem: Datatype>,
    D: Dimension,
{
    type Element = S::Elem;
    type Memory = Self;

    fn memory(&self) -> &Self {
        self
    }

    fn as_elements(&self) -> Option<&[S::Elem]> {
        self.as_slice()
    }

    fn describe(&self) -> Result<View<*const u8>, Error> {
        let first = self.as_ptr().cast::<u8>();
        view::<S::Elem, _>(
            first,
            |first, by| first.wrapping_offset(by),
            self.shape(),
            self.strides(),
        )
    }
}

// SAFETY: BF2: as above, borrowed exclusively; an array that shares its elements takes a copy of its own before it
// gives a pointer to write through. DT1 says which bytes may be written. BF3: returns itself.
unsafe impl<S, D> RecvBuffer for ArrayBase<S, D>
where
    S: DataMut<Elem: Datatype>,
    D: Dimension,
{
    type MemoryMut = Self;

    fn memory_mut(&mut self) -> &mut Self {
        self
    }

    fn as_elements_mut(&mut self) -> Option<&mut [S::Elem]> {
        self.as_slice_mut()
    }

    fn describe_mut(&mut self) -> Result<View<*mut u8>, Error> {
        // This call comes first, since it may change the strides.
        let first = self.as_mut_ptr().cast::<u8>();
        view::<S::Elem, _>(
            first,
            |first, by| first.wrapping_offset(by),
            self.shape(),
            self.strides(),
        )
    }
}
