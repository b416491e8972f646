//! Finds the values that suit this machine, for the launcher's table of tuned values. Used by
//! `cargo mpj tune`.
//!
//! ```text
//!  plan     questions, each an alternative to one built-in value
//!   │
//!  trial    short launches of the built-in values and of the alternatives, close together in time
//!   │
//!  verdict  whether an alternative is better, beyond noise, near and far; pure
//!   │
//!  choice   the table that follows from the verdicts; pure
//! ```
//!
//! A built-in value stays unless an alternative is clearly better. So two runs on one
//! machine give the same table, unless a result is close to the margin.

pub mod choice;
pub mod plan;
pub mod trial;
pub mod verdict;
