//! Error classes, codes and their texts (MPI-5.0 sections 9.4 and 9.5): those of the standard, and those that programs
//! add.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mpicore::ErrorCodes;

use crate::abi::*;
use crate::call::{Fault, Outcome, mpi_anytime, out};

/// What programs have added.
static ADDED: Mutex<ErrorCodes> = Mutex::new(ErrorCodes::new(MPI_ERR_LASTCODE));
/// The highest number given so far: the value of the attribute MPI_LASTUSEDCODE, to which programs get a pointer.
pub(crate) static LAST_USED: AtomicI32 = AtomicI32::new(MPI_ERR_LASTCODE);

fn added() -> MutexGuard<'static, ErrorCodes> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the class of a code.
fn class(code: c_int) -> Outcome<c_int> {
    let class = added().class(code)?;
    match class == code && class <= MPI_ERR_LASTCODE && predefined(class).is_none() {
        true => Err(Fault::argument(
            MPI_ERR_ARG,
            "errorcode",
            format!(
                "{code} is no error code; give one that a function has returned or that was added"
            ),
        )),
        false => Ok(class),
    }
}

/// Returns the text of a code: its name and what it means.
fn text(code: c_int) -> Outcome<Vec<u8>> {
    class(code)?;
    match predefined(code) {
        Some((name, meaning)) => Ok(format!("{name}: {meaning}").into()),
        None => Ok(added().text(code)?.unwrap_or_default().to_owned()),
    }
}

/// Describes a code in a message.
pub(crate) fn described(code: c_int) -> String {
    match predefined(code) {
        Some((name, _)) => name.to_owned(),
        None => match text(code) {
            Ok(text) if !text.is_empty() => {
                let text = String::from_utf8_lossy(&text);
                format!("error code {code} of the program: {text}")
            }
            _ => format!("error code {code} of the program"),
        },
    }
}

fn predefined(code: c_int) -> Option<(&'static str, &'static str)> {
    let found = CLASSES.iter().find(|(number, ..)| *number == code);
    found.map(|(_, name, meaning)| (*name, *meaning))
}

mpi_anytime! {
    fn MPI_Error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int {
        out::write(errorclass, "errorclass", class(errorcode)?)
    }

    fn MPI_Error_string(errorcode: c_int, string: *mut c_char, resultlen: *mut c_int) -> c_int {
        out::text(string, resultlen, &text(errorcode)?, MPI_MAX_ERROR_STRING)
    }

    fn MPI_Add_error_class(errorclass: *mut c_int) -> c_int {
        let place = out::place(errorclass, "errorclass")?;
        let mut added = added();
        *place = added.add_class()?;
        LAST_USED.store(added.last_used(), Ordering::Relaxed);
        Ok(())
    }

    fn MPI_Add_error_code(errorclass: c_int, errorcode: *mut c_int) -> c_int {
        let place = out::place(errorcode, "errorcode")?;
        class(errorclass)?;
        let mut added = added();
        *place = added.add_code(errorclass)?;
        LAST_USED.store(added.last_used(), Ordering::Relaxed);
        Ok(())
    }

    fn MPI_Add_error_string(errorcode: c_int, string: *const c_char) -> c_int {
        let text = out::bytes(string, MPI_ERR_ARG, "string")?;
        if text.len() >= MPI_MAX_ERROR_STRING as usize {
            let text = format!("the text has {} bytes; give less than {MPI_MAX_ERROR_STRING}", text.len());
            return Err(Fault::argument(MPI_ERR_ARG, "string", text));
        }
        Ok(added().set_text(errorcode, text)?)
    }

    fn MPI_Remove_error_class(errorclass: c_int) -> c_int {
        Ok(added().remove_class(errorclass)?)
    }

    fn MPI_Remove_error_code(errorcode: c_int) -> c_int {
        Ok(added().remove_code(errorcode)?)
    }

    fn MPI_Remove_error_string(errorcode: c_int) -> c_int {
        Ok(added().set_text(errorcode, "")?)
    }
}

macro_rules! classes {
    ($($class:ident $meaning:literal,)*) => {
        /// The classes of the standard: number, name, meaning.
        const CLASSES: &[(c_int, &str, &str)] = &[$(($class, stringify!($class), $meaning)),*];
    };
}

classes! {
    MPI_SUCCESS "there is no error",
    MPI_ERR_BUFFER "the pointer of a buffer is wrong",
    MPI_ERR_COUNT "a count is wrong",
    MPI_ERR_TYPE "a datatype is wrong",
    MPI_ERR_TAG "a tag is out of range",
    MPI_ERR_COMM "a communicator is wrong",
    MPI_ERR_RANK "a rank is out of range",
    MPI_ERR_REQUEST "a request is wrong",
    MPI_ERR_ROOT "the rank of a root is out of range",
    MPI_ERR_GROUP "a group is wrong",
    MPI_ERR_OP "an operation is wrong",
    MPI_ERR_TOPOLOGY "a communicator has not the topology that is needed",
    MPI_ERR_DIMS "the dimensions of a grid are wrong",
    MPI_ERR_ARG "an argument is wrong",
    MPI_ERR_UNKNOWN "the error is unknown",
    MPI_ERR_TRUNCATE "a message is longer than the buffer that receives it",
    MPI_ERR_OTHER "something else has failed",
    MPI_ERR_INTERN "the library or the system has failed",
    MPI_ERR_PENDING "an operation has neither ended nor failed",
    MPI_ERR_IN_STATUS "the error code is in a status",
    MPI_ERR_ACCESS "permission is denied",
    MPI_ERR_AMODE "the access mode of a file is wrong",
    MPI_ERR_ASSERT "an assertion is wrong",
    MPI_ERR_BAD_FILE "a file name is wrong",
    MPI_ERR_BASE "the base address of a window is wrong",
    MPI_ERR_CONVERSION "a conversion of data has failed",
    MPI_ERR_DISP "a displacement is wrong",
    MPI_ERR_DUP_DATAREP "a data representation is defined already",
    MPI_ERR_FILE_EXISTS "the file exists",
    MPI_ERR_FILE_IN_USE "the file is in use",
    MPI_ERR_FILE "a file handle is wrong",
    MPI_ERR_INFO_KEY "the key of an info object is empty or too long",
    MPI_ERR_INFO_NOKEY "an info object has no such key",
    MPI_ERR_INFO_VALUE "the value of an info object is too long",
    MPI_ERR_INFO "an info object is wrong",
    MPI_ERR_IO "input or output has failed",
    MPI_ERR_KEYVAL "the key of an attribute is wrong",
    MPI_ERR_LOCKTYPE "the type of a lock is wrong",
    MPI_ERR_NAME "there is no service of this name",
    MPI_ERR_NO_MEM "there is not enough memory",
    MPI_ERR_NOT_SAME "the ranks give different arguments where they must be the same",
    MPI_ERR_NO_SPACE "there is not enough space on the device",
    MPI_ERR_NO_SUCH_FILE "there is no such file",
    MPI_ERR_PORT "the name of a port is wrong",
    MPI_ERR_QUOTA "the quota is exceeded",
    MPI_ERR_READ_ONLY "the file or file system is read-only",
    MPI_ERR_RMA_ATTACH "memory cannot be attached to a window",
    MPI_ERR_RMA_CONFLICT "accesses to a window conflict",
    MPI_ERR_RMA_RANGE "the memory does not belong to the window",
    MPI_ERR_RMA_SHARED "memory cannot be shared",
    MPI_ERR_RMA_SYNC "the synchronization of a window is wrong",
    MPI_ERR_SERVICE "a service name was not published",
    MPI_ERR_SIZE "a size is wrong",
    MPI_ERR_SPAWN "processes cannot be spawned",
    MPI_ERR_UNSUPPORTED_DATAREP "the data representation is not supported",
    MPI_ERR_UNSUPPORTED_OPERATION "the operation is not supported",
    MPI_ERR_WIN "a window is wrong",
    MPI_ERR_RMA_FLAVOR "a window is of the wrong flavor",
    MPI_ERR_PROC_ABORTED "a process that is needed has ended",
    MPI_ERR_VALUE_TOO_LARGE "a value does not fit into the type of the result",
    MPI_ERR_SESSION "a session is wrong",
    MPI_ERR_ERRHANDLER "an error handler is wrong",
    MPI_ERR_ABI "the binary interface does not permit this",
    MPI_T_ERR_CANNOT_INIT "the interface for tools cannot be initialized",
    MPI_T_ERR_NOT_ACCESSIBLE "what the tool asks for is not accessible",
    MPI_T_ERR_NOT_INITIALIZED "the interface for tools is not initialized",
    MPI_T_ERR_NOT_SUPPORTED "what the tool asks for is not supported",
    MPI_T_ERR_MEMORY "there is not enough memory for what the tool asks for",
    MPI_T_ERR_INVALID "an argument of a call of a tool is wrong",
    MPI_T_ERR_INVALID_INDEX "the index of a variable, category or event is out of range",
    MPI_T_ERR_INVALID_ITEM "the index of an item of an enumeration is out of range",
    MPI_T_ERR_INVALID_SESSION "a session of performance variables is wrong",
    MPI_T_ERR_INVALID_HANDLE "the handle of a variable or event is wrong",
    MPI_T_ERR_INVALID_NAME "there is no variable, category or event of this name",
    MPI_T_ERR_OUT_OF_HANDLES "there can be no more handles for tools",
    MPI_T_ERR_OUT_OF_SESSIONS "there can be no more sessions for tools",
    MPI_T_ERR_CVAR_SET_NOT_NOW "the control variable cannot be set at this time",
    MPI_T_ERR_CVAR_SET_NEVER "the control variable can never be set",
    MPI_T_ERR_PVAR_NO_WRITE "the performance variable cannot be written or reset",
    MPI_T_ERR_PVAR_NO_STARTSTOP "the performance variable cannot be started or stopped",
    MPI_T_ERR_PVAR_NO_ATOMIC "the performance variable cannot be read and reset in one step",
    MPI_ERR_LASTCODE "the last error code of the standard",
}
