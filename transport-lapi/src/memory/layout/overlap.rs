//! Checks whether a layout names a byte twice, before anything is received into it.
//!
//! The result is exact, and is stored with the body. Strides and bounds suffice if the parts do not reach into each
//! other, as in nearly all layouts; otherwise all blocks are sorted. There are at most as many blocks as the memory has
//! bytes: no block is empty (LAY3), and a body with more bytes than its reach must name one twice.

use std::sync::Arc;

use super::body::{Body, Form, Part};

impl Body {
    /// Whether no byte is named twice.
    pub(super) fn is_disjoint(&self) -> bool {
        *self.disjoint.get_or_init(|| self.size <= self.reach() && self.are_parts_disjoint())
    }

    fn are_parts_disjoint(&self) -> bool {
        match &self.form {
            Form::Block => true,
            Form::Repeat { .. } => self.are_rounds_disjoint(),
            Form::Placed { body, displacements } => {
                let mut places = displacements.to_vec();
                places.sort_unstable();
                let far = places.windows(2).all(|pair| pair[1].abs_diff(pair[0]) >= body.reach());
                body.is_disjoint() && (far || (!body.is_block() && self.are_blocks_disjoint()))
            }
            Form::Blocks { .. } => self.are_blocks_disjoint(),
            Form::List(parts) => {
                let mut ends: Vec<_> = parts.iter().map(Part::bounds).collect();
                ends.sort_unstable();
                let far = ends.windows(2).all(|pair| pair[0].1 <= pair[1].0);
                parts.iter().all(|part| part.body.is_disjoint())
                    && (far || self.are_blocks_disjoint())
            }
        }
    }

    /// Checks a repetition, perhaps of repetitions. The order of nested repetitions does not affect which bytes are
    /// named. So they are treated as if the one with the shortest stride were innermost; columns of a matrix are then
    /// as easy as rows.
    fn are_rounds_disjoint(&self) -> bool {
        let (mut innermost, mut steps) = (self, Vec::new());
        while let Form::Repeat { body, stride, count } = &innermost.form {
            steps.push((stride.unsigned_abs(), count - 1));
            innermost = Arc::as_ref(body);
        }
        steps.sort_unstable();
        let mut reach = innermost.reach();
        let far = steps.iter().all(|&(stride, rounds)| {
            let is_far = stride >= reach;
            reach = reach.saturating_add(stride.saturating_mul(rounds));
            is_far
        });
        innermost.is_disjoint() && (far || self.are_blocks_disjoint())
    }

    /// Checks any body, by sorting its blocks.
    fn are_blocks_disjoint(&self) -> bool {
        let mut blocks = Vec::with_capacity(self.blocks);
        self.each_block(0, &mut |at, len| blocks.push((at, len)));
        blocks.sort_unstable();
        blocks.windows(2).all(|pair| pair[1].0.abs_diff(pair[0].0) >= pair[0].1)
    }
}

impl Part {
    /// The lowest byte and the one behind the highest byte.
    fn bounds(&self) -> (isize, isize) {
        (self.at + self.body.low, self.at + self.body.high)
    }
}
