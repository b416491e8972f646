// ranks 1, universe 3, exit 7
// stderr: rank 2 (pid
// stderr: exited with code 7
// A spawned rank that fails ends the job, as any rank does.

#include "check.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parents, children;
    MPI_Comm_get_parent(&parents);
    if (parents == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        exit(7);
    // Nobody sends this.
    MPI_Recv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
