//! Numbers of elements in the bytes of a message, and the reverse: what a status tells (MPI-4.1 sections 3.2.5 and
//! 5.1.11).

use super::Datatype;

impl Datatype {
    /// Returns the number of whole elements in a message of `bytes` bytes: MPI_Get_count. `None` is MPI_UNDEFINED: the
    /// bytes end inside an element. A datatype without data has 0 elements in a message without data.
    ///
    /// ```
    /// use mpicore::datatype::Datatype;
    /// use mpicore::op::ElementKind;
    /// let pair = Datatype::contiguous(2, &Datatype::predefined(ElementKind::I32))?;
    /// assert_eq!((pair.count_in(16), pair.count_in(12)), (Some(2), None));
    /// assert_eq!((pair.elements_in(12), pair.elements_in(13)), (Some(3), None));
    /// assert_eq!(pair.bytes_of(3), Some(12));
    /// # Ok::<(), mpicore::datatype::DatatypeError>(())
    /// ```
    pub fn count_in(&self, bytes: u64) -> Option<u64> {
        match self.size() as u64 {
            0 => (bytes == 0).then_some(0),
            size => (bytes % size == 0).then_some(bytes / size),
        }
    }

    /// Returns the number of basic elements in a message of `bytes` bytes, of which the last element may be a part:
    /// MPI_Get_elements. Pairs count as two. `None` is MPI_UNDEFINED: the bytes end inside a basic element.
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        let signature = self.signature();
        match signature.size() {
            0 => (bytes == 0).then_some(0),
            size => {
                let rest = signature.elements_in(bytes % size)?;
                (bytes / size).checked_mul(signature.elements())?.checked_add(rest)
            }
        }
    }

    /// Returns the bytes of data in the first `elements` basic elements of a sequence of elements of this datatype:
    /// MPI_Status_set_elements. [`elements_in`](Self::elements_in) is the reverse. `None` if there are not as many, or
    /// if the number of bytes is not below 2^64.
    pub fn bytes_of(&self, elements: u64) -> Option<u64> {
        let signature = self.signature();
        match signature.elements() {
            0 => (elements == 0).then_some(0),
            each => {
                let rest = signature.size_of_first(elements % each);
                (elements / each).checked_mul(signature.size())?.checked_add(rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datatype::Basic;
    use crate::op::ElementKind;

    #[test]
    fn partial_elements_are_counted_and_counts_give_the_bytes_again() {
        let types = [ElementKind::F64.into(), ElementKind::I16.into(), Basic::Char];
        let types = types.map(Datatype::predefined);
        let record = Datatype::create_struct(&[2, 3, 1], &[0, 16, 22], &types).unwrap();
        let vector = Datatype::vector(2, 1, 2, &record).unwrap();
        let pairs = Datatype::contiguous(3, &Datatype::predefined(ElementKind::ShortInt)).unwrap();
        for datatype in [&types[0], &record, &vector, &pairs] {
            let mut bytes = 0;
            for elements in 0..4 * datatype.signature().elements() {
                assert_eq!(datatype.bytes_of(elements), Some(bytes), "{datatype}");
                assert_eq!(datatype.elements_in(bytes), Some(elements), "{datatype}");
                let next = datatype.bytes_of(elements + 1).unwrap();
                for inside in bytes + 1..next {
                    assert_eq!(datatype.elements_in(inside), None, "{datatype}");
                }
                let is_whole = elements % datatype.signature().elements() == 0;
                assert_eq!(datatype.count_in(bytes).is_some(), is_whole, "{datatype}");
                bytes = next;
            }
        }
        assert_eq!((record.bytes_of(5), pairs.bytes_of(3)), (Some(22), Some(8)));
    }

    #[test]
    fn datatypes_without_data_have_no_elements() {
        let empty = Datatype::contiguous(0, &Datatype::predefined(Basic::Char)).unwrap();
        let counts = |bytes| (empty.count_in(bytes), empty.elements_in(bytes));
        assert_eq!(counts(0), (Some(0), Some(0)));
        assert_eq!(counts(1), (None, None));
        assert_eq!((empty.bytes_of(0), empty.bytes_of(1)), (Some(0), None));
        let double = Datatype::predefined(ElementKind::F64);
        assert_eq!(double.bytes_of(u64::MAX / 2), None);
    }
}
