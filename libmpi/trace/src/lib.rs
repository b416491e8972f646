//! Records the calls of programs in C for `mpjrun --trace`. The launcher has the system load this library before libmpi,
//! so that it gets each call of the program first; it passes the call on under its second name, `PMPI_...`. In other
//! programs, and where nobody asked for a trace, it only passes calls on. It lends libmpi its memory, where that finds it by
//! name, and libmpi records what the calls consist of: protocols, phases, rounds, and how long its queues are.
//!
//! ```text
//!  recorded       one function for each line of build/calls.rs, generated
//!  special        those that need more: begin and end, waits, persistent requests, marks
//!   ├── call           what is recorded of a call
//!   ├── communicator   which ranks of the world the ranks of a communicator are
//!   └── site           a function: its name, and where the call is passed on to
//! ```
//!
//! - TP1: the type of a function that is passed on to is that of the function that passes on, which the table of the binary
//!   interface states.
//! - TP2: a program keeps the standard's promises about the pointers that it passes (FC1 of libmpi). The arguments are those
//!   of the program, except that a status that it does not want is one of this library.
//! - TP3: nothing is asked about a handle that this library has not seen being made: an error of the program is reported by
//!   the function that it has called.

#![expect(unsafe_code, reason = "functions of C use the pointers that programs pass")]
#![allow(non_camel_case_types, non_snake_case, reason = "C's names")]
#![allow(clippy::too_many_arguments, reason = "functions of C have many")]

mod abi;
mod call;
mod communicator;
mod recorded;
mod site;
mod special;

use transport_lapi::bootstrap::trace::{self, Loan};

/// Lends libmpi what it needs to record what calls consist of.
#[unsafe(no_mangle)]
extern "C" fn mpj_trace_lend() -> Loan {
    trace::lend()
}
