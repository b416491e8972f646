//! The benchmark harness: starts jobs over mpj and over system MPIs, compares what they measured, and
//! shows it as tables, lines of JSON, a page, and a summary.
//!
//! ```text
//!  cli          what was asked for
//!   │
//!  catalogue    benchmarks ─► configurations        peers    system MPIs: find, build, start
//!  bundle       configurations that share launches   │
//!   │                                                 │
//!  computation  how long overlap computes             │
//!   │                                                 │
//!  campaign     rounds of launches in random order ── contender
//!   │   └─ launch, cache_line                        machine  facts for the header
//!  model        what was measured ◄──────► store      one line of JSON per launch
//!   │
//!  analysis     estimates and ratios (stats), pure
//!   │
//!  views        one table for each face of the machine       goals    what this project wants
//!   │
//!  text, page, results, baseline, beside              what a reader sees
//! ```
//!
//! [`tune`] finds the values that suit the machine, with launches of the same kind.
//!
//! What a launch runs is in `mpj-bench-programs`; [`over_mpj`] binds it to mpj.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod baseline;
pub mod beside;
pub mod bundle;
pub mod cache_line;
pub mod campaign;
pub mod catalogue;
pub mod cli;
pub mod computation;
pub mod contender;
pub mod goals;
pub mod launch;
pub mod machine;
pub mod model;
pub mod over_mpj;
pub mod page;
pub mod peers;
pub mod results;
pub mod stats;
pub mod store;
pub mod text;
pub mod tune;
pub mod views;
