//! How algorithms state their steps: as calls of [`Steps`]. A [`Draft`](super::schedule::Draft) records them as a
//! schedule, to be run later or more than once; `plan/short.rs` takes each step at once.

use super::{Place, Scratch};

/// Takes the steps of one rank, in their order: rounds of messages and local steps, as in
/// [`Schedule`](super::Schedule). In each round the sends come first, then the receives, then the local steps. So a
/// rank may also wait for each receive at once: all that another rank waits for has been sent before.
pub(crate) trait Steps {
    /// Names the collective and its algorithm.
    fn name(&mut self, name: &'static str);

    /// Requests the temporary memory. This comes before all other steps.
    fn needs(&mut self, scratch: Scratch);

    /// Sends data to a peer.
    fn send(&mut self, peer: u32, from: Place);

    /// Receives data from a peer.
    fn receive(&mut self, peer: u32, into: Place);

    /// Copies data.
    fn copy(&mut self, from: Place, into: Place);

    /// Combines elements: `into[i] = from[i] op into[i]`.
    fn reduce(&mut self, from: Place, into: Place);

    /// Makes the following steps wait for those before. Does nothing if the round has no steps.
    fn end_round(&mut self);
}
