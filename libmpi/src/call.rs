//! How a function of MPI is defined: once, by one of the macros here, from which both its names follow, its checks and
//! the way of its errors. `README.md` shows how to add a function.
//!
//! - `mpi!`: functions that may be called between MPI_Init and MPI_Finalize.
//! - `mpi_anytime!`: functions that may be called at any time.
//! - `mpi_value!`: functions that return a value and have no errors.
//! - `mpi_bodies!`: functions over one body, which gets arguments that belong together as one value: `values.rs`.
//!
//! `out.rs` writes results, and reads lists and strings.

use std::any::Any;
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::abi::*;
use crate::error::handler;

pub(crate) mod out;
mod values;

pub(crate) use crate::error::{Fault, Outcome, checked, failed, negative, negative_count};
pub(crate) use values::values;

/// The object whose error handler gets a function's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The function names no such object.
    None,
    /// A communicator.
    Comm(MPI_Comm),
    /// A window.
    Win(MPI_Win),
    /// A file.
    File(MPI_File),
    /// A session.
    Session(MPI_Session),
}

/// An argument of a function, which may name the object whose error handler gets the function's errors.
pub(crate) trait Argument {
    /// Returns that object.
    fn subject(&self) -> Subject {
        Subject::None
    }
}

macro_rules! arguments {
    ($($ty:ty $(=> $subject:ident)?),*) => {$(
        impl Argument for $ty {
            $(fn subject(&self) -> Subject {
                Subject::$subject(*self)
            })?
        }
    )*};
}

arguments!(
    c_int, i64, isize, MPI_Datatype, MPI_Errhandler, MPI_Group, MPI_Info, MPI_Message, MPI_Op, MPI_Request,
    MPI_T_cvar_handle, MPI_T_enum, MPI_T_event_instance, MPI_T_event_registration, MPI_T_pvar_handle,
    MPI_T_pvar_session, MPI_Comm => Comm, MPI_Win => Win, MPI_File => File, MPI_Session => Session
);

impl<T> Argument for *const T {}
impl<T> Argument for *mut T {}
impl<T> Argument for Option<T> {}

/// Runs the body of a function, and returns its code.
#[inline(always)]
pub(crate) fn run(
    name: &'static str,
    subject: impl Fn() -> Subject,
    body: impl FnOnce() -> Outcome,
) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => MPI_SUCCESS,
        Ok(Err(fault)) => handler::fail(name, subject(), fault),
        Err(panic) => panicked(name, subject(), &*panic),
    }
}

/// Returns the code of a function that has panicked.
#[cold]
#[inline(never)]
fn panicked(name: &'static str, subject: Subject, panic: &(dyn Any + Send)) -> c_int {
    let text = format!("the library is wrong: {}", mpjdev::panic_text(panic));
    handler::fail(name, subject, Fault::new(MPI_ERR_INTERN, text))
}

/// Returns the code of a function that is called too early or too late.
#[cold]
pub(crate) fn not_running(name: &'static str, subject: Subject) -> c_int {
    let when = crate::process::when_not_running();
    handler::fail(name, subject, Fault::other(format!("it was called {when}")))
}

/// Runs a part of a function out of line, so that the other part stays small.
#[inline(never)]
pub(crate) fn out_of_line<R>(part: impl FnOnce() -> Outcome<R>) -> Outcome<R> {
    part()
}

/// Returns the first object whose error handler counts.
pub(crate) fn first(subjects: &[Subject]) -> Subject {
    subjects.iter().copied().find(|subject| *subject != Subject::None).unwrap_or(Subject::None)
}

/// Exports a function under both its names, over a body of which neither calls the other.
macro_rules! export {
    ($name:ident($($arg:ident: $ty:ty),*) -> $result:ty $body:block) => {
        #[allow(unused_unsafe, reason = "some bodies use no pointer")]
        #[inline(always)]
        unsafe fn entry($($arg: $ty),*) -> $result $body

        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($arg: $ty),*) -> $result {
            // SAFETY: FC1 is what callers of this function promise.
            unsafe { entry($($arg),*) }
        }
        const _: function::$name = $name;

        #[unsafe(export_name = concat!("P", stringify!($name)))]
        unsafe extern "C-unwind" fn twin($($arg: $ty),*) -> $result {
            // SAFETY: FC1 is what callers of this function promise.
            unsafe { entry($($arg),*) }
        }
        const _: function::$name = twin;
    };
}

/// Defines functions that may be called at any time. The body ends with an [`Outcome`].
macro_rules! mpi_anytime {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> c_int $body:block)+) => {$(
        const _: () = {
            #[allow(unused_imports, reason = "each function uses other names")]
            use {$crate::abi::*, std::ffi::{c_char, c_int, c_void}};
            $crate::call::export! { $name($($arg: $ty),*) -> c_int {
                let subject = move || $crate::call::first(&[$($crate::call::Argument::subject(&$arg)),*]);
                // SAFETY: FC1: the body uses the arguments as the standard says.
                $crate::call::run(stringify!($name), subject, move || unsafe { $body })
            } }
        };
    )+};
}

/// Defines functions that may be called between MPI_Init and MPI_Finalize. The body ends with an [`Outcome`].
macro_rules! mpi {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> c_int $body:block)+) => {$(
        const _: () = {
            #[allow(unused_imports, reason = "each function uses other names")]
            use {$crate::abi::*, std::ffi::{c_char, c_int, c_void}};
            $crate::call::export! { $name($($arg: $ty),*) -> c_int {
                let subject = move || $crate::call::first(&[$($crate::call::Argument::subject(&$arg)),*]);
                if $crate::process::running().is_none() {
                    return $crate::call::not_running(stringify!($name), subject());
                }
                // SAFETY: FC1: the body uses the arguments as the standard says.
                $crate::call::run(stringify!($name), subject, move || unsafe { $body })
            } }
        };
    )+};
}

/// Defines functions that return a value and have no errors.
macro_rules! mpi_value {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $result:ty $body:block)+) => {$(
        const _: () = {
            #[allow(unused_imports, reason = "each function uses other names")]
            use {$crate::abi::*, std::ffi::{c_char, c_int, c_void}};
            $crate::call::export! { $name($($arg: $ty),*) -> $result $body }
        };
    )+};
}

/// Defines functions by their names, over a body that gets their arguments as `values!` puts them together, and after them
/// those in parentheses. So one body serves a function and its large-count form.
macro_rules! mpi_bodies {
    ($($($name:ident),+ => $body:ident $more:tt;)+) => {
        $($($crate::abi::by_name! { $name, [$crate::call::mpi_with_body] $body $more })+)+
    };
}

/// Defines a function over a body. What catches panics would pass the arguments of a long function through memory, so
/// it calls another one, of which the body is a part.
macro_rules! mpi_with_body {
    (fn $name:ident($($args:tt)*) -> c_int; $($body:tt)*) => {
        $crate::call::mpi! {
            fn $name($($args)*) -> c_int {
                #[inline(never)]
                unsafe fn outlined($($args)*) -> $crate::call::Outcome {
                    // SAFETY: FC1.
                    unsafe { $crate::call::values! { {$($body)*} [] $($args)* } }
                }
                $crate::call::with_names! { outlined $($args)* }
            }
        }
    };
}

/// Calls a function with the parameters of another one.
macro_rules! with_names {
    ($function:ident $($arg:ident: $ty:ty),*) => {
        $function($($arg),*)
    };
}

pub(crate) use {export, mpi, mpi_anytime, mpi_bodies, mpi_value, mpi_with_body, with_names};
