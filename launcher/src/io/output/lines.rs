//! Cuts one rank's stream into whole lines. Pure.

/// Bytes from which on a line is passed on before its end has come.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// The start of a line whose end has not come yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pending: Vec<u8>,
}

impl LineBuffer {
    /// Takes `bytes`, and returns the bytes to write now: all if the stream `passes` at once, else whole lines.
    pub(crate) fn push(&mut self, bytes: &[u8], passes: bool) -> Vec<u8> {
        let searched = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let newline = self.pending[searched..].iter().rposition(|byte| *byte == b'\n');
        let whole = newline.map_or(0, |at| searched + at + 1);
        let is_cut = passes || self.pending.len() - whole >= LONGEST_LINE;
        let rest = self.pending.split_off(if is_cut { self.pending.len() } else { whole });
        std::mem::replace(&mut self.pending, rest)
    }

    /// Returns the bytes that are left at the end of the stream.
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
