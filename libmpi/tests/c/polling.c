// ranks 8
#include "check.h"

enum { ROUNDS = 250 };

/* A token goes round while all ranks poll. There may be more of them than processors: a rank that did not give up its
   processor would keep the one from running that has the token, until the system's scheduler steps in. */
static void round_of(int (*poll)(MPI_Request *)) {
    int token = 0, next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request request;
    for (int i = 0; i < ROUNDS; i++) {
        if (rank == 0) MPI_Send(&i, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
        MPI_Irecv(&token, 1, MPI_INT, before, 0, MPI_COMM_WORLD, &request);
        while (!poll(&request)) {
        }
        CHECK(token == i);
        if (rank != 0) MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
    }
}

static int test(MPI_Request *request) {
    int flag;
    CHECK(MPI_Test(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    return flag;
}

static int test_any(MPI_Request *request) {
    int flag, index;
    CHECK(MPI_Testany(1, request, &index, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    return flag;
}

static int test_some(MPI_Request *request) {
    int count, index;
    CHECK(MPI_Testsome(1, request, &count, &index, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    return count;
}

int main(void) {
    start();
    round_of(test);
    round_of(test_any);
    round_of(test_some);
    MPI_Finalize();
    return 0;
}
