// ranks 2, universe 4, exit 1
// stderr: rank 2 (pid
// stderr: ended without joining the job
// The parents of a program that never joins do not wait for ever.

#include "check.h"

int main(int argc, char **argv) {
    start();
    MPI_Comm children;
    MPI_Comm_spawn("true", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    return MPI_Finalize();
}
