//! A table of ranks by ranks with numbers, which are also colours. Many ranks are put together in blocks.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::RankShare;

/// Most rows and columns.
const MOST: usize = 64;
/// Most rows and columns whose numbers are written in the cells.
const MOST_WITH_TEXT: usize = 12;
/// The share of the colour in the cell with the largest number, in percent: text remains readable on it.
const HOTTEST: f64 = 75.0;

/// Numbers by two ranks.
pub(super) struct Matrix {
    /// What rows and columns are called.
    names: Vec<String>,
    cells: Vec<Vec<u64>>,
}

impl Matrix {
    /// Puts the numbers of ranks together in blocks of equal size, if there are too many ranks.
    pub(super) fn new(ranks: &[RankShare], numbers: &BTreeMap<(usize, usize), u64>) -> Self {
        let block = ranks.len().div_ceil(MOST).max(1);
        let names: Vec<String> = ranks.chunks(block).map(name).collect();
        let mut cells = vec![vec![0_u64; names.len()]; names.len()];
        for ((row, column), number) in numbers {
            let cell = &mut cells[row / block][column / block];
            *cell = cell.saturating_add(*number);
        }
        Self { names, cells }
    }

    /// The table. `class` says which colour, `word` what a number is told as.
    pub(super) fn html(&self, class: &str, word: fn(u64) -> String) -> Markup {
        let most = self.cells.iter().flatten().copied().max().unwrap_or(0);
        let has_text = self.names.len() <= MOST_WITH_TEXT;
        let heat = |number: u64| format!("--heat: {:.0}", super::share(number, most) * HOTTEST);
        html! {
            div class="scroll" {
                table class={ "matrix " (class) @if !has_text { " blocks" } } {
                    thead { tr { th {} @for name in &self.names { th { (name) } } } }
                    tbody { @for (row, cells) in self.names.iter().zip(&self.cells) {
                        tr {
                            th { (row) }
                            @for (column, number) in self.names.iter().zip(cells) {
                                td style=(heat(*number)) title={ (row) ", " (column) ": " (word(*number)) } {
                                    @if has_text && *number > 0 { (word(*number)) }
                                }
                            }
                        }
                    } }
                }
            }
        }
    }
}

/// The number of a rank, or the first and last one of a block.
fn name(ranks: &[RankShare]) -> String {
    match ranks {
        [first, .., last] => format!("{}-{}", first.rank, last.rank),
        _ => ranks.iter().map(|rank| rank.rank.to_string()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::shares::nothing;
    use crate::trace::RankTrace;

    fn ranks(number: u32) -> Vec<RankShare> {
        let rank = |rank| nothing(&RankTrace { rank, ..RankTrace::default() });
        (0..number).map(rank).collect()
    }

    #[test]
    fn many_ranks_are_put_together() {
        let numbers = BTreeMap::from([((0, 1), 3), ((1, 0), 4), ((129, 0), 5), ((2, 127), 6)]);
        let matrix = Matrix::new(&ranks(130), &numbers);
        assert_eq!(matrix.names.len(), 44);
        assert_eq!((&*matrix.names[0], &*matrix.names[43]), ("0-2", "129"));
        assert_eq!([matrix.cells[0][0], matrix.cells[43][0], matrix.cells[0][42]], [7, 5, 6]);
    }
}
