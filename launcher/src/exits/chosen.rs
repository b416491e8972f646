//! The algorithms that clients of ranks have chosen, for `--stats`.

use std::collections::BTreeMap;

/// Most algorithms that are counted.
const MOST: usize = 64;

/// How often which algorithm was chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen(BTreeMap<String, u64>);

impl Chosen {
    /// Adds a count. Names and counts may be anything.
    pub(crate) fn add(&mut self, name: &str, times: u64) {
        if self.0.len() < MOST || self.0.contains_key(name) {
            let all = self.0.entry(name.to_owned()).or_default();
            *all = all.saturating_add(times);
        }
    }

    /// Iterates over the names, in their order, and the counts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, times)| (name.as_str(), *times))
    }
}
