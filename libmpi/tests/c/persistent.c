// ranks 2
#include "check.h"

static void all_modes(int other) {
    int out[4], in[4], flag = -1, index = -1, count;
    MPI_Request requests[8];
    MPI_Status statuses[8], status;
    for (int i = 0; i < 4; i++)
        MPI_Recv_init(&in[i], 1, MPI_INT, i == 3 ? MPI_ANY_SOURCE : other, i, MPI_COMM_WORLD, &requests[i]);
    char room[1000];
    MPI_Buffer_attach(room, sizeof room);
    MPI_Send_init(&out[0], 1, MPI_INT, other, 0, MPI_COMM_WORLD, &requests[4]);
    MPI_Bsend_init_c(&out[1], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[5]);
    MPI_Ssend_init(&out[2], 1, MPI_INT, other, 2, MPI_COMM_WORLD, &requests[6]);
    MPI_Rsend_init(&out[3], 1, MPI_INT, other, 3, MPI_COMM_WORLD, &requests[7]);
    /* Inactive requests are complete, with an empty status, and stay as they are. */
    MPI_Request before = requests[0];
    CHECK(MPI_Wait(&requests[0], &status) == MPI_SUCCESS && requests[0] == before);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    CHECK(MPI_Testany(8, requests, &index, &flag, &status) == MPI_SUCCESS && flag && index == MPI_UNDEFINED);
    CHECK(MPI_Waitall(8, requests, statuses) == MPI_SUCCESS && requests[0] == before);
    FAILS(MPI_Cancel(&requests[0]), MPI_ERR_REQUEST);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 4; i++) {
            out[i] = 100 * round + 10 * rank + i;
            in[i] = -1;
        }
        MPI_Startall(4, requests);
        FAILS(MPI_Start(&requests[0]), MPI_ERR_REQUEST);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Startall(4, requests + 4);
        if (round % 2) {
            MPI_Waitall(8, requests, statuses);
            for (int i = 0; i < 4; i++) CHECK(statuses[i].MPI_SOURCE == other && statuses[i].MPI_TAG == i);
        } else {
            int done = 0, indices[8];
            while (done < 8) {
                MPI_Waitsome(8, requests, &count, indices, statuses);
                CHECK(count > 0);
                done += count;
            }
        }
        CHECK(requests[0] == before);
        for (int i = 0; i < 4; i++) CHECK(in[i] == 100 * round + 10 * other + i);
    }
    for (int i = 0; i < 8; i++) CHECK(MPI_Request_free(&requests[i]) == MPI_SUCCESS && requests[i] == MPI_REQUEST_NULL);
    void *address;
    MPI_Buffer_detach(&address, &count);
}

/* MPI_Startall starts all requests of a list, or none if one of them cannot be started. */
static void all_or_none(void) {
    int in[2] = {-1, -1}, out = 7, flag;
    MPI_Status status;
    MPI_Request requests[2];
    MPI_Recv_init(&in[0], 1, MPI_INT, 0, 6, MPI_COMM_SELF, &requests[0]);
    MPI_Recv_init(&in[1], 1, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[1]);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Start(&requests[1]) == MPI_SUCCESS);
    FAILS(MPI_Startall(2, requests), MPI_ERR_REQUEST);
    MPI_Request twice[2] = {requests[0], requests[0]}, null[2] = {requests[0], MPI_REQUEST_NULL};
    FAILS(MPI_Startall(2, twice), MPI_ERR_REQUEST);
    FAILS(MPI_Startall(2, null), MPI_ERR_REQUEST);
    CHECK(MPI_Send(&out, 1, MPI_INT, 0, 6, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(MPI_Iprobe(0, 6, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS && flag);
    CHECK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE) == MPI_SUCCESS && in[0] == -1 && in[1] == 7);
    CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
    CHECK(MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS && in[0] == 7);
    CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS && MPI_Request_free(&requests[1]) == MPI_SUCCESS);
}

/* A persistent request can be freed while it is active; the operation goes on. */
static void freed_while_active(int other) {
    volatile int in = -1;
    int flag;
    MPI_Request request;
    MPI_Recv_init((int *)&in, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_Send(&rank, 1, MPI_INT, other, 5, MPI_COMM_WORLD);
    while (in == -1) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    CHECK(in == other);
}

/* The communicator and the datatype live as long as the request. */
static void lives_on(int other) {
    MPI_Comm twin;
    MPI_Datatype pair;
    MPI_Request requests[2];
    int out[4] = {rank, 1, 2, 3}, in[4] = {-1, -1, -1, -1};
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Recv_init_c(in, 1, pair, other, 6, twin, &requests[0]);
    MPI_Send_init_c(out, 1, pair, other, 6, twin, &requests[1]);
    MPI_Type_free(&pair);
    MPI_Comm_free(&twin);
    for (int i = 0; i < 3; i++) {
        out[2] = i;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(in[0] == other && in[1] == -1 && in[2] == i && in[3] == -1);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

static void with_nobody(void) {
    int data = 3;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Send_init(&data, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&data, 1, MPI_INT, MPI_PROC_NULL, 7, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    CHECK(statuses[1].MPI_SOURCE == MPI_PROC_NULL && statuses[1].MPI_TAG == MPI_ANY_TAG && data == 3);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int data, other = 1 - rank;
    MPI_Request request;
    all_modes(other);
    all_or_none();
    freed_while_active(other);
    lives_on(other);
    with_nobody();
    FAILS(MPI_Send_init(&data, 1, MPI_INT, size, 0, MPI_COMM_WORLD, &request), MPI_ERR_RANK);
    FAILS(MPI_Send_init(&data, -1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_COUNT);
    FAILS(MPI_Ssend_init(NULL, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_BUFFER);
    FAILS(MPI_Rsend_init(&data, 1, MPI_DATATYPE_NULL, 0, 0, MPI_COMM_WORLD, &request), MPI_ERR_TYPE);
    FAILS(MPI_Recv_init(&data, 1, MPI_INT, 0, -9, MPI_COMM_WORLD, &request), MPI_ERR_TAG);
    FAILS(MPI_Bsend_init(&data, 1, MPI_INT, 0, 0, MPI_COMM_NULL, &request), MPI_ERR_COMM);
    FAILS(MPI_Recv_init(&data, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    /* Only persistent requests can be started. */
    request = MPI_REQUEST_NULL;
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    FAILS(MPI_Request_free(&request), MPI_ERR_REQUEST);
    MPI_Irecv(&data, 1, MPI_INT, rank, 9, MPI_COMM_WORLD, &request);
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    MPI_Send(&rank, 1, MPI_INT, rank, 9, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
