// ranks 3
#define _DEFAULT_SOURCE
/* Where mistakes between ranks are found, blocks with lengths of their own have the types and the lengths that the other
   rank expects, whatever the datatypes are, and bytes fit everything. Otherwise no rank has sent anything. */
#include "check.h"

int main(void) {
    setenv("MPJ_CHECK", "1", 1);
    start();
    MPI_Comm world = MPI_COMM_WORLD;
    float in[9] = {0}, out[9];
    int ones[3] = {1, 1, 1}, twos[3] = {2, 2, 2}, displs[3] = {0, 3, 6}, bytes[3] = {0, 12, 24}, fours[3] = {4, 4, 4};
    /* The last rank differs, or the one that it exchanges blocks with. */
    int differs = rank == 2;
    MPI_Datatype other = differs ? MPI_INT : MPI_FLOAT, pair, types[3] = {other, MPI_FLOAT, MPI_FLOAT};
    MPI_Request request;
    CHECK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Type_vector(2, 1, 2, MPI_FLOAT, &pair) == MPI_SUCCESS && MPI_Type_commit(&pair) == MPI_SUCCESS);
    MPI_Datatype mixed = differs ? pair : MPI_FLOAT, own = rank == 1 ? MPI_BYTE : MPI_FLOAT;
    int of_mixed = differs ? 1 : 2, of_own = rank == 1 ? 4 : 1;
    for (int turn = 0; turn < 2; turn++) {
        CHECK(MPI_Gatherv(in, of_mixed, mixed, out, twos, displs, MPI_FLOAT, turn, world) == MPI_SUCCESS);
        CHECK(MPI_Gatherv(in, of_own, own, out, ones, displs, MPI_FLOAT, turn, world) == MPI_SUCCESS);
        FAILS(MPI_Gatherv(in, 1, other, out, ones, displs, MPI_FLOAT, turn, world), MPI_ERR_TYPE);
        FAILS(MPI_Gatherv(in, 1 + differs, MPI_FLOAT, out, ones, displs, MPI_FLOAT, turn, world), MPI_ERR_COUNT);
        CHECK(MPI_Scatterv(in, ones, displs, MPI_FLOAT, out, of_own, own, turn, world) == MPI_SUCCESS);
        FAILS(MPI_Scatterv(in, ones, displs, MPI_FLOAT, out, 1, other, turn, world), MPI_ERR_TYPE);
    }
    CHECK(MPI_Allgatherv(in, of_mixed, mixed, out, twos, displs, MPI_FLOAT, world) == MPI_SUCCESS);
    FAILS(MPI_Allgatherv(in, 1, other, out, ones, displs, MPI_FLOAT, world), MPI_ERR_TYPE);
    CHECK(MPI_Alltoallv(in, rank == 1 ? fours : ones, rank == 1 ? bytes : displs, own, out, ones, displs, MPI_FLOAT, world) == MPI_SUCCESS);
    FAILS(MPI_Alltoallv(in, ones, displs, other, out, ones, displs, MPI_FLOAT, world), MPI_ERR_TYPE);
    /* Two mistakes that make up for each other in the sum of all lengths. */
    int crossed[3] = {1 + differs, 1, 1}, expected[3] = {1, 1 + (rank == 0), 1};
    FAILS(MPI_Alltoallv(in, crossed, displs, MPI_FLOAT, out, expected, displs, MPI_FLOAT, world), MPI_ERR_COUNT);
    FAILS(MPI_Alltoallw(in, ones, bytes, types, out, ones, bytes, (MPI_Datatype[]){MPI_FLOAT, MPI_FLOAT, MPI_FLOAT}, world), MPI_ERR_TYPE);
    CHECK(MPI_Iallgatherv(in, 1, other, out, ones, displs, MPI_FLOAT, world, &request) == MPI_SUCCESS);
    FAILS(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_TYPE);
    CHECK(MPI_Ialltoallv(in, rank == 1 ? fours : ones, rank == 1 ? bytes : displs, own, out, ones, displs, MPI_FLOAT, world, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&pair) == MPI_SUCCESS);
    return MPI_Finalize();
}
