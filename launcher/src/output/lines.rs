//! Cuts one rank's stream into whole lines, and treats progress bars as O6 of [`super`] says. Pure.

/// Bytes after which the start of a line is passed on although its end has not come.
pub(crate) const LONGEST_LINE: usize = 64 * 1024;

/// What becomes of progress bars (O6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bars {
    /// They are lines as others are.
    Kept,
    /// Every state passes at once.
    Live,
    /// The last state of the line passes with its end.
    Last,
}

/// Where on the screen the next byte of a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// It begins a line.
    LineStart,
    /// It continues the open line.
    Middle,
    /// Behind a carriage return, so that it writes over the open line.
    Return,
}

/// How lines are to be given now.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) at: At,
    /// What lines begin with, or nothing. A line that is cut or unfinished is then ended, so that the
    /// next prefix begins a line as well.
    pub(crate) prefix: &'a str,
    pub(crate) bars: Bars,
}

/// What came of a stream and is not a whole line yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    pending: Vec<u8>,
}

impl LineBuffer {
    /// Takes `bytes`, and gives what can be shown now to `emit`.
    pub(crate) fn push(&mut self, bytes: &[u8], mut view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
        let searched = self.pending.len();
        self.pending.extend_from_slice(bytes);
        let newline = self.pending[searched..].iter().rposition(|byte| *byte == b'\n');
        if let Some(at) = newline {
            self.emit_lines(searched + at + 1, view, emit);
            view.at = At::LineStart;
        }
        match view.bars {
            Bars::Live => {
                if let Some(at) = self.pending.iter().rposition(|byte| *byte == b'\r') {
                    return self.emit_states(at + 1, view, emit);
                }
            }
            Bars::Last => drop(self.pending.drain(..start_of_state(&self.pending))),
            Bars::Kept => {}
        }
        if self.pending.len() >= LONGEST_LINE {
            self.finish(view, emit);
        }
    }

    /// Whether the start of a line waits that may be a prompt. The bar of a rank whose states do not
    /// pass is none.
    pub(crate) fn may_be_prompt(&self, bars: Bars) -> bool {
        !self.pending.is_empty() && (bars == Bars::Live || !self.pending.contains(&b'\r'))
    }

    /// Gives the start of a line, to be shown as a prompt (O5).
    pub(crate) fn prompt(&mut self, view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
        self.emit_states(self.pending.len(), view, emit);
    }

    /// Gives what is left, at the end of the stream.
    pub(crate) fn finish(&mut self, view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
        self.emit_lines(self.pending.len(), view, emit);
    }

    /// Gives the first `len` bytes that wait, as lines.
    fn emit_lines(&mut self, len: usize, mut view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
        let bytes: Vec<u8> = self.pending.drain(..len).collect();
        if view.prefix.is_empty() && view.bars != Bars::Last {
            return emit(&bytes);
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            emit_line(line, view, emit);
            if !view.prefix.is_empty() && !line.ends_with(b"\n") {
                emit(b"\n");
            }
            view.at = At::LineStart;
        }
    }

    /// Gives the first `len` bytes that wait, which do not end a line.
    fn emit_states(&mut self, len: usize, view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
        let bytes: Vec<u8> = self.pending.drain(..len).collect();
        emit_line(&bytes, view, emit);
    }
}

fn emit_line(line: &[u8], mut view: View<'_>, emit: &mut dyn FnMut(&[u8])) {
    let line = if view.bars == Bars::Last { &line[start_of_state(line)..] } else { line };
    if view.bars != Bars::Live || view.prefix.is_empty() {
        if view.at == At::LineStart {
            emit(view.prefix.as_bytes());
        }
        return emit(line);
    }
    for state in states(line) {
        let is_empty = state.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        if view.at == At::LineStart || (view.at == At::Return && !is_empty) {
            emit(view.prefix.as_bytes());
        }
        emit(state);
        view.at = if state.ends_with(b"\r") { At::Return } else { At::Middle };
    }
}

/// Cuts a line behind its carriage returns, but not inside the two bytes that end a line.
fn states(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let cut = rest.iter().position(|byte| *byte == b'\r').map_or(rest.len(), |at| at + 1);
        let cut = if rest[cut..] == *b"\n" { rest.len() } else { cut };
        let (state, after) = rest.split_at(cut);
        rest = after;
        (!state.is_empty()).then_some(state)
    })
}

/// Where the last state of a line begins.
fn start_of_state(line: &[u8]) -> usize {
    let text = line.strip_suffix(b"\n").unwrap_or(line);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    text.iter().rposition(|byte| *byte == b'\r').map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests;
