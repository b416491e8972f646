// ranks 5
#include "forms.h"

static int in[MOST], out[MOST];

/* What rank `r` sends as element `i`. */
static int value(int r, int i) { return 100 * (r + 1) + i; }

static void own(int at, int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int i = 0; i < count; i++)
        in[at + i] = value(rank, i);
}

/* The root's buffer has a block of each rank. */
static void all(int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            in[count * r + i] = value(r, i);
}

static void bcasts(int root) {
    MPI_Datatype type = gapped();
#define RESET fill(in, MOST, rank == root ? 7 + root : -1)
    ALL_FORMS(Bcast, Ibcast, RESET, CHECK(in[0] == 7 + root && in[2] == 7 + root && in[3] == (rank == root ? 7 + root : -1)),
              in, 3, MPI_INT, root, MPI_COMM_WORLD);
    /* Other elements at the root, and gaps that stay. */
    if (rank == root)
        ALL_FORMS(Bcast, Ibcast, RESET, (void)0, in, 4, MPI_INT, root, MPI_COMM_WORLD);
    else
        ALL_FORMS(Bcast, Ibcast, RESET, CHECK(in[0] == 7 + root && in[1] == -1 && in[2] == 7 + root && in[3] == 7 + root && in[4] == -1 && in[5] == 7 + root && in[6] == -1),
                  in, 2, type, root, MPI_COMM_WORLD);
    ALL_FORMS(Bcast, Ibcast, RESET, (void)0, NULL, 0, MPI_INT, root, MPI_COMM_WORLD);
#undef RESET
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
}

static void check_gathered(int root, int count, const int *places) {
    if (rank != root) {
        CHECK(out[0] == -1);
        return;
    }
    for (int r = 0; r < size; r++)
        for (int i = 0; i < count; i++)
            CHECK(out[places[r] + i] == value(r, i));
}

static void gathers(int root) {
    int is_root = rank == root, counts[5], displs[5], equal[5];
    MPI_Count long_counts[5];
    MPI_Aint long_displs[5];
    for (int r = 0; r < size; r++) {
        equal[r] = 3 * r;
        long_counts[r] = counts[r] = 2;
        /* Blocks in reverse order, with gaps, on both sides of the buffer's address. */
        long_displs[r] = displs[r] = 4 * (2 - r);
    }
    int shown[5];
    for (int r = 0; r < size; r++)
        shown[r] = displs[r] + 20;
    /* Arguments that only the root uses are garbage elsewhere. */
    int *into = is_root ? out : NULL;
    MPI_Datatype type = is_root ? MPI_INT : MPI_DATATYPE_NULL;
    ALL_FORMS(Gather, Igather, own(0, 3), check_gathered(root, 3, equal), in, 3, MPI_INT, into, is_root ? 3 : -1, type,
              root, MPI_COMM_WORLD);
    int *around = is_root ? out + 20 : NULL;
    FORMS(Gatherv, Igatherv, , own(0, 2), check_gathered(root, 2, shown), in, 2, MPI_INT, around, is_root ? counts : NULL,
          is_root ? displs : NULL, type, root, MPI_COMM_WORLD);
    FORMS(Gatherv, Igatherv, _c, own(0, 2), check_gathered(root, 2, shown), in, 2, MPI_INT, around,
          is_root ? long_counts : NULL, is_root ? long_displs : NULL, type, root, MPI_COMM_WORLD);
    /* In place: the root's block is there already. */
    void *from = is_root ? MPI_IN_PLACE : (void *)in;
#define RESET (own(0, 3), is_root ? memcpy(out + 3 * root, in, 3 * sizeof(int)) : NULL)
    ALL_FORMS(Gather, Igather, RESET, check_gathered(root, 3, equal), from, is_root ? -1 : 3, is_root ? MPI_DATATYPE_NULL : MPI_INT,
              into, 3, type, root, MPI_COMM_WORLD);
#undef RESET
#define RESET (own(0, 2), is_root ? memcpy(out + shown[root], in, 2 * sizeof(int)) : NULL)
    FORMS(Gatherv, Igatherv, , RESET, check_gathered(root, 2, shown), from, 2, MPI_INT, around, counts, displs, type,
          root, MPI_COMM_WORLD);
#undef RESET
}

static void scatters(int root) {
    int is_root = rank == root, counts[5], displs[5];
    MPI_Count long_counts[5];
    MPI_Aint long_displs[5];
    for (int r = 0; r < size; r++) {
        long_counts[r] = counts[r] = 3;
        long_displs[r] = displs[r] = 3 * r - 6;
    }
    int *from = is_root ? in : NULL, *around = is_root ? in + 6 : NULL;
    MPI_Datatype type = is_root ? MPI_INT : MPI_DATATYPE_NULL;
#define VERIFY CHECK(out[0] == value(rank, 0) && out[2] == value(rank, 2) && out[3] == -1)
    ALL_FORMS(Scatter, Iscatter, all(3), VERIFY, from, is_root ? 3 : -1, type, out, 3, MPI_INT, root, MPI_COMM_WORLD);
    FORMS(Scatterv, Iscatterv, , all(3), VERIFY, around, is_root ? counts : NULL, is_root ? displs : NULL, type, out, 3,
          MPI_INT, root, MPI_COMM_WORLD);
    FORMS(Scatterv, Iscatterv, _c, all(3), VERIFY, around, is_root ? long_counts : NULL, is_root ? long_displs : NULL,
          type, out, 3, MPI_INT, root, MPI_COMM_WORLD);
#undef VERIFY
#define VERIFY CHECK(is_root ? out[0] == -1 : out[0] == value(rank, 0) && out[2] == value(rank, 2))
    void *into = is_root ? MPI_IN_PLACE : (void *)out;
    ALL_FORMS(Scatter, Iscatter, all(3), VERIFY, from, 3, type, into, is_root ? -1 : 3,
              is_root ? MPI_DATATYPE_NULL : MPI_INT, root, MPI_COMM_WORLD);
    FORMS(Scatterv, Iscatterv, , all(3), VERIFY, around, counts, displs, type, into, 3, MPI_INT, root, MPI_COMM_WORLD);
}

/* Blocks of a derived datatype, which lie among each other, and messages long enough for other algorithms. */
static void typed(int root) {
    MPI_Datatype type = gapped();
    int counts[5] = {1, 0, 2, 1, 0}, displs[5] = {5, 1000, 0, 3, -1000};
    own(0, 4);
    CHECK(MPI_Gatherv(in, 2 * counts[rank], MPI_INT, out, counts, displs, type, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == root) {
        CHECK(out[0] == value(2, 0) && out[1] == -1 && out[2] == value(2, 1) && out[3] == value(2, 2));
        CHECK(out[9] == value(3, 0) && out[10] == -1 && out[11] == value(3, 1));
        CHECK(out[15] == value(0, 0) && out[17] == value(0, 1) && out[12] == -1);
    }
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    enum { LONG = 5000 };
    int *mine = malloc(LONG * sizeof(int)), *whole = malloc(5 * LONG * sizeof(int)), *back = calloc(LONG, sizeof(int));
    for (int i = 0; i < LONG; i++)
        mine[i] = LONG * rank + i;
    CHECK(MPI_Gather(mine, LONG, MPI_INT, whole, LONG, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; rank == root && i < 5 * LONG; i++)
        CHECK(whole[i] == i);
    CHECK(MPI_Scatter(whole, LONG, MPI_INT, back, LONG, MPI_INT, root, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(memcmp(mine, back, LONG * sizeof(int)) == 0);
    free(mine), free(whole), free(back);
}

int main(void) {
    start();
    for (int root = 0; root < size; root++) {
        bcasts(root);
        gathers(root);
        scatters(root);
        typed(root);
    }
    MPI_Request request;
    CHECK(MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &request) == MPI_SUCCESS);
    for (int i = 0; i < 3; i++) {
        CHECK(MPI_Start(&request) == MPI_SUCCESS);
        CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    }
    CHECK(MPI_Request_free(&request) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
