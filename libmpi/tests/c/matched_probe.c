// ranks 2
#include "check.h"
#define LONG 100000

static int many[LONG], got[LONG];

static void receives(int other) {
    MPI_Message message, first;
    MPI_Status status;
    MPI_Request request;
    int flag = -1, count = -1, in = -1;
    /* The first message is taken; a receive gets the second one. */
    CHECK(MPI_Mprobe(other, 1, MPI_COMM_WORLD, &message, &status) == MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 1);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 1);
    MPI_Recv(&in, 1, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(in == 11);
    first = message;
    CHECK(MPI_Message_fromint(MPI_Message_toint(message)) == message);
    FAILS(MPI_Mrecv(NULL, 1, MPI_INT, &message, &status), MPI_ERR_BUFFER);
    CHECK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status) == MPI_SUCCESS);
    CHECK(in == 10 && message == MPI_MESSAGE_NULL && status.MPI_SOURCE == other && status.MPI_TAG == 1);
    FAILS(MPI_Mrecv(&in, 1, MPI_INT, &message, &status), MPI_ERR_REQUEST);
    FAILS(MPI_Imrecv(&in, 1, MPI_INT, &first, &request), MPI_ERR_REQUEST);
    /* Long messages, whose data have not come yet. */
    do {
        CHECK(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status) == MPI_SUCCESS);
    } while (!flag);
    CHECK(status.MPI_TAG == 2);
    CHECK(MPI_Imrecv_c(got, LONG, MPI_INT, &message, &request) == MPI_SUCCESS && message == MPI_MESSAGE_NULL);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_TAG == 2 && got[LONG - 1] == LONG - 1);
    CHECK(MPI_Mprobe(other, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    FAILS(MPI_Mrecv(&in, 1, MPI_INT, &message, &status), MPI_ERR_TRUNCATE);
    CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 3);
    CHECK(message == MPI_MESSAGE_NULL);
    CHECK(MPI_Improbe(other, 4, MPI_COMM_WORLD, &flag, &message, &status) == MPI_SUCCESS && !flag);
}

static void sends(int other) {
    for (int i = 0; i < LONG; i++) many[i] = i;
    int out[2] = {10, 11};
    MPI_Send(&out[0], 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    MPI_Send(&out[1], 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    MPI_Ssend(many, LONG, MPI_INT, other, 2, MPI_COMM_WORLD);
    MPI_Ssend(many, 2, MPI_INT, other, 3, MPI_COMM_WORLD);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) sends(1);
    else receives(0);
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    int flag = 0, in = 5, count = -1;
    CHECK(MPI_Mprobe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &message, &status) == MPI_SUCCESS);
    CHECK(message == MPI_MESSAGE_NO_PROC && status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
    CHECK(MPI_Mrecv(&in, 1, MPI_INT, &message, &status) == MPI_SUCCESS && message == MPI_MESSAGE_NULL);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && in == 5);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    CHECK(MPI_Improbe(MPI_PROC_NULL, 1, MPI_COMM_WORLD, &flag, &message, &status) == MPI_SUCCESS && flag);
    CHECK(MPI_Imrecv(&in, 1, MPI_INT, &message, &request) == MPI_SUCCESS && message == MPI_MESSAGE_NULL);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && status.MPI_SOURCE == MPI_PROC_NULL);
    FAILS(MPI_Mprobe(size, 1, MPI_COMM_WORLD, &message, &status), MPI_ERR_RANK);
    FAILS(MPI_Improbe(0, -7, MPI_COMM_WORLD, &flag, &message, &status), MPI_ERR_TAG);
    FAILS(MPI_Mprobe(0, 1, MPI_COMM_NULL, &message, &status), MPI_ERR_COMM);
    FAILS(MPI_Mprobe(0, 1, MPI_COMM_WORLD, NULL, &status), MPI_ERR_ARG);
    MPI_Finalize();
    return 0;
}
