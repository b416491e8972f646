//! Objects: values that serde can serialize, each an element of a section of type `OBJECT`.

use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{CodecError, decode, encode};
use super::element::ElementType;
use super::error::{BufferError, Underflow};
use super::wire::{put_number, split_object};
use super::{Buffer, Section};

/// Number of bytes of the length before an object.
const LENGTH: usize = 4;

impl Buffer {
    /// Writes `value` to the current section as one object.
    ///
    /// # Errors
    /// [`BufferError::WrongState`]; [`BufferError::TypeMismatch`] if the section is not of type `OBJECT`;
    /// [`BufferError::Dynamic`] if the value cannot be serialized; [`BufferError::Overflow`] above 2 GiB of elements
    /// of dynamic sections.
    pub fn write_object<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), BufferError> {
        self.check_writable()?;
        let section = self.section_of(ElementType::Object)?;
        let mut object = vec![0; LENGTH];
        encode(value, &mut object, usize::MAX).map_err(|error| dynamic(true, error))?;
        self.check_room(section.element, object.len())?;
        let len = object.len() - LENGTH;
        put_number(&mut object, 0, len);
        Arc::make_mut(&mut self.parts).secondary.extend_from_slice(&object);
        self.section = Some(Section { count: section.count + 1, ..section });
        Ok(())
    }

    /// Reads the next object of the current section.
    ///
    /// # Errors
    /// [`BufferError::WrongState`]; [`BufferError::TypeMismatch`] if the section is not of type `OBJECT`;
    /// [`Underflow::Elements`]; [`BufferError::Dynamic`] if the object is not a `T`. The object then stays unread and
    /// can be read as another type.
    pub fn read_object<T: DeserializeOwned>(&mut self) -> Result<T, BufferError> {
        self.check_readable()?;
        let section = self.section_of(ElementType::Object)?;
        let Some(remaining) = section.remaining.checked_sub(1) else {
            return Err(Underflow::Elements { wanted: 1, remaining: 0 }.into());
        };
        let unread = &self.parts.secondary[self.unread_dynamic..];
        let (object, _) = split_object(unread, self.encoding)
            .expect("objects were written here, or checked (BW1)");
        let value = decode(object).map_err(|error| dynamic(false, error))?;
        self.unread_dynamic += LENGTH + object.len();
        self.section = Some(Section { remaining, ..section });
        Ok(value)
    }
}

fn dynamic(is_writing: bool, error: CodecError) -> BufferError {
    BufferError::Dynamic { is_writing, source: Arc::new(error) }
}
