//! The blocks of a part of a message, one by one: for clients that move each block themselves, as files do.

use std::ops::ControlFlow;

use super::Layout;
use super::body::{Body, Form};

impl Layout {
    /// Calls `visit` with displacement and length of each block, in the order of the message, of its bytes from `offset`
    /// on, at most `len`, until it breaks. Of blocks that lie only partly in that range, it gets the part.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # use transport_lapi::Layout;
    /// let column = Layout::strided(8, 24, 4)?;
    /// let mut spans = Vec::new();
    /// let _ = column.each_span(12, 16, &mut |at, len| {
    ///     spans.push((at, len));
    ///     ControlFlow::Continue(())
    /// });
    /// assert_eq!(spans, [(28, 4), (48, 8), (72, 4)]);
    /// # Ok::<(), transport_lapi::LayoutError>(())
    /// ```
    pub fn each_span(
        &self,
        offset: usize,
        len: usize,
        visit: &mut impl FnMut(isize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let len = len.min(self.size().saturating_sub(offset));
        if len == 0 {
            ControlFlow::Continue(())
        } else {
            self.body.spans(self.at, offset, len, visit)
        }
    }
}

impl Body {
    /// Visits the blocks of `len` bytes from `offset` on, which lie inside this body, whose first byte is at `at`.
    pub(super) fn spans(
        &self,
        at: isize,
        offset: usize,
        len: usize,
        visit: &mut impl FnMut(isize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let end = offset + len;
        // The part of what lies in `begin..until` of the message, as its offset there and its length.
        let part = |begin: usize, until: usize| {
            let from = begin.max(offset);
            (from - begin, until.min(end) - from)
        };
        match &self.form {
            Form::Block => visit(at + offset as isize, len),
            Form::Repeat { body, stride, .. } => (offset / body.size..end.div_ceil(body.size))
                .try_for_each(|round| {
                    let (from, len) = part(round * body.size, (round + 1) * body.size);
                    body.spans(at + stride * round as isize, from, len, visit)
                }),
            Form::Placed { body, displacements } => (offset / body.size..end.div_ceil(body.size))
                .try_for_each(|index| {
                    let (from, len) = part(index * body.size, (index + 1) * body.size);
                    body.spans(at + displacements[index], from, len, visit)
                }),
            Form::Blocks { begins, displacements } => {
                let first = begins.partition_point(|begin| *begin <= offset) - 1;
                let mut blocks = begins.windows(2).zip(displacements).skip(first);
                blocks.by_ref().take_while(|(ends, _)| ends[0] < end).try_for_each(|(ends, by)| {
                    let (from, len) = part(ends[0], ends[1]);
                    visit(at + by + from as isize, len)
                })
            }
            Form::List(parts) => {
                let first = parts.partition_point(|part| part.begin <= offset) - 1;
                let mut parts = parts[first..].iter().take_while(|part| part.begin < end);
                parts.try_for_each(|each| {
                    let (from, len) = part(each.begin, each.begin + each.body.size);
                    each.body.spans(at + each.at, from, len, visit)
                })
            }
        }
    }
}
