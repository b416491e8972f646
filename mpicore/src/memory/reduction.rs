//! The operation of a reduction on elements of a collective.

use std::any::Any;
use std::sync::Arc;

use crate::datatype::Datatype;
use crate::error::Error;
use crate::op::{ElementKind, Op, OpError, Predefined, reduce_local};

/// The operation of a reduction, and what it is applied to.
#[derive(Clone)]
pub struct Reduction {
    /// The operation.
    pub op: Op,
    /// The kind of the elements.
    pub operand: Operand,
}

/// What elements are to an operation.
#[derive(Clone)]
pub enum Operand {
    /// Of a kind that predefined operations know.
    Kind(ElementKind),
    /// Each of this datatype, which is asked for where they do not lie in a slice. Operations of users get them side by
    /// side, wherever they lie, and `()` as their description.
    Elements(fn() -> Option<Datatype>),
    /// Something for operations of users, who are given this as its description, and the elements as they lie, with
    /// what is between them: MPI's user functions.
    Described(Arc<dyn Any + Send + Sync>),
}

impl Reduction {
    /// The highest of words.
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

    /// `into[i] = from[i] op into[i]` for `count` elements. The padding behind the last one need not be there.
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

    /// Bytes of one operand, if operands are of a kind, and of one without padding.
    pub(crate) fn operand_size(&self) -> Option<usize> {
        match self.operand {
            Operand::Kind(kind) => Some(kind.size()).filter(|size| *size == kind.extent()),
            Operand::Elements(_) | Operand::Described(_) => None,
        }
    }

    /// The datatype of one element, if it is to have them side by side.
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

/// Elements that lie as a datatype says end with the data of the last one.
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
