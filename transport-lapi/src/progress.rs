//! Messages and what moves them.
//!
//! - `context.rs`, `session.rs`: the calls. A context is a lock around a session; `lock.rs`, `spin.rs`, `awaited.rs`
//!   are how threads take the lock, spend a wait and describe it.
//! - `round.rs`: one round of progress. `engine.rs`, `places.rs`: what happens to a frame that arrives.
//! - `amsend.rs`, `lent.rs`: how messages start. `outbox.rs`, `slots.rs`: operations that have not ended.
//! - `per_task.rs`: values by task, for jobs of any size.
//! - `handler.rs`, `completion.rs`, `counter.rs`: handlers and what follows them.
//! - `get.rs`, `rmw.rs`, `access.rs`, `area.rs`, `direct.rs`: one-sided operations at their origin; `serve.rs`: those of
//!   other tasks. `registry.rs`: memory that other tasks may access.
//! - `connection.rs`: which tasks are lost, and which the program has given up. `addresses.rs`: LAPI_Address_init.
//! - `report.rs`, `hooks.rs`: asynchronous errors, and what `lapi/` adds to progress.

pub(crate) mod access;
pub(crate) mod addresses;
pub(crate) mod amsend;
pub(crate) mod area;
pub(crate) mod awaited;
pub(crate) mod completion;
mod connection;
pub(crate) mod context;
pub(crate) mod counter;
pub(crate) mod direct;
pub(crate) mod engine;
pub(crate) mod get;
pub(crate) mod handler;
pub(crate) mod hooks;
mod lent;
mod lock;
pub(crate) mod outbox;
pub(crate) mod per_task;
mod places;
mod registry;
pub(crate) mod report;
pub(crate) mod rmw;
pub(crate) mod round;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod slots;
mod spin;
