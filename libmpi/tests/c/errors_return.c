// ranks 2
#include "check.h"

int main(void) {
    start();
    int data = 1, length, flag;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Request request, requests[2];
    MPI_Status statuses[2];
    MPI_Datatype type;
    MPI_Comm world = MPI_COMM_WORLD;
    CHECK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Send(&data, -1, MPI_INT, 0, 0, world), MPI_ERR_COUNT);
    FAILS(MPI_Send(NULL, 1, MPI_INT, 0, 0, world), MPI_ERR_BUFFER);
    FAILS(MPI_Send(&data, 1, MPI_DATATYPE_NULL, 0, 0, world), MPI_ERR_TYPE);
    FAILS(MPI_Send(&data, 1, (MPI_Datatype)(size_t)0x12345678, 0, 0, world), MPI_ERR_TYPE);
    FAILS(MPI_Send(&data, 1, MPI_INT, size, 0, world), MPI_ERR_RANK);
    FAILS(MPI_Send(&data, 1, MPI_INT, MPI_ANY_SOURCE, 0, world), MPI_ERR_RANK);
    FAILS(MPI_Send(&data, 1, MPI_INT, 0, -1, world), MPI_ERR_TAG);
    FAILS(MPI_Send(&data, 1, MPI_INT, 0, MPI_ANY_TAG, world), MPI_ERR_TAG);
    FAILS(MPI_Send(&data, 1, MPI_INT, 0, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Recv(&data, 1, MPI_INT, size, 0, world, MPI_STATUS_IGNORE), MPI_ERR_RANK);
    FAILS(MPI_Recv(&data, 1, MPI_INT, 0, -5, world, MPI_STATUS_IGNORE), MPI_ERR_TAG);
    FAILS(MPI_Isend(&data, 1, MPI_INT, 0, 0, world, NULL), MPI_ERR_ARG);
    FAILS(MPI_Comm_rank(world, NULL), MPI_ERR_ARG);
    FAILS(MPI_Allreduce(&data, &length, 1, MPI_INT, MPI_OP_NULL, world), MPI_ERR_OP);
    FAILS(MPI_Allreduce(&data, &length, 1, MPI_WCHAR, MPI_SUM, world), MPI_ERR_OP);
    FAILS(MPI_Comm_free(&world), MPI_ERR_COMM);
    request = (MPI_Request)(size_t)0x7654321;
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    FAILS(MPI_Error_class(-1, &length), MPI_ERR_ARG);
    /* A datatype is used only after its commit. */
    CHECK(MPI_Type_contiguous(2, MPI_INT, &type) == MPI_SUCCESS);
    FAILS(MPI_Send(&data, 1, type, 0, 0, world), MPI_ERR_TYPE);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Error_string(MPI_ERR_TRUNCATE, text, &length) == MPI_SUCCESS && strstr(text, "TRUNCATE"));
    /* A message that is too long, alone and among others. Everything stays usable. */
    int two[2] = {1, 2};
    CHECK(MPI_Isend(two, 2, MPI_INT, rank, 1, world, &request) == MPI_SUCCESS);
    memset(statuses, 77, sizeof statuses);
    FAILS(MPI_Recv(&data, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &statuses[0]), MPI_ERR_TRUNCATE);
    CHECK(statuses[0].MPI_SOURCE == rank && statuses[0].MPI_TAG == 1);
    CHECK(MPI_Get_count(&statuses[0], MPI_INT, &length) == MPI_SUCCESS && length == 1);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Irecv(&data, 1, MPI_INT, rank, 1, world, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Irecv(two, 2, MPI_INT, rank, 2, world, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Send(two, 2, MPI_INT, rank, 1, world) == MPI_SUCCESS);
    CHECK(MPI_Send(two, 2, MPI_INT, rank, 2, world) == MPI_SUCCESS);
    FAILS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
    CHECK(statuses[0].MPI_ERROR == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS);
    CHECK(statuses[0].MPI_SOURCE == rank && statuses[0].MPI_TAG == 1 && statuses[1].MPI_TAG == 2);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    CHECK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, world, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    CHECK(MPI_Barrier(world) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
