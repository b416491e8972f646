//! The operation of a reduction, applied to the elements of a collective.

use std::any::Any;
use std::sync::Arc;

use super::Elements;
use crate::datatype::Datatype;
use crate::error::Error;
use crate::op::{ElementKind, Op, OpError, Predefined, reduce_local};

/// The operation of a reduction, and the elements that it is applied to.
#[derive(Clone)]
pub struct Reduction {
    /// The operation.
    pub op: Op,
    /// The kind of the elements.
    pub operand: Operand,
}

/// How an operation sees its elements.
#[derive(Clone)]
pub enum Operand {
    /// Elements of a kind that predefined operations know.
    Kind(ElementKind),
    /// Elements of this datatype, which is requested only if they are not contiguous in memory. Operations of users
    /// always get contiguous elements, and `()` as their description.
    Elements(fn() -> Option<Datatype>),
    /// Elements for operations of users that get this value as their description, and the elements as they lie, with
    /// what is between them, from their lowest byte of data on: MPI's user functions. Where elements are copied for the
    /// operation, their addresses are aligned to 16 bytes.
    Described(Arc<dyn Any + Send + Sync>),
}

impl Reduction {
    /// Makes the operation that finds the highest of words.
    pub(crate) fn highest() -> Self {
        Self { op: Predefined::Max.into(), operand: Operand::Kind(ElementKind::U64) }
    }

    /// Refuses an operation that is not defined on the elements, before anything is sent.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match (&self.op, &self.operand) {
            (Op::Predefined(op), _) if !op.reduces() => Err(Error::NotForReductions { op: *op }),
            (op, Operand::Kind(kind)) => Ok(op.check(*kind)?),
            (Op::User(_), _) => Ok(()),
            (Op::Predefined(op), _) => Err(Error::NoKind { op: *op }),
        }
    }

    /// Computes `into[i] = from[i] op into[i]` for `count` elements. The padding after the last one may be missing.
    pub(super) fn apply(&self, from: &[u8], into: &mut [u8], count: usize) -> Result<(), Error> {
        match (&self.op, &self.operand) {
            (Op::User(op), Operand::Described(what)) => op.apply(from, into, count, &**what),
            (Op::User(op), Operand::Kind(kind)) => op.apply(from, into, count, kind),
            (Op::User(op), Operand::Elements(_)) => op.apply(from, into, count, &()),
            (op, Operand::Kind(kind)) => apply_predefined(op, *kind, from, into)?,
            (Op::Predefined(op), _) => return Err(Error::NoKind { op: *op }),
        }
        Ok(())
    }

    /// Returns the bytes of data in one operand, if all ranks can end pieces of their elements between the same
    /// operands. `data` is the size of an element. MPI demands the same elements on all ranks; here only those that
    /// programs describe for their operations have to be the same.
    pub(crate) fn divisible(&self, data: usize) -> Option<usize> {
        let size = match &self.operand {
            Operand::Kind(kind) => kind.size(),
            Operand::Elements(datatype) => datatype()?.size(),
            Operand::Described(_) => data,
        };
        (size > 0 && data % size == 0).then_some(size)
    }

    /// Returns how operands lie side by side where the operation combines copies of them, if it knows operands.
    pub(super) fn operands(&self) -> Option<Elements> {
        let element = self.element()?;
        let (size, extent) = (element.size(), element.extent());
        let is_dense = extent == size as isize;
        Some(if is_dense { Elements::Plain { size } } else { Elements::Typed(element) })
    }

    /// Returns the operation and the kind of its operands, if MPI defines both.
    #[inline]
    pub(crate) fn predefined(&self) -> Option<(Predefined, ElementKind)> {
        match (&self.op, &self.operand) {
            (Op::Predefined(op), Operand::Kind(kind)) => Some((*op, *kind)),
            _ => None,
        }
    }

    /// Returns the datatype of one element, if the operation needs contiguous elements.
    pub(super) fn element(&self) -> Option<Datatype> {
        match self.operand {
            Operand::Kind(kind) => Some(Datatype::predefined(kind)),
            Operand::Elements(datatype) => datatype(),
            Operand::Described(_) => None,
        }
    }
}

/// Bytes of the largest predefined element, with its padding.
const LARGEST: usize = 32;

/// Applies a predefined operation. If elements lie as a datatype describes, the last one ends without its padding.
fn apply_predefined(
    op: &Op,
    kind: ElementKind,
    from: &[u8],
    into: &mut [u8],
) -> Result<(), OpError> {
    let (size, extent) = (kind.size(), kind.extent());
    if size == extent || from.len() % extent != size || into.len() != from.len() {
        return reduce_local(op, kind, from, into);
    }
    let whole = from.len() - size;
    let (into, last_into) = into.split_at_mut(whole);
    reduce_local(op, kind, &from[..whole], into)?;
    let (mut last, mut result) = ([0; LARGEST], [0; LARGEST]);
    last[..size].copy_from_slice(&from[whole..]);
    result[..size].copy_from_slice(last_into);
    reduce_local(op, kind, &last[..extent], &mut result[..extent])?;
    last_into.copy_from_slice(&result[..size]);
    Ok(())
}
