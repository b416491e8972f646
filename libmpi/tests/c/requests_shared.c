// ranks 1
/* Threads ask for the status of a request, and cancel it, while another thread waits for it. */
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#define LOOKS 300

enum { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTANY, FORMS };

static MPI_Request pending;
static atomic_int waits;
static int form;

static void *wait_for_it(void *is_cancelled) {
    MPI_Request list[3] = {MPI_REQUEST_NULL, pending, MPI_REQUEST_NULL};
    MPI_Status statuses[3];
    int index = 1, count = 1, indices[3] = {1}, flag = 0;
    atomic_store(&waits, 1);
    switch (form) {
    case WAIT: CHECK(MPI_Wait(&list[1], &statuses[1]) == MPI_SUCCESS); break;
    case WAITALL: CHECK(MPI_Waitall(3, list, statuses) == MPI_SUCCESS); break;
    case WAITANY: CHECK(MPI_Waitany(3, list, &index, &statuses[1]) == MPI_SUCCESS); break;
    case WAITSOME:
        CHECK(MPI_Waitsome(3, list, &count, indices, statuses) == MPI_SUCCESS);
        statuses[1] = statuses[0];
        break;
    case TEST:
        while (!flag) CHECK(MPI_Test(&list[1], &flag, &statuses[1]) == MPI_SUCCESS);
        break;
    default:
        while (!flag) CHECK(MPI_Testany(3, list, &index, &flag, &statuses[1]) == MPI_SUCCESS);
    }
    CHECK(index == 1 && count == 1 && indices[0] == 1);
    CHECK(MPI_Test_cancelled(&statuses[1], is_cancelled) == MPI_SUCCESS);
    pending = list[1];
    return NULL;
}

/* Returns whether the operation was cancelled. */
static int ends(int is_persistent, int is_message) {
    int is_cancelled = -1, flag, in = -1, out = 7, found[2];
    pthread_t thread;
    MPI_Request request = pending;
    atomic_store(&waits, 0);
    CHECK(pthread_create(&thread, NULL, wait_for_it, &is_cancelled) == 0);
    while (!atomic_load(&waits)) sched_yield();
    for (int i = 0; i < LOOKS; i++) {
        CHECK(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        CHECK(MPI_Request_get_status_any(1, &request, found, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        CHECK(MPI_Testany(0, NULL, &in, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        if (i % 8 == 0) sched_yield();
    }
    if (is_message) CHECK(MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF) == MPI_SUCCESS);
    else CHECK(MPI_Cancel(&request) == MPI_SUCCESS && request != MPI_REQUEST_NULL);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK((pending == MPI_REQUEST_NULL) == !is_persistent);
    return is_cancelled;
}

int main(void) {
    int level, in = -1;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    for (form = 0; form < FORMS; form++) {
        for (int is_message = 0; is_message < 2; is_message++) {
            CHECK(MPI_Irecv(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &pending) == MPI_SUCCESS);
            CHECK(ends(0, is_message) == !is_message);
        }
        CHECK(MPI_Recv_init(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &pending) == MPI_SUCCESS);
        CHECK(MPI_Start(&pending) == MPI_SUCCESS && ends(1, 0) == 1);
        CHECK(MPI_Start(&pending) == MPI_SUCCESS && ends(1, 1) == 0);
        CHECK(MPI_Request_free(&pending) == MPI_SUCCESS);
    }
    CHECK(in == 7);
    MPI_Finalize();
    return 0;
}
