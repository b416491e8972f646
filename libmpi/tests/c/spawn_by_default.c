// ranks 2
// stdout: 2 of 2 have been spawned twice
// Without an option a job has room for ranks that its own spawn, though not for any number of them.

#include "check.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parents, children, all;
    MPI_Comm_get_parent(&parents);
    int rank, size, sum = 1, *expected, flag, codes[2];
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &expected, &flag);
    CHECK(size == 2 && flag && *expected > 2 && *expected <= 514);
    if (parents != MPI_COMM_NULL) {
        MPI_Intercomm_merge(parents, 1, &all);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == 4);
        MPI_Comm_disconnect(&all);
        MPI_Comm_disconnect(&parents);
        return MPI_Finalize();
    }
    for (int round = 0; round < 2; round++) {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
        MPI_Intercomm_merge(children, 0, &all);
        sum = 1;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == 4);
        MPI_Comm_disconnect(&all);
        MPI_Comm_disconnect(&children);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 509, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, MPI_ERRCODES_IGNORE),
          MPI_ERR_SPAWN);
    if (rank == 0)
        printf("%d of %d have been spawned twice\n", codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS ? 2 : 0, 2);
    return MPI_Finalize();
}
