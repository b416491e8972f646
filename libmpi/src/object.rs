//! The kinds of objects that handles name. A new kind is a line in the list at the end.

use crate::abi;
use crate::call::Fault;

/// A type whose values are objects of the table.
pub(crate) trait Kind: Sized {
    /// Puts the object into the form of the table.
    fn wrap(self) -> Object;
    /// Returns the object if it is of this kind.
    fn peek(object: &Object) -> Option<&Self>;
    /// Returns the object if it is of this kind.
    fn peek_mut(object: &mut Object) -> Option<&mut Self>;
    /// Returns the object if it is of this kind.
    fn unwrap(object: Object) -> Option<Self>;
    /// Returns the error of a handle that names no object of this kind.
    fn invalid() -> Fault;
}

macro_rules! kinds {
    ($($kind:ident($type:ty) $class:ident $name:literal,)*) => {
        /// An object that a handle names.
        pub(crate) enum Object {
            $(#[doc = $name] $kind($type),)*
        }

        $(impl Kind for $type {
            fn wrap(self) -> Object {
                Object::$kind(self)
            }

            #[inline(always)]
            fn peek(object: &Object) -> Option<&Self> {
                #[allow(irrefutable_let_patterns, reason = "there may be one kind")]
                if let Object::$kind(object) = object { Some(object) } else { None }
            }

            fn peek_mut(object: &mut Object) -> Option<&mut Self> {
                if let Object::$kind(object) = object { Some(object) } else { None }
            }

            fn unwrap(object: Object) -> Option<Self> {
                if let Object::$kind(object) = object { Some(object) } else { None }
            }

            #[cold]
            fn invalid() -> Fault {
                Fault::new(abi::$class, concat!("the handle names no ", $name, ": it was freed, is null, or was never made"))
            }
        })*
    };
}

kinds! {
    Comm(std::sync::Arc<crate::comm::Comm>) MPI_ERR_COMM "communicator",
    Datatype(crate::datatype::Derived) MPI_ERR_TYPE "datatype",
    Request(crate::request::Request) MPI_ERR_REQUEST "request",
}
