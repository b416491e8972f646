//! The conformance suite of collectives: MPI's rules for collective calls, whatever adapter connects the ranks and
//! whichever protocols carry the messages.
//!
//! A [`Case`] is one call with all that can differ about it. Every rank plays its part of it ([`play::play`]) and
//! compares what it got with a plain reference ([`mod@reference`]), byte by byte, gaps and margins included. A case is
//! written as text, so one that fails can be run alone; `tests/collectives.rs` chooses the cases.
//!
//! - `case.rs`: the parameters of a case. `pairwise.rs`: cases in which each two values meet.
//! - `element.rs`, `shape.rs`: what elements are, and where they lie. `area.rs`: the memory they lie in.
//! - `job.rs`: ranks as threads, under a watchdog.
//! - `programs.rs`: random programs of collectives on trees of communicators.

pub mod area;
pub mod case;
pub mod element;
pub mod job;
pub mod pairwise;
pub mod play;
pub mod programs;
pub mod reference;
pub mod shape;

pub use case::Case;
