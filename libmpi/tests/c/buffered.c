// ranks 2
#include "check.h"
#define LONG 200000

static char room[1000];
static int many[LONG], got[LONG];

/* A buffer with MPI_BSEND_OVERHEAD for each message suffices. */
static void within_the_buffer(int other) {
    void *address = NULL;
    int length = -1, in[2] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    char enough[2 * (8 + MPI_BSEND_OVERHEAD)];
    MPI_Buffer_attach(enough, sizeof enough);
    FAILS(MPI_Buffer_attach(room, 10), MPI_ERR_BUFFER);
    int first[2] = {rank, 1}, second[2] = {rank, 2};
    MPI_Request request;
    CHECK(MPI_Bsend(first, 2, MPI_INT, other, 1, world) == MPI_SUCCESS);
    first[1] = 77;
    CHECK(MPI_Ibsend(second, 2, MPI_INT, other, 1, world, &request) == MPI_SUCCESS);
    second[1] = 77;
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    for (int i = 1; i <= 2; i++) {
        MPI_Recv(in, 2, MPI_INT, other, 1, world, MPI_STATUS_IGNORE);
        CHECK(in[0] == other && in[1] == i);
    }
    MPI_Buffer_flush();
    FAILS(MPI_Bsend(many, LONG, MPI_INT, other, 1, world), MPI_ERR_BUFFER);
    CHECK(MPI_Bsend(many, 1000, MPI_INT, MPI_PROC_NULL, 1, world) == MPI_SUCCESS);
    CHECK(MPI_Buffer_detach(&address, &length) == MPI_SUCCESS);
    CHECK(address == enough && length == (int)sizeof enough);
    FAILS(MPI_Bsend(first, 1, MPI_INT, other, 1, world), MPI_ERR_BUFFER);
    /* There is no buffer. */
    CHECK(MPI_Buffer_detach(&address, &length) == MPI_SUCCESS && address == NULL && length == 0);
}

/* A long message waits for its receive; the sender does not. */
static void growing(int other) {
    void *address = NULL;
    MPI_Count length = -1;
    MPI_Request request, receive;
    CHECK(MPI_Buffer_attach_c(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) many[i] = rank + i;
    CHECK(MPI_Bsend_c(many, LONG, MPI_INT, other, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) many[i] = -1;
    CHECK(MPI_Buffer_iflush(&request) == MPI_SUCCESS);
    MPI_Irecv(got, LONG, MPI_INT, other, 2, MPI_COMM_WORLD, &receive);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    CHECK(got[0] == other && got[LONG - 1] == other + LONG - 1);
    CHECK(MPI_Buffer_detach_c(&address, &length) == MPI_SUCCESS && address == MPI_BUFFER_AUTOMATIC);
}

/* A length that has no room in an int. Nothing is stored in the buffer. */
static void too_long(void) {
    void *address = NULL;
    int length = -1;
    CHECK(MPI_Buffer_attach_c(room, (MPI_Count)1 << 31) == MPI_SUCCESS);
    FAILS(MPI_Buffer_detach(&address, &length), MPI_ERR_VALUE_TOO_LARGE);
    CHECK(address == room && MPI_Buffer_detach(&address, &length) == MPI_SUCCESS && length == 0);
}

/* The buffer of a communicator is another one than that of the rank. */
static void of_a_communicator(int other) {
    void *address = NULL;
    int length = -1, in = -1;
    MPI_Comm twin;
    MPI_Request request, send;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    CHECK(MPI_Comm_attach_buffer(twin, room, 600) == MPI_SUCCESS);
    FAILS(MPI_Comm_attach_buffer(twin, room, 10), MPI_ERR_BUFFER);
    FAILS(MPI_Bsend(&rank, 1, MPI_INT, other, 3, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK(MPI_Bsend(&rank, 1, MPI_INT, other, 3, twin) == MPI_SUCCESS);
    MPI_Recv(&in, 1, MPI_INT, other, 3, twin, MPI_STATUS_IGNORE);
    CHECK(in == other);
    CHECK(MPI_Bsend_init(&rank, 1, MPI_INT, other, 4, twin, &send) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK(MPI_Start(&send) == MPI_SUCCESS && MPI_Wait(&send, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        MPI_Recv(&in, 1, MPI_INT, other, 4, twin, MPI_STATUS_IGNORE);
        CHECK(in == other && send != MPI_REQUEST_NULL);
    }
    CHECK(MPI_Request_free(&send) == MPI_SUCCESS);
    CHECK(MPI_Comm_flush_buffer(twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_iflush_buffer(twin, &request) == MPI_SUCCESS && MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Comm_detach_buffer(twin, &address, &length) == MPI_SUCCESS && address == room && length == 600);
    MPI_Comm_free(&twin);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Buffer_attach(room, -1), MPI_ERR_ARG);
    FAILS(MPI_Buffer_attach(NULL, 100), MPI_ERR_BUFFER);
    FAILS(MPI_Comm_attach_buffer(MPI_COMM_NULL, room, 100), MPI_ERR_COMM);
    within_the_buffer(1 - rank);
    growing(1 - rank);
    too_long();
    of_a_communicator(1 - rank);
    MPI_Finalize();
    return 0;
}
