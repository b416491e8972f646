//! What a job is: what launcher and ranks share (`bootstrap.rs`), settings (`config.rs`), and how a task joins
//! (`wireup.rs`).

pub mod bootstrap;
pub mod config;
pub mod wireup;
