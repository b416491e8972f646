//! The streams of ranks: their `output`, in whole lines, to the terminal or to files, and the standard input (`stdin`).

pub(crate) mod output;
pub(crate) mod stdin;
