//! The names that the clients of a rank have told for their calls and spaces.

use std::ops::Range;

use transport_lapi::adapters::{MAX_CONTEXTS, SPARE_CONTEXTS};
use transport_lapi::bootstrap::control::Vocabulary;

/// The vocabularies of a rank, by the contexts of the clients.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    told: Vec<(Range<u32>, Vocabulary)>,
    /// That of a client which has told none.
    none: Vocabulary,
}

impl Names {
    /// Takes the vocabulary of the client that has these contexts, unless a rank cannot have them.
    pub(super) fn take(&mut self, first: u32, contexts: u32, vocabulary: Vocabulary) {
        let of = first..first.saturating_add(contexts);
        if !of.is_empty() && of.end as usize <= MAX_CONTEXTS + SPARE_CONTEXTS {
            // So there are never more of them than contexts.
            self.told.retain(|(other, _)| other.end <= of.start || of.end <= other.start);
            self.told.push((of, vocabulary));
        }
    }

    /// Returns that of the client of a context.
    pub(crate) fn of(&self, context: u32) -> &Vocabulary {
        let told = self.told.iter().find(|(of, _)| of.contains(&context));
        told.map_or(&self.none, |(_, vocabulary)| vocabulary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_its_own_names() {
        let words = |everywhere| Vocabulary::new([], "space", everywhere);
        let mut names = Names::default();
        names.take(0, 2, words("world"));
        names.take(2, 1, words("everybody"));
        names.take(6, 2, words("nobody"));
        names.take(u32::MAX, 2, words("nobody"));
        names.take(3, 0, words("nobody"));
        let found = [0, 1, 2, 3, 6, u32::MAX].map(|context| names.of(context).everywhere());
        assert_eq!(found, ["world", "world", "everybody", "all", "all", "all"]);
        names.take(1, 3, words("others"));
        assert_eq!(
            [0, 1, 3].map(|context| names.of(context).everywhere()),
            ["all", "others", "others"]
        );
    }
}
