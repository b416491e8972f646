/* Calls of two ranks that do not fit together, and buffers that overlap, which a job with --check finds. */
#include "../check.h"

static int ints[64], more[64];

/* Rank 0 sends INT and rank 1 receives FLOAT, in each way in which messages are sent and received. */
static void messages(MPI_Comm world) {
    enum { SEND, BSEND, SEND_INIT, BSEND_INIT, SENDRECV, ISENDRECV, REPLACE, WAYS };
    enum { RECV, RECV_INIT, MRECV, IMRECV, RECEIVES };
    static char room[4096];
    int data[4] = {1, 2, 3, 4};
    float got[4] = {0};
    MPI_Request request;
    MPI_Message message;
    MPI_Buffer_attach(room, sizeof room);
    for (int way = 0; way < WAYS * RECEIVES; way++) {
        if (rank == 0) {
            switch (way / RECEIVES) {
            case SEND: MPI_Send(data, 4, MPI_INT, 1, 7, world); break;
            case BSEND: MPI_Bsend(data, 4, MPI_INT, 1, 7, world); break;
            case SENDRECV:
                MPI_Sendrecv(data, 4, MPI_INT, 1, 7, got, 4, MPI_FLOAT, MPI_PROC_NULL, 0, world, MPI_STATUS_IGNORE);
                break;
            case REPLACE:
                MPI_Sendrecv_replace(data, 4, MPI_INT, 1, 7, MPI_PROC_NULL, 0, world, MPI_STATUS_IGNORE);
                break;
            case ISENDRECV:
                MPI_Isendrecv(data, 4, MPI_INT, 1, 7, got, 4, MPI_FLOAT, MPI_PROC_NULL, 0, world, &request);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                break;
            default:
                if (way / RECEIVES == SEND_INIT)
                    MPI_Send_init(data, 4, MPI_INT, 1, 7, world, &request);
                else
                    MPI_Bsend_init(data, 4, MPI_INT, 1, 7, world, &request);
                MPI_Start(&request), MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_Request_free(&request);
            }
        } else {
            switch (way % RECEIVES) {
            case RECV:
                FAILS(MPI_Sendrecv(data, 1, MPI_INT, MPI_PROC_NULL, 0, got, 4, MPI_FLOAT, 0, 7, world, MPI_STATUS_IGNORE),
                      MPI_ERR_TYPE);
                break;
            case RECV_INIT:
                CHECK(MPI_Recv_init(got, 4, MPI_FLOAT, 0, 7, world, &request) == MPI_SUCCESS);
                CHECK(MPI_Start(&request) == MPI_SUCCESS);
                FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
                CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
                break;
            case MRECV:
                CHECK(MPI_Mprobe(0, 7, world, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS);
                FAILS(MPI_Mrecv(got, 4, MPI_FLOAT, &message, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
                break;
            default:
                CHECK(MPI_Mprobe(0, 7, world, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS);
                CHECK(MPI_Imrecv(got, 4, MPI_FLOAT, &message, &request) == MPI_SUCCESS);
                FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
            }
        }
    }
    void *address;
    int length;
    MPI_Buffer_detach(&address, &length);
}

/* Receives under way into places that overlap; those side by side, or after each other, do not. */
static void places(MPI_Comm world) {
    MPI_Request requests[2];
    if (rank == 0) {
        for (int i = 0; i < 3; i++) CHECK(MPI_Send(ints, 4, MPI_INT, 1, 8, world) == MPI_SUCCESS);
        return;
    }
    CHECK(MPI_Irecv(more, 4, MPI_INT, 0, 9, world, requests) == MPI_SUCCESS);
    FAILS(MPI_Irecv(more + 3, 4, MPI_INT, 0, 8, world, requests + 1), MPI_ERR_BUFFER);
    FAILS(MPI_Recv(more, 1, MPI_INT, 0, 8, world, MPI_STATUS_IGNORE), MPI_ERR_BUFFER);
    CHECK(MPI_Irecv(more + 3, 0, MPI_INT, MPI_PROC_NULL, 8, world, requests + 1) == MPI_SUCCESS);
    CHECK(MPI_Wait(requests + 1, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Irecv(more + 4, 4, MPI_INT, 0, 8, world, requests + 1) == MPI_SUCCESS);
    CHECK(MPI_Wait(requests + 1, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Recv(more + 4, 4, MPI_INT, 0, 8, world, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Cancel(requests) == MPI_SUCCESS && MPI_Wait(requests, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Recv(more, 4, MPI_INT, 0, 8, world, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

int main(int argc, char **argv) {
    MPI_Datatype columns, halves;
    MPI_Request request;
    double reals[64] = {0};
    MPI_Comm world = MPI_COMM_WORLD;
    start();
    int other = 1 - rank;
    void *first = rank == 0 ? (void *)reals : (void *)ints;
    MPI_Datatype type = rank == 0 ? MPI_FLOAT : MPI_INT;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    /* Types that differ between ranks, or between what a rank sends and what it receives. */
    FAILS(MPI_Bcast(first, rank == 0 ? 2 : 4, rank == 0 ? MPI_DOUBLE : MPI_INT, 0, world), MPI_ERR_TYPE);
    FAILS(MPI_Gather(ints, 4, type, more, 4, MPI_INT, 0, world), MPI_ERR_TYPE);
    FAILS(MPI_Scatter(more, 4, MPI_INT, ints, 4, type, 1, world), MPI_ERR_TYPE);
    FAILS(MPI_Allgather(ints, 4, MPI_INT, more, 4, type, world), MPI_ERR_TYPE);
    FAILS(MPI_Alltoall(ints, 4, type, more, 4, MPI_INT, world), MPI_ERR_TYPE);
    CHECK(MPI_Ibcast(ints, 4, type, 0, world, &request) == MPI_SUCCESS);
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    /* One rank's buffers overlap: by a part, or as the columns of a matrix do. */
    FAILS(MPI_Gather(rank == 1 ? ints : more + 4, 4, MPI_INT, more, 4, MPI_INT, 0, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(ints, rank == 1 ? ints + 1 : more, 2, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    CHECK(MPI_Type_vector(4, 2, 4, MPI_INT, &columns) == MPI_SUCCESS && MPI_Type_commit(&columns) == MPI_SUCCESS);
    CHECK(MPI_Type_vector(4, 1, 4, MPI_INT, &halves) == MPI_SUCCESS && MPI_Type_commit(&halves) == MPI_SUCCESS);
    FAILS(MPI_Sendrecv(ints, 1, columns, other, 0, ints + 1, 1, columns, other, 0, world, MPI_STATUS_IGNORE),
          MPI_ERR_BUFFER);
    FAILS(MPI_Isendrecv(ints, 4, MPI_INT, other, 0, ints + 3, 4, MPI_INT, other, 0, world, &request), MPI_ERR_BUFFER);

    /* What fits: other datatypes with the same types, buffers side by side or in each other's gaps, packed data. */
    for (int i = 0; i < 64; i++) ints[i] = 100 * rank + i;
    CHECK(MPI_Sendrecv(ints, 1, columns, other, 0, ints + 2, 1, columns, other, 0, world, MPI_STATUS_IGNORE)
          == MPI_SUCCESS && ints[14] == 100 * other + 12 && ints[15] == 100 * other + 13);
    CHECK(MPI_Sendrecv(ints, 4, MPI_INT, MPI_PROC_NULL, 0, ints, 4, MPI_INT, MPI_PROC_NULL, 0, world, MPI_STATUS_IGNORE)
          == MPI_SUCCESS);
    CHECK(rank == 0 ? MPI_Bcast(ints, 1, halves, 0, world) == MPI_SUCCESS
                    : MPI_Bcast(ints, 4, MPI_INT, 0, world) == MPI_SUCCESS && ints[1] == 4);
    CHECK(MPI_Allgather(ints, 4, MPI_INT, ints + 4, 4, MPI_INT, world) == MPI_SUCCESS);
    CHECK(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, 4, MPI_INT, world) == MPI_SUCCESS);
    CHECK(MPI_Bcast(ints, rank == 0 ? 4 : 16, rank == 0 ? MPI_INT : MPI_BYTE, 0, world) == MPI_SUCCESS);
    CHECK(MPI_Bcast(ints, rank == 0 ? 4 : 16, rank == 0 ? MPI_INT : MPI_PACKED, 0, world) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Send(ints, 16, MPI_PACKED, 1, 1, world) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Recv(ints, 4, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    messages(world);
    places(world);
    MPI_Type_free(&columns), MPI_Type_free(&halves);
    return MPI_Finalize();
}
