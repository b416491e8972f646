// ranks 3
#include "forms.h"

/* Buffers that are described by absolute addresses. */
static int in[MOST], out[MOST];

static MPI_Datatype absolute(int *first, int *second) {
    MPI_Aint places[2];
    MPI_Datatype type;
    CHECK(MPI_Get_address(first, &places[0]) == MPI_SUCCESS && MPI_Get_address(second, &places[1]) == MPI_SUCCESS);
    CHECK(MPI_Type_create_hindexed_block(2, 1, places, MPI_INT, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    return type;
}

static void reset(void) {
    fill(out, MOST, -1);
    for (int i = 0; i < MOST; i++)
        in[i] = 100 * rank + i;
}

static void sum(void *from, void *into, int *len, MPI_Datatype *type) {
    MPI_Aint low, extent, place;
    CHECK(MPI_Type_get_true_extent(*type, &low, &extent) == MPI_SUCCESS && *len == 1);
    for (place = low; place < low + extent; place += (MPI_Aint)(3 * sizeof(int)))
        *(int *)((char *)into + place) += *(int *)((char *)from + place);
}

int main(void) {
    start();
    MPI_Datatype send = absolute(&in[1], &in[4]), receive = absolute(&out[7], &out[2]), types[3] = {send, send, send};
    ALL_FORMS(Bcast, Ibcast, reset(), CHECK(in[1] == 101 && in[4] == 104 && in[2] == 100 * rank + 2), MPI_BOTTOM, 1, send, 1, MPI_COMM_WORLD);
    ALL_FORMS(Allgather, Iallgather, reset(), CHECK(out[0] == 1 && out[1] == 4 && out[5] == 204), MPI_BOTTOM, 1, send, out, 2, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Scatter, Iscatter, reset(), CHECK(out[7] == 200 + 2 * rank && out[2] == 201 + 2 * rank && out[3] == -1), in, 2, MPI_INT, MPI_BOTTOM, 1, receive, 2, MPI_COMM_WORLD);
    int ones[3] = {1, 1, 1}, twos[3] = {2, 2, 2}, zeros[3] = {0, 0, 0}, places[3] = {0, 2 * sizeof(int), 4 * sizeof(int)};
    MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
    FORMS(Alltoallw, Ialltoallw, , reset(), CHECK(out[2] == 101 && out[5] == 204), MPI_BOTTOM, ones, zeros, types, out, twos, places, ints, MPI_COMM_WORLD);
    /* Bytes at absolute addresses without a datatype of their own. */
    MPI_Count lengths[3] = {8, 8, 8};
    MPI_Aint ends[3];
    for (int r = 0; r < size; r++)
        CHECK(MPI_Get_address(&out[4 * r], &ends[r]) == MPI_SUCCESS);
    FORMS(Allgatherv, Iallgatherv, _c, reset(), CHECK(out[0] == 0 && out[5] == 101 && out[9] == 201 && out[2] == -1), in, 2, MPI_INT, MPI_BOTTOM, lengths, ends, MPI_BYTE, MPI_COMM_WORLD);
    /* An operation on absolute addresses, in place. */
    MPI_Op op;
    MPI_Datatype both = absolute(&out[2], &out[5]);
    CHECK(MPI_Op_create(sum, 1, &op) == MPI_SUCCESS);
#define RESET (reset(), out[2] = rank, out[5] = 10 * rank)
    ALL_FORMS(Allreduce, Iallreduce, RESET, CHECK(out[2] == 3 && out[5] == 30 && out[3] == -1), MPI_IN_PLACE, MPI_BOTTOM, 1, both, op, MPI_COMM_WORLD);
    ALL_FORMS(Scan, Iscan, RESET, CHECK(out[2] == rank * (rank + 1) / 2 && out[5] == 5 * rank * (rank + 1)), MPI_IN_PLACE, MPI_BOTTOM, 1, both, op, MPI_COMM_WORLD);
    CHECK(MPI_Op_free(&op) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&send) == MPI_SUCCESS && MPI_Type_free(&receive) == MPI_SUCCESS && MPI_Type_free(&both) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
