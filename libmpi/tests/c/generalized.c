// ranks 2
#define _DEFAULT_SOURCE
#include "check.h"
#include <pthread.h>
#include <unistd.h>

struct state { int queries, frees, cancels, was_complete, fails; };

static int query(void *extra, MPI_Status *status) {
    struct state *state = extra;
    state->queries++;
    MPI_Status_set_elements(status, MPI_INT, 10);
    MPI_Status_set_cancelled(status, state->cancels > 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = 17;
    /* A callback may call MPI. */
    int flag;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    return state->fails ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static int release(void *extra) {
    ((struct state *)extra)->frees++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete) {
    struct state *state = extra;
    state->cancels++;
    state->was_complete = complete;
    return MPI_SUCCESS;
}

static void *finish(void *request) {
    usleep(20000);
    MPI_Grequest_complete(*(MPI_Request *)request);
    return NULL;
}

/* Another thread completes the request while this one waits, alone or in a list. */
static void by_a_thread(void) {
    struct state state = {0};
    MPI_Request request, kept;
    MPI_Status status, statuses[2];
    pthread_t helper;
    int count = -1, flag = -1;
    MPI_Grequest_start(query, release, cancel, &state, &request);
    kept = request;
    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && !flag && state.queries == 0);
    pthread_create(&helper, NULL, finish, &kept);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    pthread_join(helper, NULL);
    CHECK(state.queries == 1 && state.frees == 1 && state.cancels == 0);
    CHECK(status.MPI_TAG == 17 && status.MPI_SOURCE == MPI_UNDEFINED);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 10);
    FAILS(MPI_Grequest_complete(kept), MPI_ERR_REQUEST);

    int in = -1, other = 1 - rank;
    MPI_Request both[2];
    memset(&state, 0, sizeof state);
    MPI_Irecv(&in, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &both[0]);
    MPI_Grequest_start(query, release, cancel, &state, &both[1]);
    kept = both[1];
    MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    pthread_create(&helper, NULL, finish, &kept);
    CHECK(MPI_Waitall(2, both, statuses) == MPI_SUCCESS);
    pthread_join(helper, NULL);
    CHECK(in == other && statuses[0].MPI_TAG == 1 && statuses[1].MPI_TAG == 17 && state.frees == 1);
}

static void alone(void) {
    struct state state = {0};
    MPI_Request request, kept;
    MPI_Status status;
    int flag = -1;
    /* Cancelled and then completed by the program. */
    MPI_Grequest_start(query, release, cancel, &state, &request);
    CHECK(MPI_Cancel(&request) == MPI_SUCCESS && state.cancels == 1 && !state.was_complete);
    MPI_Grequest_complete(request);
    FAILS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
    CHECK(MPI_Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag && state.queries == 1);
    CHECK(status.MPI_TAG == 17 && state.frees == 0);
    CHECK(MPI_Test(&request, &flag, &status) == MPI_SUCCESS && flag && state.queries == 2 && state.frees == 1);
    CHECK(MPI_Test_cancelled(&status, &flag) == MPI_SUCCESS && flag && request == MPI_REQUEST_NULL);
    /* Freed before its completion, and after it. */
    memset(&state, 0, sizeof state);
    MPI_Grequest_start(query, release, cancel, &state, &request);
    kept = request;
    CHECK(MPI_Grequest_complete(kept) == MPI_SUCCESS && state.frees == 0);
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS && request == MPI_REQUEST_NULL && state.frees == 1);
    CHECK(state.queries == 0);
    /* The error of a function of the program is the error of the call. */
    memset(&state, 0, sizeof state);
    state.fails = 1;
    MPI_Grequest_start(query, release, cancel, &state, &request);
    MPI_Grequest_complete(request);
    FAILS(MPI_Wait(&request, &status), MPI_ERR_OTHER);
    CHECK(state.frees == 1 && request == MPI_REQUEST_NULL);
    MPI_Grequest_start(query, release, cancel, &state, &request);
    MPI_Grequest_complete(request);
    FAILS(MPI_Waitall(1, &request, &status), MPI_ERR_IN_STATUS);
    CHECK(status.MPI_ERROR == MPI_ERR_OTHER && state.frees == 2);
    FAILS(MPI_Grequest_start(NULL, release, cancel, &state, &request), MPI_ERR_ARG);
    FAILS(MPI_Grequest_complete(MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    MPI_Irecv(&flag, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    FAILS(MPI_Grequest_complete(request), MPI_ERR_REQUEST);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/* A request that was freed is still completed, and then freed by its function. */
static void freed_first(void) {
    static struct state state;
    MPI_Request request, kept;
    MPI_Grequest_start(query, release, cancel, &state, &request);
    kept = request;
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS && state.frees == 0);
    CHECK(MPI_Grequest_complete(kept) == MPI_SUCCESS && state.frees == 1 && state.queries == 0);
    FAILS(MPI_Grequest_complete(kept), MPI_ERR_REQUEST);
}

int main(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    by_a_thread();
    alone();
    freed_first();
    MPI_Finalize();
    return 0;
}
