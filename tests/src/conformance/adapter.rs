//! The contract of [`transport_lapi::adapter`], A1 to A5, for any adapter.
//!
//! Every check takes a maker of jobs: given a number of tasks, it returns their adapters in order.
//! [`crate::adapter_conformance`] makes tests of the checks. Adapters that hold frames back until
//! their sender polls keep A1 to A3 only, which the macro is told with `while sender polls`.
//!
//! That no method calls back into the transport (A2) needs no check: an adapter is given nothing to
//! call but the sink of [`Adapter::poll`].

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use transport_lapi::MAX_UHDR;
use transport_lapi::adapter::{Adapter, Caps, Doorbell, Frame, Post, TaskId};

use super::Numbers;

/// Makes a job of so many tasks.
pub type Maker<A> = fn(usize) -> Vec<A>;

/// Makes tests of the checks: `adapter_conformance!(module, maker)`, or with `while sender polls`
/// behind it for an adapter that does not keep A4 and A5.
#[macro_export]
macro_rules! adapter_conformance {
    ($name:ident, $make:expr, while sender polls) => {
        $crate::adapter_conformance! { @tests $name, $make,
            tasks_are_numbered_and_alike, frames_of_every_length_arrive_whole,
            frames_arrive_once_and_in_order, a_full_ring_took_nothing,
            a_full_ring_takes_frames_when_it_was_polled, a_full_ring_keeps_nobody_else_waiting,
            no_call_blocks, a_poll_keeps_to_its_budget, threads_exchange_frames,
        }
    };
    ($name:ident, $make:expr) => {
        $crate::adapter_conformance!($name, $make, while sender polls);
        mod ${concat($name, _alone)} {}
    };
    (@tests $name:ident, $make:expr, $($check:ident),+ $(,)?) => {
        mod $name {
            $(#[test]
            fn $check() {
                $crate::conformance::watch(|| $crate::conformance::adapter::$check($make));
            })+
        }
    };
}
