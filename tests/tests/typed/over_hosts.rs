//! The tests of the typed layer once more, with ranks that are processes on several hosts.

use mpj_tests::conformance::over_hosts::{TYPED, are_there, pass};

#[test]
fn tests_pass_over_hosts() {
    let jobs: [(usize, &str, &[&str]); 8] = [
        (2, "node1,node2", &[]),
        (2, "node1,node2", &["--contexts", "2"]),
        (2, "node1,node2", &["--backend", "eager"]),
        (2, "node1,node2", &["--backend", "rendezvous"]),
        (3, "node1,node2,node3", &[]),
        (4, "node1:2,node2:2", &[]),
        (5, "node1:3,node2:2", &[]),
        (6, "node1:2,node2:2,node3:2", &["--map-by", "node"]),
    ];
    pass(&jobs, TYPED);
}

#[test]
fn what_is_left_out_is_there() {
    are_there(TYPED);
}
