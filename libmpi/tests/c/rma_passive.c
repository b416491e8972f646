// ranks 2
// stdout: done
/* A target that computes is served by its progress thread: it calls no function between two barriers. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <stdatomic.h>

int main(void) {
    atomic_int *base;
    int got = 0, told = 1;
    MPI_Win win;
    CHECK(setenv("MPJ_PROGRESS_THREAD", "1", 1) == 0);
    start();
    CHECK(MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win) == MPI_SUCCESS);
        CHECK(MPI_Put(&told, 1, MPI_INT, 1, 1, 1, MPI_INT, win) == MPI_SUCCESS);
        CHECK(MPI_Fetch_and_op(&told, &got, MPI_INT, 1, 0, MPI_SUM, win) == MPI_SUCCESS);
        CHECK(MPI_Win_unlock(1, win) == MPI_SUCCESS && got == 0);
    } else {
        while (atomic_load(base) == 0) {}
        CHECK(atomic_load(base + 1) == 1);
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
    if (rank == 0) printf("done\n");
    return MPI_Finalize();
}
