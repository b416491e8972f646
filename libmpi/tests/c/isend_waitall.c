// ranks 2
#include "check.h"
#define MANY 50
#define LONG 300000

static int big[LONG], room[LONG];

int main(void) {
    start();
    int other = 1 - rank, out[MANY], in[MANY], index, flag, count, indices[MANY];
    MPI_Request requests[2 * MANY];
    MPI_Status statuses[2 * MANY], status;
    for (int i = 0; i < MANY; i++) {
        out[i] = 1000 * rank + i;
        CHECK(MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS);
    }
    for (int i = 0; i < MANY; i++)
        CHECK(MPI_Isend(&out[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[MANY + i]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2 * MANY, requests, statuses) == MPI_SUCCESS);
    for (int i = 0; i < MANY; i++) {
        CHECK(in[i] == 1000 * other + i && statuses[i].MPI_TAG == i && statuses[i].MPI_SOURCE == other);
        CHECK(requests[i] == MPI_REQUEST_NULL && requests[MANY + i] == MPI_REQUEST_NULL);
    }

    /* A long message, for which both sides have to wait. */
    for (int i = 0; i < LONG; i++) big[i] = rank + i;
    CHECK(MPI_Irecv(room, LONG, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Isend(big, LONG, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
    requests[2] = MPI_REQUEST_NULL;
    int done = 0;
    while (done < 2) {
        CHECK(MPI_Waitsome(3, requests, &count, indices, statuses) == MPI_SUCCESS && count >= 1);
        done += count;
    }
    CHECK(MPI_Waitsome(3, requests, &count, indices, statuses) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(room[LONG - 1] == other + LONG - 1);

    /* One of two. */
    CHECK(MPI_Irecv(&in[0], 1, MPI_INT, other, 7, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Irecv(&in[1], 1, MPI_INT, other, 8, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Send(&out[3], 1, MPI_INT, other, 8, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Waitany(2, requests, &index, &status) == MPI_SUCCESS && index == 1 && status.MPI_TAG == 8);
    CHECK(MPI_Testany(2, requests, &index, &flag, &status) == MPI_SUCCESS && !flag && index == MPI_UNDEFINED);
    CHECK(MPI_Test(&requests[0], &flag, &status) == MPI_SUCCESS && !flag && requests[0] != MPI_REQUEST_NULL);
    CHECK(MPI_Testall(2, requests, &flag, statuses) == MPI_SUCCESS && !flag);

    /* The other one is cancelled. */
    CHECK(MPI_Request_get_status(requests[0], &flag, &status) == MPI_SUCCESS && !flag);
    CHECK(MPI_Cancel(&requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Wait(&requests[0], &status) == MPI_SUCCESS && requests[0] == MPI_REQUEST_NULL);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag);

    /* A request that is null or of MPI_PROC_NULL is complete. */
    CHECK(MPI_Wait(&requests[0], &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK(MPI_Irecv(in, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Wait(&requests[0], &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);

    /* A request that is freed goes on. */
    in[5] = -1;
    CHECK(MPI_Irecv(&in[5], 1, MPI_INT, other, 9, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS && requests[0] == MPI_REQUEST_NULL);
    CHECK(MPI_Send(&out[5], 1, MPI_INT, other, 9, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    while (((volatile int *)in)[5] == -1)
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(in[5] == 1000 * other + 5);
    MPI_Finalize();
    return 0;
}
