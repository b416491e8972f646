//! The calls of the transport when nothing goes wrong, over every adapter.

mod support;

#[path = "calls/addresses.rs"]
mod addresses;
#[path = "calls/amsend.rs"]
mod amsend;
#[path = "calls/continuations.rs"]
mod continuations;
#[path = "calls/counters.rs"]
mod counters;
#[path = "calls/environment.rs"]
mod environment;
#[path = "calls/error_handler.rs"]
mod error_handler;
#[path = "calls/fence.rs"]
mod fence;
#[path = "calls/get.rs"]
mod get;
#[path = "calls/handlers.rs"]
mod handlers;
#[path = "calls/in_place.rs"]
mod in_place;
#[path = "calls/interrupt.rs"]
mod interrupt;
#[path = "calls/large.rs"]
mod large;
#[path = "calls/lent.rs"]
mod lent;
#[path = "calls/msgpoll.rs"]
mod msgpoll;
#[path = "calls/one_sided.rs"]
mod one_sided;
#[path = "calls/ordering.rs"]
mod ordering;
#[path = "calls/recovery.rs"]
mod recovery;
#[path = "calls/rmw.rs"]
mod rmw;
#[path = "calls/shared.rs"]
mod shared;
#[path = "calls/threads.rs"]
mod threads;
#[path = "calls/vectors.rs"]
mod vectors;
