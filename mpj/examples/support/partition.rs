//! Divides a whole into parts whose lengths differ by at most one, for programs that distribute rows or blocks.
#![allow(dead_code, reason = "not every example divides in two dimensions")]

use std::ops::Range;

/// Returns part `index` of `0..whole` divided into `parts` consecutive parts, the longer ones first.
pub fn part(whole: usize, parts: usize, index: usize) -> Range<usize> {
    let (least, longer) = (whole / parts, whole % parts);
    let start = index * least + index.min(longer);
    start..start + least + usize::from(index < longer)
}

/// Returns the rows and columns of a rank's block of a matrix. Ranks are numbered row by row through their grid.
pub fn block(
    [rows, columns]: [usize; 2],
    [down, across]: [usize; 2],
    rank: usize,
) -> (Range<usize>, Range<usize>) {
    (part(rows, down, rank / across), part(columns, across, rank % across))
}
