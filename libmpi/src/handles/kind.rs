//! The kinds of objects that handles name. A new kind is a line in the list at the end: its type, whether objects are
//! held or taken (see `handles.rs`), or held by any thread at any time (`free_threaded`), the error class of wrong
//! handles, its name for messages, and, if other threads may know something of an object that is taken, the function
//! that says it. Kinds larger than requests are boxed.

use crate::abi;
use crate::call::Fault;

/// A type whose values are objects of the table.
pub(crate) trait Kind: Sized {
    /// The kind, as the state of a slot says it.
    const NUMBER: Number;
    /// Whether one call at a time has an object of this kind for itself; otherwise any number of calls may read it.
    const IS_TAKEN: bool;
    /// Whether any thread may call functions of this kind at any time, whatever the level of thread support
    /// (MPI-5.0 section 11.2.2).
    const IS_FREE_THREADED: bool;
    /// Puts the object into the form of the table.
    fn wrap(self) -> Object;
    /// Returns the object if it is of this kind.
    fn peek(object: &Object) -> Option<&Self>;
    /// Returns the object if it is of this kind.
    fn peek_mut(object: &mut Object) -> Option<&mut Self>;
    /// Returns what other threads may know of an object while a thread has it for itself (HT5).
    fn word(&self) -> u64 {
        0
    }
    /// Returns the error of a handle that names no object of this kind.
    fn invalid() -> Fault;
}

/// Says how objects of a kind are used.
macro_rules! is_taken {
    (held) => {
        false
    };
    (free_threaded) => {
        false
    };
    (taken) => {
        true
    };
}

macro_rules! is_free_threaded {
    (free_threaded) => {
        true
    };
    ($use:ident) => {
        false
    };
}

macro_rules! kinds {
    ($($(#[$only:meta])* $kind:ident($type:ty) $use:ident $class:ident $name:literal $($word:path)?,)*) => {
        /// An object that a handle names.
        pub(crate) enum Object {
            $($(#[$only])* #[doc = $name] $kind($type),)*
        }

        /// The kinds of objects.
        #[derive(Clone, Copy)]
        pub(crate) enum Number {
            $($(#[$only])* #[doc = $name] $kind,)*
        }

        $($(#[$only])* impl Kind for $type {
            const NUMBER: Number = Number::$kind;
            const IS_TAKEN: bool = is_taken!($use);
            const IS_FREE_THREADED: bool = is_free_threaded!($use);

            #[inline(always)]
            fn wrap(self) -> Object {
                Object::$kind(self)
            }

            #[inline(always)]
            fn peek(object: &Object) -> Option<&Self> {
                #[allow(irrefutable_let_patterns, reason = "there may be one kind")]
                if let Object::$kind(object) = object { Some(object) } else { None }
            }

            #[inline(always)]
            fn peek_mut(object: &mut Object) -> Option<&mut Self> {
                if let Object::$kind(object) = object { Some(object) } else { None }
            }

            $(fn word(&self) -> u64 {
                $word(self)
            })?

            #[cold]
            fn invalid() -> Fault {
                Fault::new(abi::$class, concat!("the handle names no ", $name, ": it was freed, is null, or was never made"))
            }
        })*
    };
}

kinds! {
    Comm(std::sync::Arc<crate::comm::Comm>) held MPI_ERR_COMM "communicator",
    CommKey(crate::comm::keyval::Keyval<abi::MPI_Comm>) held MPI_ERR_KEYVAL "key for attributes of communicators",
    Datatype(Box<crate::datatype::Derived>) held MPI_ERR_TYPE "datatype",
    TypeKey(crate::comm::keyval::Keyval<abi::MPI_Datatype>) held MPI_ERR_KEYVAL "key for attributes of datatypes",
    Op(crate::collective::Operation) held MPI_ERR_OP "operation",
    Request(crate::request::Request) taken MPI_ERR_REQUEST "request" crate::request::Request::word,
    Message(Box<crate::p2p::matched::Message>) taken MPI_ERR_REQUEST "message",
    Errhandler(std::sync::Arc<crate::error::handler::User>) free_threaded MPI_ERR_ERRHANDLER "error handler",
    Group(crate::comm::group::Members) held MPI_ERR_GROUP "group",
    Info(crate::info::Hints) free_threaded MPI_ERR_INFO "info object",
    Session(std::sync::Arc<crate::process::session::Session>) free_threaded MPI_ERR_SESSION "session",
    Win(std::sync::Arc<crate::win::Win>) held MPI_ERR_WIN "window",
    WinKey(crate::comm::keyval::Keyval<abi::MPI_Win>) held MPI_ERR_KEYVAL "key for attributes of windows",
    File(std::sync::Arc<crate::file::OpenFile>) held MPI_ERR_FILE "file",
    #[cfg(test)]
    Read(crate::handles::tests::Read) held MPI_ERR_INFO "readable object",
    #[cfg(test)]
    Changed(crate::handles::tests::Changed) taken MPI_ERR_WIN "changeable object" crate::handles::tests::Changed::number,
}
