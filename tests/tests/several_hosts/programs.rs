//! The example programs and random programs, as jobs over two and over three hosts.

use mpj_harness::example;

use super::{job, open};

const PROGRAM: &str = env!("CARGO_BIN_EXE_program");

/// Example programs with their arguments and with words of what they print if all was right.
const EXAMPLES: [(&str, &[&str], &str); 8] = [
    ("hello", &[], "rank 0 has heard"),
    ("ring", &["--laps", "25"], " us per hop"),
    ("pingpong", &["--max", "262144", "--iterations", "20"], "\n262144 "),
    ("laplace", &["--size", "66", "--iterations", "57"], ": verified"),
    ("conjugate_gradient", &["--grid", "20"], ": verified"),
    ("nbody", &["--bodies", "100", "--steps", "3"], ": verified"),
    ("sort", &["--keys", "20000"], ": verified"),
    ("matmul", &["--size", "100"], ": verified"),
];

#[test]
fn examples_are_right_over_two_and_over_three_hosts() {
    for (count, each) in [(2, 2), (3, 1)] {
        let Some(hosts) = open(count) else { return };
        for (name, args, right) in EXAMPLES {
            let program = example(name);
            let program = program.to_str().expect("a name in UTF-8");
            let job = job(&hosts, each, program).args(args).expect_quiet();
            assert!(job.stdout.contains(right), "{name}, {count} hosts: {}", job.stdout);
        }
        assert_eq!(hosts.remains(), [""; 0]);
    }
}

/// Ranks of two hosts agree whether they look for mistakes.
#[test]
fn mistakes_are_found_over_two_hosts_if_all_ranks_ask_for_it() {
    let Some(hosts) = open(2) else { return };
    let program = example("mistakes");
    let program = program.to_str().expect("a name in UTF-8");
    for (kind, says) in [("types", "of the same types"), ("unreceived", "never received: 32 bytes")]
    {
        job(&hosts, 1, program).args([kind]).expect(1).says(says);
    }
    let one_asks = "MPJ_CHECK=$((1 - MPJ_RANK)) exec \"$0\" unreceived";
    job(&hosts, 1, "sh").args(["-c", one_asks, program]).expect_quiet();
}

/// Random programs of all calls, by each protocol, also by several threads of a rank.
#[test]
fn random_programs_end_over_two_and_over_three_hosts() {
    for (count, each) in [(2, 2), (3, 1)] {
        let Some(hosts) = open(count) else { return };
        for (backend, how) in [("auto", "correct"), ("rendezvous", "correct"), ("eager", "pooled")]
        {
            let job = job(&hosts, each, PROGRAM).options(["--backend", backend]);
            job.options(["--map-by", "node"]).args([how, "1", "60"]).expect_quiet();
        }
    }
}
