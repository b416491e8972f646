// ranks 2
#include "check.h"
#include <pthread.h>
#define PARTS 8
#define EACH 100

static int out[PARTS * EACH], in[PARTS * EACH];
static MPI_Request sending;

static void *declare(void *first) {
    for (int part = (int)(size_t)first; part < PARTS; part += 2) {
        for (int i = 0; i < EACH; i++) out[part * EACH + i] = 1000 * part + i;
        MPI_Pready(part, sending);
    }
    return NULL;
}

static void threads(int other) {
    MPI_Request receiving;
    MPI_Status status;
    int flag = -1;
    MPI_Psend_init(out, PARTS, EACH, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &sending);
    /* The receiver divides the same data otherwise. */
    MPI_Precv_init(in, PARTS / 2, 2 * EACH, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &receiving);
    CHECK(MPI_Parrived(receiving, 0, &flag) == MPI_SUCCESS && flag);
    FAILS(MPI_Pready(0, sending), MPI_ERR_REQUEST);
    for (int round = 0; round < 3; round++) {
        memset(in, 0, sizeof in);
        MPI_Start(&receiving);
        MPI_Start(&sending);
        CHECK(MPI_Test(&sending, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
        pthread_t helpers[2];
        for (size_t i = 0; i < 2; i++) pthread_create(&helpers[i], NULL, declare, (void *)i);
        /* While the others declare partitions ready, this thread waits for the end. */
        MPI_Wait(&sending, MPI_STATUS_IGNORE);
        for (int i = 0; i < 2; i++) pthread_join(helpers[i], NULL);
        do MPI_Parrived(receiving, PARTS / 2 - 1, &flag); while (!flag);
        CHECK(in[PARTS * EACH - 1] == 1000 * (PARTS - 1) + EACH - 1);
        MPI_Wait(&receiving, &status);
        CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 1);
        for (int i = 0; i < PARTS * EACH; i++) CHECK(in[i] == 1000 * (i / EACH) + i % EACH);
    }
    MPI_Request_free(&sending);
    MPI_Request_free(&receiving);
}

static void lists(int other) {
    MPI_Request send, receive;
    MPI_Status status;
    int data[6] = {1, 2, 3, 4, 5, rank}, got[6] = {0}, list[2] = {5, 0}, flag;
    MPI_Psend_init(data, 6, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(got, 6, 1, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Request both[2] = {send, receive};
    MPI_Startall(2, both);
    FAILS(MPI_Pready(6, send), MPI_ERR_ARG);
    FAILS(MPI_Pready(-1, send), MPI_ERR_ARG);
    FAILS(MPI_Pready_range(3, 2, send), MPI_ERR_ARG);
    FAILS(MPI_Pready(0, receive), MPI_ERR_REQUEST);
    FAILS(MPI_Pready(0, MPI_REQUEST_NULL), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
    FAILS(MPI_Parrived(receive, 6, &flag), MPI_ERR_ARG);
    CHECK(MPI_Pready_list(2, list, send) == MPI_SUCCESS);
    FAILS(MPI_Pready(5, send), MPI_ERR_ARG);
    do MPI_Parrived(receive, 5, &flag); while (!flag);
    CHECK(got[5] == other);
    MPI_Parrived(receive, 2, &flag);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_Pready_range(1, 4, send) == MPI_SUCCESS);
    MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    CHECK(got[0] == 1 && got[4] == 5);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    FAILS(MPI_Pready(0, both[0]), MPI_ERR_REQUEST);
    /* With nobody, and without partitions. */
    MPI_Psend_init(data, 2, 3, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send);
    MPI_Precv_init(got, 2, 3, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &receive);
    MPI_Start(&send);
    MPI_Start(&receive);
    MPI_Pready_range(0, 1, send);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Wait(&receive, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    MPI_Request_free(&send);
    MPI_Request_free(&receive);
    /* As many as there are, again and again. */
    for (int i = 0; i < 2100; i++) {
        CHECK(MPI_Psend_init(data, 1 << 20, 0, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD, MPI_INFO_NULL, &send) == MPI_SUCCESS);
        CHECK(MPI_Request_free(&send) == MPI_SUCCESS);
    }
}

int main(void) {
    int provided;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    CHECK(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    threads(1 - rank);
    lists(1 - rank);
    MPI_Request request;
    FAILS(MPI_Psend_init(out, -1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_ARG);
    FAILS(MPI_Psend_init(out, 1, -1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_COUNT);
    FAILS(MPI_Precv_init(in, 1, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_RANK);
    FAILS(MPI_Precv_init(in, 1, 1, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_TAG);
    FAILS(MPI_Psend_init(NULL, 1, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request), MPI_ERR_BUFFER);
    MPI_Finalize();
    return 0;
}
