//! Errors of operations that refuse their operands, each with its MPI error class.

use super::{ElementKind, Predefined};
use crate::ErrorClass;

/// Why an operation refused its operands. The buffers are unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// MPI does not define the operation on such elements (MPI-4.1 section 6.9.2).
    #[error("{op} is not defined on {kind}; it takes {}", legal(*.op))]
    Undefined {
        /// The operation.
        op: Predefined,
        /// The kind of the elements.
        kind: ElementKind,
    },
    /// The elements are of a format that this processor cannot compute with.
    #[error("{op} on {kind} needs the x87 unit of x86-64, which this processor lacks; use double")]
    Unavailable {
        /// The operation.
        op: Predefined,
        /// The kind of the elements.
        kind: ElementKind,
    },
    /// The two buffers have different numbers of bytes.
    #[error("the input has {input} bytes, the result {inout}; both must have the same number")]
    Lengths {
        /// Bytes of the input.
        input: usize,
        /// Bytes of the result.
        inout: usize,
    },
    /// The buffers end inside an element.
    #[error("{len} bytes are no whole number of {kind}, which take {} bytes each", .kind.extent())]
    Partial {
        /// Bytes of each buffer.
        len: usize,
        /// The kind of the elements.
        kind: ElementKind,
    },
}

/// Lists the classes on which an operation is defined.
fn legal(op: Predefined) -> String {
    let names: Vec<_> = op.classes().iter().map(|class| class.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
        None => String::new(),
    }
}

impl OpError {
    /// Returns MPI's class of this error.
    pub const fn class(&self) -> ErrorClass {
        match self {
            Self::Undefined { .. } => ErrorClass::Op,
            Self::Unavailable { .. } => ErrorClass::Type,
            Self::Lengths { .. } => ErrorClass::Arg,
            Self::Partial { .. } => ErrorClass::Count,
        }
    }
}
