//! The lost ranks, and what needs them (LO1 of `backend/loss.rs`).

use transport_lapi::LapiError;
use transport_lapi::adapter::AdapterError;

use crate::error::Error;
use crate::matching::Pattern;
use crate::state::members::Registry;

/// The lost ranks, in the order in which their losses were noticed, and which contexts need which ranks.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    pub ranks: Vec<u32>,
    /// The rank whose loss ended an operation first, or else was noticed first.
    pub first_loss: Option<u32>,
    /// How many losses have been reported to probes for any source (LO1).
    pub reported: usize,
    /// Which contexts need which ranks.
    pub members: Registry,
}

impl Losses {
    /// Returns whether no rank is lost.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.ranks.is_empty()
    }

    /// Returns whether `rank` is lost.
    #[inline(always)]
    pub fn contain(&self, rank: u32) -> bool {
        !self.is_empty() && self.ranks.contains(&rank)
    }

    /// Returns how many ranks are lost.
    pub fn len(&self) -> usize {
        self.ranks.len()
    }

    /// Returns an error if a message needs a lost rank. `None` as source stands for any.
    #[inline(always)]
    pub fn check(&self, message: &Pattern) -> Result<(), Box<Error>> {
        if self.is_empty() { Ok(()) } else { self.check_each(message) }
    }

    #[cold]
    #[inline(never)]
    fn check_each(&self, message: &Pattern) -> Result<(), Box<Error>> {
        let Pattern { context, source, tag } = *message;
        let mut lost = self.ranks.iter().copied();
        let needed =
            lost.find(|lost| source == Some(*lost) || self.members.need(context, tag, *lost));
        needed.map_or(Ok(()), |lost| Err(Box::new(error(lost))))
    }

    /// Returns an error if a message needs a lost rank, whoever sends it.
    #[inline(always)]
    pub fn check_members(&self, message: &Pattern) -> Result<(), Box<Error>> {
        self.check(&Pattern { source: None, ..*message })
    }

    /// Returns an error if a message to `dest` needs a lost rank.
    #[inline(always)]
    pub fn check_send(&self, dest: u32, context: u32, tag: i32) -> Result<(), Box<Error>> {
        self.check(&Pattern { context, source: Some(dest), tag: Some(tag) })
    }

    /// Returns the error of a probe that has found nothing, if it needs a lost rank. A probe for any source in a
    /// context without members fails if there are losses beyond the first `known`.
    pub fn of_probe(&self, pattern: &Pattern, known: usize) -> Option<Error> {
        match (pattern.source, self.members.of_messages(pattern.context, pattern.tag)) {
            (None, None) => self.ranks.get(known).map(|lost| error(*lost)),
            _ => self.check(pattern).err().map(|error| *error),
        }
    }

    /// Returns whether the loss of `lost` ends a posted receive.
    pub fn end_posted(&self, pattern: &Pattern, lost: u32) -> bool {
        match (pattern.source, self.members.of_messages(pattern.context, pattern.tag)) {
            (Some(source), _) if source == lost => true,
            (_, Some(members)) => members.contains(lost),
            (source, None) => source.is_none(),
        }
    }
}

/// Makes the error for the loss of a rank.
#[cold]
pub(crate) fn error(rank: u32) -> Error {
    LapiError::from(AdapterError::PeerLost { task: rank }).into()
}
