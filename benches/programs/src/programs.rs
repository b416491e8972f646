//! The programs. Each is collective: every rank of the job calls `run`, and rank 0's figures count.

pub mod bandwidth;
pub mod collectives;
pub mod latency;
pub mod matrix;
pub mod overlap;
pub mod rma;
pub mod wakeup;
