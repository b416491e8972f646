//! Measures which values suit this machine, for the launcher's table of tuned values. `cargo mpj tune`.
//!
//! ```text
//!  plan     what is asked: a question is one alternative to one built-in value
//!   │
//!  trial    short launches of the built-in values and of the alternatives, close together in time
//!   │
//!  verdict  whether an alternative is better, beyond noise, on every face of the machine; pure
//!   │
//!  choice   the table that the verdicts come to; pure
//! ```
//!
//! The built-in value is the null hypothesis: it stays unless an alternative is clearly better. Two
//! runs on one machine come to the same table therefore, as long as nothing lies on the margin.

pub mod choice;
pub mod plan;
pub mod trial;
pub mod verdict;
