//! Tests of collectives once more, with ranks that are processes on several hosts.

use mpj_tests::conformance::over_hosts::{COLLECTIVE, are_there, pass};

#[test]
fn tests_pass_over_hosts() {
    // Of these random programs each job plays those that are of as many ranks.
    let programs = ["-x", "MPJ_TEST_PROGRAMS=18"];
    let jobs: [(usize, &str, &[&str]); 5] = [
        (4, "node1:2,node2:2", &[]),
        (4, "node1:2,node2:2", &[&["--backend", "eager"][..], &programs].concat()),
        (3, "node1,node2,node3", &[&["--backend", "eager"][..], &programs].concat()),
        (5, "node1:3,node2:2", &[&["--backend", "rendezvous"][..], &programs].concat()),
        (6, "node1:2,node2:2,node3:2", &["--map-by", "node"]),
    ];
    pass(&jobs, COLLECTIVE);
}

#[test]
fn what_is_left_out_is_there() {
    are_there(COLLECTIVE);
}
