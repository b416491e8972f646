//! Operations of reductions (MPI-5.0 sections 6.9.2 and 6.9.5): those that MPI defines, and those that programs make.

use std::any::Any;
use std::ffi::c_int;
use std::sync::Arc;

use mpicore::datatype::{Combiner, Datatype, TypeClass};
use mpicore::op::{ElementKind, Predefined, UserOp};
use mpicore::{Operand, Reduction};

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, out};
use crate::datatype::Derived;
use crate::handles::{Held, OBJECTS};

/// An operation that a program has made.
pub(crate) struct Operation {
    function: Function,
    core: UserOp,
}

/// A function of the program.
#[derive(Clone, Copy)]
pub(crate) enum Function {
    /// One that counts in `int`.
    Int(MPI_User_function),
    /// One that counts in `MPI_Count`.
    Count(MPI_User_function_c),
}

/// An operation that a call uses.
pub(super) enum Found {
    Predefined(Predefined),
    Made(Held<'static, Operation>),
}

/// The datatype of the elements of an operation that a program has made.
pub(super) struct Described {
    handle: MPI_Datatype,
    core: Datatype,
}

impl Operation {
    fn new(function: Function, commutes: bool) -> Self {
        let apply = move |input: &[u8], inout: &mut [u8], count, described: &dyn Any| {
            let described = described.downcast_ref::<Described>();
            let described = described.expect("reductions of the C face describe their elements");
            // The slices begin at the lowest byte of data, and the function gets the address of the first element.
            let low = described.lowest(count);
            let input = input.as_ptr().wrapping_offset(low.wrapping_neg());
            let inout = inout.as_mut_ptr().wrapping_offset(low.wrapping_neg());
            // SAFETY: FC1: the function uses the data of the elements as its datatype describes them.
            unsafe { function.apply(input, inout, count, described) }
        };
        Self { function, core: UserOp::new(commutes, apply) }
    }

    /// Returns the function.
    pub(super) fn function(&self) -> Function {
        self.function
    }
}

impl Function {
    /// Computes `inout[i] = input[i] op inout[i]` for `count` elements, in several calls if there are more than the
    /// function can count.
    ///
    /// # Safety
    /// FC1: both addresses are those of elements.
    pub unsafe fn apply(
        self,
        input: *const u8,
        inout: *mut u8,
        count: usize,
        described: &Described,
    ) {
        let most = match self {
            Self::Int(_) => c_int::MAX as usize,
            Self::Count(_) => i64::MAX as usize,
        };
        // The program may have freed the handle. Then the function gets another one for as long as it runs.
        let lent = described.lent();
        let mut handle = lent.unwrap_or(described.handle);
        let mut first = 0;
        while first < count {
            let now = (count - first).min(most);
            let at = described.core.extent().wrapping_mul(first as isize);
            let input = input.wrapping_offset(at).cast_mut().cast();
            let inout = inout.wrapping_offset(at).cast();
            // SAFETY: the caller's promise.
            unsafe {
                match self {
                    Self::Int(function) => function(input, inout, &mut (now as c_int), &mut handle),
                    Self::Count(function) => function(input, inout, &mut (now as i64), &mut handle),
                }
            }
            first += now;
        }
        if let Some(MPI_Datatype(lent)) = lent {
            // The function may have freed it, which is wrong.
            let _ = OBJECTS.free::<Box<Derived>>(lent);
        }
    }
}

impl Described {
    /// Describes elements of a datatype.
    ///
    /// # Errors
    /// MPI_ERR_TYPE.
    pub fn new(handle: MPI_Datatype) -> Outcome<Self> {
        Ok(Self { handle, core: Datatype::clone(&*handle.committed()?) })
    }

    /// Returns where the lowest byte of data of so many elements lies, from the address of the first one.
    fn lowest(&self, count: usize) -> isize {
        let last = self.core.extent().saturating_mul(count.saturating_sub(1) as isize);
        self.core.true_lower_bound().saturating_add(last.min(0))
    }

    /// Returns a new handle if the program has freed its own.
    fn lent(&self) -> Option<MPI_Datatype> {
        match self.handle.find() {
            Ok(_) => None,
            Err(_) => Derived::keep(self.core.clone()).ok(),
        }
    }
}

impl MPI_Op {
    /// Returns the predefined operation.
    pub(crate) fn predefined(self) -> Option<Predefined> {
        Some(match self {
            MPI_SUM => Predefined::Sum,
            MPI_MIN => Predefined::Min,
            MPI_MAX => Predefined::Max,
            MPI_PROD => Predefined::Prod,
            MPI_BAND => Predefined::Band,
            MPI_BOR => Predefined::Bor,
            MPI_BXOR => Predefined::Bxor,
            MPI_LAND => Predefined::Land,
            MPI_LOR => Predefined::Lor,
            MPI_LXOR => Predefined::Lxor,
            MPI_MINLOC => Predefined::MinLoc,
            MPI_MAXLOC => Predefined::MaxLoc,
            MPI_REPLACE => Predefined::Replace,
            MPI_NO_OP => Predefined::NoOp,
            _ => return None,
        })
    }

    /// Finds the operation.
    ///
    /// # Errors
    /// MPI_ERR_OP.
    pub(super) fn find(self) -> Outcome<Found> {
        match self.predefined() {
            Some(op) => Ok(Found::Predefined(op)),
            None => OBJECTS.hold(self.0).map(Found::Made).map_err(|fault| fault.about("op")),
        }
    }

    /// Returns the reduction of elements of a datatype.
    ///
    /// # Errors
    /// MPI_ERR_OP, also if the operation is not defined on such elements; MPI_ERR_TYPE.
    pub(super) fn reduction(self, datatype: MPI_Datatype) -> Outcome<Reduction> {
        let op = match self.find()? {
            Found::Predefined(op) => op,
            Found::Made(made) => {
                let operand = Operand::Described(Arc::new(Described::new(datatype)?));
                return Ok(Reduction { op: made.core.clone().into(), operand });
            }
        };
        Ok(Reduction { op: op.into(), operand: Operand::Kind(kind_for(op, datatype)?) })
    }
}

/// Returns the kind of elements to which a predefined operation is applied.
///
/// # Errors
/// MPI_ERR_OP if it is not defined on elements of the datatype at all; MPI_ERR_TYPE.
pub(super) fn kind_for(op: Predefined, datatype: MPI_Datatype) -> Outcome<ElementKind> {
    if let Some(kind) = datatype.kind() {
        return Ok(kind);
    }
    let found = datatype.find()?;
    // A datatype that was chosen by its precision is a predefined one.
    let class = match found.envelope().combiner {
        Combiner::F90Real => Some(TypeClass::Real),
        Combiner::F90Complex => Some(TypeClass::Complex),
        Combiner::F90Integer => Some(TypeClass::Integer),
        _ => None,
    };
    class.and_then(|class| Datatype::match_size(class, found.size())).ok_or_else(|| {
        let text = format!("{op} is not defined on elements of {}", *found);
        Fault::argument(MPI_ERR_OP, "op", text)
    })
}

unsafe fn create(function: Option<Function>, commute: c_int, op: *mut MPI_Op) -> Outcome {
    let function = function.ok_or_else(|| out::null("user_fn"))?;
    // SAFETY: FC1.
    let place = unsafe { out::place(op, "op") }?;
    *place = MPI_Op(OBJECTS.insert(Operation::new(function, commute != 0))?);
    Ok(())
}

mpi! {
    fn MPI_Op_create(user_fn: Option<MPI_User_function>, commute: c_int, op: *mut MPI_Op) -> c_int {
        create(user_fn.map(Function::Int), commute, op)
    }

    fn MPI_Op_create_c(user_fn: Option<MPI_User_function_c>, commute: c_int, op: *mut MPI_Op) -> c_int {
        create(user_fn.map(Function::Count), commute, op)
    }

    fn MPI_Op_free(op: *mut MPI_Op) -> c_int {
        let place = out::place(op, "op")?;
        if let Some(op) = place.predefined() {
            return Err(Fault::argument(MPI_ERR_OP, "op", format!("{op} is predefined and cannot be freed")));
        }
        OBJECTS.free::<Operation>(place.0).map_err(|fault| fault.about("op"))?;
        *place = MPI_OP_NULL;
        Ok(())
    }

    fn MPI_Op_commutative(op: MPI_Op, commute: *mut c_int) -> c_int {
        let commutes = match op.find()? {
            Found::Predefined(op) => op.commutes(),
            Found::Made(made) => made.core.commutes(),
        };
        out::write(commute, "commute", commutes.into())
    }
}
