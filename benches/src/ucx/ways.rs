//! The ways in which UCX transfers data within a host, as options of `ucx_perftest`.
//!
//! UCP is UCX's upper layer, which chooses transports and protocols; UCT is the layer of transports. Both use shared
//! memory (`posix`); UCP also reads other processes' memory (`cma`). The transport `sysv` differs from `posix` only in
//! where the memory comes from, and transfers by `cma` alone are slower than by shared memory at all sizes.

use mpj_bench_programs::Program;

/// A test of `ucx_perftest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    /// The name of the test.
    pub test: &'static str,
    /// Its options.
    pub options: &'static str,
    /// The transports that UCP may use: UCX_TLS.
    pub transports: &'static str,
    /// The shortest message that it is measured for.
    pub least: usize,
    /// The longest message.
    pub most: usize,
}

const BOTH: &str = "posix,cma,self";
const SHARED: &str = "posix,self";
/// Messages of UCT that fit in an element of a queue, below UCX's limit of about 100 bytes.
const SHORT: usize = 64;
/// Messages of UCT that fit in a segment, below UCX's limit of 8256 bytes.
const SEGMENT: usize = 8192;

const UCT_SHORT: &str = "-d memory -x posix -D short";
const UCT_COPY: &str = "-d memory -x posix -D bcopy";

const fn ucp(test: &'static str, options: &'static str) -> Way {
    Way { test, options, transports: BOTH, least: 1, most: usize::MAX }
}

/// Long messages, which UCP would pass by `cma` if it could.
const fn shared(test: &'static str) -> Way {
    Way { test, options: "", transports: SHARED, least: 64 << 10, most: usize::MAX }
}

const fn uct(test: &'static str, options: &'static str, most: usize) -> Way {
    Way { test, options, transports: SHARED, least: 1, most }
}

const AM_SHORT: &[Way] =
    &[Way { most: SHORT, ..ucp("ucp_am_lat", "") }, uct("am_lat", UCT_SHORT, SHORT)];
const AM: &[Way] = &[
    ucp("ucp_am_lat", ""),
    shared("ucp_am_lat"),
    uct("am_lat", UCT_SHORT, SHORT),
    uct("am_lat", UCT_COPY, SEGMENT),
];
const AM_LOOK: &[Way] = &[
    Way { most: SEGMENT, ..ucp("ucp_am_lat", "") },
    uct("am_lat", UCT_SHORT, SHORT),
    uct("am_lat", UCT_COPY, SEGMENT),
];
const AM_STREAM: &[Way] = &[
    ucp("ucp_am_bw", ""),
    shared("ucp_am_bw"),
    uct("am_bw", UCT_SHORT, SHORT),
    uct("am_bw", UCT_COPY, SEGMENT),
];
const PUT: &[Way] = &[ucp("ucp_put_lat", ""), uct("put_lat", UCT_SHORT, usize::MAX)];
const PUT_STREAM: &[Way] = &[ucp("ucp_put_bw", ""), uct("put_bw", UCT_SHORT, usize::MAX)];
const GET: &[Way] =
    &[ucp("ucp_get", "-O 1"), uct("get", "-d memory -x posix -D bcopy -O 1", usize::MAX)];
const ADD: &[Way] = &[ucp("ucp_fadd", "-O 1"), uct("fadd", "-d memory -x posix -O 1", usize::MAX)];

/// Returns the ways of a program; `None` if UCX has no such test.
pub fn of(program: Program) -> Option<&'static [Way]> {
    Some(match program {
        Program::AmShort => AM_SHORT,
        Program::Am => AM,
        Program::AmLook => AM_LOOK,
        Program::AmStream => AM_STREAM,
        Program::Put => PUT,
        Program::PutStream => PUT_STREAM,
        Program::Get => GET,
        Program::Add => ADD,
        // Its tool has threads only where UCX was built for it.
        Program::Contexts => &[],
        _ => return None,
    })
}
