//! The names that a client of the transport gives to its calls and spaces, as each rank tells them to the launcher.

use bincode::{Decode, Encode};

use super::ControlError;
use crate::adapter::waits::CallCode;

/// The names of calls and spaces, for the launcher's reports. Whether a job is in deadlock does not depend on them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Vocabulary {
    /// The calls, in the order of their codes, from 1 on: the name of each, and whether it needs all.
    calls: Vec<(String, bool)>,
    space: String,
    everywhere: String,
    /// What to call the client itself; empty if its calls have names.
    client: String,
}

impl Vocabulary {
    /// Most calls.
    pub const MAX_CALLS: usize = 256;
    /// Longest name in bytes.
    pub const MAX_NAME: usize = 32;

    /// Makes a vocabulary of these calls, in the order of their codes, from 1 on. With each name it is stated whether
    /// every rank waits in such a collective operation until all have come; in the others a rank waits for some of
    /// them. A space is called `space`, and the one of all tasks `everywhere`.
    ///
    /// # Panics
    /// If there are too many calls, or if a name is empty, too long, or has other characters than printable ones of
    /// ASCII.
    pub fn new<'a>(
        calls: impl IntoIterator<Item = (&'a str, bool)>,
        space: &str,
        everywhere: &str,
    ) -> Self {
        let calls = calls.into_iter().map(|(name, needs_all)| (name.to_owned(), needs_all));
        let (space, everywhere) = (space.to_owned(), everywhere.to_owned());
        let vocabulary = Self { calls: calls.collect(), space, everywhere, client: String::new() };
        vocabulary.checked()
    }

    /// Makes the vocabulary of a client whose calls have no names. Reports speak of a call of `client`.
    ///
    /// # Panics
    /// As [`Vocabulary::new`].
    pub fn of_client(client: &str) -> Self {
        Self { client: client.to_owned(), ..Self::default() }.checked()
    }

    fn checked(self) -> Self {
        self.check().expect("a client gives legal names");
        self
    }

    /// Checks what a rank has sent.
    pub(super) fn check(&self) -> Result<(), ControlError> {
        let number = self.calls.len();
        if number > Self::MAX_CALLS {
            return Err(ControlError::TooManyCalls { number });
        }
        let client = Some(&self.client).filter(|client| !client.is_empty());
        let names = self.calls.iter().map(|(name, _)| name);
        check_names(names.chain([&self.space, &self.everywhere]).chain(client))
    }

    /// Returns the name of a call; of one that it does not contain, its number.
    pub fn name(&self, call: CallCode) -> String {
        if call == CallCode::JOIN {
            return "join".to_owned();
        }
        self.call(call).map_or_else(|| format!("call {}", call.0), |(name, _)| name.clone())
    }

    /// Returns whether every rank waits in this collective operation until all have come.
    pub fn needs_all(&self, operation: CallCode) -> bool {
        operation == CallCode::JOIN || self.call(operation).is_some_and(|(_, needs_all)| *needs_all)
    }

    /// Returns what a space is called.
    pub fn space(&self) -> &str {
        &self.space
    }

    /// Returns what the space of all tasks is called.
    pub fn everywhere(&self) -> &str {
        &self.everywhere
    }

    /// Returns how a call of which nothing is known is named.
    pub fn unknown(&self) -> String {
        match &*self.client {
            "" => "a call".to_owned(),
            client => format!("a call of {client}"),
        }
    }

    fn call(&self, call: CallCode) -> Option<&(String, bool)> {
        self.calls.get(usize::from(call.0).checked_sub(1)?)
    }
}

/// Checks that names are fit to be shown.
pub(super) fn check_names<'a>(
    names: impl IntoIterator<Item = &'a String>,
) -> Result<(), ControlError> {
    let is_legal = |name: &str| {
        let is_printable = name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
        (1..=Vocabulary::MAX_NAME).contains(&name.len()) && is_printable
    };
    let illegal = (1..).zip(names).find(|(_, name)| !is_legal(name));
    illegal.map_or(Ok(()), |(place, _)| Err(ControlError::IllegalName { place }))
}

impl Default for Vocabulary {
    /// That of a client which has told none.
    fn default() -> Self {
        Self::new([], "space", "all")
    }
}
