//! The streams: whole lines from the ranks to the launcher's own streams, and the launcher's input for the rank
//! that gets it.

pub(crate) mod output;
pub(crate) mod stdin;
