//! The running result of a reduction on one rank, and the places between which it moves.
//!
//! An operation replaces its right operand. So operands of lower ranks are combined into the running result. Operands
//! of higher ranks are replaced by the new result, and the place of the old one becomes free.

use super::schedule::Draft;
use super::{Buffer, Place};

/// What a rank has combined so far.
#[derive(Debug)]
pub(super) struct Partial {
    held: Place,
    /// Places that may be written; the next operands are received in the last one.
    free: Vec<Place>,
}

impl Partial {
    /// Begins with the operands in `held`. If they are in the input, which must not change, `free` has two places.
    pub(super) fn new(held: Place, free: Vec<Place>) -> Self {
        Self { held, free }
    }

    /// Returns the place of the result so far.
    pub(super) fn held(&self) -> Place {
        self.held
    }

    /// Returns the place in which to receive the next operands.
    pub(super) fn landing(&self) -> Place {
        *self.free.last().expect("a place is free for the next operand")
    }

    /// Keeps only one half of the elements, and returns the place of the other half.
    pub(super) fn give_half(&mut self, keeps_second: bool) -> Place {
        let (kept, given) = self.held.halves(keeps_second);
        self.held = kept;
        self.free.iter_mut().for_each(|place| *place = place.halves(keeps_second).0);
        given
    }

    /// Combines the result with what was received from ranks that are all lower, or all higher, than those in the
    /// result.
    pub(super) fn absorb(&mut self, draft: &mut Draft, is_lower: bool) {
        if is_lower { self.absorb_lower(draft) } else { self.absorb_higher(draft) }
    }

    /// Combines the result with what was received from lower ranks.
    pub(super) fn absorb_lower(&mut self, draft: &mut Draft) {
        let landing = self.landing();
        if self.held.buffer == Buffer::Input {
            let copy = self.free.remove(0);
            draft.copy(self.held, copy);
            self.held = copy;
        }
        draft.reduce(landing, self.held);
    }

    /// Combines the result with what was received from higher ranks.
    pub(super) fn absorb_higher(&mut self, draft: &mut Draft) {
        let landing = self.free.pop().expect("what was received has a place");
        draft.reduce(self.held, landing);
        if self.held.buffer != Buffer::Input {
            self.free.push(self.held);
        }
        self.held = landing;
    }

    /// Copies the result to the output, unless it is there.
    pub(super) fn settle(self, draft: &mut Draft, output: Place) {
        if self.held != output {
            draft.copy(self.held, output);
        }
    }
}
