//! `mpjrun` as its users meet it, with shell scripts for ranks. Programs that really join their job
//! are in the tests of the workspace. Every launcher runs under a watchdog.

mod binding;
mod cargo;
mod cleanup;
mod descriptors;
mod exits;
mod output;
mod programs;
mod streams;
mod support;
mod terminal;
mod tuning;
