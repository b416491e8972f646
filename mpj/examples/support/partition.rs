//! Divides a whole into parts whose lengths differ by at most one, for programs that distribute rows or blocks.

use std::ops::Range;

/// Returns part `index` of `0..whole` divided into `parts` consecutive parts, the longer ones first.
pub fn part(whole: usize, parts: usize, index: usize) -> Range<usize> {
    let (least, longer) = (whole / parts, whole % parts);
    let start = index * least + index.min(longer);
    start..start + least + usize::from(index < longer)
}
