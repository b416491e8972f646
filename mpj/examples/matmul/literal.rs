//! The Python dictionary in the header of a `.npy` file.
//!
//! `npy.rs` uses it for the bytes of the header. It accepts the three keys in any order, with any spaces, and nothing
//! else: `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.

use super::npy::{Dtype, Header, NpyError};

/// The keys of a header, for messages.
pub const KEYS: &str = "'descr', 'fortran_order' and 'shape'";

/// Reads the whole header text.
pub fn parse(text: &[u8]) -> Result<Header, NpyError> {
    let mut cursor = Cursor { text, at: 0 };
    let mut fields = Fields::default();
    cursor.expect(b'{', "'{'")?;
    while !cursor.take(b'}') {
        let key = cursor.string()?;
        cursor.expect(b':', "':'")?;
        fields.read(&key, &mut cursor)?;
        if !cursor.take(b',') {
            cursor.expect(b'}', "',' or '}'")?;
            break;
        }
    }
    cursor.end()?;
    fields.complete()
}

/// The values seen so far.
#[derive(Default)]
struct Fields {
    descr: Option<Dtype>,
    fortran_order: Option<bool>,
    shape: Option<Vec<usize>>,
}

impl Fields {
    fn read(&mut self, key: &str, cursor: &mut Cursor<'_>) -> Result<(), NpyError> {
        match key {
            "descr" => store(&mut self.descr, "descr", cursor.dtype()?),
            "fortran_order" => store(&mut self.fortran_order, "fortran_order", cursor.boolean()?),
            "shape" => store(&mut self.shape, "shape", cursor.shape()?),
            _ => Err(NpyError::UnknownKey(key.to_owned())),
        }
    }

    fn complete(self) -> Result<Header, NpyError> {
        Ok(Header {
            dtype: self.descr.ok_or(NpyError::MissingKey("descr"))?,
            fortran_order: self.fortran_order.ok_or(NpyError::MissingKey("fortran_order"))?,
            shape: self.shape.ok_or(NpyError::MissingKey("shape"))?,
        })
    }
}

fn store<T>(field: &mut Option<T>, key: &'static str, value: T) -> Result<(), NpyError> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(NpyError::RepeatedKey(key)),
    }
}

/// A position in the text; every method skips the spaces before what it reads.
struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn error(&self, expected: &'static str) -> NpyError {
        NpyError::Syntax { at: self.at, expected }
    }

    fn peek(&mut self) -> Option<u8> {
        while matches!(self.text.get(self.at), Some(b' ' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), NpyError> {
        if self.take(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn end(&mut self) -> Result<(), NpyError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("nothing but spaces after '}'")),
        }
    }

    /// Takes bytes as long as `wanted` returns `true`.
    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !wanted(*byte)).unwrap_or(rest.len());
        self.at += length;
        std::str::from_utf8(&rest[..length]).unwrap_or_default()
    }

    /// Reads a string of printable ASCII in either kind of quotes, without escapes.
    fn string(&mut self) -> Result<String, NpyError> {
        let quote = match self.peek() {
            Some(quote @ (b'\'' | b'"')) => quote,
            _ => return Err(self.error("a quoted string")),
        };
        self.at += 1;
        let printable = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let text = self.take_while(|byte| byte != quote && byte != b'\\' && printable(byte));
        let text = text.to_owned();
        if self.text.get(self.at) != Some(&quote) {
            return Err(self.error("the closing quote"));
        }
        self.at += 1;
        Ok(text)
    }

    fn dtype(&mut self) -> Result<Dtype, NpyError> {
        // Structured types are lists. They are well formed, but not supported.
        if self.peek() == Some(b'[') {
            return Err(NpyError::Dtype("structured".to_owned()));
        }
        let descr = self.string()?;
        Dtype::from_descr(&descr).ok_or(NpyError::Dtype(descr))
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.peek();
        let start = self.at;
        match self.take_while(|byte| byte.is_ascii_alphabetic()) {
            "True" => Ok(true),
            "False" => Ok(false),
            _ => Err(NpyError::Syntax { at: start, expected: "True or False" }),
        }
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect(b'(', "'('")?;
        let mut shape = Vec::new();
        while !self.take(b')') {
            shape.push(self.extent()?);
            if self.take(b',') {
                continue;
            }
            // `(5)` is a number in parentheses, not a tuple.
            if shape.len() == 1 {
                return Err(self.error("','"));
            }
            self.expect(b')', "',' or ')'")?;
            break;
        }
        Ok(shape)
    }

    fn extent(&mut self) -> Result<usize, NpyError> {
        self.peek();
        let start = self.at;
        let digits = self.take_while(|byte| byte.is_ascii_digit());
        let expected = "an extent between 0 and 2^64";
        digits.parse().map_err(|_| NpyError::Syntax { at: start, expected })
    }
}
