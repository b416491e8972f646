// ranks 3
#include "check.h"

int main(void) {
    start();
    int in[12] = {0}, out[12] = {0}, counts[3] = {1, 1, 1}, displs[3] = {0, 1, 2}, bad[3] = {1, -1, 1};
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type, types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    /* All of these fail on every rank, before anything is sent. */
    FAILS(MPI_Bcast(in, -1, MPI_INT, 0, world), MPI_ERR_COUNT);
    FAILS(MPI_Bcast_c(in, -1, MPI_INT, 0, world), MPI_ERR_COUNT);
    FAILS(MPI_Bcast(NULL, 1, MPI_INT, 0, world), MPI_ERR_BUFFER);
    FAILS(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, world), MPI_ERR_BUFFER);
    FAILS(MPI_Bcast(in, 1, MPI_DATATYPE_NULL, 0, world), MPI_ERR_TYPE);
    FAILS(MPI_Bcast(in, 1, MPI_INT, 0, MPI_COMM_NULL), MPI_ERR_COMM);
    FAILS(MPI_Ibcast(in, 1, MPI_INT, 0, world, NULL), MPI_ERR_ARG);
    FAILS(MPI_Bcast_init(in, 1, MPI_INT, 0, world, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    FAILS(MPI_Ibcast(in, -1, MPI_INT, 0, world, &request), MPI_ERR_COUNT);
    CHECK(request == MPI_REQUEST_NULL);
    int roots[4] = {size, -1, MPI_ROOT, MPI_PROC_NULL};
    for (int i = 0; i < 4; i++) {
        FAILS(MPI_Bcast(in, 1, MPI_INT, roots[i], world), MPI_ERR_ROOT);
        FAILS(MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, roots[i], world), MPI_ERR_ROOT);
        FAILS(MPI_Scatterv(in, counts, displs, MPI_INT, out, 1, MPI_INT, roots[i], world), MPI_ERR_ROOT);
        FAILS(MPI_Reduce(in, out, 1, MPI_INT, MPI_SUM, roots[i], world), MPI_ERR_ROOT);
    }
    FAILS(MPI_Gather(in, -1, MPI_INT, out, -1, MPI_INT, 0, world), MPI_ERR_COUNT);
    FAILS(MPI_Gather(rank == 0 ? (void *)in : MPI_IN_PLACE, 1, MPI_INT, rank == 0 ? NULL : (void *)out, 1, MPI_INT, 0, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(in, 1, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(in, 1, MPI_INT, in, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(in, 1, MPI_INT, out, -1, MPI_INT, world), MPI_ERR_COUNT);
    FAILS(MPI_Allgatherv(in, 1, MPI_INT, out, bad, displs, MPI_INT, world), MPI_ERR_COUNT);
    FAILS(MPI_Allgatherv(in, 1, MPI_INT, out, NULL, displs, MPI_INT, world), MPI_ERR_ARG);
    FAILS(MPI_Allgatherv(in, 1, MPI_INT, out, counts, NULL, MPI_INT, world), MPI_ERR_ARG);
    FAILS(MPI_Allgatherv(in, 1, MPI_INT, NULL, counts, displs, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoall(in, 1, MPI_INT, NULL, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoall(NULL, 1, MPI_INT, out, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoallv(in, bad, displs, MPI_INT, out, counts, displs, MPI_INT, world), MPI_ERR_COUNT);
    FAILS(MPI_Alltoallv(in, counts, displs, MPI_INT, out, counts, displs, MPI_DATATYPE_NULL, world), MPI_ERR_TYPE);
    FAILS(MPI_Alltoallw(in, counts, displs, types, out, counts, displs, NULL, world), MPI_ERR_ARG);
    types[1] = MPI_DATATYPE_NULL;
    FAILS(MPI_Alltoallw(in, counts, displs, types, out, counts, displs, types, world), MPI_ERR_TYPE);
    FAILS(MPI_Reduce(in, rank == 0 ? in : out, 1, MPI_INT, rank == 0 ? MPI_SUM : MPI_OP_NULL, 0, world), rank == 0 ? MPI_ERR_BUFFER : MPI_ERR_OP);
    FAILS(MPI_Allreduce(in, in, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(in, MPI_IN_PLACE, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(in, NULL, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(in, out, -1, MPI_INT, MPI_SUM, world), MPI_ERR_COUNT);
    FAILS(MPI_Allreduce(in, out, 1, MPI_INT, (MPI_Op)(size_t)0x123456, world), MPI_ERR_OP);
    FAILS(MPI_Allreduce(in, out, 1, MPI_INT, MPI_REPLACE, world), MPI_ERR_OP);
    FAILS(MPI_Iallreduce(in, out, 1, MPI_INT, MPI_NO_OP, world, &request), MPI_ERR_OP);
    FAILS(MPI_Reduce_scatter(in, out, bad, MPI_INT, MPI_SUM, world), MPI_ERR_COUNT);
    FAILS(MPI_Reduce_scatter(in, out, NULL, MPI_INT, MPI_SUM, world), MPI_ERR_ARG);
    FAILS(MPI_Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, world), MPI_ERR_COUNT);
    FAILS(MPI_Scan(in, out, 1, MPI_INT, MPI_MINLOC, world), MPI_ERR_OP);
    FAILS(MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, world), MPI_ERR_TOPOLOGY);
    FAILS(MPI_Ineighbor_alltoallw(in, counts, NULL, types, out, counts, NULL, types, world, &request), MPI_ERR_TOPOLOGY);
    /* A predefined operation has no meaning on a derived datatype; one that is not committed cannot be used. */
    CHECK(MPI_Type_contiguous(2, MPI_INT, &type) == MPI_SUCCESS);
    FAILS(MPI_Bcast(in, 1, type, 0, world), MPI_ERR_TYPE);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    FAILS(MPI_Allreduce(in, out, 1, type, MPI_SUM, world), MPI_ERR_OP);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    /* More elements than there can be. */
    FAILS(MPI_Allgather_c(in, 1, MPI_INT, out, (MPI_Count)1 << 62, MPI_INT, world), MPI_ERR_COUNT);
    /* A mistake that shows when the message comes is the outcome of the request, and all goes on. Where mistakes between
       ranks are found, no message is sent, and all ranks learn of it. */
    int checked = getenv("MPJ_CHECK") ? MPI_ERR_COUNT : MPI_SUCCESS;
    for (int turn = 0; turn < 2; turn++) {
        int code;
        if (turn == 0) {
            code = MPI_Bcast(in, rank == 0 ? 4 : 2, MPI_INT, 0, world);
        } else {
            CHECK(MPI_Ibcast(in, rank == 0 ? 4 : 2, MPI_INT, 0, world, &request) == MPI_SUCCESS);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        FAILS(code, checked ? checked : rank == 0 ? MPI_SUCCESS : MPI_ERR_TRUNCATE);
    }
    for (int turn = 0; turn < 2; turn++) {
        int code;
        if (turn == 0) {
            code = MPI_Bcast(in, rank == 0 ? 2 : 4, MPI_INT, 0, world);
        } else {
            CHECK(MPI_Ibcast(in, rank == 0 ? 2 : 4, MPI_INT, 0, world, &request) == MPI_SUCCESS);
            code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        FAILS(code, checked ? checked : rank == 0 ? MPI_SUCCESS : MPI_ERR_COUNT);
    }
    in[0] = 1;
    CHECK(MPI_Allreduce(in, out, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS && out[0] == size);
    MPI_Finalize();
    return 0;
}
