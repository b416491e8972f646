//! Why ranks could not be spawned, or groups could not meet.

use super::Error;
use crate::ErrorClass;

/// Why ranks could not be spawned, or groups could not meet.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// The launcher did not start the ranks.
    #[error("cannot spawn: {why}")]
    Spawn {
        /// Why not.
        why: String,
    },
    /// A port cannot be used.
    #[error("port {name:?}: {why}")]
    Port {
        /// The name of the port.
        name: String,
        /// Why not.
        why: String,
    },
    /// A name cannot be published, or taken back.
    #[error("service {name:?}: {why}")]
    Service {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
    /// A name was not found.
    #[error("service {name:?}: {why}")]
    Name {
        /// The name.
        name: String,
        /// Why not.
        why: String,
    },
}

impl WorldError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Spawn { .. } => ErrorClass::Spawn,
            Self::Port { .. } => ErrorClass::Port,
            Self::Service { .. } => ErrorClass::Service,
            Self::Name { .. } => ErrorClass::Name,
        }
    }

    pub(crate) fn service(name: &[u8], why: String) -> Error {
        Self::Service { name: String::from_utf8_lossy(name).into_owned(), why }.into()
    }
}
