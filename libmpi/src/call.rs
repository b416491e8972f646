//! How a function of MPI is defined: once, by one of the macros here, from which both its names follow, its checks and
//! the way of its errors. `README.md` shows how to add a function.
//!
//! - `mpi!`: functions that may be called between MPI_Init and MPI_Finalize.
//! - `mpi_anytime!`: functions that may be called at any time.
//! - `mpi_value!`: functions that return a value and have no errors.
//! - `unsupported!`, `unsupported_file!`: functions that answer MPI_ERR_UNSUPPORTED_OPERATION, by their names alone.

use std::any::Any;
use std::error::Error;
use std::ffi::c_int;
use std::fmt::{self, Display};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use mpicore::{Cause, ErrorClass};

use crate::abi::*;
use crate::comm::Comm;
use crate::errhandler::{self, Handler};
use crate::state;

/// The result of a function's body.
pub(crate) type Outcome<T = ()> = Result<T, Fault>;

/// Why a function fails. It is small, so that it costs nothing where nothing fails.
#[derive(Debug)]
pub(crate) struct Fault(Box<Reason>);

struct Reason {
    code: c_int,
    argument: Option<&'static str>,
    text: String,
    /// The communicator whose error handler gets it, if the arguments of the function do not name it.
    comm: Option<Arc<Comm>>,
    /// The error handler that gets it, if it does not follow from an object.
    handler: Option<Handler>,
    /// Whether the program asked for a call of the error handler, so that the function itself has not failed.
    is_asked: bool,
    /// The status of an operation that has failed, if more is known than its error.
    status: Option<MPI_Status>,
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Fault {
    /// Makes an error of this class, or with this code of the user's.
    #[cold]
    pub fn new(code: c_int, text: impl Into<String>) -> Self {
        Self(Box::new(Reason {
            code,
            argument: None,
            text: text.into(),
            comm: None,
            handler: None,
            is_asked: false,
            status: None,
        }))
    }

    /// Makes the end of a call by which the program asks for a call of its error handler. The handler runs after the
    /// body of the function, so it may leave by an exception like one that an error calls.
    pub fn asked(code: c_int) -> Self {
        let mut fault = Self::new(code, "the program called the error handler");
        fault.0.is_asked = true;
        fault
    }

    /// Makes an error of class MPI_ERR_OTHER.
    pub fn other(text: impl Into<String>) -> Self {
        Self::new(MPI_ERR_OTHER, text)
    }

    /// Makes an error about a wrong argument.
    #[cold]
    pub fn argument(code: c_int, argument: &'static str, text: impl Into<String>) -> Self {
        Self::new(code, text).about(argument)
    }

    /// States which argument it is about.
    #[cold]
    pub fn about(mut self, argument: &'static str) -> Self {
        self.0.argument.get_or_insert(argument);
        self
    }

    /// States the communicator whose error handler gets it.
    #[cold]
    pub fn on(mut self, comm: &Arc<Comm>) -> Self {
        self.0.comm.get_or_insert_with(|| comm.clone());
        self
    }

    /// States the error handler that gets it.
    #[cold]
    pub fn handled_by(mut self, handler: &Handler) -> Self {
        self.0.handler.get_or_insert_with(|| handler.clone());
        self
    }

    /// States the status of the operation that has failed.
    #[cold]
    pub fn with_status(mut self, status: Option<MPI_Status>) -> Self {
        self.0.status = status;
        self
    }

    /// Returns the status of the operation that has failed, if it is stated.
    pub fn status(&self) -> Option<MPI_Status> {
        self.0.status
    }

    /// Makes the error of a call that ended several operations, of which this one is the first to fail.
    #[cold]
    pub fn in_status(mut self) -> Self {
        self.0.text = format!("an operation has failed, as its status says: {}", self.text());
        (self.0.code, self.0.argument) = (MPI_ERR_IN_STATUS, None);
        self
    }

    /// Returns the class or code.
    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// Returns what the function returns after the error handler.
    pub fn returned(&self) -> c_int {
        if self.0.is_asked { MPI_SUCCESS } else { self.0.code }
    }

    /// Returns the text, which begins with the name of the argument.
    pub fn text(&self) -> String {
        let Reason { argument, text, .. } = &*self.0;
        argument.map_or_else(|| text.clone(), |argument| format!("argument {argument}: {text}"))
    }

    /// Returns the communicator whose error handler gets it, if it is stated.
    pub fn comm(&self) -> Option<&Arc<Comm>> {
        self.0.comm.as_ref()
    }

    /// Returns the error handler that gets it, if it is stated.
    pub fn handler(&self) -> Option<&Handler> {
        self.0.handler.as_ref()
    }
}

/// Makes `Fault`s of the errors of the crates below, with MPI's class.
macro_rules! faults {
    ($($error:ty),*) => {$(
        impl From<$error> for Fault {
            #[cold]
            fn from(error: $error) -> Self {
                Self::new(class_of(error.class().into()), error.to_string())
            }
        }
    )*};
}

faults!(
    mpicore::CodeError,
    mpicore::InfoError,
    mpicore::datatype::DatatypeError,
    mpicore::group::GroupError,
    mpicore::op::OpError,
    mpicore::topology::TopologyError
);

/// The error code that a function of the program has returned.
#[derive(Debug)]
struct Returned(c_int);

impl Display for Returned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it returned error code {}", self.0)
    }
}

impl Error for Returned {}

/// Makes a cause of the error code that a function of the program has returned.
pub(crate) fn checked(code: c_int) -> Result<(), Cause> {
    if code == MPI_SUCCESS { Ok(()) } else { Err(Box::new(Returned(code))) }
}

/// Returns the error of a call in which a function of the program may have failed. It then has the code of that function.
pub(crate) fn failed(error: mpicore::Error) -> Fault {
    let code = match &error {
        mpicore::Error::Callback { cause, .. } => cause.downcast_ref().map(|Returned(code)| *code),
        _ => None,
    };
    let text = error.to_string();
    code.map_or_else(|| error.into(), |code| Fault::new(code, text))
}

impl From<mpicore::Error> for Fault {
    /// Every error about a lost rank passes here before the program sees it, also one that only a status will show.
    #[cold]
    fn from(error: mpicore::Error) -> Self {
        if let (Some(lost), Some(running)) = (error.lost_rank(), state::running()) {
            running.device.met_loss(lost);
        }
        Self::new(class_of(error.class()), error.to_string())
    }
}

impl From<mpjdev::Error> for Fault {
    /// The device's error may be that of a collective whose request it had.
    #[cold]
    fn from(error: mpjdev::Error) -> Self {
        mpicore::Error::from(error).into()
    }
}

impl From<mpjdev::LayoutError> for Fault {
    #[cold]
    fn from(error: mpjdev::LayoutError) -> Self {
        Self::new(MPI_ERR_TYPE, error.to_string())
    }
}

/// Returns the number of an error class.
fn class_of(class: ErrorClass) -> c_int {
    match class {
        ErrorClass::Arg => MPI_ERR_ARG,
        ErrorClass::Buffer => MPI_ERR_BUFFER,
        ErrorClass::Comm => MPI_ERR_COMM,
        ErrorClass::Conversion => MPI_ERR_CONVERSION,
        ErrorClass::Count => MPI_ERR_COUNT,
        ErrorClass::Dims => MPI_ERR_DIMS,
        ErrorClass::Group => MPI_ERR_GROUP,
        ErrorClass::InfoKey => MPI_ERR_INFO_KEY,
        ErrorClass::InfoNokey => MPI_ERR_INFO_NOKEY,
        ErrorClass::InfoValue => MPI_ERR_INFO_VALUE,
        ErrorClass::Intern => MPI_ERR_INTERN,
        ErrorClass::NoMem => MPI_ERR_NO_MEM,
        ErrorClass::Op => MPI_ERR_OP,
        // The class of lost ranks belongs to a later version of the standard.
        ErrorClass::ProcFailed => MPI_ERR_PROC_ABORTED,
        ErrorClass::Rank => MPI_ERR_RANK,
        ErrorClass::Request => MPI_ERR_REQUEST,
        ErrorClass::Root => MPI_ERR_ROOT,
        ErrorClass::Tag => MPI_ERR_TAG,
        ErrorClass::Topology => MPI_ERR_TOPOLOGY,
        ErrorClass::Truncate => MPI_ERR_TRUNCATE,
        ErrorClass::Type => MPI_ERR_TYPE,
        _ => MPI_ERR_OTHER,
    }
}

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

/// Places in which functions leave their results.
pub(crate) mod out {
    use std::ffi::{CStr, c_char, c_int};

    use super::{Fault, MPI_ERR_ARG, Outcome};

    /// Writes a result.
    ///
    /// # Safety
    /// The place is null or may be written: FC1.
    #[inline(always)]
    pub unsafe fn write<T>(place: *mut T, name: &'static str, value: T) -> Outcome {
        if place.is_null() {
            return Err(null(name));
        }
        // SAFETY: the caller's promise.
        unsafe { place.write(value) };
        Ok(())
    }

    /// Returns the place of a result, which is written later.
    ///
    /// # Safety
    /// The place is null or may be written: FC1.
    #[inline(always)]
    pub unsafe fn place<'a, T>(place: *mut T, name: &'static str) -> Outcome<&'a mut T> {
        // SAFETY: the caller's promise.
        unsafe { place.as_mut() }.ok_or_else(|| null(name))
    }

    /// Returns a list that the program gives. An empty one may have any address.
    ///
    /// # Safety
    /// The address is null, or that of `len` values which nobody writes meanwhile: FC1.
    pub unsafe fn list<'a, T>(list: *const T, len: i64, name: &'static str) -> Outcome<&'a [T]> {
        let len = length(len)?;
        match list.is_null() {
            _ if len == 0 => Ok(&[]),
            true => Err(null(name)),
            // SAFETY: the caller's promise.
            false => Ok(unsafe { std::slice::from_raw_parts(list, len) }),
        }
    }

    /// Returns a list of places that the program gives. An empty one may have any address.
    ///
    /// # Safety
    /// The address is null, or that of `len` values which nobody else uses meanwhile: FC1.
    pub unsafe fn list_mut<'a, T>(
        list: *mut T,
        len: i64,
        name: &'static str,
    ) -> Outcome<&'a mut [T]> {
        let len = length(len)?;
        match list.is_null() {
            _ if len == 0 => Ok(&mut []),
            true => Err(null(name)),
            // SAFETY: the caller's promise.
            false => Ok(unsafe { std::slice::from_raw_parts_mut(list, len) }),
        }
    }

    /// Writes a string with its length, cut to what fits into `most` bytes with the zero behind it.
    ///
    /// # Safety
    /// The places are null or may be written, the first one for `most` bytes: FC1.
    pub unsafe fn text(
        place: *mut c_char,
        len: *mut c_int,
        text: impl AsRef<[u8]>,
        most: c_int,
    ) -> Outcome {
        let text = text.as_ref();
        if place.is_null() {
            return Err(null("string"));
        }
        let end = text.len().min(most as usize - 1);
        // SAFETY: the caller's promise; `end` bytes and the zero are at most `most`.
        unsafe {
            place.copy_from_nonoverlapping(text.as_ptr().cast(), end);
            place.add(end).write(0);
            write(len, "resultlen", end as c_int)
        }
    }

    /// Returns the bytes of a string that the program gives, without the zero behind it.
    ///
    /// # Errors
    /// An error of this class if the pointer is null.
    ///
    /// # Safety
    /// The pointer is null, or that of a string that nobody changes meanwhile: FC1.
    pub unsafe fn bytes<'a>(
        string: *const c_char,
        class: c_int,
        name: &'static str,
    ) -> Outcome<&'a [u8]> {
        if string.is_null() {
            return Err(Fault::argument(class, name, "the pointer is null"));
        }
        // SAFETY: the caller's promise.
        Ok(unsafe { CStr::from_ptr(string) }.to_bytes())
    }

    fn length(len: i64) -> Outcome<usize> {
        let refuse = |_| Fault::new(super::MPI_ERR_COUNT, format!("the number {len} is negative"));
        usize::try_from(len).map_err(refuse)
    }

    /// Returns the error of a pointer that must not be null.
    #[cold]
    pub fn null(name: &'static str) -> Fault {
        Fault::argument(MPI_ERR_ARG, name, "the pointer is null")
    }
}

/// Runs the body of a function, and returns its code.
#[inline(always)]
pub(crate) fn run(
    name: &'static str,
    subject: impl Fn() -> Subject,
    body: impl FnOnce() -> Outcome,
) -> c_int {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => MPI_SUCCESS,
        Ok(Err(fault)) => errhandler::fail(name, subject(), fault),
        Err(panic) => panicked(name, subject(), &*panic),
    }
}

/// Returns the code of a function that has panicked.
#[cold]
#[inline(never)]
fn panicked(name: &'static str, subject: Subject, panic: &(dyn Any + Send)) -> c_int {
    let text = format!("the library is wrong: {}", mpjdev::panic_text(panic));
    errhandler::fail(name, subject, Fault::new(MPI_ERR_INTERN, text))
}

/// Returns the code of a function that is called too early or too late.
#[cold]
pub(crate) fn not_running(name: &'static str, subject: Subject) -> c_int {
    let when = crate::state::when_not_running();
    errhandler::fail(name, subject, Fault::other(format!("it was called {when}")))
}

/// Runs the part of a function that few calls need, out of line, so that the other part stays small.
#[cold]
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
                if $crate::state::running().is_none() {
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

/// Calls a body with the arguments of a function, of which those that belong together become one value: the data of a
/// message, the blocks of a buffer, the operands of a reduction, the peer of a message, the call of a collective.
macro_rules! values {
    ({$body:ident() collective} [$($value:expr,)*] $comm:ident: MPI_Comm) => {
        self::$body($($value,)* $crate::collective::Collective::blocking($comm)?)
    };
    ({$body:ident() collective} [$($value:expr,)*] $comm:ident: MPI_Comm, $request:ident: *mut MPI_Request) => {
        self::$body($($value,)* $crate::collective::Collective::started($comm, $request)?)
    };
    (
        {$body:ident() collective} [$($value:expr,)*]
        $comm:ident: MPI_Comm, $info:ident: MPI_Info, $request:ident: *mut MPI_Request
    ) => {
        self::$body($($value,)* $crate::collective::Collective::persistent($comm, $info, $request)?)
    };
    ({$body:ident($($more:expr),*)} [$($value:expr,)*]) => {
        self::$body($($value,)* $($more),*)
    };
    // The communicator of a send and a receive comes last.
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $buf:ident: *mut c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [
                $($value,)* $crate::call::peer!($dest, $sendtag, $comm), $crate::call::data!($buf, $count, $type),
            ] $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    (
        $to:tt [$($value:expr,)*] $dest:ident: c_int, $sendtag:ident: c_int,
        $source:ident: c_int, $recvtag:ident: c_int, $comm:ident: MPI_Comm, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [$($value,)* $crate::call::peer!($dest, $sendtag, $comm),]
            $source: c_int, $recvtag: c_int, $comm: MPI_Comm, $($rest)*
        }
    };
    ($to:tt [$($value:expr,)*] $rank:ident: c_int, $tag:ident: c_int, $comm:ident: MPI_Comm $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $crate::call::peer!($rank, $tag, $comm),] $($($rest)*)? }
    };
    (
        $to:tt [$($value:expr,)*]
        $buf:ident: *$access:tt c_void, $count:ident: $n:ty, $type:ident: MPI_Datatype $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! { $to [$($value,)* $crate::call::data!($buf, $count, $type),] $($($rest)*)? }
    };
    // The data of one partition, and how many there are.
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $partitions:ident: c_int, $count:ident: MPI_Count, $type:ident: MPI_Datatype, $($rest:tt)*
    ) => {
        $crate::call::values! { $to [$($value,)* $crate::call::data!($buf, $count, $type), $partitions,] $($rest)* }
    };
    (
        $to:tt [$($value:expr,)*] $buf:ident: *$access:tt c_void,
        $counts:ident: *const $n:ty, $displs:ident: *const $d:ty, $types:ident: $t:ty, $($rest:tt)*
    ) => {
        $crate::call::values! {
            $to [
                $($value,)*
                $crate::collective::Lists { buffer: $buf, counts: $counts, displs: $displs, datatypes: $types },
            ] $($rest)*
        }
    };
    (
        $to:tt [$($value:expr,)*] $sendbuf:ident: *const c_void, $recvbuf:ident: *mut c_void,
        $count:ident: $n:ty, $type:ident: MPI_Datatype, $op:ident: MPI_Op $(, $($rest:tt)*)?
    ) => {
        $crate::call::values! {
            $to [
                $($value,)*
                $crate::collective::Operands { sendbuf: $sendbuf, recvbuf: $recvbuf, datatype: $type, op: $op },
                $count,
            ] $($($rest)*)?
        }
    };
    ($to:tt [$($value:expr,)*] $arg:ident: $ty:ty $(, $($rest:tt)*)?) => {
        $crate::call::values! { $to [$($value,)* $arg,] $($($rest)*)? }
    };
}

/// Makes the value of a message's data.
macro_rules! data {
    ($buffer:ident, $count:ident, $datatype:ident) => {
        $crate::datatype::Data { buffer: $buffer, count: $count.into(), datatype: $datatype }
    };
}

/// Makes the value of a message's peer.
macro_rules! peer {
    ($rank:ident, $tag:ident, $comm:ident) => {
        $crate::p2p::Peer { rank: $rank, tag: $tag, comm: $comm, tag_name: stringify!($tag) }
    };
}

/// Defines functions by their names. They answer MPI_ERR_UNSUPPORTED_OPERATION.
macro_rules! unsupported {
    ($($name:ident),* $(,)?) => {
        $($crate::abi::by_name! {
            $name, [$crate::call::unsupported_function] $crate::call::unsupported_here()
        })*
    };
}

/// Like `unsupported!`, for functions on files.
macro_rules! unsupported_file {
    ($($name:ident),* $(,)?) => {
        $($crate::abi::by_name! {
            $name, [$crate::call::unsupported_function]
            $crate::call::unsupported_here().handled_by(&$crate::errhandler::FILES.get())
        })*
    };
}

/// Defines a function that fails.
macro_rules! unsupported_function {
    (fn $name:ident($($arg:ident: $ty:ty),*) -> c_int; $fault:expr) => {
        $crate::call::mpi_anytime! {
            fn $name($($arg: $ty),*) -> c_int {
                Err($fault)
            }
        }
    };
}

/// Returns the error of a function that is not supported.
#[cold]
pub(crate) fn unsupported_here() -> Fault {
    Fault::new(MPI_ERR_UNSUPPORTED_OPERATION, "this library does not support the function")
}

/// Names what a count is too large for.
#[cold]
pub(crate) fn negative_count(argument: &'static str, count: impl Display) -> Fault {
    Fault::argument(MPI_ERR_COUNT, argument, format!("the count {count} is negative"))
}

pub(crate) use {
    data, export, mpi, mpi_anytime, mpi_bodies, mpi_value, mpi_with_body, peer, unsupported,
    unsupported_file, unsupported_function, values, with_names,
};
