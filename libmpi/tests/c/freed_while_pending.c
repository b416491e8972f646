// ranks 2
/* What an operation uses may be freed before it ends: datatype, communicator, error handler, and the request itself. */
#include "check.h"
#define LONG 100000

static int out[2 * LONG], in[2 * LONG];
static int handled, freed_comm;

static void handle(MPI_Comm *comm, int *code, ...) {
    int class;
    CHECK(MPI_Error_class(*code, &class) == MPI_SUCCESS && class == MPI_ERR_TRUNCATE);
    freed_comm += *comm == MPI_COMM_NULL;
    handled++;
}

static MPI_Datatype every_second(int count) {
    MPI_Datatype type;
    CHECK(MPI_Type_vector(count, 1, 2, MPI_INT, &type) == MPI_SUCCESS && MPI_Type_commit(&type) == MPI_SUCCESS);
    return type;
}

/* Long messages, which leave when their receives are posted. */
static void types(int other) {
    MPI_Request requests[2];
    MPI_Datatype type = every_second(LONG), again;
    for (int i = 0; i < 2 * LONG; i++) out[i] = rank + i, in[i] = -1;
    CHECK(MPI_Issend(out, 1, type, other, 1, MPI_COMM_WORLD, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    /* Other datatypes take its place. */
    for (int i = 0; i < 50; i++) {
        again = every_second(i + 1);
        CHECK(MPI_Type_free(&again) == MPI_SUCCESS);
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    type = every_second(LONG);
    CHECK(MPI_Irecv(in, 1, type, other, 1, MPI_COMM_WORLD, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) CHECK(in[2 * i] == other + 2 * i && in[2 * i + 1] == -1);
}

/* A receive whose request is freed gets its message; a send whose request is freed leaves. */
static void requests(int other) {
    MPI_Request send, receive;
    MPI_Comm twin;
    in[0] = in[LONG - 1] = -1;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    CHECK(MPI_Irecv(in, LONG, MPI_INT, other, 2, twin, &receive) == MPI_SUCCESS);
    CHECK(MPI_Request_free(&receive) == MPI_SUCCESS && receive == MPI_REQUEST_NULL);
    CHECK(MPI_Isend(out, LONG, MPI_INT, other, 2, twin, &send) == MPI_SUCCESS);
    if (send != MPI_REQUEST_NULL) CHECK(MPI_Request_free(&send) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS);
    for (volatile int *last = &in[LONG - 1]; *last == -1;) {
        int flag;
        CHECK(MPI_Iprobe(MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(in[0] == other && in[LONG - 1] == other + LONG - 1);
}

/* The error handler of a communicator serves its operations as long as they last. */
static void handlers(int other) {
    MPI_Request request;
    MPI_Comm twin;
    MPI_Errhandler handler;
    MPI_Status status;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_errhandler(handle, &handler) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(twin, handler) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    CHECK(MPI_Irecv(in, 1, MPI_INT, other, 3, twin, &request) == MPI_SUCCESS);
    CHECK(MPI_Send(out, 2, MPI_INT, other, 3, twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS);
    FAILS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
    CHECK(handled == 1 && freed_comm == 1 && request == MPI_REQUEST_NULL && status.MPI_SOURCE == other);
}

int main(void) {
    start();
    types(1 - rank);
    requests(1 - rank);
    handlers(1 - rank);
    MPI_Finalize();
    return 0;
}
