//! The running result of a reduction on one rank, and the places between which it moves.
//!
//! An operation replaces its right operand. So operands of lower ranks are combined into the running result. Operands
//! of higher ranks are replaced by the new result, and the place of the old one becomes free.

use super::steps::Steps;
use super::{Buffer, Place};

/// What a rank has combined so far.
#[derive(Debug)]
pub(super) struct Partial {
    held: Place,
    free: Free,
}

/// At most two places that may be written. The next operands are received in the last one, which is in the second
/// entry.
#[derive(Debug)]
pub(super) struct Free([Option<Place>; 2]);

impl Free {
    pub(super) fn none() -> Self {
        Self([None, None])
    }

    pub(super) fn one(place: Place) -> Self {
        Self([None, Some(place)])
    }

    pub(super) fn two(first: Place, last: Place) -> Self {
        Self([Some(first), Some(last)])
    }

    fn last(&self) -> Place {
        self.0[1].expect("a place is free for the next operand")
    }

    fn take_first(&mut self) -> Place {
        let [first, last] = self.0;
        *self = Self([None, if first.is_some() { last } else { None }]);
        first.or(last).expect("a place is free for a copy")
    }

    /// Puts a place behind the others instead of the last one.
    fn replace_last(&mut self, place: Option<Place>) {
        let [first, _] = self.0;
        *self = if place.is_some() { Self([first, place]) } else { Self([None, first]) };
    }
}

impl Partial {
    /// Begins with the operands in `held`. If they are in the input, which must not change, `free` has two places.
    pub(super) fn new(held: Place, free: Free) -> Self {
        Self { held, free }
    }

    /// Returns the place of the result so far.
    pub(super) fn held(&self) -> Place {
        self.held
    }

    /// Returns the place in which to receive the next operands.
    pub(super) fn landing(&self) -> Place {
        self.free.last()
    }

    /// Keeps only one half of the elements, and returns the place of the other half.
    pub(super) fn give_half(&mut self, keeps_second: bool) -> Place {
        let (kept, given) = self.held.halves(keeps_second);
        self.held = kept;
        self.free.0.iter_mut().flatten().for_each(|place| *place = place.halves(keeps_second).0);
        given
    }

    /// Combines the result with what was received from ranks that are all lower, or all higher, than those in the
    /// result.
    pub(super) fn absorb(&mut self, steps: &mut impl Steps, is_lower: bool) {
        if is_lower { self.absorb_lower(steps) } else { self.absorb_higher(steps) }
    }

    /// Combines the result with what was received from lower ranks.
    pub(super) fn absorb_lower(&mut self, steps: &mut impl Steps) {
        let landing = self.landing();
        if self.held.buffer == Buffer::Input {
            let copy = self.free.take_first();
            steps.copy(self.held, copy);
            self.held = copy;
        }
        steps.reduce(landing, self.held);
    }

    /// Combines the result with what was received from higher ranks.
    pub(super) fn absorb_higher(&mut self, steps: &mut impl Steps) {
        let landing = self.landing();
        steps.reduce(self.held, landing);
        self.free.replace_last((self.held.buffer != Buffer::Input).then_some(self.held));
        self.held = landing;
    }

    /// Copies the result to the output, unless it is there.
    pub(super) fn settle(self, steps: &mut impl Steps, output: Place) {
        if self.held != output {
            steps.copy(self.held, output);
        }
    }
}
