// ranks 1, universe 2, exit 125
// stderr: deadlock
// stderr: rank 1
// A deadlock between parents and children is found.

#include "check.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm other;
    MPI_Comm_get_parent(&other);
    if (other == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    MPI_Recv(NULL, 0, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    return MPI_Finalize();
}
