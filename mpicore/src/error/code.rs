//! Error classes, codes and strings that a program adds (MPI-4.1 section 9.5).
//!
//! A layer with numeric codes keeps one registry for each process. Codes up to [`ErrorCodes::last_predefined`] are
//! that layer's own: each predefined class is a code of itself, and its text comes from that layer.

use std::collections::BTreeMap;

use crate::ErrorClass;

/// The error classes and codes that a program has added, with their texts. Each new number is higher than all before
/// it, so a removed number is never given again.
///
/// ```
/// use mpicore::ErrorCodes;
/// let mut codes = ErrorCodes::new(0x3fff);
/// let class = codes.add_class()?;
/// let code = codes.add_code(class)?;
/// codes.set_text(code, "the reactor is too hot")?;
/// assert_eq!((codes.class(code)?, codes.text(code)?), (class, Some(&b"the reactor is too hot"[..])));
/// assert_eq!((codes.class(7)?, codes.last_used()), (7, code));
/// codes.set_text(code, "")?;
/// codes.remove_code(code)?;
/// assert!(codes.class(code).is_err());
/// # Ok::<(), mpicore::CodeError>(())
/// ```
#[derive(Debug, Clone)]
pub struct ErrorCodes {
    last_predefined: i32,
    last_used: i32,
    added: BTreeMap<i32, Added>,
}

#[derive(Debug, Clone)]
struct Added {
    /// The class of the code; a class has itself.
    class: i32,
    text: Vec<u8>,
}

/// Why a call on error classes and codes was refused. Nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// There is no such error code.
    #[error("{code} is no error code; give one that MPI defines or that this program has added")]
    Unknown {
        /// The number that was given.
        code: i32,
    },
    /// There is no such error class.
    #[error("{class} is no error class; give one that MPI defines or that this program has added")]
    UnknownClass {
        /// The number that was given.
        class: i32,
    },
    /// MPI defines the code, so its text cannot be set, nor can it be removed.
    #[error("error code {code} is defined by MPI; change and remove only codes that were added")]
    Predefined {
        /// The number that was given.
        code: i32,
    },
    /// A class cannot be removed before its codes.
    #[error("error class {class} still has code {code}; remove its codes first")]
    InUse {
        /// The class.
        class: i32,
        /// The lowest of its codes.
        code: i32,
    },
    /// A code or class cannot be removed before its text.
    #[error("{code} still has a text; remove the text first")]
    HasText {
        /// The code or class.
        code: i32,
    },
    /// There are no more numbers.
    #[error("all numbers of error codes have been given")]
    Exhausted,
}

impl CodeError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Exhausted => ErrorClass::Other,
            _ => ErrorClass::Arg,
        }
    }
}

impl ErrorCodes {
    /// Makes a registry without added codes. `last_predefined` is MPI_ERR_LASTCODE; predefined codes begin with 0,
    /// which is MPI_SUCCESS.
    pub const fn new(last_predefined: i32) -> Self {
        Self { last_predefined, last_used: last_predefined, added: BTreeMap::new() }
    }

    /// Returns the highest predefined code: MPI_ERR_LASTCODE.
    pub fn last_predefined(&self) -> i32 {
        self.last_predefined
    }

    /// Returns the highest number given so far: the value of the attribute MPI_LASTUSEDCODE. Removals do not lower it.
    pub fn last_used(&self) -> i32 {
        self.last_used
    }

    /// Adds a class, which has an empty text: MPI_Add_error_class.
    ///
    /// # Errors
    /// [`CodeError::Exhausted`].
    pub fn add_class(&mut self) -> Result<i32, CodeError> {
        self.add(None)
    }

    /// Adds a code to a class, which is predefined or was added: MPI_Add_error_code. Its text is empty.
    ///
    /// # Errors
    /// [`CodeError::UnknownClass`], also for a code that is no class; [`CodeError::Exhausted`].
    pub fn add_code(&mut self, class: i32) -> Result<i32, CodeError> {
        match self.class(class) {
            Ok(own) if own == class => self.add(Some(class)),
            _ => Err(CodeError::UnknownClass { class }),
        }
    }

    /// Adds a code of this class, or a class.
    fn add(&mut self, class: Option<i32>) -> Result<i32, CodeError> {
        let code = self.last_used.checked_add(1).ok_or(CodeError::Exhausted)?;
        self.last_used = code;
        let added = Added { class: class.unwrap_or(code), text: Vec::new() };
        self.added.insert(code, added);
        Ok(code)
    }

    /// Sets the text of an added code or class: MPI_Add_error_string. An empty text removes it:
    /// MPI_Remove_error_string.
    ///
    /// # Errors
    /// [`CodeError::Predefined`]; [`CodeError::Unknown`].
    pub fn set_text(&mut self, code: i32, text: impl Into<Vec<u8>>) -> Result<(), CodeError> {
        self.check_added(code)?;
        let added = self.added.get_mut(&code).ok_or(CodeError::Unknown { code })?;
        added.text = text.into();
        Ok(())
    }

    /// Removes an added class: MPI_Remove_error_class.
    ///
    /// # Errors
    /// [`CodeError::InUse`] if it still has codes; [`CodeError::HasText`]; [`CodeError::UnknownClass`], also for a code
    /// that is no class; [`CodeError::Predefined`].
    pub fn remove_class(&mut self, class: i32) -> Result<(), CodeError> {
        self.check_added(class)?;
        if self.added.get(&class).is_none_or(|added| added.class != class) {
            return Err(CodeError::UnknownClass { class });
        }
        let is_code = |(code, added): &(&i32, &Added)| added.class == class && **code != class;
        if let Some((&code, _)) = self.added.iter().find(is_code) {
            return Err(CodeError::InUse { class, code });
        }
        self.remove(class)
    }

    /// Removes an added code: MPI_Remove_error_code.
    ///
    /// # Errors
    /// [`CodeError::HasText`]; [`CodeError::Unknown`], also for a class; [`CodeError::Predefined`].
    pub fn remove_code(&mut self, code: i32) -> Result<(), CodeError> {
        self.check_added(code)?;
        match self.added.get(&code) {
            Some(added) if added.class != code => self.remove(code),
            _ => Err(CodeError::Unknown { code }),
        }
    }

    fn remove(&mut self, code: i32) -> Result<(), CodeError> {
        if self.added.get(&code).is_some_and(|added| !added.text.is_empty()) {
            return Err(CodeError::HasText { code });
        }
        self.added.remove(&code);
        Ok(())
    }

    /// Returns the class of a code: MPI_Error_class.
    ///
    /// # Errors
    /// [`CodeError::Unknown`].
    pub fn class(&self, code: i32) -> Result<i32, CodeError> {
        if (0..=self.last_predefined).contains(&code) {
            return Ok(code);
        }
        let added = self.added.get(&code).ok_or(CodeError::Unknown { code })?;
        Ok(added.class)
    }

    /// Returns the text of an added code or class: MPI_Error_string. It is empty if none was set. Returns `None` for a
    /// predefined code, whose text the layer above knows.
    ///
    /// # Errors
    /// [`CodeError::Unknown`].
    pub fn text(&self, code: i32) -> Result<Option<&[u8]>, CodeError> {
        self.class(code)?;
        Ok(self.added.get(&code).map(|added| &*added.text))
    }

    fn check_added(&self, code: i32) -> Result<(), CodeError> {
        match (0..=self.last_predefined).contains(&code) {
            true => Err(CodeError::Predefined { code }),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_belong_to_classes_and_numbers_are_not_given_twice() {
        let mut codes = ErrorCodes::new(99);
        let class = codes.add_class().unwrap();
        let code = codes.add_code(class).unwrap();
        let of_mpi = codes.add_code(5).unwrap();
        assert_eq!((class, code, of_mpi, codes.last_used()), (100, 101, 102, 102));
        assert_eq!(
            [class, code, of_mpi, 5].map(|code| codes.class(code)),
            [100, 100, 5, 5].map(Ok)
        );
        assert_eq!(codes.add_code(code), Err(CodeError::UnknownClass { class: code }));
        assert_eq!(codes.remove_class(class), Err(CodeError::InUse { class, code }));
        assert_eq!(codes.remove_code(class), Err(CodeError::Unknown { code: class }));
        codes.set_text(code, "a text").unwrap();
        assert_eq!(codes.remove_code(code), Err(CodeError::HasText { code }));
        codes.set_text(code, "").unwrap();
        codes.remove_code(code).unwrap();
        codes.set_text(class, "a text").unwrap();
        assert_eq!(codes.remove_class(class), Err(CodeError::HasText { code: class }));
        codes.set_text(class, "").unwrap();
        codes.remove_class(class).unwrap();
        assert_eq!(codes.remove_class(class), Err(CodeError::UnknownClass { class }));
        assert_eq!(codes.remove_code(code), Err(CodeError::Unknown { code }));
        assert_eq!(codes.add_class(), Ok(103));
        assert_eq!(codes.last_used(), 103);
    }

    #[test]
    fn texts_are_those_of_added_codes() {
        let mut codes = ErrorCodes::new(99);
        let class = codes.add_class().unwrap();
        assert_eq!(codes.text(class), Ok(Some(&b""[..])));
        codes.set_text(class, "first").unwrap();
        codes.set_text(class, b"caf\xE9").unwrap();
        assert_eq!(codes.text(class), Ok(Some(&b"caf\xE9"[..])));
        assert_eq!(codes.text(99), Ok(None));
        for code in [-1, 101, i32::MAX] {
            assert_eq!(codes.text(code), Err(CodeError::Unknown { code }));
            assert_eq!(codes.set_text(code, ""), Err(CodeError::Unknown { code }));
        }
        assert_eq!(codes.set_text(0, "fine"), Err(CodeError::Predefined { code: 0 }));
        assert_eq!(codes.remove_class(99).unwrap_err().class(), ErrorClass::Arg);
    }

    #[test]
    fn the_last_number_is_given_once() {
        let mut codes = ErrorCodes::new(i32::MAX - 1);
        assert_eq!(codes.add_class(), Ok(i32::MAX));
        assert_eq!(codes.add_class(), Err(CodeError::Exhausted));
        assert_eq!(codes.last_used(), i32::MAX);
    }
}
