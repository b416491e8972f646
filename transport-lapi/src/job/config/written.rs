//! Settings that a program gives itself before it joins its job: tools do so by MPI_T. They count for more than the
//! environment.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ConfigError, Setting, Settings, byte_count, in_force};

/// The values by the names of their settings.
static WRITTEN: Mutex<BTreeMap<&'static str, String>> = Mutex::new(BTreeMap::new());

fn written() -> MutexGuard<'static, BTreeMap<&'static str, String>> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the value that the program has given a setting.
pub(super) fn value(name: &str) -> Option<String> {
    written().get(name).cloned()
}

impl Setting {
    /// Returns the value that is in force if the process joins its job now, or the default.
    pub fn value(&self) -> String {
        in_force(self.name).unwrap_or_else(|| self.default.to_owned())
    }

    /// Sets the value for this process, which must not have joined its job yet; later it has no effect.
    ///
    /// # Errors
    /// [`ConfigError::Unknown`] if it is not legal.
    pub fn write(&self, value: &str) -> Result<(), ConfigError> {
        Settings::from_lookup(&|name| (name == self.name).then(|| value.to_owned()))?;
        written().insert(self.name, value.to_owned());
        Ok(())
    }

    /// Returns the words that are legal values, in the order of the manual: for [`super::Values::Words`].
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        self.legal.split(", ")
    }

    /// Returns the number that a value stands for: for [`super::Values::Number`]. `None` if it is not legal.
    pub fn number(&self, value: &str) -> Option<u64> {
        Some(byte_count(value.trim())? as u64)
    }
}
