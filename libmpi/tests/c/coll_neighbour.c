// ranks 4
#include "forms.h"

static int in[MOST], out[MOST];

/* Checks all collectives among neighbours: `sources[i]` sends to this rank by its edge `edges[i]`. */
static void exchange(MPI_Comm comm, int degree_in, const int *sources, const int *edges) {
    int counts[8], sdispls[8], rdispls[8];
    MPI_Count long_counts[8];
    MPI_Aint long_displs[8], bytes[8], back[8];
    MPI_Datatype types[8];
    for (int i = 0; i < 8; i++) {
        long_counts[i] = counts[i] = 2;
        sdispls[i] = 2 * i;
        rdispls[i] = 3 * (7 - i);
        long_displs[i] = 2 * i;
        bytes[i] = 2 * i * (MPI_Aint)sizeof(int);
        back[i] = rdispls[i] * (MPI_Aint)sizeof(int);
        types[i] = MPI_INT;
    }
#define RESET                                                   \
    fill(out, MOST, -1);                                        \
    for (int i_ = 0; i_ < MOST; i_++)                           \
        in[i_] = 100 * rank + i_
/* From MPI_PROC_NULL comes nothing. */
#define VERIFY(at, edge)                                                              \
    for (int i = 0; i < degree_in; i++)                                               \
        for (int k = 0; k < 2; k++)                                                   \
            CHECK(out[(at) + k] == (sources[i] == MPI_PROC_NULL ? -1 : 100 * sources[i] + 2 * (edge) + k))
    ALL_FORMS(Neighbor_allgather, Ineighbor_allgather, RESET, VERIFY(2 * i, 0), in, 2, MPI_INT, out, 2, MPI_INT, comm);
    FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, , RESET, VERIFY(rdispls[i], 0), in, 2, MPI_INT, out, counts, rdispls, MPI_INT, comm);
    FORMS(Neighbor_allgatherv, Ineighbor_allgatherv, _c, RESET, VERIFY(2 * i, 0), in, 2, MPI_INT, out, long_counts, long_displs, MPI_INT, comm);
    ALL_FORMS(Neighbor_alltoall, Ineighbor_alltoall, RESET, VERIFY(2 * i, edges[i]), in, 2, MPI_INT, out, 2, MPI_INT, comm);
    FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, , RESET, VERIFY(rdispls[i], edges[i]), in, counts, sdispls, MPI_INT, out, counts, rdispls, MPI_INT, comm);
    FORMS(Neighbor_alltoallv, Ineighbor_alltoallv, _c, RESET, VERIFY(2 * i, edges[i]), in, long_counts, long_displs, MPI_INT, out, long_counts, long_displs, MPI_INT, comm);
    FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, , RESET, VERIFY(rdispls[i], edges[i]), in, counts, bytes, types, out, counts, back, types, comm);
    FORMS(Neighbor_alltoallw, Ineighbor_alltoallw, _c, RESET, VERIFY(2 * i, edges[i]), in, long_counts, bytes, types, out, long_counts, bytes, types, comm);
}

int main(void) {
    start();
    MPI_Comm comm;
    /* A line, a ring, and a torus in which both neighbours along a dimension are the same rank, or the rank itself. */
    int periods[3][2] = {{0, 0}, {1, 0}, {1, 1}}, dims[3][2] = {{4, 1}, {4, 1}, {2, 2}};
    for (int g = 0; g < 3; g++) {
        int sources[4], edges[4] = {1, 0, 3, 2};
        CHECK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims[g], periods[g], 0, &comm) == MPI_SUCCESS);
        for (int d = 0; d < 2; d++)
            CHECK(MPI_Cart_shift(comm, d, 1, &sources[2 * d], &sources[2 * d + 1]) == MPI_SUCCESS);
        exchange(comm, 4, sources, edges);
        CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    }
    /* A star: rank 0 is everybody's neighbour. */
    int index[4] = {3, 4, 5, 6}, ends[6] = {1, 2, 3, 0, 0, 0};
    int spokes[3] = {1, 2, 3}, zeros[3] = {0, 0, 0}, hub[1] = {0}, spoke[1] = {rank - 1};
    CHECK(MPI_Graph_create(MPI_COMM_WORLD, 4, index, ends, 0, &comm) == MPI_SUCCESS);
    exchange(comm, rank == 0 ? 3 : 1, rank == 0 ? spokes : hub, rank == 0 ? zeros : spoke);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    /* A directed ring with two edges from each rank to the next, and ranks that only one direction has. */
    int from[2] = {(rank + 3) % 4, (rank + 3) % 4}, to[2] = {(rank + 1) % 4, (rank + 1) % 4}, both[2] = {0, 1};
    CHECK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, from, MPI_UNWEIGHTED, 2, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm) == MPI_SUCCESS);
    exchange(comm, 2, from, both);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    /* Everything flows to rank 3. */
    int node = rank, degree = rank < 3, last = 3, flows[3] = {0, 1, 2};
    CHECK(MPI_Dist_graph_create(MPI_COMM_WORLD, degree, &node, &degree, &last, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm) == MPI_SUCCESS);
    exchange(comm, rank == 3 ? 3 : 0, flows, zeros);
    if (rank == 0)
        CHECK(MPI_Neighbor_alltoallv(in, (int[]){2}, (int[]){0}, MPI_INT, NULL, NULL, NULL, MPI_INT, comm) == MPI_SUCCESS);
    else
        CHECK(MPI_Neighbor_alltoallv(in, (int[]){2}, (int[]){0}, MPI_INT, out, (int[]){2, 2, 2}, (int[]){0, 2, 4}, MPI_INT, comm) == MPI_SUCCESS);
    if (rank < 3)
        CHECK(MPI_Neighbor_alltoall(in, 2, MPI_INT, NULL, 2, MPI_INT, comm) == MPI_SUCCESS);
    else
        CHECK(MPI_Neighbor_alltoall(NULL, 2, MPI_INT, out, 2, MPI_INT, comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Neighbor_allgather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_BUFFER);
    FAILS(MPI_Neighbor_alltoall(in, -1, MPI_INT, out, 1, MPI_INT, comm), MPI_ERR_COUNT);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
