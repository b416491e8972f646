//! The output of one rank on its way to the launcher's own streams, and to the files of `--output dir=`. Fed with what
//! the rank's pipes gave, wherever the rank runs.

use std::fs::File;

use super::{Delivery, LineBuffer, Prefix, Printer, Source, Stream, write_file};

/// Bytes of standard error that are kept for [`Transcript::last_words`].
const TAIL: usize = 2048;
/// Lines of [`Transcript::last_words`]: messages of C++, Fortran and Python have two or three.
const LAST_LINES: usize = 3;

/// One of a rank's output streams.
#[derive(Debug)]
struct Track {
    source: Source,
    /// The file of `--output dir=`.
    file: Option<File>,
    /// Whether the launcher's own stream gets the output.
    is_shown: bool,
    prefix: Prefix,
    lines: LineBuffer,
}

/// The output of a rank.
#[derive(Debug)]
pub(crate) struct Transcript {
    tracks: [Track; 2],
    /// The last bytes of standard error.
    tail: Vec<u8>,
}

impl Transcript {
    /// Of `rank`, whose output goes where `delivery` says.
    pub(crate) fn new(rank: usize, delivery: Delivery) -> Self {
        let Delivery { prefix, files, is_shown } = delivery;
        let [out, err] = files.map_or([None, None], |files| files.map(Some));
        let track = |stream, file| Track {
            source: Source { rank, stream },
            file,
            is_shown,
            prefix: prefix.clone(),
            lines: LineBuffer::default(),
        };
        Self { tracks: [track(Stream::Out, out), track(Stream::Err, err)], tail: Vec::new() }
    }

    fn track(&mut self, stream: Stream) -> &mut Track {
        &mut self.tracks[usize::from(stream == Stream::Err)]
    }

    /// Takes bytes of `stream`.
    pub(crate) fn take(&mut self, stream: Stream, bytes: &[u8], printer: &mut Printer) {
        if stream == Stream::Err {
            self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
        let track = self.track(stream);
        if let Some(file) = &track.file {
            write_file(file, bytes).unwrap_or_else(|errno| printer.refused_file(errno));
        }
        if track.is_shown {
            let lines = track.lines.push(bytes, printer.passes(track.source));
            printer.push(track.source, &track.prefix.text(), &lines);
        }
    }

    /// Takes the end of `stream`.
    pub(crate) fn end(&mut self, stream: Stream, printer: &mut Printer) {
        let track = self.track(stream);
        printer.push(track.source, &track.prefix.text(), &track.lines.finish());
        printer.ended(track.source);
    }

    /// What the rank has printed last on standard error, as [`last_words`] cuts it.
    pub(crate) fn last_words(&self) -> String {
        last_words(&String::from_utf8_lossy(&self.tail))
    }
}

/// The end of a text that tells an error: from the last `Error: ` at the start of a line on, behind which Rust prints
/// what main returns, or else the last [`LAST_LINES`].
fn last_words(text: &str) -> String {
    let text = text.trim();
    let from = match text.rfind("\nError: ") {
        Some(at) => at + 1,
        None if text.starts_with("Error: ") => 0,
        None => text.rmatch_indices('\n').nth(LAST_LINES - 1).map_or(0, |(at, _)| at + 1),
    };
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::last_words;

    #[test]
    fn the_last_words_are_an_error_or_some_lines() {
        for (text, expected) in [
            ("", ""),
            ("\n\n", ""),
            ("one\ntwo\n", "one\ntwo"),
            ("1\n2\n3\n4\n5", "3\n4\n5"),
            ("Error: Os { code: 2 }\n", "Error: Os { code: 2 }"),
            (
                "step 1\nError: no input\n\nCaused by:\n    no file\n",
                "Error: no input\n\nCaused by:\n    no file",
            ),
            (
                "Traceback:\n  f.py, line 1\n    f()\nValueError: 7\n",
                "  f.py, line 1\n    f()\nValueError: 7",
            ),
        ] {
            assert_eq!(last_words(text), expected, "{text:?}");
        }
    }
}
