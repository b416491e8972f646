// ranks 4
#include "check.h"

enum { MANY = 12 };

static int in[MANY], out[MANY][4];
static MPI_Request requests[MANY];
static MPI_Status statuses[MANY];

/* Starts different collectives; they run side by side. */
static void begin(void) {
    for (int i = 0; i < MANY; i++) {
        in[i] = rank + i;
        int *to = out[i];
        memset(to, 0, sizeof out[i]);
        switch (i % 4) {
        case 0: CHECK(MPI_Iallreduce(&in[i], to, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS); break;
        case 1: CHECK(MPI_Iallgather(&in[i], 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS); break;
        case 2: CHECK(MPI_Iscan(&in[i], to, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS); break;
        default: CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]) == MPI_SUCCESS);
        }
    }
}

static void verify(int i) {
    if (i % 4 == 0)
        CHECK(out[i][0] == 6 + 4 * i);
    for (int r = 0; i % 4 == 1 && r < size; r++)
        CHECK(out[i][r] == r + i);
    if (i % 4 == 2)
        CHECK(out[i][0] == rank + i);
}

static void end(void) {
    for (int i = 0; i < MANY; i++) {
        CHECK(requests[i] == MPI_REQUEST_NULL);
        verify(i);
    }
}

int main(void) {
    start();
    int flag = 0, index, number, indices[MANY], done = 0;
    begin();
    CHECK(MPI_Waitall(MANY, requests, statuses) == MPI_SUCCESS);
    end();
    begin();
    /* In another order on each rank, with a blocking collective and messages between. */
    for (int i = 0; i < MANY; i++) {
        int at = (i * (rank % 2 ? 5 : 7)) % MANY, all;
        if (i == 3)
            CHECK(MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && all == 6);
        CHECK(MPI_Wait(&requests[at], &statuses[at]) == MPI_SUCCESS);
        CHECK(statuses[at].MPI_SOURCE == MPI_ANY_SOURCE && statuses[at].MPI_TAG == MPI_ANY_TAG);
        verify(at);
    }
    end();
    begin();
    for (int i = 0; i < MANY; i++) {
        CHECK(MPI_Waitany(MANY, requests, &index, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(index >= 0 && index < MANY && requests[index] == MPI_REQUEST_NULL);
        verify(index);
    }
    end();
    begin();
    while (done < MANY) {
        CHECK(MPI_Waitsome(MANY, requests, &number, indices, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
        CHECK(number > 0);
        done += number;
    }
    end();
    begin();
    for (int i = MANY - 1; i >= 0; i--)
        for (flag = 0; !flag;) {
            CHECK(MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
            int ended = flag;
            CHECK(MPI_Test(&requests[i], &flag, &statuses[i]) == MPI_SUCCESS && flag >= ended);
        }
    end();
    begin();
    for (flag = 0; !flag;)
        CHECK(MPI_Testall(MANY, requests, &flag, statuses) == MPI_SUCCESS);
    end();
    begin();
    for (done = 0; done < MANY; done += flag) {
        CHECK(MPI_Testany(MANY, requests, &index, &flag, statuses) == MPI_SUCCESS);
        CHECK(!flag || requests[index] == MPI_REQUEST_NULL);
    }
    end();
    /* Persistent collectives, started together and again. */
    for (int i = 0; i < MANY; i++)
        CHECK(MPI_Allreduce_init(&in[i], &out[i], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[i]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(MANY, requests, statuses) == MPI_SUCCESS);
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < MANY; i++)
            in[i] = turn * i;
        CHECK(MPI_Startall(MANY, requests) == MPI_SUCCESS);
        CHECK(MPI_Waitall(MANY, requests, statuses) == MPI_SUCCESS);
        for (int i = 0; i < MANY; i++)
            CHECK(out[i][0] == 4 * turn * i && requests[i] != MPI_REQUEST_NULL);
    }
    /* A request that is freed while it is active ends by itself. */
    CHECK(MPI_Start(&requests[0]) == MPI_SUCCESS);
    for (int i = 0; i < MANY; i++)
        CHECK(MPI_Request_free(&requests[i]) == MPI_SUCCESS && requests[i] == MPI_REQUEST_NULL);
    MPI_Request request;
    int all = 0;
    CHECK(MPI_Iallreduce(&rank, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    /* A communicator lives as long as its collectives. */
    MPI_Comm copy;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &copy) == MPI_SUCCESS);
    CHECK(MPI_Ibarrier(copy, &request) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&copy) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    /* It is wrong to start a collective twice, and the first run goes on. */
    CHECK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Start(&request) == MPI_SUCCESS);
    FAILS(MPI_Start(&request), MPI_ERR_REQUEST);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
