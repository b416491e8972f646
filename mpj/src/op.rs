//! Operations of reductions (MPI-4.1 section 6.9): those that MPI defines, and those that programs define.
//!
//! - OP1: the core calls a program's function with the bytes of as many elements as it counts. These bytes are
//!   initialised, and any bytes are valid elements (DT1).

#![expect(unsafe_code, reason = "reads the operands of the program's functions as what they are")]

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;

use mpicore::op::{ElementKind, Predefined};
use mpicore::{Operand, Reduction};

use crate::datatype::{Bool, Datatype, Known, TypeMap};
use crate::error::Error;

/// A reduction operation that MPI defines, on numbers. All are associative and commutative, apart from the rounding of
/// floating-point numbers. Results never depend on the order in which messages arrive.
///
/// ```
/// use mpj::Op;
/// let sums = mpj::local::run(4, |world| {
///     let mut x = [world.rank() as f64, 1.0];
///     world.all_reduce(&mut x, Op::Sum).unwrap();
///     x
/// })?;
/// assert_eq!(sums, [[6.0, 4.0]; 4]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Op")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// The greatest: MPI_MAX.
    #[doc(alias = "MPI_MAX")]
    Max,
    /// The least: MPI_MIN.
    #[doc(alias = "MPI_MIN")]
    Min,
    /// The sum, which wraps for integers: MPI_SUM.
    #[doc(alias = "MPI_SUM")]
    Sum,
    /// The product, which wraps for integers: MPI_PROD.
    #[doc(alias("MPI_PROD", "Prod"))]
    Product,
    /// Logical and, for integers and [`Bool`](crate::Bool): 1 if no operand is 0, else 0 (MPI_LAND).
    #[doc(alias("MPI_LAND", "Land"))]
    LogicalAnd,
    /// Logical or, for integers and [`Bool`](crate::Bool): 0 if all operands are 0, else 1 (MPI_LOR).
    #[doc(alias("MPI_LOR", "Lor"))]
    LogicalOr,
    /// Logical exclusive or, for integers and [`Bool`](crate::Bool): 1 if the number of operands that are not 0 is odd,
    /// else 0 (MPI_LXOR).
    #[doc(alias("MPI_LXOR", "Lxor"))]
    LogicalXor,
    /// Bitwise and, for integers: MPI_BAND.
    #[doc(alias("MPI_BAND", "Band"))]
    BitAnd,
    /// Bitwise or, for integers: MPI_BOR.
    #[doc(alias("MPI_BOR", "Bor"))]
    BitOr,
    /// Bitwise exclusive or, for integers: MPI_BXOR.
    #[doc(alias("MPI_BXOR", "Bxor"))]
    BitXor,
    /// The greatest value with its index, for [`ValueIndex`]; of equal values that with the lowest index (MPI_MAXLOC).
    #[doc(alias = "MPI_MAXLOC")]
    MaxLoc,
    /// The least value with its index, for [`ValueIndex`]; of equal values that with the lowest index (MPI_MINLOC).
    #[doc(alias = "MPI_MINLOC")]
    MinLoc,
}

/// A number that MPI's operations take: the primitive ones, [`Bool`](crate::Bool) and [`ValueIndex`], with the features
/// `num-complex` and `half` also the numbers of these crates. An array of numbers is combined number by number.
///
/// MPI defines which operations apply to which numbers: no logical and bitwise operations on floating-point and complex
/// numbers, no order of complex numbers, only logical operations on [`Bool`](crate::Bool), and only [`Op::MaxLoc`] and
/// [`Op::MinLoc`] on pairs. Calls refuse other combinations with an error of the class
/// [`Op`](crate::ErrorClass::Op).
///
/// ```
/// fn total<T: mpj::Number>(world: &mpj::World, mut x: T) -> Result<T, mpj::Error> {
///     world.all_reduce(std::slice::from_mut(&mut x), mpj::Op::Sum)?;
///     Ok(x)
/// }
/// let sums = mpj::local::run(3, |world| total(&world, 1.5).unwrap())?;
/// assert_eq!(sums, [4.5; 3]);
/// let sums = mpj::local::run(2, |world| total(&world, [1, 2, world.rank()]).unwrap())?;
/// assert_eq!(sums, [[2, 4, 1]; 2], "arrays, too");
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
pub trait Number: Datatype + Known {}

macro_rules! numbers {
    ($($number:ty => $kind:ident),+ $(,)?) => {
        $(
            impl Known for $number {
                const KIND: ElementKind = ElementKind::$kind;
            }
            impl Number for $number {}
        )+
    };
}

numbers! {
    i8 => I8, i16 => I16, i32 => I32, i64 => I64, i128 => I128,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64, u128 => U128, f32 => F32, f64 => F64, Bool => Bool,
    ValueIndex<i16> => ShortInt, ValueIndex<i32> => TwoInt, ValueIndex<i64> => LongInt,
    ValueIndex<f32> => FloatInt, ValueIndex<f64> => DoubleInt,
}
#[cfg(target_pointer_width = "64")]
numbers! { isize => I64, usize => U64 }
#[cfg(target_pointer_width = "32")]
numbers! { isize => I32, usize => U32 }
#[cfg(feature = "num-complex")]
numbers! { num_complex::Complex32 => ComplexF32, num_complex::Complex64 => ComplexF64 }
#[cfg(feature = "half")]
numbers! { half::f16 => F16, half::bf16 => BF16 }

impl<T: Known, const N: usize> Known for [T; N] {
    const KIND: ElementKind = T::KIND;
}
impl<T: Number + bytemuck::Pod, const N: usize> Number for [T; N] {}

/// A value and the place where it was found, for [`Op::MaxLoc`] and [`Op::MinLoc`] (MPI-4.1 section 6.9.4).
///
/// ```
/// use mpj::{Op, ValueIndex};
/// let found = mpj::local::run(3, |world| {
///     let mut nearest = ValueIndex { value: [3.5, 1.25, 1.25][world.rank()], index: world.rank() as i32 };
///     world.all_reduce(std::slice::from_mut(&mut nearest), Op::MinLoc).unwrap();
///     (nearest.value, nearest.index)
/// })?;
/// assert_eq!(found, [(1.25, 1); 3]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
#[repr(C)]
pub struct ValueIndex<V> {
    /// The value.
    pub value: V,
    /// The place where the value was found.
    pub index: i32,
}

macro_rules! pairs {
    ($($value:ty => $kind:ident),+ $(,)?) => {
        $(
            // SAFETY: value and index are numbers, and zero is one of each.
            unsafe impl bytemuck::Zeroable for ValueIndex<$value> {}

            // SAFETY: DT1: the kind has the layout of the structure in C, which `repr(C)` gives it here; value and
            // index may have any bytes.
            unsafe impl Datatype for ValueIndex<$value> {
                const SIZE: usize = size_of::<$value>() + size_of::<i32>();

                fn datatype() -> Result<TypeMap, Error> {
                    Ok(TypeMap::predefined(ElementKind::$kind))
                }
            }
        )+
    };
}

pairs! { i16 => ShortInt, i32 => TwoInt, i64 => LongInt, f32 => FloatInt, f64 => DoubleInt }

/// A reduction operation that the program defines, on elements of any kind (MPI_Op_create).
///
/// ```
/// use mpj::UserOp;
/// // Products of matrices: the order of the ranks matters.
/// type Matrix = [u32; 4];
/// let product = UserOp::ordered(|a: &Matrix, b: &Matrix| {
///     [a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3],
///      a[2] * b[0] + a[3] * b[2], a[2] * b[1] + a[3] * b[3]]
/// });
/// let products = mpj::local::run(3, |world| {
///     let mut matrix = vec![[1, world.rank() as u32, 0, 1]];
///     world.all_reduce(&mut matrix, &product).unwrap();
///     matrix[0]
/// })?;
/// assert_eq!(products, [[1, 3, 0, 1]; 3]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[doc(alias = "MPI_Op_create")]
pub struct UserOp<T> {
    op: mpicore::op::UserOp,
    elements: PhantomData<fn(&T, &T) -> T>,
}

impl<T: Datatype> UserOp<T> {
    /// Makes an operation that is associative and commutative. The function runs on any rank, in any thread that is in
    /// a call, and may itself make calls of mpj.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     let longer = mpj::UserOp::new(|a: &[f64; 2], b: &[f64; 2]| {
    ///         if a[0].hypot(a[1]) < b[0].hypot(b[1]) { *b } else { *a }
    ///     });
    ///     let mut way = vec![[3.0, world.rank() as f64]];
    ///     world.all_reduce(&mut way, &longer).unwrap();
    ///     assert_eq!(way, [[3.0, 2.0]]);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn new(function: impl Fn(&T, &T) -> T + Send + Sync + 'static) -> Self {
        Self::with(true, function)
    }

    /// Makes an operation that is associative but not commutative: it combines operands in the order of ranks, with the
    /// operand of the lower ranks on the left.
    ///
    /// ```
    /// mpj::local::run(3, |world| {
    ///     // The value of the highest rank, whatever it is.
    ///     let last = mpj::UserOp::ordered(|_: &usize, higher: &usize| *higher);
    ///     let mut value = 10 - world.rank();
    ///     world.all_reduce(&mut value, &last).unwrap();
    ///     assert_eq!(value, 8);
    /// })?;
    /// # Ok::<(), mpj::local::LocalError>(())
    /// ```
    pub fn ordered(function: impl Fn(&T, &T) -> T + Send + Sync + 'static) -> Self {
        Self::with(false, function)
    }

    fn with(commutes: bool, function: impl Fn(&T, &T) -> T + Send + Sync + 'static) -> Self {
        let apply = move |input: &[u8], inout: &mut [u8], count: usize, _: &dyn Any| {
            let size = size_of::<T>();
            let most = input.len().min(inout.len()).checked_div(size).unwrap_or(0);
            for at in (0..count.min(most)).map(|index| index * size) {
                // SAFETY: OP1: a value begins here and lies entirely inside the bytes, at any alignment.
                let (left, right) = unsafe {
                    (
                        input.as_ptr().add(at).cast::<T>().read_unaligned(),
                        inout.as_ptr().add(at).cast::<T>().read_unaligned(),
                    )
                };
                let result = function(&left, &right);
                // SAFETY: as above.
                unsafe { inout.as_mut_ptr().add(at).cast::<T>().write_unaligned(result) };
            }
        };
        Self { op: mpicore::op::UserOp::new(commutes, apply), elements: PhantomData }
    }
}

impl<T> Clone for UserOp<T> {
    fn clone(&self) -> Self {
        Self { op: self.op.clone(), elements: PhantomData }
    }
}

impl<T> fmt::Debug for UserOp<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.op.fmt(f)
    }
}

/// An operation that a reduction of elements of type `T` takes: an [`Op`], if they are numbers, or a [`UserOp`] or a
/// reference to one.
///
/// ```
/// use mpj::Operation;
/// // For any operation on numbers of this type.
/// fn all(world: &mpj::World, mut x: i32, op: impl Operation<i32>) -> Result<i32, mpj::Error> {
///     world.all_reduce(&mut x, op)?;
///     Ok(x)
/// }
/// let both = mpj::local::run(2, |world| {
///     let gcd = mpj::UserOp::new(|a: &i32, b: &i32| if a % b == 0 { *b } else { *a });
///     (all(&world, 6, mpj::Op::Sum).unwrap(), all(&world, 6, &gcd).unwrap())
/// })?;
/// assert_eq!(both, [(12, 6); 2]);
/// # Ok::<(), mpj::local::LocalError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not combine elements of type `{T}`",
    note = "an `mpj::Op` combines numbers (see `mpj::Number`), an `mpj::UserOp<{T}>` any elements of its type"
)]
pub trait Operation<T> {
    /// Returns the operation in the form of the core.
    #[doc(hidden)]
    fn reduction(self) -> Reduction;
}

impl Op {
    /// Returns the operation of the core.
    pub(crate) fn predefined(self) -> Predefined {
        match self {
            Self::Max => Predefined::Max,
            Self::Min => Predefined::Min,
            Self::Sum => Predefined::Sum,
            Self::Product => Predefined::Prod,
            Self::LogicalAnd => Predefined::Land,
            Self::LogicalOr => Predefined::Lor,
            Self::LogicalXor => Predefined::Lxor,
            Self::BitAnd => Predefined::Band,
            Self::BitOr => Predefined::Bor,
            Self::BitXor => Predefined::Bxor,
            Self::MaxLoc => Predefined::MaxLoc,
            Self::MinLoc => Predefined::MinLoc,
        }
    }
}

impl<T: Number> Operation<T> for Op {
    fn reduction(self) -> Reduction {
        Reduction { op: self.predefined().into(), operand: Operand::Kind(T::KIND) }
    }
}

impl<T: Datatype> Operation<T> for &UserOp<T> {
    fn reduction(self) -> Reduction {
        let operand = Operand::Elements(|| T::datatype().ok());
        Reduction { op: self.op.clone().into(), operand }
    }
}

impl<T: Datatype> Operation<T> for UserOp<T> {
    fn reduction(self) -> Reduction {
        (&self).reduction()
    }
}
