//! The benchmark harness: starts jobs over mpj and over system MPIs, compares what they measured, and
//! shows it as a table of text, lines of JSON, and a page.
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
//!  report       what a reader sees: text, Markdown, a page
//! ```
//!
//! [`tune`] finds the values that suit the machine, with launches of the same kind.
//!
//! What a launch runs is in `mpj-bench-programs`; [`over_mpj`] binds it to mpj.

#![forbid(unsafe_code)]

pub mod analysis;
pub mod bundle;
pub mod cache_line;
pub mod campaign;
pub mod catalogue;
pub mod cli;
pub mod computation;
pub mod contender;
pub mod launch;
pub mod machine;
pub mod model;
pub mod over_mpj;
pub mod peers;
pub mod report;
pub mod stats;
pub mod store;
pub mod tune;
