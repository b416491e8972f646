//! A program in C that is compiled and run with nothing but what an installation contains. Without a C compiler the test
//! says so and passes.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::fs;
use std::process::{Command, Stdio};

use mpj_harness::{command, libmpi, libmpi_trace, mpjrun_path};
use mpj_install::{Built, install};

/// A ring: each rank sends its number to the next one.
const PROGRAM: &str = "\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, left;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &left, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_WORLD)), MPI_STATUS_IGNORE);
    printf(\"%d of %d: %d\\n\", rank, size, left);
    return MPI_Finalize();
}
";

#[test]
fn a_program_is_compiled_and_run() {
    let found = Command::new("cc").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("skipped: there is no C compiler called cc");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("a prefix");
    let built = Built { library: libmpi(), trace: libmpi_trace(), mpjrun: mpjrun_path() };
    install(&built, &prefix).expect("everything was built");
    let [source, program] = ["ring.c", "ring"].map(|name| folder.path().join(name));
    fs::write(&source, PROGRAM).expect("a file");
    let compile = command(prefix.join("bin/mpicc")).args(["-Wall", "-Werror", "-Wl,-z,now"]);
    compile.args([&source]).args(["-o"]).args([&program]).expect_quiet();
    let job = command(prefix.join("bin/mpiexec")).args(["--oversubscribe", "-n", "3"]);
    let finished = job.args([&program]).expect_quiet();
    assert_eq!(finished.sorted_lines(), ["0 of 3: 2", "1 of 3: 0", "2 of 3: 1"]);
    // The installation has what records calls, too.
    let [job, file] = [prefix.join("bin/mpiexec"), folder.path().join("trace")];
    let job = command(job).args(["-n", "2", "--trace"]).args([&file]).args([&program]);
    let said = job.expect(0).stderr;
    assert_eq!(said.lines().count(), 1, "{said}");
    let trace = fs::read(&file).expect("it was written");
    let has = |name: &[u8]| trace.windows(name.len()).any(|window| window == name);
    assert!(has(b"MPI_Init") && has(b"MPI_Sendrecv") && has(b"MPI_Finalize"));
    // Without the launcher it is a job of one rank.
    assert_eq!(command(program).expect_quiet().stdout, "0 of 1: 0\n");
}
