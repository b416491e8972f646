//! Prints a layout as the program that it is, outermost part first.

use std::fmt::{Display, Formatter, Result};

use super::Layout;
use super::body::{Body, Form};

/// How many entries of a list are printed.
const SHOWN: usize = 8;

impl Display for Layout {
    /// Prints repetitions from the outermost to the innermost, and the first entries of long lists.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> Result {
        if self.at != 0 && !matches!(self.body.form, Form::Blocks { .. } | Form::List(_)) {
            write!(formatter, "at {}: ", self.at)?;
        }
        self.body.show(self.at, formatter)
    }
}

impl Body {
    /// Prints a body. `at` is the displacement of the first byte, for the forms that show displacements.
    fn show(&self, at: isize, formatter: &mut Formatter<'_>) -> Result {
        match &self.form {
            Form::Block => bytes(self.size, formatter),
            Form::Repeat { body, stride, count } => {
                write!(formatter, "{count} times every {stride}: ")?;
                body.show(0, formatter)
            }
            Form::Placed { body, displacements } => {
                write!(formatter, "at each of ")?;
                entries(displacements.len(), formatter, |index, formatter| {
                    write!(formatter, "{}", displacements[index])
                })?;
                write!(formatter, ": ")?;
                body.show(0, formatter)
            }
            Form::Blocks { begins, displacements } => {
                entries(displacements.len(), formatter, |index, formatter| {
                    bytes(begins[index + 1] - begins[index], formatter)?;
                    write!(formatter, " at {}", at + displacements[index])
                })
            }
            Form::List(parts) => entries(parts.len(), formatter, |index, formatter| {
                let part = &parts[index];
                if !matches!(part.body.form, Form::Blocks { .. } | Form::List(_)) {
                    write!(formatter, "at {}: ", at + part.at)?;
                }
                part.body.show(at + part.at, formatter)
            }),
        }
    }
}

fn bytes(len: usize, formatter: &mut Formatter<'_>) -> Result {
    write!(formatter, "{len} byte{}", if len == 1 { "" } else { "s" })
}

/// Prints the first of `count` entries in brackets.
fn entries(
    count: usize,
    formatter: &mut Formatter<'_>,
    show: impl Fn(usize, &mut Formatter<'_>) -> Result,
) -> Result {
    write!(formatter, "[")?;
    for index in 0..count.min(SHOWN) {
        if index > 0 {
            write!(formatter, ", ")?;
        }
        show(index, formatter)?;
    }
    if count > SHOWN {
        write!(formatter, ", and {} more", count - SHOWN)?;
    }
    write!(formatter, "]")
}
