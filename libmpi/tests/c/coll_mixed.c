// ranks 4
/* Short collectives take another way through the library if their datatype is predefined. Here ranks with odd numbers
   describe the same integers by a datatype of their own, so both ways meet; some work in place. */
#include "check.h"

enum { EACH = 2 };

static MPI_Datatype pair;

/* The datatype of this rank, and how many of its elements are `EACH` integers. */
static MPI_Datatype type(void) { return rank % 2 ? pair : MPI_INT; }
static int elements(void) { return rank % 2 ? 1 : EACH; }

static int value(int from, int to, int i) { return 100 * from + 10 * to + i; }

static void rooted(int root) {
    int one[EACH], all[4 * EACH];
    for (int i = 0; i < EACH; i++)
        one[i] = rank == root ? value(root, 0, i) : -1;
    CHECK(MPI_Bcast(one, elements(), type(), root, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < EACH; i++)
        CHECK(one[i] == value(root, 0, i));

    for (int in_place = 0; in_place < 2; in_place++) {
        for (int i = 0; i < 4 * EACH; i++)
            all[i] = -1;
        for (int i = 0; i < EACH; i++)
            one[i] = all[rank * EACH + i] = value(rank, root, i);
        const void *sent = in_place && rank == root ? MPI_IN_PLACE : one;
        CHECK(MPI_Gather(sent, elements(), type(), all, elements(), type(), root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int r = 0; rank == root && r < size; r++)
            for (int i = 0; i < EACH; i++)
                CHECK(all[r * EACH + i] == value(r, root, i));

        for (int i = 0; i < EACH; i++)
            one[i] = -1;
        void *received = in_place && rank == root ? MPI_IN_PLACE : one;
        CHECK(MPI_Scatter(all, elements(), type(), received, elements(), type(), root, MPI_COMM_WORLD) == MPI_SUCCESS);
        for (int i = 0; i < EACH; i++)
            CHECK(one[i] == (received == one ? value(rank, root, i) : -1));

        int sums[3] = {rank, 2 * rank, 1};
        sent = in_place && rank == root ? MPI_IN_PLACE : sums;
        int results[3] = {rank, 2 * rank, 1};
        CHECK(MPI_Reduce(sent, results, 3, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(rank != root || (results[0] == 6 && results[1] == 12 && results[2] == 4));
    }
}

static void of_all(int in_place) {
    int one[EACH], out[4 * EACH], in[4 * EACH];
    for (int i = 0; i < 4 * EACH; i++)
        out[i] = -1;
    for (int i = 0; i < EACH; i++)
        one[i] = out[rank * EACH + i] = value(rank, 0, i);
    CHECK(MPI_Allgather(in_place ? MPI_IN_PLACE : one, elements(), type(), out, elements(), type(), MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++)
            CHECK(out[r * EACH + i] == value(r, 0, i));

    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++)
            in[r * EACH + i] = out[r * EACH + i] = value(rank, r, i);
    CHECK(MPI_Alltoall(in_place ? MPI_IN_PLACE : in, elements(), type(), out, elements(), type(), MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < EACH; i++)
            CHECK(out[r * EACH + i] == value(r, rank, i));

    double mine[2] = {rank + 0.5, -rank}, most[2] = {rank + 0.5, -rank};
    CHECK(MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(most[0] == 3.5 && most[1] == 0);
}

/* What the short way leaves to the other one. */
static void refused(void) {
    int data[2] = {0, 0};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Allreduce(data, data, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce(MPI_IN_PLACE, data, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_COUNT);
    FAILS(MPI_Allreduce(MPI_IN_PLACE, data, 1, MPI_DOUBLE, MPI_BAND, MPI_COMM_WORLD), MPI_ERR_OP);
    FAILS(MPI_Allreduce(MPI_IN_PLACE, NULL, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Bcast(MPI_IN_PLACE, 1, MPI_INT, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    FAILS(MPI_Bcast(data, 1, MPI_INT, size, MPI_COMM_WORLD), MPI_ERR_ROOT);
}

int main(void) {
    start();
    CHECK(MPI_Type_contiguous(EACH, MPI_INT, &pair) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&pair) == MPI_SUCCESS);
    for (int root = 0; root < size; root++)
        rooted(root);
    of_all(0);
    of_all(1);
    refused();
    CHECK(MPI_Type_free(&pair) == MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    return 0;
}
