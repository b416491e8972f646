//! Blocks of lines that a terminal shows in place of each other.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::termios::{isatty, tcgetwinsize};

/// Time between two blocks on a terminal.
const REDRAWN: Duration = Duration::from_secs(2);
/// Time between two blocks that stay.
const PRINTED: Duration = Duration::from_secs(10);

/// The time between two blocks on this stream, unless the user says it.
pub(crate) fn rhythm(stream: impl AsFd) -> Duration {
    if isatty(stream) { REDRAWN } else { PRINTED }
}

/// The words that remove `lines` lines above the cursor.
pub(crate) fn removed(lines: usize) -> String {
    if lines == 0 { String::new() } else { format!("\x1b[{lines}A\x1b[J") }
}

/// The block without what the terminal has no room for, so that it can be removed as so many lines.
pub(crate) fn fitted(block: &str, terminal: impl AsFd) -> String {
    let size = tcgetwinsize(terminal).ok().filter(|size| size.ws_col > 1 && size.ws_row > 1);
    let (columns, rows) = size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()));
    cut(block, columns, rows)
}

/// The last column and the last line stay free: a terminal that is written there wraps or scrolls.
fn cut(block: &str, columns: usize, rows: usize) -> String {
    let lines = block.lines().take(rows - 1);
    lines.flat_map(|line| line.chars().take(columns - 1).chain(['\n'])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_cut_to_the_terminal() {
        assert_eq!(cut("abcdef\nabc\n", 80, 24), "abcdef\nabc\n");
        assert_eq!(cut("abcdef\nab\u{e9}d\nx\n", 4, 3), "abc\nab\u{e9}\n");
        assert_eq!((removed(0), removed(3)), (String::new(), "\x1b[3A\x1b[J".to_owned()));
    }
}
