//! The streams of ranks: their `output`, in whole lines, to the terminal or to files, and the standard input (`stdin`).
//! What `mpjrun --watch` shows goes as a `block` to a terminal, and to other processes by a `page`. What is written when a job
//! has ended goes to a `destination`.

pub(crate) mod block;
pub(crate) mod destination;
pub(crate) mod output;
pub(crate) mod page;
pub(crate) mod stdin;
