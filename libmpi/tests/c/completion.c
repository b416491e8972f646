// ranks 2
#include "check.h"

static const int error_of_the_program = 1234567;

/* The calls for several requests with and without statuses, and the error codes in them. */
static void statuses(int other) {
    int in[3], two[2] = {1, 2}, flag = -1, count = -1, indices[3], index = -1;
    MPI_Request requests[3], none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[3], status;
    for (int i = 0; i < 3; i++) statuses[i].MPI_ERROR = error_of_the_program;
    status.MPI_ERROR = error_of_the_program;
    /* Where nothing fails, the error codes stay as they are. */
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) MPI_Send(&rank, 1, MPI_INT, other, i, MPI_COMM_WORLD);
    CHECK(MPI_Waitall(3, requests, statuses) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) CHECK(statuses[i].MPI_ERROR == error_of_the_program && in[i] == other);
    /* One fails: all have a code. */
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) MPI_Send(two, i == 1 ? 2 : 1, MPI_INT, other, i, MPI_COMM_WORLD);
    FAILS(MPI_Waitall(3, requests, statuses), MPI_ERR_IN_STATUS);
    for (int i = 0; i < 3; i++) {
        CHECK(statuses[i].MPI_ERROR == (i == 1 ? MPI_ERR_TRUNCATE : MPI_SUCCESS));
        CHECK(requests[i] == MPI_REQUEST_NULL);
    }
    /* Without statuses. */
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) MPI_Send(two, i == 1 ? 2 : 1, MPI_INT, other, i, MPI_COMM_WORLD);
    int code, failures = 0;
    do {
        code = MPI_Testall(3, requests, &flag, MPI_STATUSES_IGNORE);
        failures += code != MPI_SUCCESS;
    } while (!flag);
    CHECK(failures == 1);
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < 3; i++) MPI_Send(two, i == 1 ? 2 : 1, MPI_INT, other, i, MPI_COMM_WORLD);
    int done = 0;
    failures = 0;
    while (done < 3) {
        code = MPI_Waitsome(3, requests, &count, indices, statuses);
        for (int i = 0; i < count; i++)
            if (code != MPI_SUCCESS && statuses[i].MPI_ERROR != MPI_SUCCESS) {
                CHECK(indices[i] == 1 && statuses[i].MPI_ERROR == MPI_ERR_TRUNCATE);
                failures++;
            }
        done += count;
    }
    CHECK(failures == 1);
    /* Calls that end one operation return its own error. */
    MPI_Irecv(&in[0], 1, MPI_INT, other, 9, MPI_COMM_WORLD, &requests[0]);
    MPI_Send(two, 2, MPI_INT, other, 9, MPI_COMM_WORLD);
    FAILS(MPI_Waitany(3, requests, &index, &status), MPI_ERR_TRUNCATE);
    CHECK(index == 0 && requests[0] == MPI_REQUEST_NULL && status.MPI_ERROR == error_of_the_program);
    CHECK(status.MPI_SOURCE == other && status.MPI_TAG == 9);
    /* Nothing to wait for. */
    CHECK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Waitall(2, none, statuses) == MPI_SUCCESS && statuses[1].MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK(MPI_Testall(2, none, &flag, statuses) == MPI_SUCCESS && flag);
    CHECK(MPI_Waitany(2, none, &index, &status) == MPI_SUCCESS && index == MPI_UNDEFINED);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && status.MPI_TAG == MPI_ANY_TAG);
    CHECK(MPI_Testany(2, none, &index, &flag, &status) == MPI_SUCCESS && flag && index == MPI_UNDEFINED);
    CHECK(MPI_Testsome(2, none, &count, indices, statuses) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Testany(0, NULL, &index, &flag, &status) == MPI_SUCCESS && flag && index == MPI_UNDEFINED);
}

/* The calls that look at requests without ending them. */
static void looks(int other) {
    int in[3], flag = -1, count = -1, indices[3], index = -1;
    MPI_Request requests[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[4], status;
    CHECK(MPI_Request_get_status(MPI_REQUEST_NULL, &flag, &status) == MPI_SUCCESS && flag);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE);
    CHECK(MPI_Request_get_status_any(4, requests, &index, &flag, &status) == MPI_SUCCESS && flag);
    CHECK(index == MPI_UNDEFINED);
    CHECK(MPI_Request_get_status_some(4, requests, &count, indices, statuses) == MPI_SUCCESS);
    CHECK(count == MPI_UNDEFINED);
    CHECK(MPI_Request_get_status_all(4, requests, &flag, statuses) == MPI_SUCCESS && flag);
    for (int i = 0; i < 3; i++) MPI_Irecv(&in[i], 1, MPI_INT, other, i, MPI_COMM_WORLD, &requests[i]);
    CHECK(MPI_Request_get_status_any(4, requests, &index, &flag, &status) == MPI_SUCCESS && !flag);
    CHECK(MPI_Request_get_status_some(4, requests, &count, indices, statuses) == MPI_SUCCESS && count == 0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
    do MPI_Request_get_status_any(4, requests, &index, &flag, &status); while (!flag);
    CHECK(index == 1 && status.MPI_TAG == 1 && in[1] == other && requests[1] != MPI_REQUEST_NULL);
    CHECK(MPI_Request_get_status(requests[1], &flag, &status) == MPI_SUCCESS && flag && status.MPI_TAG == 1);
    CHECK(MPI_Request_get_status(requests[0], &flag, &status) == MPI_SUCCESS && !flag);
    CHECK(MPI_Request_get_status_some(4, requests, &count, indices, statuses) == MPI_SUCCESS);
    CHECK(count == 1 && indices[0] == 1 && statuses[0].MPI_TAG == 1);
    CHECK(MPI_Request_get_status_all(4, requests, &flag, statuses) == MPI_SUCCESS && !flag);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, other, 0, MPI_COMM_WORLD);
    MPI_Send(&rank, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
    do MPI_Request_get_status_all(4, requests, &flag, statuses); while (!flag);
    for (int i = 0; i < 3; i++) CHECK(statuses[i].MPI_TAG == i && statuses[i].MPI_SOURCE == other);
    CHECK(MPI_Request_get_status_all(4, requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag);
    CHECK(MPI_Waitall(4, requests, statuses) == MPI_SUCCESS && statuses[2].MPI_TAG == 2);
}

static void wrong(void) {
    int flag, index, in;
    MPI_Status status, statuses[2];
    MPI_Request requests[2];
    FAILS(MPI_Waitall(-1, requests, MPI_STATUSES_IGNORE), MPI_ERR_COUNT);
    FAILS(MPI_Waitall(1, NULL, MPI_STATUSES_IGNORE), MPI_ERR_ARG);
    FAILS(MPI_Wait(NULL, &status), MPI_ERR_ARG);
    MPI_Irecv(&in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[0]);
    FAILS(MPI_Test(&requests[0], NULL, &status), MPI_ERR_ARG);
    FAILS(MPI_Waitany(1, requests, NULL, &status), MPI_ERR_ARG);
    FAILS(MPI_Testany(1, requests, &index, NULL, &status), MPI_ERR_ARG);
    /* The same request twice, which ends once. */
    requests[1] = requests[0];
    MPI_Send(&rank, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
    FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPI_SUCCESS && statuses[0].MPI_TAG == 3 && in == rank);
    CHECK(statuses[1].MPI_ERROR == MPI_ERR_REQUEST && requests[0] == MPI_REQUEST_NULL);
    FAILS(MPI_Test(&requests[1], &flag, &status), MPI_ERR_REQUEST);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    statuses(1 - rank);
    MPI_Barrier(MPI_COMM_WORLD);
    looks(1 - rank);
    wrong();
    MPI_Finalize();
    return 0;
}
