//! Chooses the simplest form of a layout.
//!
//! Called by the constructors of [`Layout`].

use std::sync::Arc;

use super::body::{Body, Form, Part};
use super::{Layout, LayoutError};

/// Parts of a list are replaced by their blocks if none has more blocks than this, so that a structure of small
/// structures is one list of blocks.
const FEW_BLOCKS: usize = 16;

/// Repeats a body, which is not empty, `count` times at a distance of `stride`; `count` is not 0. Rounds that continue
/// each other are merged.
pub(super) fn repeated(
    body: &Arc<Body>,
    count: usize,
    stride: isize,
) -> Result<Arc<Body>, LayoutError> {
    if count == 1 {
        return Ok(body.clone());
    }
    let goes_on = |step: isize, steps: usize| {
        steps.try_into().ok().and_then(|steps| step.checked_mul(steps)) == Some(stride)
    };
    let times = |before: usize| before.checked_mul(count).ok_or(LayoutError::TooLarge);
    let whole = match &body.form {
        Form::Block if goes_on(1, body.size) => {
            let size = times(body.size)?;
            isize::try_from(size).map_err(|_| LayoutError::TooLarge)?;
            Body::block(size)
        }
        Form::Repeat { body, stride, count } if goes_on(*stride, *count) => {
            Body::repeat(body.clone(), times(*count)?, *stride)?
        }
        _ => Body::repeat(body.clone(), count, stride)?,
    };
    Ok(Arc::new(whole))
}

/// Puts a body, which is not empty, at each of `displacements`, of which there is at least one. They become relative to
/// the first one.
pub(super) fn placed(
    body: &Arc<Body>,
    mut displacements: Vec<isize>,
) -> Result<Arc<Body>, LayoutError> {
    let first = displacements[0];
    for at in &mut displacements {
        *at = at.checked_sub(first).ok_or(LayoutError::TooLarge)?;
    }
    let stride = displacements.get(1).copied().unwrap_or_default();
    let mut steps = displacements.windows(2);
    if steps.all(|pair| pair[1].checked_sub(pair[0]) == Some(stride)) {
        return repeated(body, displacements.len(), stride);
    }
    Ok(Arc::new(Body::placed(body.clone(), displacements.into())?))
}

/// Makes a list of `parts`, none of them empty.
pub(super) fn listed(parts: Vec<Layout>) -> Result<Layout, LayoutError> {
    let Some(first) = parts.first() else { return Ok(Layout::empty()) };
    let first_at = first.at;
    if !first.body.is_block() && parts.iter().all(|part| Arc::ptr_eq(&part.body, &first.body)) {
        let body = first.body.clone();
        return Layout::new(first_at, placed(&body, parts.iter().map(|part| part.at).collect())?);
    }
    if parts.iter().all(|part| part.body.blocks <= FEW_BLOCKS) {
        let mut blocks = Blocks::default();
        for part in &parts {
            let mut all_fit = Ok(());
            part.body.each_block(part.at, &mut |at, len| {
                all_fit = all_fit.and_then(|()| blocks.add(at, len));
            });
            all_fit?;
        }
        return blocks.finish();
    }
    let (mut begin, mut listed) = (0usize, Vec::with_capacity(parts.len()));
    for Layout { at, body } in parts {
        let at = at.checked_sub(first_at).ok_or(LayoutError::TooLarge)?;
        let size = body.size;
        listed.push(Part { begin, at, body });
        begin = begin.checked_add(size).ok_or(LayoutError::TooLarge)?;
    }
    Layout::new(first_at, Arc::new(Body::list(listed.into(), begin)?))
}

/// Collects blocks one by one, and joins adjacent ones.
#[derive(Default)]
pub(super) struct Blocks {
    /// Offset in the message at which each begins.
    begins: Vec<usize>,
    /// Displacement in memory at which each begins.
    displacements: Vec<isize>,
    /// Number of bytes so far.
    size: usize,
    /// Displacement in memory at which the last one ends.
    end: isize,
}

impl Blocks {
    /// Makes the layout of these blocks.
    pub(super) fn collect(
        blocks: impl Iterator<Item = Result<(isize, usize), LayoutError>>,
    ) -> Result<Layout, LayoutError> {
        let mut collected = Self::default();
        for block in blocks {
            let (at, len) = block?;
            collected.add(at, len)?;
        }
        collected.finish()
    }

    /// Adds a block of `len` bytes at `at`, unless `len` is 0.
    fn add(&mut self, at: isize, len: usize) -> Result<(), LayoutError> {
        if len == 0 {
            return Ok(());
        }
        let begin = self.size;
        self.size = begin.checked_add(len).ok_or(LayoutError::TooLarge)?;
        let is_adjacent = begin > 0 && at == self.end;
        self.end = at.checked_add_unsigned(len).ok_or(LayoutError::TooLarge)?;
        if !is_adjacent {
            self.begins.push(begin);
            self.displacements.push(at);
        }
        Ok(())
    }

    /// Chooses the simplest form: one block, equal blocks at equal distances, equal blocks, or any blocks.
    fn finish(mut self) -> Result<Layout, LayoutError> {
        let Some(&first) = self.displacements.first() else { return Ok(Layout::empty()) };
        self.begins.push(self.size);
        let len = self.begins[1];
        let body = if self.begins.windows(2).all(|pair| pair[1] - pair[0] == len) {
            isize::try_from(len).map_err(|_| LayoutError::TooLarge)?;
            placed(&Arc::new(Body::block(len)), self.displacements)?
        } else {
            for at in &mut self.displacements {
                *at = at.checked_sub(first).ok_or(LayoutError::TooLarge)?;
            }
            Arc::new(Body::blocks(self.begins.into(), self.displacements.into())?)
        };
        Layout::new(first, body)
    }
}
