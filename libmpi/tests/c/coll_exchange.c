// ranks 4
#include "forms.h"

static int in[MOST], out[MOST];

/* The element `i` that rank `from` sends to rank `to`. */
static int value(int from, int to, int i) { return 1000 * (from + 1) + 100 * to + i; }

/* Each rank has a block of `count` elements for each rank. */
static void blocks(int *data, int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            data[count * r + i] = value(rank, r, i);
}

static void check_exchanged(int count) {
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            CHECK(out[count * r + i] == value(r, rank, i));
    CHECK(out[count * size] == -1);
}

/* Each rank has a block for all. */
static void own(int *data, int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int i = 0; i < count; i++)
        data[i] = value(rank, 0, i);
}

static void check_collected(int count, int distance) {
    for (int r = 0; r < size; r++) {
        for (int i = 0; i < count; i++)
            CHECK(out[distance * r + i] == value(r, 0, i));
        if (distance > count)
            CHECK(out[distance * r + count] == -1);
    }
}

static void allgathers(void) {
    int counts[4], displs[4];
    MPI_Count long_counts[4];
    MPI_Aint long_displs[4];
    for (int r = 0; r < size; r++) {
        long_counts[r] = counts[r] = 2;
        long_displs[r] = displs[r] = 5 * r - 5;
    }
    ALL_FORMS(Allgather, Iallgather, own(in, 3), check_collected(3, 3), in, 3, MPI_INT, out, 3, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Allgather, Iallgather, own(out + 3 * rank, 3), check_collected(3, 3), MPI_IN_PLACE, -1, MPI_DATATYPE_NULL,
              out, 3, MPI_INT, MPI_COMM_WORLD);
    FORMS(Allgatherv, Iallgatherv, , own(in, 2), check_collected(2, 5), in, 2, MPI_INT, out + 5, counts, displs, MPI_INT,
          MPI_COMM_WORLD);
    FORMS(Allgatherv, Iallgatherv, _c, own(in, 2), check_collected(2, 5), in, 2, MPI_INT, out + 5, long_counts,
          long_displs, MPI_INT, MPI_COMM_WORLD);
    FORMS(Allgatherv, Iallgatherv, , own(out + 5 * rank, 2), check_collected(2, 5), MPI_IN_PLACE, 0, MPI_DATATYPE_NULL,
          out + 5, counts, displs, MPI_INT, MPI_COMM_WORLD);
}

static void alltoalls(void) {
    int counts[4], displs[4], back[4];
    MPI_Count long_counts[4];
    MPI_Aint long_displs[4];
    for (int r = 0; r < size; r++) {
        long_counts[r] = counts[r] = 3;
        long_displs[r] = displs[r] = 3 * r;
        back[r] = 3 * r - 6;
    }
    ALL_FORMS(Alltoall, Ialltoall, blocks(in, 3), check_exchanged(3), in, 3, MPI_INT, out, 3, MPI_INT, MPI_COMM_WORLD);
    ALL_FORMS(Alltoall, Ialltoall, blocks(out, 3), check_exchanged(3), MPI_IN_PLACE, -1, MPI_DATATYPE_NULL, out, 3,
              MPI_INT, MPI_COMM_WORLD);
    FORMS(Alltoallv, Ialltoallv, , blocks(in, 3), check_exchanged(3), in + 6, counts, back, MPI_INT, out, counts, displs,
          MPI_INT, MPI_COMM_WORLD);
    FORMS(Alltoallv, Ialltoallv, _c, blocks(in, 3), check_exchanged(3), in, long_counts, long_displs, MPI_INT, out,
          long_counts, long_displs, MPI_INT, MPI_COMM_WORLD);
    FORMS(Alltoallv, Ialltoallv, , blocks(out, 3), check_exchanged(3), MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, out,
          counts, displs, MPI_INT, MPI_COMM_WORLD);
}

/* Rank `r` sends to rank `t` r + t + 1 ints; blocks for higher ranks go as a derived datatype. */
static void alltoallws(void) {
    MPI_Datatype sendtypes[4], recvtypes[4], longs[4];
    int sendcounts[4], recvcounts[4], sdispls[4], rdispls[4], even[4], at[4];
    MPI_Count long_counts[4];
    MPI_Aint long_displs[4];
    for (int r = 0; r < size; r++) {
        int count = rank + r + 1;
        sendcounts[r] = recvcounts[r] = 1;
        CHECK(MPI_Type_vector(count, 1, 1, MPI_INT, &sendtypes[r]) == MPI_SUCCESS);
        CHECK(MPI_Type_commit(&sendtypes[r]) == MPI_SUCCESS);
        CHECK(MPI_Type_contiguous(count, MPI_INT, &recvtypes[r]) == MPI_SUCCESS);
        CHECK(MPI_Type_commit(&recvtypes[r]) == MPI_SUCCESS);
        sdispls[r] = 8 * r * (int)sizeof(int);
        /* Places before and behind the address. */
        rdispls[r] = 8 * (1 - r) * (int)sizeof(int);
        longs[r] = MPI_INT;
        long_counts[r] = even[r] = 2;
        long_displs[r] = at[r] = 2 * r * (int)sizeof(int);
    }
#define RESET                                                         \
    fill(in, MOST, -1), fill(out, MOST, -1);                          \
    for (int r = 0; r < size; r++)                                    \
        for (int i = 0; i < rank + r + 1; i++)                        \
            in[8 * r + i] = value(rank, r, i)
#define VERIFY                                                        \
    for (int r = 0; r < size; r++)                                    \
        for (int i = 0; i < 8; i++)                                   \
            CHECK(out[24 + 8 * (1 - r) + i] == (i < rank + r + 1 ? value(r, rank, i) : -1))
    FORMS(Alltoallw, Ialltoallw, , RESET, VERIFY, in, sendcounts, sdispls, sendtypes, out + 24, recvcounts, rdispls,
          recvtypes, MPI_COMM_WORLD);
    FORMS(Alltoallw, Ialltoallw, _c, blocks(in, 2), check_exchanged(2), in, long_counts, long_displs, longs, out,
          long_counts, long_displs, longs, MPI_COMM_WORLD);
    FORMS(Alltoallw, Ialltoallw, , blocks(out, 2), check_exchanged(2), MPI_IN_PLACE, NULL, NULL, NULL, out, even, at,
          longs, MPI_COMM_WORLD);
    /* The datatypes are freed while the exchange is under way. Empty blocks need none. */
    MPI_Request request;
    RESET;
    CHECK(MPI_Ialltoallw(in, sendcounts, sdispls, sendtypes, out + 24, recvcounts, rdispls, recvtypes, MPI_COMM_WORLD,
                         &request) == MPI_SUCCESS);
    for (int r = 0; r < size; r++) {
        CHECK(MPI_Type_free(&sendtypes[r]) == MPI_SUCCESS);
        CHECK(MPI_Type_free(&recvtypes[r]) == MPI_SUCCESS);
        CHECK(sendtypes[r] == MPI_DATATYPE_NULL);
        sendcounts[r] = 0;
    }
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    VERIFY;
    CHECK(MPI_Alltoallw(NULL, sendcounts, sdispls, sendtypes, NULL, sendcounts, rdispls, sendtypes, MPI_COMM_WORLD) == MPI_SUCCESS);
}

int main(void) {
    start();
    allgathers();
    alltoalls();
    alltoallws();
    MPI_Finalize();
    return 0;
}
