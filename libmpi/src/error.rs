//! Errors (MPI-5.0 sections 9.3 to 9.5): why a function fails, the classes and codes that programs see, and the error
//! handlers that get them.
//!
//! - `handler.rs`: error handlers, and which of them gets the error of a function.
//! - `code.rs`: classes and codes with their texts.

use std::error::Error;
use std::ffi::c_int;
use std::fmt::{self, Display};
use std::sync::Arc;

use mpicore::{Cause, ErrorClass};

use crate::abi::*;
use crate::comm::Comm;
use crate::process;

pub(crate) mod code;
pub(crate) mod handler;

use handler::Handler;

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
    /// The window whose error handler gets it, if the arguments of the function do not name it.
    window: Option<MPI_Win>,
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
            window: None,
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

    /// States the window whose error handler gets it.
    #[cold]
    pub fn on_window(mut self, window: MPI_Win) -> Self {
        self.0.window.get_or_insert(window);
        self
    }

    /// Returns the window whose error handler gets it, if it is stated.
    pub fn window(&self) -> Option<MPI_Win> {
        self.0.window
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
        if let (Some(lost), Some(running)) = (error.lost_rank(), process::running()) {
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
        ErrorClass::Access => MPI_ERR_ACCESS,
        ErrorClass::Amode => MPI_ERR_AMODE,
        ErrorClass::Arg => MPI_ERR_ARG,
        ErrorClass::BadFile => MPI_ERR_BAD_FILE,
        ErrorClass::Buffer => MPI_ERR_BUFFER,
        ErrorClass::Comm => MPI_ERR_COMM,
        ErrorClass::Conversion => MPI_ERR_CONVERSION,
        ErrorClass::Count => MPI_ERR_COUNT,
        ErrorClass::Dims => MPI_ERR_DIMS,
        ErrorClass::FileExists => MPI_ERR_FILE_EXISTS,
        ErrorClass::FileInUse => MPI_ERR_FILE_IN_USE,
        ErrorClass::Group => MPI_ERR_GROUP,
        ErrorClass::InfoKey => MPI_ERR_INFO_KEY,
        ErrorClass::InfoNokey => MPI_ERR_INFO_NOKEY,
        ErrorClass::InfoValue => MPI_ERR_INFO_VALUE,
        ErrorClass::Intern => MPI_ERR_INTERN,
        ErrorClass::Io => MPI_ERR_IO,
        ErrorClass::Name => MPI_ERR_NAME,
        ErrorClass::NoMem => MPI_ERR_NO_MEM,
        ErrorClass::NoSpace => MPI_ERR_NO_SPACE,
        ErrorClass::NoSuchFile => MPI_ERR_NO_SUCH_FILE,
        ErrorClass::NotSame => MPI_ERR_NOT_SAME,
        ErrorClass::Op => MPI_ERR_OP,
        // The class of lost ranks belongs to a later version of the standard.
        ErrorClass::Port => MPI_ERR_PORT,
        ErrorClass::ProcFailed => MPI_ERR_PROC_ABORTED,
        ErrorClass::Quota => MPI_ERR_QUOTA,
        ErrorClass::Rank => MPI_ERR_RANK,
        ErrorClass::ReadOnly => MPI_ERR_READ_ONLY,
        ErrorClass::Request => MPI_ERR_REQUEST,
        ErrorClass::RmaAttach => MPI_ERR_RMA_ATTACH,
        ErrorClass::RmaConflict => MPI_ERR_RMA_CONFLICT,
        ErrorClass::RmaFlavor => MPI_ERR_RMA_FLAVOR,
        ErrorClass::RmaRange => MPI_ERR_RMA_RANGE,
        ErrorClass::RmaShared => MPI_ERR_RMA_SHARED,
        ErrorClass::RmaSync => MPI_ERR_RMA_SYNC,
        ErrorClass::Root => MPI_ERR_ROOT,
        ErrorClass::Service => MPI_ERR_SERVICE,
        ErrorClass::Spawn => MPI_ERR_SPAWN,
        ErrorClass::Tag => MPI_ERR_TAG,
        ErrorClass::Topology => MPI_ERR_TOPOLOGY,
        ErrorClass::Truncate => MPI_ERR_TRUNCATE,
        ErrorClass::Type => MPI_ERR_TYPE,
        ErrorClass::UnsupportedDatarep => MPI_ERR_UNSUPPORTED_DATAREP,
        ErrorClass::UnsupportedOperation => MPI_ERR_UNSUPPORTED_OPERATION,
        _ => MPI_ERR_OTHER,
    }
}

/// Makes the error of a number that is negative.
#[cold]
pub(crate) fn negative(code: c_int, argument: &'static str, number: impl Display) -> Fault {
    Fault::argument(code, argument, format!("{number} is negative"))
}

/// Makes the error of a count that is negative.
#[cold]
pub(crate) fn negative_count(argument: &'static str, count: impl Display) -> Fault {
    Fault::argument(MPI_ERR_COUNT, argument, format!("the count {count} is negative"))
}
