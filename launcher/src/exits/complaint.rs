//! What ranks complain about.

/// A panic or an error that a rank has reported.
#[derive(Debug, Clone)]
pub(crate) struct Complaint {
    pub(crate) at: u64,
    pub(crate) message: String,
    /// Where it panicked; empty if it did not.
    pub(crate) location: String,
    /// The kernel's number of the thread.
    pub(crate) thread: i32,
    /// Whether it is about a mistake that was found when all ranks had come to their end.
    pub(crate) is_mistake: bool,
}

impl Complaint {
    /// Whether it is about a panic.
    pub(crate) fn is_panic(&self) -> bool {
        !self.location.is_empty()
    }
}
