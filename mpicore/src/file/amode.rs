//! Access modes: how a file is opened.

use std::ops::BitOr;

use crate::error::FileError;

/// How a file is opened: MPI's access mode, with the numbers of its binary interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Amode(pub u32);

impl Amode {
    /// All pointers begin at the end of the file.
    pub const APPEND: Self = Self(1);
    /// The file is made if it does not exist.
    pub const CREATE: Self = Self(2);
    /// The file is deleted when it is closed.
    pub const DELETE_ON_CLOSE: Self = Self(4);
    /// A file that exists is not opened.
    pub const EXCL: Self = Self(8);
    /// The file is read.
    pub const RDONLY: Self = Self(16);
    /// The file is read and written.
    pub const RDWR: Self = Self(32);
    /// The file is accessed by the shared pointer only.
    pub const SEQUENTIAL: Self = Self(64);
    /// Nobody else has the file open.
    pub const UNIQUE_OPEN: Self = Self(128);
    /// The file is written.
    pub const WRONLY: Self = Self(256);

    /// Returns whether it has these modes.
    pub fn has(self, modes: Self) -> bool {
        self.0 & modes.0 == modes.0
    }

    /// Returns whether the file is read.
    pub(super) fn reads(self) -> bool {
        self.has(Self::RDONLY) || self.has(Self::RDWR)
    }

    /// Returns whether the file is written.
    pub(super) fn writes(self) -> bool {
        self.has(Self::WRONLY) || self.has(Self::RDWR)
    }

    /// Checks that the modes go together (MPI-4.1 section 14.2.1).
    pub(super) fn check(self) -> Result<(), FileError> {
        let wrong = |why| Err(FileError::Amode { why });
        let access = [Self::RDONLY, Self::RDWR, Self::WRONLY];
        if access.iter().filter(|mode| self.has(**mode)).count() != 1 {
            return wrong("give one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY");
        }
        if self.0 >> 9 != 0 {
            return wrong("there are bits that mean nothing");
        }
        if self.has(Self::RDONLY) && (self.has(Self::CREATE) || self.has(Self::EXCL)) {
            return wrong(
                "MPI_MODE_RDONLY goes neither with MPI_MODE_CREATE nor with MPI_MODE_EXCL",
            );
        }
        if self.has(Self::RDWR) && self.has(Self::SEQUENTIAL) {
            return wrong("MPI_MODE_RDWR does not go with MPI_MODE_SEQUENTIAL");
        }
        Ok(())
    }
}

impl BitOr for Amode {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
