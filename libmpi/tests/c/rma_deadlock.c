// ranks 2, exit 125
// stderr: 1 waits for 0 (win_lock
/* Rank 0 keeps a lock for ever, which rank 1 waits for. The launcher finds it. */
#include "check.h"

int main(void) {
    int *base, one = 1;
    MPI_Win win;
    start();
    CHECK(MPI_Win_allocate(sizeof one, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    if (rank == 0) CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 1) {
        CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win) == MPI_SUCCESS);
        CHECK(MPI_Put(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, win) == MPI_SUCCESS);
        CHECK(MPI_Win_unlock(0, win) == MPI_SUCCESS);
        CHECK(MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Recv(&one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(MPI_Win_unlock(0, win) == MPI_SUCCESS);
    }
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
    return MPI_Finalize();
}
