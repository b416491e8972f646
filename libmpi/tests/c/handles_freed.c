// ranks 2
#include "check.h"

int main(void) {
    start();
    int data = rank, got = -1, other = 1 - rank, value;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* A communicator that is freed lives until its operations end. */
    MPI_Comm twin, kept;
    MPI_Request request, stale;
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    kept = twin;
    CHECK(MPI_Comm_toint(twin) > 4095);
    CHECK(MPI_Irecv(&got, 1, MPI_INT, other, 1, twin, &request) == MPI_SUCCESS);
    stale = request;
    CHECK(MPI_Send(&data, 1, MPI_INT, other, 1, twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS && twin == MPI_COMM_NULL);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && got == other);
    FAILS(MPI_Comm_rank(kept, &value), MPI_ERR_COMM);
    FAILS(MPI_Send(&data, 1, MPI_INT, other, 1, kept), MPI_ERR_COMM);
    FAILS(MPI_Comm_free(&kept), MPI_ERR_COMM);
    FAILS(MPI_Wait(&stale, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    /* A handle of another kind. */
    MPI_Datatype type, old;
    CHECK(MPI_Type_contiguous(3, MPI_INT, &type) == MPI_SUCCESS && MPI_Type_commit(&type) == MPI_SUCCESS);
    FAILS(MPI_Comm_rank(MPI_Comm_fromint(MPI_Type_toint(type)), &value), MPI_ERR_COMM);
    MPI_Request wrong = MPI_Request_fromint(MPI_Type_toint(type));
    FAILS(MPI_Wait(&wrong, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    CHECK(MPI_Type_size(type, &value) == MPI_SUCCESS && value == 12);
    old = type;
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    for (int i = 0; i < 100; i++) {
        CHECK(MPI_Type_contiguous(i + 1, MPI_INT, &type) == MPI_SUCCESS);
        FAILS(MPI_Type_size(old, &value), MPI_ERR_TYPE);
        CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    }
    /* A datatype that is freed stays in the datatypes and the operations that use it. */
    int six[6] = {0};
    MPI_Datatype three, both;
    CHECK(MPI_Type_contiguous(3, MPI_INT, &three) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(2, three, &both) == MPI_SUCCESS && MPI_Type_free(&three) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&both) == MPI_SUCCESS);
    CHECK(MPI_Irecv(six, 1, both, rank, 2, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&both) == MPI_SUCCESS);
    int numbers[6] = {1, 2, 3, 4, 5, 6};
    CHECK(MPI_Send(numbers, 6, MPI_INT, rank, 2, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && six[5] == 6);
    MPI_Finalize();
    return 0;
}
