//! The running result of a reduction on one rank, and the places between which it moves. Builders of reductions use
//! it.
//!
//! An operation replaces its right operand. So what comes from lower ranks is combined into what is held;
//! what comes from higher ranks takes the result, and the place of the old one becomes free.

use super::schedule::Draft;
use super::{Buffer, Place};

/// What a rank has combined so far.
#[derive(Debug)]
pub(super) struct Partial {
    held: Place,
    /// Places that can be written; operands are received in the last.
    free: Vec<Place>,
}

impl Partial {
    /// Begins with the operands in `held`. If they are in the input, which stays, `free` has two places.
    pub(super) fn new(held: Place, free: Vec<Place>) -> Self {
        Self { held, free }
    }

    /// Where the result is now.
    pub(super) fn held(&self) -> Place {
        self.held
    }

    /// Where to receive the next operand.
    pub(super) fn landing(&self) -> Place {
        *self.free.last().expect("a place is free for the next operand")
    }

    /// Goes on with the second half alone of the elements, or with the first, and answers where the other one is.
    pub(super) fn give_half(&mut self, keeps_second: bool) -> Place {
        let (kept, given) = self.held.halves(keeps_second);
        self.held = kept;
        self.free.iter_mut().for_each(|place| *place = place.halves(keeps_second).0);
        given
    }

    /// Combines what was received from ranks that are lower than those of the result, or higher.
    pub(super) fn absorb(&mut self, draft: &mut Draft, is_lower: bool) {
        if is_lower { self.absorb_lower(draft) } else { self.absorb_higher(draft) }
    }

    /// Combines what was received from ranks that are lower than those of the result.
    pub(super) fn absorb_lower(&mut self, draft: &mut Draft) {
        let landing = self.landing();
        if self.held.buffer == Buffer::Input {
            let copy = self.free.remove(0);
            draft.copy(self.held, copy);
            self.held = copy;
        }
        draft.reduce(landing, self.held);
    }

    /// Combines what was received from ranks that are higher than those of the result.
    pub(super) fn absorb_higher(&mut self, draft: &mut Draft) {
        let landing = self.free.pop().expect("what was received has a place");
        draft.reduce(self.held, landing);
        if self.held.buffer != Buffer::Input {
            self.free.push(self.held);
        }
        self.held = landing;
    }

    /// Brings the result to the output.
    pub(super) fn settle(self, draft: &mut Draft, output: Place) {
        if self.held != output {
            draft.copy(self.held, output);
        }
    }
}
