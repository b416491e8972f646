// ranks 2
/* Messages without elements, which need no datatype: in all calls that send or receive. */
#include "check.h"

#define NO MPI_DATATYPE_NULL

static int peer;
static MPI_Comm world = MPI_COMM_WORLD;
static MPI_Request requests[2];

/* Waits for the requests, and checks that the second one has received nothing. */
static void wait_for_both(void) {
    MPI_Status statuses[2];
    int count = -1;
    CHECK(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&statuses[1], MPI_BYTE, &count) == MPI_SUCCESS && count == 0 && statuses[1].MPI_SOURCE == peer);
}

static void sends(void) {
    MPI_Status status;
    if (rank == 0) {
        CHECK(MPI_Send(NULL, 0, NO, peer, 1, world) == MPI_SUCCESS && MPI_Ssend(NULL, 0, NO, peer, 2, world) == MPI_SUCCESS);
        CHECK(MPI_Bsend(NULL, 0, NO, peer, 3, world) == MPI_SUCCESS && MPI_Send_c(NULL, 0, NO, peer, 4, world) == MPI_SUCCESS);
        return;
    }
    MPI_Message message;
    CHECK(MPI_Recv(NULL, 0, NO, peer, 1, world, &status) == MPI_SUCCESS && status.MPI_TAG == 1);
    CHECK(MPI_Mprobe(peer, 2, world, &message, &status) == MPI_SUCCESS);
    CHECK(MPI_Mrecv(NULL, 0, NO, &message, &status) == MPI_SUCCESS && status.MPI_TAG == 2);
    CHECK(MPI_Recv(NULL, 0, NO, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status) == MPI_SUCCESS && status.MPI_TAG == 3);
    CHECK(MPI_Recv_c(NULL, 0, NO, peer, 4, world, &status) == MPI_SUCCESS);
}

int main(void) {
    MPI_Status status;
    char byte = 0;
    start();
    peer = 1 - rank;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    sends();
    CHECK(MPI_Isend(NULL, 0, NO, peer, 5, world, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Irecv(NULL, 0, NO, peer, 5, world, &requests[1]) == MPI_SUCCESS);
    wait_for_both();
    CHECK(MPI_Sendrecv(NULL, 0, NO, peer, 6, NULL, 0, NO, peer, 6, world, &status) == MPI_SUCCESS);
    CHECK(MPI_Sendrecv_replace(NULL, 0, NO, peer, 6, peer, 6, world, &status) == MPI_SUCCESS);
    CHECK(MPI_Sendrecv(NULL, 0, NO, MPI_PROC_NULL, 6, NULL, 0, NO, MPI_PROC_NULL, 6, world, &status) == MPI_SUCCESS);
    /* Persistent and partitioned transfers. */
    CHECK(MPI_Send_init(NULL, 0, NO, peer, 7, world, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Recv_init(NULL, 0, NO, peer, 7, world, &requests[1]) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        CHECK(MPI_Startall(2, requests) == MPI_SUCCESS);
        wait_for_both();
    }
    CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS && MPI_Request_free(&requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Psend_init(NULL, 3, 0, NO, peer, 8, world, MPI_INFO_NULL, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Precv_init(NULL, 3, 0, NO, peer, 8, world, MPI_INFO_NULL, &requests[1]) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) {
        CHECK(MPI_Startall(2, requests) == MPI_SUCCESS && MPI_Pready_range(0, 2, requests[0]) == MPI_SUCCESS);
        wait_for_both();
    }
    CHECK(MPI_Request_free(&requests[0]) == MPI_SUCCESS && MPI_Request_free(&requests[1]) == MPI_SUCCESS);
    /* Collectives. */
    int none[2] = {0, 0}, one[2] = {1, 0};
    CHECK(MPI_Bcast(NULL, 0, NO, 0, world) == MPI_SUCCESS && MPI_Alltoall(NULL, 0, NO, NULL, 0, NO, world) == MPI_SUCCESS);
    CHECK(MPI_Allgatherv(NULL, 0, NO, NULL, none, none, NO, world) == MPI_SUCCESS);
    FAILS(MPI_Allgatherv(NULL, 0, NO, &byte, one, none, NO, world), MPI_ERR_TYPE);
    /* Elements need a datatype. */
    FAILS(MPI_Send(&byte, 1, NO, peer, 9, world), MPI_ERR_TYPE);
    FAILS(MPI_Irecv(&byte, 1, NO, peer, 9, world, &requests[0]), MPI_ERR_TYPE);
    FAILS(MPI_Psend_init(&byte, 3, 1, NO, peer, 9, world, MPI_INFO_NULL, &requests[0]), MPI_ERR_TYPE);
    FAILS(MPI_Send(NULL, -1, NO, peer, 9, world), MPI_ERR_TYPE);
    MPI_Finalize();
    return 0;
}
