// ranks 2
#include "check.h"

static int is_cancelled(const MPI_Status *status) {
    int flag = -1;
    CHECK(MPI_Test_cancelled(status, &flag) == MPI_SUCCESS);
    return flag;
}

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD;
    int other = 1 - rank, in = -1, none = -1, count, flag, index;
    MPI_Request request, list[2];
    MPI_Status status, statuses[2];
    /* A receive for which nothing comes; also among others. */
    MPI_Irecv(&in, 1, MPI_INT, other, 99, world, &request);
    CHECK(MPI_Cancel(&request) == MPI_SUCCESS && request != MPI_REQUEST_NULL);
    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && flag && is_cancelled(&status));
    MPI_Irecv(&in, 1, MPI_INT, other, 1, world, &list[0]);
    MPI_Irecv(&none, 1, MPI_INT, MPI_ANY_SOURCE, 99, world, &list[1]);
    MPI_Cancel(&list[1]);
    MPI_Waitany(2, list, &index, &status);
    CHECK(index == 1 && is_cancelled(&status) && list[1] == MPI_REQUEST_NULL);
    MPI_Barrier(world);
    /* A receive that has its message is not cancelled. */
    MPI_Send(&rank, 1, MPI_INT, other, 1, world);
    do MPI_Request_get_status(list[0], &flag, &status); while (!flag);
    MPI_Cancel(&list[0]);
    MPI_Waitall(2, list, statuses);
    CHECK(!is_cancelled(&statuses[0]) && in == other && statuses[0].MPI_SOURCE == other);
    /* A persistent receive can be started again. */
    MPI_Recv_init(&in, 1, MPI_INT, other, 2, world, &request);
    MPI_Start(&request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK(is_cancelled(&status) && request != MPI_REQUEST_NULL);
    MPI_Barrier(world);
    MPI_Start(&request);
    MPI_Send(&other, 1, MPI_INT, other, 2, world);
    MPI_Wait(&request, &status);
    CHECK(!is_cancelled(&status) && in == rank);
    MPI_Request_free(&request);
    /* A send that is complete. */
    MPI_Isend(&rank, 1, MPI_INT, other, 3, world, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    CHECK(!is_cancelled(&status));
    MPI_Recv(&in, 1, MPI_INT, other, 3, world, MPI_STATUS_IGNORE);
    /* A synchronous send that nobody receives: it is cancelled, and nobody gets it later. */
    if (rank == 0) {
        MPI_Issend(&rank, 1, MPI_INT, other, 4, world, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        CHECK(is_cancelled(&status));
        MPI_Barrier(world);
        MPI_Send(&rank, 0, MPI_INT, other, 4, world);
    } else {
        MPI_Barrier(world);
        MPI_Recv(&in, 1, MPI_INT, other, 4, world, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(count == 0);
    }
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    request = MPI_REQUEST_NULL;
    FAILS(MPI_Cancel(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Cancel(NULL), MPI_ERR_ARG);
    MPI_Finalize();
    return 0;
}
