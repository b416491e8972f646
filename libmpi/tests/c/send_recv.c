// ranks 2
#include "check.h"

static void plain(int other) {
    double data[3] = {rank, 2, 3}, got[4] = {0};
    MPI_Status status;
    int count = -1, flag = -1;
    if (rank == 0) {
        CHECK(MPI_Send(data, 3, MPI_DOUBLE, other, 5, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Ssend_c(data, 1, MPI_DOUBLE, other, 6, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Probe(other, 5, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        CHECK(MPI_Get_count(&status, MPI_DOUBLE, &count) == MPI_SUCCESS && count == 3);
        CHECK(MPI_Iprobe(other, 77, MPI_COMM_WORLD, &flag, &status) == MPI_SUCCESS && !flag);
        CHECK(MPI_Recv(got, 4, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
        CHECK(status.MPI_SOURCE == 0 && status.MPI_TAG == 5 && got[0] == 0 && got[2] == 3);
        CHECK(MPI_Get_count(&status, MPI_DOUBLE, &count) == MPI_SUCCESS && count == 3);
        CHECK(MPI_Recv_c(got, 4, MPI_DOUBLE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
}

static void exchange(int other) {
    int mine = rank + 10, theirs = -1;
    MPI_Status status;
    CHECK(MPI_Sendrecv(&mine, 1, MPI_INT, other, 1, &theirs, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &status)
          == MPI_SUCCESS);
    CHECK(theirs == other + 10 && status.MPI_SOURCE == other);
    CHECK(MPI_Sendrecv(&mine, 1, MPI_INT, MPI_PROC_NULL, 1, &theirs, 1, MPI_INT, MPI_PROC_NULL, 1,
                       MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG && theirs == other + 10);
}

/* A column of a matrix, sent as a vector and received as contiguous numbers; and from an absolute address. */
static void derived(int other) {
    int matrix[4][4], column[4] = {0}, length = -1;
    for (int i = 0; i < 16; i++) matrix[i / 4][i % 4] = 100 * rank + i;
    MPI_Datatype vector, four;
    CHECK(MPI_Type_vector(4, 1, 4, MPI_INT, &vector) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(4, MPI_INT, &four) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&vector) == MPI_SUCCESS && MPI_Type_commit(&four) == MPI_SUCCESS);
    CHECK(MPI_Type_size(vector, &length) == MPI_SUCCESS && length == 16);
    CHECK(MPI_Sendrecv(&matrix[0][1], 1, vector, other, 3, column, 1, four, other, 3, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) CHECK(column[i] == 100 * other + 4 * i + 1);
    CHECK(MPI_Type_free(&vector) == MPI_SUCCESS && vector == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_free(&four) == MPI_SUCCESS);
}

int main(void) {
    start();
    plain(1 - rank);
    exchange(1 - rank);
    derived(1 - rank);
    MPI_Finalize();
    return 0;
}
