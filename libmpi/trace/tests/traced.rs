//! Programs in C that are recorded: compiled with what an installation contains, run with `--trace`, and judged by the file
//! that is written. Without a C compiler the tests say so and pass.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::path::PathBuf;

use installed::Installed;
use mpj_harness::{Hosts, Launch, Shown, skip};

mod installed;

/// What a rank of the ring does in each round. Then each has a child; in the end the rank that the argument names is killed.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    int rank, size, got, flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int own, peers, others;
    MPI_Comm_rank(half, &own);
    MPI_Comm_size(half, &peers);
    MPI_Request kept, any;
    MPI_Recv_init(&got, 1, MPI_INT, MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, &any);
    MPI_Send_init(&rank, 1, MPI_INT, (rank + 1) % size, 9, MPI_COMM_WORLD, &kept);
    for (int round = 0; round < 5; round++) {
        MPI_Request both[2];
        MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, half, &both[0]);
        MPI_Isend(&round, 1, MPI_INT, (own + 1) % peers, round, half, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(&rank, 1, MPI_INT, rank ^ 1, 5, &got, 1, MPI_INT, rank ^ 1, 5, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Message found;
        MPI_Send(&rank, 1, MPI_INT, rank ^ 1, 6, MPI_COMM_WORLD);
        MPI_Mprobe(MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Mrecv(&got, 1, MPI_INT, &found, MPI_STATUS_IGNORE);
        MPI_Start(&kept);
        MPI_Recv(&got, 1, MPI_INT, (rank + size - 1) % size, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&kept, MPI_STATUS_IGNORE);
        MPI_Start(&any);
        MPI_Isendrecv(&rank, 1, MPI_INT, rank ^ 1, 7, &got, 1, MPI_INT, MPI_ANY_SOURCE, 7,
                      MPI_COMM_WORLD, &both[0]);
        MPI_Send(&rank, 1, MPI_INT, rank ^ 1, 7, MPI_COMM_WORLD);
        MPI_Recv(&others, 1, MPI_INT, rank ^ 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&both[0], MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, rank ^ 1, 8, MPI_COMM_WORLD);
        MPI_Wait(&any, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &got, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Win window;
    MPI_Win_create(&rank, sizeof rank, sizeof rank, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, &got, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_NO_OP, window);
    MPI_Win_fence(0, window);
    if (got != 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_Win_free(&window);
    MPI_Pcontrol(2);
    pid_t child = fork();
    if (child == 0) {
        for (int mark = 0; mark < 100; mark++)
            MPI_Pcontrol(7);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 1 && rank == atoi(argv[1]))
        raise(SIGKILL);
    if (argc > 1)
        MPI_Recv(&got, 1, MPI_INT, atoi(argv[1]), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request_free(&kept);
    MPI_Request_free(&any);
    MPI_Comm_free(&half);
    return MPI_Finalize();
}
"#;
const RANKS: usize = 4;
/// Messages of each rank: in each round one in its half, in the exchange, after a look for it, in the ring, two in the
/// exchange that is started, and one to a receive that is started again.
const MESSAGES: usize = 5 * 7;

/// Each second rank sends one long message and many short ones, which the other one receives in another order.
const PARTS: &str = r#"
#include <mpi.h>
#include <stdlib.h>
enum { LONG = 4 << 20, MANY = 40 };
int main(int argc, char **argv)
{
    int rank, other, sum = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = rank ^ 1;
    char *memory = calloc(LONG, 1), few[1] = {0};
    if (rank % 2 == 0) {
        MPI_Request all[MANY];
        MPI_Send(memory, LONG, MPI_CHAR, other, 1, MPI_COMM_WORLD);
        for (int tag = 0; tag < MANY; tag++)
            MPI_Isend(few, 1, MPI_CHAR, other, 100 + tag, MPI_COMM_WORLD, &all[tag]);
        MPI_Send(few, 1, MPI_CHAR, other, 2, MPI_COMM_WORLD);
        MPI_Waitall(MANY, all, MPI_STATUSES_IGNORE);
    } else {
        MPI_Recv(memory, LONG, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(few, 1, MPI_CHAR, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int tag = 0; tag < MANY; tag++)
            MPI_Recv(few, 1, MPI_CHAR, other, 100 + tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(few, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    free(memory);
    return MPI_Finalize();
}
"#;

fn installed() -> Option<Installed> {
    Installed::with(PROGRAM)
}

fn file(installed: &Installed) -> PathBuf {
    installed.folder.path().join("trace")
}

fn job(installed: &Installed, options: &[&str]) -> Launch {
    let job = installed.command("mpiexec").args(["-n", &RANKS.to_string(), "--trace"]);
    job.args([&file(installed)]).args(options).args([&installed.program])
}

#[test]
fn calls_and_messages_are_shown() {
    let Some(installed) = installed() else { return };
    let said = job(&installed, &[]).expect(0).stderr;
    assert!(said.starts_with("mpjrun: ") && said.contains("calls; open it at"), "{said}");
    let shown = Shown::read(&file(&installed));
    assert_eq!(shown.tracks[1..], ["rank 0", "rank 1", "rank 2", "rank 3"]);
    for (name, of_rank) in [
        ("MPI_Init", 1),
        ("MPI_Comm_split", 1),
        ("MPI_Irecv", 5),
        ("MPI_Waitall", 5),
        ("MPI_Sendrecv", 5),
        ("MPI_Mrecv", 5),
        ("MPI_Isendrecv", 5),
        ("MPI_Start", 10),
        ("MPI_Allreduce", 5),
        ("MPI_Get_accumulate", 1),
        ("MPI_Iprobe", 0),
        ("MPI_Pcontrol(2)", 1),
        // A child is no rank.
        ("MPI_Pcontrol(7)", 0),
        ("MPI_Finalize", 1),
    ] {
        assert_eq!(shown.calls(name), RANKS * of_rank, "{name}: {:?}", shown.calls);
    }
    assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
    assert_eq!(shown.messages.len(), RANKS * MESSAGES);
}

/// libmpi says what calls consist of behind the records of this library.
#[test]
fn protocols_parts_and_queues_are_shown() {
    let Some(installed) = Installed::with(PARTS) else { return };
    let senders = RANKS / 2;
    for (backend, long, short, details) in [
        ("auto", "rendezvous", "eager", &[][..]),
        ("eager", "eager", "eager", &["--trace-newest"]),
        ("rendezvous", "rendezvous", "rendezvous", &["--trace-details"]),
    ] {
        let has_details = details.contains(&"--trace-details");
        let job = job(&installed, &[&["--backend", backend], details].concat());
        // Where the protocol is chosen for each message, the long one finds too little memory to come early.
        let limit = if backend == "auto" { "1M" } else { "64M" };
        job.env("MPJ_EARLY_LIMIT", limit).expect(0);
        let shown = Shown::read(&file(&installed));
        let by = |call: &str, protocol: &str| {
            let key = (call.to_owned(), protocol.to_owned());
            shown.protocols.get(&key).copied().unwrap_or(0)
        };
        let same = if long == short { senders } else { 0 };
        // The send to nobody has no protocol.
        assert_eq!(by("MPI_Send", long), senders + same, "{:?}", shown.protocols);
        assert_eq!(by("MPI_Send", short), senders + same, "{:?}", shown.protocols);
        assert_eq!(by("MPI_Isend", short), senders * 40, "{:?}", shown.protocols);
        assert_eq!(shown.protocols.values().sum::<usize>(), senders * 42);
        let rounds = shown.calls("round");
        assert!(if has_details { rounds >= RANKS * 2 * 2 } else { rounds == 0 }, "{rounds}");
        let phases = ["rendezvous: data", "rendezvous: until answered"].map(|it| shown.calls(it));
        let are_shown = |number| if has_details { number >= senders * 42 } else { number == 0 };
        assert!(phases.into_iter().all(are_shown), "{phases:?}");
        let key = ("rank 1".to_owned(), "unexpected messages".to_owned());
        let unexpected = shown.counters.get(&key).map_or(&[][..], Vec::as_slice);
        assert!(unexpected.iter().any(|number| *number >= 20), "{:?}", shown.counters);
        assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
        assert_eq!(shown.messages.len(), senders * 42);
    }
}

#[test]
fn what_a_killed_rank_has_recorded_is_shown() {
    let Some(installed) = installed() else { return };
    let job = job(&installed, &[]).args(["2"]);
    job.expect(137).says("calls; open it at");
    let shown = Shown::read(&file(&installed));
    assert_eq!(shown.tracks.len(), 1 + RANKS);
    assert_eq!((shown.calls("MPI_Allreduce"), shown.calls("MPI_Finalize")), (RANKS * 5, 0));
    assert_eq!(shown.messages.len(), RANKS * MESSAGES);
}

/// Each agent has the system load the library into the ranks of its host.
#[test]
fn calls_and_messages_of_two_hosts_are_shown() {
    let Some(installed) = installed() else { return };
    let Some(hosts) = Hosts::open_sharing(2, &[installed.folder.path()]) else { return };
    let job = hosts.on("node1", installed.folder.path().join("prefix/bin/mpiexec"));
    let job = job.args(["--hosts", "node1:2,node2:2", "--trace"]).args([&file(&installed)]);
    let outcome = job.args([&installed.program]).run();
    if outcome.stderr.contains("libfabric.so.1 cannot be loaded") {
        return skip(&outcome.stderr);
    }
    outcome.expect(0).says("times of different hosts agree to within ");
    let shown = Shown::read(&file(&installed));
    let names = ["rank 0 on node1", "rank 1 on node1", "rank 2 on node2", "rank 3 on node2"];
    assert_eq!(shown.tracks[1..], names);
    for name in names {
        let memory = shown.counters.get(&(name.to_owned(), "memory".to_owned()));
        assert!(memory.is_some_and(|values| values[0] > 0), "{name}: {:?}", shown.counters);
    }
    assert_eq!((shown.calls("MPI_Allreduce"), shown.calls("MPI_Finalize")), (RANKS * 5, RANKS));
    assert!(shown.messages.values().all(|ends| *ends == 2), "{:?}", shown.messages);
    assert_eq!((shown.messages.len(), shown.arrows.len()), (RANKS * MESSAGES, RANKS * MESSAGES));
}

#[test]
fn without_a_trace_nothing_is_recorded() {
    let Some(installed) = installed() else { return };
    installed.command("mpiexec").args(["-n", "2"]).args([&installed.program]).expect_quiet();
    // The library passes calls on where it is loaded for another reason.
    let library = installed.folder.path().join("prefix/lib/libmpj_trace.so");
    let job = installed.command("mpiexec").args(["-n", "2"]);
    job.env("LD_PRELOAD", &library).args([&installed.program]).expect_quiet();
    assert!(!file(&installed).exists());
}

/// Prints what a record costs.
#[test]
#[ignore = "measures; run it with --release -- --ignored --nocapture"]
fn what_a_record_costs() {
    let Some(installed) = Installed::with(include_str!("cost.c")) else { return };
    let job = installed.command("mpiexec").args(["-n", "1", "--trace-memory", "4G", "--trace"]);
    let job = job.args([&file(&installed)]).args([&installed.program]);
    eprintln!("{}", job.expect(0).stdout);
}
