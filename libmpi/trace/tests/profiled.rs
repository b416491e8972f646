//! A program in C whose ranks do not compute equally long, run with `--profile`, which has to name the rank that the others
//! wait for. Without a C compiler the test says so and passes.

#![expect(clippy::print_stderr, reason = "tests say why they are skipped")]

use std::fs;

use installed::Installed;

mod installed;

/// In each round rank 2 goes on only when the others have told it that they have, and computes after that: it is always the
/// last one. Looks for messages that find nothing are not recorded, so they count as computing.
const PROGRAM: &str = r#"
#include <mpi.h>
#include <time.h>
int main(int argc, char **argv)
{
    int rank, size, here, sum;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int round = 0; round < 5; round++) {
        if (rank == 2) {
            struct timespec computes = { 0, 100 * 1000 * 1000 };
            for (int other = 0; other < size; other++) {
                for (here = other == rank; !here;)
                    MPI_Iprobe(other, 1, MPI_COMM_WORLD, &here, MPI_STATUS_IGNORE);
                if (other != rank)
                    MPI_Recv(&sum, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            nanosleep(&computes, NULL);
        } else {
            MPI_Send(&round, 1, MPI_INT, 2, 1, MPI_COMM_WORLD);
        }
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    return MPI_Finalize();
}
"#;

#[test]
fn the_rank_that_all_wait_for_is_named() {
    let Some(installed) = Installed::with(PROGRAM) else { return };
    let page = installed.folder.path().join("uneven.html");
    let job = |option: String| {
        let job = installed.command("mpiexec").args(["-n", "4", &option]);
        // The sentence may go over several lines.
        let said = job.args([&installed.program]).expect(0).stderr;
        assert!(said.lines().count() <= 24, "{said}");
        let is_short = |line: &str| line.chars().count() <= 80 || line.contains("uneven.html");
        assert!(said.lines().all(is_short), "{said}");
        said.replace("\nmpjrun: ", " ")
    };
    let said = job("--profile".to_owned());
    let sentence = " longer than the others; they waited for it in MPI_Allreduce (";
    assert!(said.contains("Rank 2 computed ") && said.contains(sentence), "{said}");
    let said = job(format!("--profile={}", page.display()));
    assert!(
        said.contains(sentence) && said.ends_with("uneven.html has the whole profile\n"),
        "{said}"
    );
    let page = fs::read_to_string(page).expect("it was written");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Rank 2 computed"), "{page}");
}
