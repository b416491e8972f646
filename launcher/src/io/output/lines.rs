//! Cuts one rank's stream into whole lines. Pure.

/// Bytes after which the start of a line is passed on although its end has not come.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// What came of a stream and is not a whole line yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pending: Vec<u8>,
}

impl LineBuffer {
    /// Takes `bytes`, and answers what can be written now: everything if it `passes` at once, else whole lines.
    pub(crate) fn push(&mut self, bytes: &[u8], passes: bool) -> Vec<u8> {
        let searched = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let newline = self.pending[searched..].iter().rposition(|byte| *byte == b'\n');
        let whole = newline.map_or(0, |at| searched + at + 1);
        let is_cut = passes || self.pending.len() - whole >= LONGEST_LINE;
        let rest = self.pending.split_off(if is_cut { self.pending.len() } else { whole });
        std::mem::replace(&mut self.pending, rest)
    }

    /// What is left, at the end of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_when_they_are_whole() {
        let mut lines = LineBuffer::default();
        assert_eq!(lines.push(b"on", false), b"");
        assert_eq!(lines.push(b"e\ntwo\nthr", false), b"one\ntwo\n");
        assert_eq!(lines.push(b"ee\r", false), b"");
        assert_eq!((lines.finish(), lines.finish()), (b"three\r".to_vec(), Vec::new()));
    }

    #[test]
    fn what_passes_does_so_at_once() {
        let mut lines = LineBuffer::default();
        assert_eq!(lines.push(b"name? ", true), b"name? ");
        assert_eq!(lines.finish(), b"");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut() {
        let mut lines = LineBuffer::default();
        let nearly = vec![b'x'; LONGEST_LINE - 1];
        assert_eq!(lines.push(&nearly, false), b"");
        assert_eq!(lines.push(b"y\nz", false).len(), LONGEST_LINE + 1);
        assert_eq!(lines.push(&nearly, false).len(), LONGEST_LINE);
    }
}
