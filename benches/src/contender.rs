//! The runtimes that are compared: each backend of mpj under `mpjrun`, each peer under its own
//! launcher; and the transport, with AM-2 or PAMI over it, beside UCX.

use std::collections::HashSet;
use std::path::PathBuf;
use std::process::Command;

use mpj_bench_programs::Order;

use crate::bundle::Bundle;
use crate::hosts::Hosts;
use crate::model::{FABRIC, RuntimeInfo, SELF};
use crate::peers::{Flavour, Peer};

/// The name of UCX on the command line.
pub const UCX: &str = "ucx";

/// One runtime of the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Contender {
    /// Its names.
    pub info: RuntimeInfo,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Mpj {
        programs: Programs,
        /// `None` for the transport, what is over it, and the network alone.
        backend: Option<String>,
    },
    Peer {
        peer: Peer,
        worker: PathBuf,
    },
    Ucx {
        worker: PathBuf,
        perftest: PathBuf,
    },
}

/// The programs that measure mpj, its transport, or what is over that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// The path of `mpjrun`.
    pub launcher: PathBuf,
    /// The path of `mpj-bench-rank`, `mpj-bench-lapi`, `mpj-bench-am2` or `mpj-bench-pami`.
    pub worker: PathBuf,
}

impl Contender {
    /// Creates the contender for mpj with one backend.
    pub fn mpj(programs: &Programs, backend: &str) -> Self {
        let (id, label) = (backend.to_owned(), format!("mpj {backend}"));
        let info = RuntimeInfo { id: id.clone(), label, ours: true };
        Self { info, kind: Kind::Mpj { programs: programs.clone(), backend: Some(id) } }
    }

    /// Creates the contender for the transport, AM-2 or PAMI.
    pub fn transport(id: &str, label: &str, programs: Programs) -> Self {
        let info = RuntimeInfo { id: id.to_owned(), label: label.to_owned(), ours: true };
        Self { info, kind: Kind::Mpj { programs, backend: None } }
    }

    /// Creates the contender for libfabric without an MPI. `programs` are `mpjrun`, which starts it, and
    /// `mpj-bench-fabric`.
    pub fn fabric(programs: Programs) -> Self {
        let info =
            RuntimeInfo { id: FABRIC.to_owned(), label: "libfabric alone".to_owned(), ours: false };
        Self { info, kind: Kind::Mpj { programs, backend: None } }
    }

    /// Creates this contender as its own peer, to show the differences due to chance.
    pub fn again(&self) -> Self {
        let label = format!("{} again", self.info.label);
        let info = RuntimeInfo { id: SELF.to_owned(), label, ours: false };
        Self { info, kind: self.kind.clone() }
    }

    /// Creates the contender for UCX, of this name and version. `worker` is the path of `mpj-bench-ucx`, and `perftest`
    /// that of UCX's tool.
    pub fn ucx(worker: PathBuf, perftest: PathBuf, label: String) -> Self {
        let info = RuntimeInfo { id: UCX.to_owned(), label, ours: false };
        Self { info, kind: Kind::Ucx { worker, perftest } }
    }

    /// Creates the contender for a peer and the worker built for it. The C face is compared with the others like mpj.
    pub fn peer(peer: Peer, worker: PathBuf) -> Self {
        let ours = peer.flavour == Flavour::Libmpi;
        let info = RuntimeInfo { id: peer.id.clone(), label: peer.label.clone(), ours };
        Self { info, kind: Kind::Peer { peer, worker } }
    }

    /// Returns the command of one launch on `hosts`. If there are enough processors, each rank is pinned to
    /// one, and the ranks measure the raw cache line through the file at `line`.
    pub fn command(&self, bundle: &Bundle, hosts: &Hosts, line: Option<PathBuf>) -> Command {
        let ranks = bundle.ranks();
        let mut orders: Vec<Order> = bundle.orders().cloned().collect();
        orders[0].pin = hosts.pins(ranks);
        orders[0].line = line.filter(|_| !hosts.is_oversubscribed(ranks));
        let mut command = match &self.kind {
            Kind::Peer { peer, worker } => peer.command(ranks, hosts, worker),
            Kind::Mpj { programs, backend } => {
                let mut command = Command::new(&programs.launcher);
                command.args(["-n", &ranks.to_string()]);
                if hosts.are_several() {
                    command.args(["--hosts", &hosts.with_slots(ranks)]);
                }
                command.args(backend.iter().flat_map(|backend| ["--backend", backend]));
                command.arg(&programs.worker);
                command
            }
            Kind::Ucx { worker, perftest } => {
                let mut command = Command::new(worker);
                command.arg(perftest);
                command
            }
        };
        command.arg(serde_json::to_string(&orders).expect("orders have a form in JSON"));
        command
    }
}

/// Makes names unique: the second and later uses of a name get a number.
pub fn number<'a>(
    names: impl IntoIterator<Item = &'a mut String>,
    form: fn(name: &str, nth: usize) -> String,
) {
    let mut seen = HashSet::new();
    for name in names {
        let forms = std::iter::once(name.clone()).chain((2..).map(|nth| form(name, nth)));
        let free = forms.into_iter().find(|it| !seen.contains(it));
        *name = free.expect("there are more numbers than names");
        seen.insert(name.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_the_same_get_numbers() {
        let mut names = ["a", "b", "a", "a-2", "a"].map(str::to_owned);
        number(&mut names, |name, nth| format!("{name}-{nth}"));
        assert_eq!(names, ["a", "b", "a-2", "a-2-2", "a-3"]);
    }
}
