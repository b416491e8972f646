// ranks 1
/* A thread asks for the status of a persistent request while another thread starts it and waits for it. */
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#define ROUNDS 20000

static MPI_Request request;
static atomic_int is_over;

static void *look(void *unused) {
    int flag, index, count;
    MPI_Status status;
    while (!atomic_load(&is_over)) {
        CHECK(MPI_Request_get_status(request, &flag, &status) == MPI_SUCCESS);
        CHECK(MPI_Request_get_status_all(1, &request, &flag, &status) == MPI_SUCCESS);
        CHECK(MPI_Request_get_status_any(1, &request, &index, &flag, &status) == MPI_SUCCESS);
        CHECK(index == MPI_UNDEFINED || (flag && status.MPI_SOURCE == 0 && status.MPI_TAG == 3));
        CHECK(MPI_Request_get_status_some(1, &request, &count, &index, &status) == MPI_SUCCESS);
        CHECK(count < 1 || (index == 0 && status.MPI_SOURCE == 0 && status.MPI_TAG == 3));
    }
    return NULL;
}

int main(void) {
    int level, in = -1, out = 7;
    pthread_t thread;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS && level == MPI_THREAD_MULTIPLE);
    CHECK(MPI_Recv_init(&in, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    CHECK(pthread_create(&thread, NULL, look, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Request own = request;
        CHECK((i % 2 ? MPI_Start(&own) : MPI_Startall(1, &own)) == MPI_SUCCESS);
        CHECK(MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_SELF) == MPI_SUCCESS);
        CHECK(MPI_Wait(&own, MPI_STATUS_IGNORE) == MPI_SUCCESS && own == request);
    }
    atomic_store(&is_over, 1);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(in == 7 && MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
