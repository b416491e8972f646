//! The benchmark harness: runs jobs over mpj and over system MPIs, compares their figures, and reports
//! them as text tables, lines of JSON, and a page.
//!
//! ```text
//!  cli          the command line
//!   │
//!  catalogue    benchmarks ─► configurations        peers    system MPIs: find, build, start
//!  bundle       configurations that share launches   │
//!   │                                                 │
//!  computation  how long overlap computes             │
//!   │                                                 │
//!  campaign     rounds of launches in random order ── contender ── hosts    names and processors
//!   │   └─ launch, cache_line                        machine  facts for the header
//!  model        the results ◄────────────► store      one line of JSON per launch
//!   │
//!  analysis     estimates and ratios (stats), pure
//!   │
//!  report       text, a page, a summary
//! ```
//!
//! What a launch runs is in `mpj-bench-programs`; [`over_mpj`] binds it to mpj. The transport,
//! AM-2 and PAMI have benchmarks of their own: their workers are the programs `mpj-bench-lapi`, `mpj-bench-am2` and
//! `mpj-bench-pami`, and their peer is UCX ([`ucx`]). What the first and the last of them measure is in [`transfers`].

#![deny(unsafe_code)]

pub mod analysis;
pub mod bundle;
pub mod cache_line;
pub mod campaign;
pub mod catalogue;
pub mod cli;
pub mod computation;
pub mod contender;
pub mod hosts;
pub mod launch;
pub mod machine;
pub mod model;
pub mod over_mpj;
pub mod peers;
pub mod report;
pub mod stats;
pub mod store;
pub mod transfers;
pub mod ucx;
