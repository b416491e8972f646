// ranks 3
/* Blocks that overlap where they are received: elements in common get the data of any of their blocks. */
#include "check.h"

enum { MOST = 1 << 16 };

static int in[4 * MOST], out[8 * MOST], counts[3], displs[3];

/* Each rank sends four parts of so many elements, of which its neighbours send the outer ones, too. */
static void prepare(int part, int are_equal) {
    for (int r = 0; r < 3; r++) counts[r] = 4 * part, displs[r] = 2 * r * part;
    for (int i = 0; i < 4 * part; i++) in[i] = are_equal ? displs[rank] + i : 1000000 * (rank + 1) + i;
    memset(out, 0xff, sizeof out);
}

static int is_of(int rank, int part, int i) {
    int place = i - 2 * rank * part;
    return place >= 0 && place < 4 * part && out[i] == 1000000 * (rank + 1) + place;
}

static void check(int part, int are_equal) {
    for (int i = 0; i < 8 * part; i++) {
        if (are_equal) CHECK(out[i] == i);
        else CHECK(is_of(0, part, i) || is_of(1, part, i) || is_of(2, part, i));
    }
}

static void collect(int part, int are_equal) {
    MPI_Request request;
    for (int root = 0; root < 3; root++) {
        prepare(part, are_equal);
        CHECK(MPI_Gatherv(in, 4 * part, MPI_INT, out, counts, displs, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
        if (rank == root) check(part, are_equal);
    }
    prepare(part, are_equal);
    CHECK(MPI_Igatherv(in, 4 * part, MPI_INT, out, counts, displs, MPI_INT, 1, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    if (rank == 1) check(part, are_equal);
    prepare(part, are_equal);
    CHECK(MPI_Allgatherv(in, 4 * part, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    check(part, are_equal);
    prepare(part, are_equal);
    CHECK(MPI_Iallgatherv(in, 4 * part, MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    check(part, are_equal);
}

/* Ranks 1 and 2 send to rank 0. */
static void between_groups(void) {
    MPI_Comm half, both;
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, rank == 0, 0, &half) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0, 3, &both) == MPI_SUCCESS);
    prepare(5, 1);
    counts[0] = counts[1] = 20, displs[0] = 0, displs[1] = 10;
    for (int i = 0; i < 20; i++) in[i] = 10 * (rank - 1) + i;
    CHECK(MPI_Gatherv(in, 20, MPI_INT, out, counts, displs, MPI_INT, rank == 0 ? MPI_ROOT : 0, both) == MPI_SUCCESS);
    for (int i = 0; rank == 0 && i < 30; i++) CHECK(out[i] == i);
    CHECK(MPI_Comm_free(&both) == MPI_SUCCESS && MPI_Comm_free(&half) == MPI_SUCCESS);
}

int main(void) {
    start();
    for (int part = 1; part <= MOST; part *= 256) {
        collect(part, 1);
        collect(part, 0);
    }
    between_groups();
    MPI_Finalize();
    return 0;
}
