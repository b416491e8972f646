// ranks 3
#include "check.h"
#define LONG 100000

static int many[LONG];

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD;
    int right = (rank + 1) % size, left = (rank + size - 1) % size, in = -1, count = -1;
    MPI_Status status;
    MPI_Request request;
    /* In a ring, where each message replaces the one that is sent. */
    int data[2] = {rank, 7};
    MPI_Sendrecv_replace(data, 2, MPI_INT, right, 1, left, 1, world, &status);
    CHECK(data[0] == left && data[1] == 7 && status.MPI_SOURCE == left && status.MPI_TAG == 1);
    MPI_Sendrecv_replace_c(data, 2, MPI_INT, left, 2, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
    CHECK(data[0] == rank && status.MPI_SOURCE == right && status.MPI_TAG == 2);
    /* That receive would take the messages that follow, too. */
    MPI_Barrier(world);
    for (int i = 0; i < LONG; i++) many[i] = rank;
    MPI_Isendrecv_replace(many, LONG, MPI_INT, right, 3, left, 3, world, &request);
    MPI_Wait(&request, &status);
    CHECK(request == MPI_REQUEST_NULL && many[0] == left && many[LONG - 1] == left);
    CHECK(status.MPI_SOURCE == left && status.MPI_TAG == 3);
    MPI_Sendrecv_replace(many, LONG, MPI_INT, right, 3, left, 3, world, MPI_STATUS_IGNORE);
    CHECK(many[LONG - 1] == (left + size - 1) % size);
    /* A shorter message comes. */
    int mine[4] = {rank, rank, rank, rank};
    MPI_Isendrecv(mine, rank + 1, MPI_INT, right, 4, many, 4, MPI_INT, left, 4, world, &request);
    MPI_Wait(&request, &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == left + 1 && many[left] == left);
    /* Columns of a matrix. */
    MPI_Datatype column;
    MPI_Type_vector(3, 1, 2, MPI_INT, &column);
    MPI_Type_commit(&column);
    int matrix[6] = {rank, -1, rank, -1, rank, -1};
    MPI_Sendrecv_replace(matrix, 1, column, right, 5, left, 5, world, MPI_STATUS_IGNORE);
    CHECK(matrix[0] == left && matrix[1] == -1 && matrix[4] == left && matrix[5] == -1);
    MPI_Isendrecv_replace_c(matrix, 1, column, left, 5, right, 5, world, &request);
    MPI_Type_free(&column);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(matrix[0] == rank && matrix[1] == -1 && matrix[4] == rank);
    /* With nobody at one end of a chain. */
    int next = rank + 1 < size ? right : MPI_PROC_NULL, before = rank > 0 ? left : MPI_PROC_NULL;
    in = rank;
    MPI_Sendrecv_replace(&in, 1, MPI_INT, next, 6, before, 6, world, &status);
    CHECK(in == (rank > 0 ? left : rank) && status.MPI_SOURCE == before);
    CHECK(status.MPI_TAG == (rank > 0 ? 6 : MPI_ANY_TAG));
    MPI_Isendrecv(&rank, 1, MPI_INT, before, 7, &in, 1, MPI_INT, next, 7, world, &request);
    MPI_Wait(&request, &status);
    CHECK(status.MPI_SOURCE == next && in == (rank + 1 < size ? right : rank > 0 ? left : rank));
    MPI_Isendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 7, &in, 1, MPI_INT, MPI_PROC_NULL, 7, world, &request);
    MPI_Wait(&request, &status);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);

    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    FAILS(MPI_Sendrecv_replace(&in, 1, MPI_INT, size, 1, left, 1, world, &status), MPI_ERR_RANK);
    FAILS(MPI_Sendrecv_replace(&in, 1, MPI_INT, right, -1, left, 1, world, &status), MPI_ERR_TAG);
    FAILS(MPI_Sendrecv_replace(NULL, 1, MPI_INT, right, 1, left, 1, world, &status), MPI_ERR_BUFFER);
    FAILS(MPI_Sendrecv_replace(&in, -1, MPI_INT, right, 1, left, 1, world, &status), MPI_ERR_COUNT);
    FAILS(MPI_Isendrecv(&in, 1, MPI_INT, right, MPI_ANY_TAG, &in, 1, MPI_INT, left, 1, world, &request), MPI_ERR_TAG);
    FAILS(MPI_Isendrecv(&in, 1, MPI_INT, right, 1, &in, 1, MPI_INT, -9, 1, world, &request), MPI_ERR_RANK);
    FAILS(MPI_Isendrecv_replace(&in, 1, MPI_DATATYPE_NULL, right, 1, left, 1, world, &request), MPI_ERR_TYPE);
    FAILS(MPI_Isendrecv_replace(&in, 1, MPI_INT, right, 1, left, 1, world, NULL), MPI_ERR_ARG);
    /* A message that does not fit fails the exchange, also a started one. */
    MPI_Isendrecv(mine, 2, MPI_INT, rank, 8, &in, 1, MPI_INT, rank, 8, world, &request);
    FAILS(MPI_Wait(&request, &status), MPI_ERR_TRUNCATE);
    FAILS(MPI_Sendrecv(mine, 2, MPI_INT, rank, 8, &in, 1, MPI_INT, rank, 8, world, &status), MPI_ERR_TRUNCATE);
    CHECK(status.MPI_SOURCE == rank && status.MPI_TAG == 8);
    MPI_Finalize();
    return 0;
}
