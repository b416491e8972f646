//! Jobs that process managers start, without `mpjrun`: those that this machine has. What is missing is named on standard
//! error, and not tested.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mpj_harness::{Launch, command, example, shell};
use transport_lapi::config::inherited;

const CLIENTS: &str = env!("CARGO_BIN_EXE_clients");
const RANK: &str = env!("CARGO_BIN_EXE_rank");

/// A way to start `ranks` ranks of a program.
struct Manager {
    name: &'static str,
    program: PathBuf,
    options: &'static [&'static str],
}

/// Finds a program in the PATH.
fn find(program: &str) -> Option<PathBuf> {
    let path = inherited("PATH").unwrap_or_default();
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 1 != 0)
    };
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(is_program)
}

/// Whether a program says that it is of Open MPI.
fn is_of_open_mpi(program: &Path) -> bool {
    command(program).args(["--version"]).run().stdout.contains("Open MPI")
}

/// The process managers of this machine.
fn managers() -> Vec<Manager> {
    let hydra = find("mpiexec.hydra").map(|program| [("PMI-1 of hydra", program, &[][..])]);
    let open_mpi = find("mpirun").filter(|program| is_of_open_mpi(program)).map(|program| {
        [("PMIx of Open MPI", program, &["--allow-run-as-root", "--oversubscribe"][..])]
    });
    let found: Vec<_> = [hydra, open_mpi].into_iter().flatten().flatten().collect();
    if found.len() < 2 {
        #[expect(clippy::print_stderr, reason = "says what is not tested")]
        let () =
            eprintln!("this machine has not both mpiexec.hydra and Open MPI's mpirun: {found:?}");
    }
    let manager = |(name, program, options)| Manager { name, program, options };
    found.into_iter().map(manager).collect()
}

impl Manager {
    fn job<W: AsRef<OsStr>>(&self, ranks: usize, words: impl IntoIterator<Item = W>) -> Launch {
        command(&self.program).args(self.options).args(["-n", &ranks.to_string()]).args(words)
    }
}

#[test]
fn a_job_that_does_everything_right() {
    for manager in managers() {
        for ranks in [1, 2, 5] {
            let outcome = manager.job(ranks, [RANK, "well"]).expect(0);
            let expected: Vec<_> =
                (0..ranks).map(|rank| format!("rank {rank} of {ranks}")).collect();
            assert_eq!(outcome.sorted_lines(), expected, "{}", manager.name);
        }
    }
}

#[test]
fn several_clients_of_a_process_meet() {
    let exchange = [CLIENTS, "exchange", "own,mpj,am2"];
    for manager in managers() {
        manager.job(3, exchange).expect(0);
        // Names of this host, which hydra takes for two.
        if manager.name.starts_with("PMI-1") && mpj_doubles::fabric::fabric().is_ok() {
            let hosts = ["-launcher", "fork", "-hosts", "localhost,127.0.0.1", "-ppn", "1"];
            let words = hosts.iter().chain(&exchange);
            let outcome = manager.job(2, words).expect(0);
            assert_eq!(outcome.sorted_lines(), ["rank 0 of 2", "rank 1 of 2"]);
        }
    }
}

#[test]
fn ranks_read_each_others_memory_as_under_the_launcher() {
    for manager in managers() {
        let outcome = manager.job(2, [RANK, "reads"]).expect(0);
        assert_eq!(outcome.stdout.lines().count(), 2, "{}: {outcome:?}", manager.name);
    }
}

#[test]
fn mistakes_are_found_as_under_the_launcher() {
    let program = example("mistakes");
    for manager in managers() {
        for (kind, says) in [("root", "give the same root"), ("unreceived", "never received: 32")] {
            let outcome = manager.job(2, [program.as_os_str(), kind.as_ref()]).expect(1);
            assert!(outcome.stderr.contains(says), "{}: {outcome:?}", manager.name);
        }
    }
}

#[test]
fn a_rank_that_ends_early_ends_the_job_with_its_code() {
    for manager in managers() {
        for (words, code) in
            [(&["after", "exit3", "1"][..], 3), (&["abort", "7"], 7), (&["forget"], 1)]
        {
            let outcome = manager.job(3, [&[RANK], words].concat()).run();
            assert_eq!(outcome.code, code, "{} {words:?}: {outcome:?}", manager.name);
        }
    }
}

#[test]
fn a_program_that_a_rank_starts_is_no_rank() {
    for manager in managers().iter().filter(|manager| manager.name.contains("PMI-1")) {
        let outcome = manager.job(2, [RANK, "nested"]).expect(0);
        assert_eq!(outcome.stdout, "exit status: 1\nexit status: 1\n", "{outcome:?}");
        outcome.says("PMI_FD is not the socket of a process manager");
    }
}

#[test]
fn a_manager_that_says_nothing_is_named() {
    let closed = "PMI_FD=77 PMI_RANK=0 PMI_SIZE=2 exec \"$1\" well";
    let says =
        ["descriptor 77 of PMI_FD is not the socket of a process manager", "MPJ_SINGLETON=1"];
    shell(closed).args([RANK]).expect(1).says_all(&says);
    let told = shell(closed).args([RANK]).env("MPJ_SINGLETON", "1").expect(0);
    assert_eq!(told.stdout, "rank 0 of 1\n");
}
