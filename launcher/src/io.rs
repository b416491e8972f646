//! The streams of ranks: their output, in whole lines, and the standard input.

pub(crate) mod output;
pub(crate) mod stdin;
