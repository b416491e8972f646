// ranks 1
#include "check.h"

/* The error of a request whose communicator was freed: the error handler gets no handle of another object. */
static int calls;

static void on_comm(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == MPI_COMM_NULL);
    calls++;
}

int main(void) {
    MPI_Errhandler handler;
    MPI_Comm twin, other;
    MPI_Request request;
    int got, two[2] = {1, 2};
    start();
    CHECK(MPI_Comm_create_errhandler(on_comm, &handler) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(twin, handler) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    CHECK(MPI_Irecv(&got, 1, MPI_INT, 0, 0, twin, &request) == MPI_SUCCESS);
    CHECK(MPI_Send(two, 2, MPI_INT, 0, 0, twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &other) == MPI_SUCCESS);
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    CHECK(calls == 1);
    CHECK(MPI_Comm_free(&other) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
