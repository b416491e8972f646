//! The memory that a collective under test is lent.
//!
//! - CB1: an [`Area`] is lent to one call at a time. It is marked as lent until its rank has seen the end of the call,
//!   or the device has failed and uses no buffer any more. While it is lent, nobody else touches the bytes. An area
//!   that is dropped while it is lent leaks them.

#![expect(unsafe_code, reason = "lends buffers of the tests to collectives")]

use mpicore::{Input, Output};
use mpjdev::{RecvRegion, SendRegion};

use super::shape::Side;

/// The memory of one side of a call, with margins.
#[derive(Debug)]
pub struct Area {
    side: Side,
    memory: Vec<u8>,
    is_lent: bool,
}

impl Area {
    /// Memory without data.
    pub fn new(side: Side) -> Self {
        let memory = side.blank();
        Self { side, memory, is_lent: false }
    }

    /// Where the data lie.
    pub fn side(&self) -> &Side {
        &self.side
    }

    /// Replaces the contents by the data of each block.
    ///
    /// # Panics
    /// When it is lent.
    pub fn fill(&mut self, blocks: &[Option<Vec<u8>>]) {
        assert!(!self.is_lent, "the memory is lent (CB1)");
        // In place, since a call may have kept the address.
        let image = self.image(blocks, None);
        self.memory.copy_from_slice(&image);
    }

    /// The contents with these data in it, and then with `front` at the address of the buffer.
    pub fn image(&self, blocks: &[Option<Vec<u8>>], front: Option<&[u8]>) -> Vec<u8> {
        let mut memory = self.side.blank();
        for (number, data) in blocks.iter().enumerate() {
            if let Some(data) = data {
                self.side.put(&mut memory, number, data);
            }
        }
        if let Some(front) = front {
            self.side.put_in_front(&mut memory, front);
        }
        memory
    }

    /// The bytes.
    ///
    /// # Panics
    /// When it is lent.
    pub fn memory(&self) -> &[u8] {
        assert!(!self.is_lent, "the memory is lent (CB1)");
        &self.memory
    }

    /// Notes that a call begins to use it, or that the call has ended.
    pub fn set_lent(&mut self, is_lent: bool) {
        self.is_lent = is_lent;
    }

    /// The data for a call that reads them. The memory counts as lent.
    pub fn lend_input(&mut self) -> Input {
        let region = self.lend_source();
        Input::new(region, self.side.origin(), self.side.elements())
    }

    /// The data for a call that writes them. The memory counts as lent.
    pub fn lend_output(&mut self) -> Output {
        let region = self.lend_sink();
        Output::new(region, self.side.origin(), self.side.elements())
    }

    /// The bytes of the data, with the gaps between them, for reading. The memory counts as lent.
    pub fn lend_source(&mut self) -> SendRegion {
        self.is_lent = true;
        let data = &self.memory[self.side.start()..][..self.side.len()];
        // SAFETY: CB1: the bytes stay, and nobody writes them, until the call has ended.
        unsafe { SendRegion::new(data.as_ptr(), data.len()) }
    }

    /// The same, for writing.
    pub fn lend_sink(&mut self) -> RecvRegion {
        self.is_lent = true;
        let data = &mut self.memory[self.side.start()..][..self.side.len()];
        // SAFETY: CB1: the bytes stay, and nobody else touches them, until the call has ended.
        unsafe { RecvRegion::new(data.as_mut_ptr(), data.len()) }
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.is_lent {
            std::mem::forget(std::mem::take(&mut self.memory));
        }
    }
}
