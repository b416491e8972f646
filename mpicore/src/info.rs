//! Info objects: ordered pairs of a key and a value, by which programs pass hints (MPI-4.1 chapter 10).
//!
//! Keys and values are bytes, since C's strings have no encoding. They contain no terminator.

use crate::ErrorClass;

/// An info object: MPI_Info. Keys have the order in which they were first set.
///
/// ```
/// use mpicore::Info;
/// let mut info = Info::default();
/// info.set(b"access_style", b"read_once")?;
/// info.set(b"nb_proc", b"4")?;
/// info.set(b"access_style", b"random")?;
/// assert_eq!(info.get(b"access_style"), Some(&b"random"[..]));
/// assert_eq!((info.len(), info.key(1)?), (2, &b"nb_proc"[..]));
/// # Ok::<(), mpicore::InfoError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Info(Vec<(Text, Text)>);

/// A key or a value.
type Text = Box<[u8]>;

/// Why a call on an info object was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InfoError {
    /// A key is empty or too long.
    #[error("a key of {len} bytes; give 1 to {} bytes", Info::MAX_KEY)]
    Key {
        /// Length of the key.
        len: usize,
    },
    /// A value is too long.
    #[error("a value of {len} bytes for key {key}; give at most {} bytes", Info::MAX_VALUE)]
    Value {
        /// The key.
        key: String,
        /// Length of the value.
        len: usize,
    },
    /// The object has no such key.
    #[error("the info object has no key {key}")]
    NoKey {
        /// The key.
        key: String,
    },
    /// The object has fewer keys.
    #[error("key number {number} of an info object with {len} keys, which are numbered from 0 on")]
    Number {
        /// The number that was given.
        number: usize,
        /// Number of keys.
        len: usize,
    },
}

impl InfoError {
    /// Returns MPI's class of this error.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Key { .. } => ErrorClass::InfoKey,
            Self::Value { .. } => ErrorClass::InfoValue,
            Self::NoKey { .. } => ErrorClass::InfoNokey,
            Self::Number { .. } => ErrorClass::Arg,
        }
    }
}

/// How a process was started: the contents of MPI_INFO_ENV and of the object that MPI_Info_create_env makes. What is
/// `None` or empty is not known and gets no key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Start<'a> {
    /// The program: key `command`.
    pub command: &'a [u8],
    /// Its arguments: key `argv`, separated by spaces.
    pub arguments: &'a [&'a [u8]],
    /// The number of processes that were started: keys `maxprocs` and `soft`.
    pub processes: Option<u32>,
    /// The name of the host: key `host`.
    pub host: &'a [u8],
    /// The processor architecture: key `arch`.
    pub architecture: &'a [u8],
    /// The working directory: key `wdir`.
    pub directory: &'a [u8],
    /// The level of thread support that was asked for, as MPI writes it: key `thread_level`.
    pub thread_level: &'a [u8],
}

impl Info {
    /// Longest key in bytes: MPI_MAX_INFO_KEY of C without the terminator.
    pub const MAX_KEY: usize = 255;
    /// Longest value in bytes: MPI_MAX_INFO_VAL of C without the terminator.
    pub const MAX_VALUE: usize = 1023;

    /// Makes the object that describes how a process was started: MPI_Info_create_env. Values that are too long are cut
    /// off at [`Info::MAX_VALUE`].
    pub fn of_start(start: &Start<'_>) -> Self {
        let processes = start.processes.map_or(String::new(), |number| number.to_string());
        let arguments = start.arguments.join(&b' ');
        let entries: [(&[u8], &[u8]); 8] = [
            (b"command", start.command),
            (b"argv", &arguments),
            (b"maxprocs", processes.as_bytes()),
            (b"soft", processes.as_bytes()),
            (b"host", start.host),
            (b"arch", start.architecture),
            (b"wdir", start.directory),
            (b"thread_level", start.thread_level),
        ];
        let known = entries.into_iter().filter(|(_, value)| !value.is_empty());
        Self(known.map(|(key, value)| (key.into(), cut(value).into())).collect())
    }

    /// Sets the value of a key, which is added if it is not there: MPI_Info_set.
    ///
    /// # Errors
    /// [`InfoError::Key`]; [`InfoError::Value`].
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), InfoError> {
        check_key(key)?;
        if value.len() > Self::MAX_VALUE {
            return Err(InfoError::Value { key: text(key), len: value.len() });
        }
        match self.place(key) {
            Some(place) => self.0[place].1 = value.into(),
            None => self.0.push((key.into(), value.into())),
        }
        Ok(())
    }

    /// Returns the value of a key: MPI_Info_get_string. `None` if the key is not there, or is no legal key.
    pub fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.place(key).map(|place| &*self.0[place].1)
    }

    /// Checks whether a key has a legal length, for calls that must refuse others: MPI_Info_get_string,
    /// MPI_Info_get_valuelen.
    ///
    /// # Errors
    /// [`InfoError::Key`].
    pub fn check_key(key: &[u8]) -> Result<(), InfoError> {
        check_key(key)
    }

    /// Removes a key with its value: MPI_Info_delete.
    ///
    /// # Errors
    /// [`InfoError::Key`]; [`InfoError::NoKey`].
    pub fn delete(&mut self, key: &[u8]) -> Result<(), InfoError> {
        check_key(key)?;
        let place = self.place(key).ok_or_else(|| InfoError::NoKey { key: text(key) })?;
        self.0.remove(place);
        Ok(())
    }

    /// Returns the number of keys: MPI_Info_get_nkeys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key with this number, counted from 0: MPI_Info_get_nthkey.
    ///
    /// # Errors
    /// [`InfoError::Number`].
    pub fn key(&self, number: usize) -> Result<&[u8], InfoError> {
        let entry = self.0.get(number).ok_or(InfoError::Number { number, len: self.len() })?;
        Ok(&entry.0)
    }

    /// Iterates over keys and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    fn place(&self, key: &[u8]) -> Option<usize> {
        self.0.iter().position(|(own, _)| **own == *key)
    }
}

fn check_key(key: &[u8]) -> Result<(), InfoError> {
    match key.len() {
        1..=Info::MAX_KEY => Ok(()),
        len => Err(InfoError::Key { len }),
    }
}

/// Returns the bytes of a value that are kept.
fn cut(value: &[u8]) -> &[u8] {
    &value[..value.len().min(Info::MAX_VALUE)]
}

/// Returns a key for error messages.
fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_keep_their_order_and_deletion_closes_the_gap() {
        let mut info = Info::default();
        for (key, value) in [(b"b", b"1"), (b"a", b"2"), (b"c", b"3"), (b"b", b"4")] {
            info.set(key, value).unwrap();
        }
        let copy = info.clone();
        info.delete(b"a").unwrap();
        let entries: Vec<_> = info.iter().collect();
        assert_eq!(entries, [(&b"b"[..], &b"4"[..]), (b"c", b"3")]);
        assert_eq!(info.key(1), Ok(&b"c"[..]));
        assert_eq!(info.key(2), Err(InfoError::Number { number: 2, len: 2 }));
        assert_eq!(info.delete(b"a").unwrap_err().class(), ErrorClass::InfoNokey);
        assert_eq!((copy.len(), copy.get(b"a")), (3, Some(&b"2"[..])));
        assert!(Info::default().is_empty());
    }

    #[test]
    fn lengths_have_limits() {
        let mut info = Info::default();
        let (key, value) = ([b'k'; Info::MAX_KEY], [b'v'; Info::MAX_VALUE]);
        info.set(&key, &value).unwrap();
        assert_eq!(info.get(&key), Some(&value[..]));
        let class = |outcome: Result<(), InfoError>| outcome.unwrap_err().class();
        assert_eq!(class(info.set(&[b'k'; Info::MAX_KEY + 1], b"")), ErrorClass::InfoKey);
        assert_eq!(class(info.set(b"", b"")), ErrorClass::InfoKey);
        assert_eq!(class(info.delete(b"")), ErrorClass::InfoKey);
        assert_eq!(class(info.set(b"k", &[b'v'; Info::MAX_VALUE + 1])), ErrorClass::InfoValue);
        assert_eq!(info.get(b"k"), None);
        info.set(b"\xff", b"").unwrap();
        assert_eq!(info.get(b"\xff"), Some(&b""[..]), "bytes need no encoding");
    }

    #[test]
    fn the_start_of_a_process_has_the_keys_that_are_known() {
        let long = [b'a'; 2000];
        let start = Start {
            command: b"./walk",
            arguments: &[b"-n", &long],
            processes: Some(4),
            ..Start::default()
        };
        let info = Info::of_start(&start);
        let keys: Vec<_> = info.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, [&b"command"[..], b"argv", b"maxprocs", b"soft"]);
        assert_eq!(info.get(b"soft"), Some(&b"4"[..]));
        let argv = info.get(b"argv").unwrap();
        assert!(argv.starts_with(b"-n aaa") && argv.len() == Info::MAX_VALUE);
    }
}
