//! Reduction operations: what MPI computes from two buffers of elements (MPI-4.1 section 6.9).
//!
//! Collectives and the accumulate calls of windows use this. So do callers of collectives, to refuse an operation that
//! is not defined before anything is sent. Everything here is pure: bytes in, bytes out.
//!
//! As in MPI, the first operand is the input, and the second is the buffer that gets the result: `inout[i] = input[i]
//! op inout[i]`. So a reduction that goes through the ranks in ascending order keeps the order of a user operation that
//! does not commute, if lower ranks are the input.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

mod element;
mod error;
mod half;
mod kernels;
mod kind;
#[cfg(target_arch = "x86_64")]
mod long_double;
#[cfg(test)]
mod tests;

pub use error::OpError;
pub(crate) use kernels::{Kernel, SharedInout, kernel, shared_kernel};
pub use kind::{Class, ElementKind};

/// The operations that MPI defines (MPI-4.1 sections 6.9.2 and 6.9.4; the last two: 12.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Predefined {
    /// `MPI_MAX`, as C's `a > b ? a : b` with the input for `a`. If the values are equal (`0.0` and `-0.0`), or if one
    /// is not a number, the value of the inout buffer stays.
    Max,
    /// `MPI_MIN`, as C's `a < b ? a : b`, otherwise as [`Max`](Self::Max).
    Min,
    /// `MPI_SUM`. Integers wrap.
    Sum,
    /// `MPI_PROD`. Integers wrap. Complex products are computed by their definition, so a product with an infinite
    /// factor may have parts that are not numbers.
    Prod,
    /// `MPI_LAND`: 1 if neither operand is zero, otherwise 0.
    Land,
    /// `MPI_LOR`: 0 if both operands are zero, otherwise 1.
    Lor,
    /// `MPI_LXOR`: 1 if exactly one of the operands is zero, otherwise 0.
    Lxor,
    /// `MPI_BAND`: bitwise and.
    Band,
    /// `MPI_BOR`: bitwise or.
    Bor,
    /// `MPI_BXOR`: bitwise exclusive or.
    Bxor,
    /// `MPI_MAXLOC`: the pair with the greater value; of pairs with equal values, the one with the lower index. If a
    /// value is not a number, the pair of the inout buffer stays.
    MaxLoc,
    /// `MPI_MINLOC`: the pair with the smaller value, otherwise as [`MaxLoc`](Self::MaxLoc).
    MinLoc,
    /// `MPI_REPLACE`: the input. For windows only, see [`reduces`](Self::reduces).
    Replace,
    /// `MPI_NO_OP`: the value of the inout buffer stays. For windows only.
    NoOp,
}

impl Predefined {
    /// All predefined operations.
    pub const ALL: [Self; 14] = [
        Self::Max,
        Self::Min,
        Self::Sum,
        Self::Prod,
        Self::Land,
        Self::Lor,
        Self::Lxor,
        Self::Band,
        Self::Bor,
        Self::Bxor,
        Self::MaxLoc,
        Self::MinLoc,
        Self::Replace,
        Self::NoOp,
    ];

    /// Returns the name in MPI, which is also the displayed form.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Max => "MPI_MAX",
            Self::Min => "MPI_MIN",
            Self::Sum => "MPI_SUM",
            Self::Prod => "MPI_PROD",
            Self::Land => "MPI_LAND",
            Self::Lor => "MPI_LOR",
            Self::Lxor => "MPI_LXOR",
            Self::Band => "MPI_BAND",
            Self::Bor => "MPI_BOR",
            Self::Bxor => "MPI_BXOR",
            Self::MaxLoc => "MPI_MAXLOC",
            Self::MinLoc => "MPI_MINLOC",
            Self::Replace => "MPI_REPLACE",
            Self::NoOp => "MPI_NO_OP",
        }
    }

    /// Returns the classes of elements on which the operation is defined: MPI's table of allowed combinations
    /// (MPI-4.1 section 6.9.2, for pairs 6.9.4, for windows 12.3.4).
    ///
    /// MPI's table has no logical operations on integers of Fortran, nor on `MPI_AINT`, `MPI_COUNT` and `MPI_OFFSET`.
    /// These have the same kinds as integers of C, so a caller that wants to refuse them must do so by datatype.
    pub const fn classes(self) -> &'static [Class] {
        match self {
            Self::Max | Self::Min => &[Class::Integer, Class::FloatingPoint],
            Self::Sum | Self::Prod => &[Class::Integer, Class::FloatingPoint, Class::Complex],
            Self::Land | Self::Lor | Self::Lxor => &[Class::Integer, Class::Logical],
            Self::Band | Self::Bor | Self::Bxor => &[Class::Integer, Class::Byte],
            Self::MaxLoc | Self::MinLoc => &[Class::Pair],
            Self::Replace | Self::NoOp => &[
                Class::Integer,
                Class::FloatingPoint,
                Class::Logical,
                Class::Complex,
                Class::Byte,
                Class::Pair,
            ],
        }
    }

    /// Returns whether collective reductions and `MPI_Reduce_local` may use it. [`Replace`](Self::Replace) and
    /// [`NoOp`](Self::NoOp) are only for the accumulate calls of windows.
    pub const fn reduces(self) -> bool {
        !matches!(self, Self::Replace | Self::NoOp)
    }

    /// Returns whether operands may change places: `MPI_Op_commutative` (MPI-4.1 section 6.9.7).
    pub const fn commutes(self) -> bool {
        self.reduces()
    }
}

impl fmt::Display for Predefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A user's function. Its arguments are the input, the buffer that gets the result, the number of elements of each, and
/// a description of their type.
///
/// It computes `inout[i] = input[i] op inout[i]` for each element. The maker of the operation chooses the form of the
/// description: a handle, for example, or nothing.
pub type UserFunction = dyn Fn(&[u8], &mut [u8], usize, &dyn Any) + Send + Sync;

/// An operation that a user has made (MPI-4.1 section 6.9.5, `MPI_Op_create`).
///
/// Callers hold no lock while they apply it, since the function may call MPI.
#[derive(Clone)]
pub struct UserOp {
    function: Arc<UserFunction>,
    commutes: bool,
}

impl UserOp {
    /// Makes an operation from `function`, which must be associative; `commutes` states whether it is commutative.
    ///
    /// ```
    /// use mpicore::op::{ElementKind, Op, UserOp, reduce_local};
    /// let first = UserOp::new(false, |input, inout, _, _| inout.copy_from_slice(input));
    /// let mut result = *b"second";
    /// reduce_local(&Op::User(first), ElementKind::Byte, b"first!", &mut result)?;
    /// assert_eq!(&result, b"first!");
    /// # Ok::<(), mpicore::op::OpError>(())
    /// ```
    pub fn new(
        commutes: bool,
        function: impl Fn(&[u8], &mut [u8], usize, &dyn Any) + Send + Sync + 'static,
    ) -> Self {
        Self { function: Arc::new(function), commutes }
    }

    /// Returns whether operands may change places.
    pub fn commutes(&self) -> bool {
        self.commutes
    }

    /// Runs the user's function on `count` elements of the type that `datatype` describes. A panic of the function
    /// passes through.
    pub fn apply(&self, input: &[u8], inout: &mut [u8], count: usize, datatype: &dyn Any) {
        (self.function)(input, inout, count, datatype);
    }
}

impl fmt::Debug for UserOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserOp").field("commutes", &self.commutes).finish_non_exhaustive()
    }
}

/// A reduction operation: MPI's `MPI_Op` (MPI-4.1 section 6.9).
#[derive(Debug, Clone)]
pub enum Op {
    /// An operation that MPI defines.
    Predefined(Predefined),
    /// An operation that a user has made.
    User(UserOp),
}

impl From<Predefined> for Op {
    fn from(op: Predefined) -> Self {
        Self::Predefined(op)
    }
}

impl From<UserOp> for Op {
    fn from(op: UserOp) -> Self {
        Self::User(op)
    }
}

impl Op {
    /// Returns whether operands may change places: `MPI_Op_commutative` (MPI-4.1 section 6.9.7).
    pub fn commutes(&self) -> bool {
        match self {
            Self::Predefined(op) => op.commutes(),
            Self::User(op) => op.commutes(),
        }
    }

    /// Checks whether the operation can be applied to elements of a kind. A user's operation can be applied to every
    /// kind.
    ///
    /// ```
    /// use mpicore::ErrorClass;
    /// use mpicore::op::{ElementKind, Op, Predefined};
    /// let band = Op::from(Predefined::Band);
    /// assert!(band.check(ElementKind::U16).is_ok());
    /// let error = band.check(ElementKind::F64).unwrap_err();
    /// assert_eq!(error.class(), ErrorClass::Op);
    /// ```
    ///
    /// # Errors
    /// [`OpError::Undefined`] if MPI does not define the operation on the kind; [`OpError::Unavailable`] if MPI does,
    /// but this processor cannot compute with the kind.
    pub fn check(&self, kind: ElementKind) -> Result<(), OpError> {
        match *self {
            Self::User(_) => Ok(()),
            Self::Predefined(op) if !op.classes().contains(&kind.class()) => {
                Err(OpError::Undefined { op, kind })
            }
            Self::Predefined(op) if !kind.is_available() => Err(OpError::Unavailable { op, kind }),
            Self::Predefined(_) => Ok(()),
        }
    }
}

/// Combines two buffers element by element: `inout[i] = input[i] op inout[i]` (MPI-4.1 section 6.9.7,
/// `MPI_Reduce_local`).
///
/// Both buffers contain whole elements, each [`ElementKind::extent`] bytes long, at any alignment. Padding of `inout`
/// keeps its bytes; that of `input` is not read. A user's operation gets `&kind` as the description of its type; for
/// other types, call [`UserOp::apply`].
///
/// [`Predefined::Replace`] and [`Predefined::NoOp`] are computed too, for windows. An implementation of
/// `MPI_Reduce_local` checks [`Predefined::reduces`] first.
///
/// ```
/// use mpicore::op::{ElementKind, Predefined, reduce_local};
/// let mut sums = [2_i32.to_ne_bytes(), i32::MAX.to_ne_bytes()].concat();
/// let input = [1_i32.to_ne_bytes(), 1_i32.to_ne_bytes()].concat();
/// reduce_local(&Predefined::Sum.into(), ElementKind::I32, &input, &mut sums)?;
/// assert_eq!(sums, [3_i32.to_ne_bytes(), i32::MIN.to_ne_bytes()].concat());
/// # Ok::<(), mpicore::op::OpError>(())
/// ```
///
/// # Errors
/// Those of [`Op::check`]; [`OpError::Lengths`] if the buffers differ in length; [`OpError::Partial`] if they end
/// inside an element. Nothing has changed then.
pub fn reduce_local(
    op: &Op,
    kind: ElementKind,
    input: &[u8],
    inout: &mut [u8],
) -> Result<(), OpError> {
    op.check(kind)?;
    if input.len() != inout.len() {
        return Err(OpError::Lengths { input: input.len(), inout: inout.len() });
    }
    if input.len() % kind.extent() != 0 {
        return Err(OpError::Partial { len: input.len(), kind });
    }
    match op {
        Op::User(op) => op.apply(input, inout, input.len() / kind.extent(), &kind),
        Op::Predefined(op) => {
            let kernel = kernel(*op, kind).expect("there is one for all that `check` passes");
            kernel(input, inout);
        }
    }
    Ok(())
}
