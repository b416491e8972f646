//! Cutting a whole into parts that differ by at most one. Called by every program that distributes
//! rows or blocks.

use std::ops::Range;

/// Part `index` of `0..whole` cut into `parts`: consecutive, the longer parts first.
pub fn part(whole: usize, parts: usize, index: usize) -> Range<usize> {
    let (least, longer) = (whole / parts, whole % parts);
    let start = index * least + index.min(longer);
    start..start + least + usize::from(index < longer)
}
