// ranks 5
#include "forms.h"

/* An intercommunicator of two groups: ranks 0, 2, 4 and 1, 3. */
static MPI_Comm local, between;
static int side, mine, locals, remotes;
static int in[MOST], out[MOST];

static void connect(void) {
    side = rank % 2;
    CHECK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &local) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, 1 - side, 5, &between) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(between, &mine) == MPI_SUCCESS);
    CHECK(MPI_Comm_size(between, &locals) == MPI_SUCCESS);
    CHECK(MPI_Comm_remote_size(between, &remotes) == MPI_SUCCESS && locals + remotes == 5);
}

/* The element `i` of a rank of a side. */
static int value(int of_side, int r, int i) { return 1000 * (of_side + 1) + 100 * r + i; }

static void reset(int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int i = 0; i < count; i++)
        in[i] = value(side, mine, i);
}

static void check_collected(int is_due, int count, int distance) {
    if (!is_due) {
        CHECK(out[0] == -1);
        return;
    }
    for (int r = 0; r < remotes; r++)
        for (int i = 0; i < count; i++)
            CHECK(out[distance * r + i] == value(1 - side, r, i));
}

/* The sum of element `i` over the ranks of a side. */
static int sum(int of_side, int i) {
    int all = 0;
    for (int r = 0; r < (of_side == side ? locals : remotes); r++)
        all += value(of_side, r, i);
    return all;
}

static void check_sums(int is_due, int first, int count) {
    for (int i = 0; i < count; i++)
        CHECK(out[i] == (is_due ? sum(1 - side, first + i) : -1));
}

/* Rank `r` of side `from` is the root. */
static void rooted(int from, int r) {
    int is_root = side == from && mine == r;
    int root = is_root ? MPI_ROOT : side == from ? MPI_PROC_NULL : r;
    int is_served = side != from, counts[3] = {2, 2, 2}, displs[3] = {8, 4, 0};
    int *none = NULL;
    ALL_FORMS(Bcast, Ibcast, reset(is_root ? 3 : 0),
              CHECK(in[2] == (is_root || is_served ? value(from, r, 2) : -1)),
              is_root || is_served ? in : none, is_root || is_served ? 3 : -1, MPI_INT, root, between);
    ALL_FORMS(Gather, Igather, reset(2), check_collected(is_root, 2, 2), in, 2, MPI_INT, is_root ? out : none, 2, MPI_INT,
              root, between);
    FORMS(Gatherv, Igatherv, , reset(2), if (is_root) CHECK(out[8] == value(1 - side, 0, 0) && out[5] == value(1 - side, 1, 1)),
          in, 2, MPI_INT, is_root ? out : none, is_root ? counts : none, is_root ? displs : none, MPI_INT, root, between);
    ALL_FORMS(Scatter, Iscatter, reset(9), CHECK(out[1] == (is_served ? value(from, r, 3 * mine + 1) : -1)),
              is_root ? in : none, 3, MPI_INT, is_served ? out : none, 3, MPI_INT, root, between);
    FORMS(Scatterv, Iscatterv, , reset(10), CHECK(out[1] == (is_served ? value(from, r, 8 - 4 * mine + 1) : -1)),
          is_root ? in : none, is_root ? counts : none, is_root ? displs : none, MPI_INT, is_served ? out : none, 2,
          MPI_INT, root, between);
    ALL_FORMS(Reduce, Ireduce, reset(4), check_sums(is_root, 0, 4), is_served ? in : none, is_root ? out : none, 4,
              MPI_INT, MPI_SUM, root, between);
}

static void symmetric(void) {
    int counts[3] = {3, 3, 3}, displs[3] = {10, 5, 0}, ones[3] = {1, 1, 1}, bytes[3], parts[3];
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    for (int r = 0; r < 3; r++)
        bytes[r] = r * (int)sizeof(int);
    FORMS(Barrier, Ibarrier, , (void)0, (void)0, between);
    ALL_FORMS(Allgather, Iallgather, reset(3), check_collected(1, 3, 3), in, 3, MPI_INT, out, 3, MPI_INT, between);
    FORMS(Allgatherv, Iallgatherv, , reset(3), CHECK(out[10] == value(1 - side, 0, 0) && out[7] == value(1 - side, 1, 2)), in,
          3, MPI_INT, out, counts, displs, MPI_INT, between);
#define VERIFY                          \
    for (int r = 0; r < remotes; r++)   \
        CHECK(out[r] == value(1 - side, r, mine))
    ALL_FORMS(Alltoall, Ialltoall, reset(3), VERIFY, in, 1, MPI_INT, out, 1, MPI_INT, between);
    FORMS(Alltoallv, Ialltoallv, , reset(3), CHECK(out[10] == value(1 - side, 0, mine) && out[5] == value(1 - side, 1, mine)),
          in, ones, (int[]){0, 1, 2}, MPI_INT, out, ones, displs, MPI_INT, between);
    FORMS(Alltoallw, Ialltoallw, , reset(3), VERIFY, in, ones, bytes, types, out, ones, bytes, types, between);
    ALL_FORMS(Allreduce, Iallreduce, reset(4), check_sums(1, 0, 4), in, out, 4, MPI_INT, MPI_SUM, between);
    /* Six results are divided among two or three ranks. */
    int each = 6 / locals;
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, reset(6), check_sums(1, each * mine, each), in, out, each,
              MPI_INT, MPI_SUM, between);
    parts[0] = 4, parts[1] = 2, parts[2] = 0;
    FORMS(Reduce_scatter, Ireduce_scatter, , reset(6), check_sums(1, mine == 0 ? 0 : 4, parts[mine]), in, out, parts,
          MPI_INT, MPI_SUM, between);
}

static void errors(void) {
    CHECK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Scan(in, out, 1, MPI_INT, MPI_SUM, between), MPI_ERR_COMM);
    FAILS(MPI_Exscan(in, out, 1, MPI_INT, MPI_SUM, between), MPI_ERR_COMM);
    FAILS(MPI_Allreduce(MPI_IN_PLACE, out, 1, MPI_INT, MPI_SUM, between), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, between), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, between), MPI_ERR_BUFFER);
    FAILS(MPI_Bcast(in, 1, MPI_INT, remotes, between), MPI_ERR_ROOT);
    FAILS(MPI_Bcast(in, 1, MPI_INT, -1, between), MPI_ERR_ROOT);
    FAILS(MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, out, 1, MPI_INT, 0, between), MPI_ERR_BUFFER);
}

int main(void) {
    start();
    connect();
    for (int r = 0; r < 3; r++)
        rooted(0, r);
    for (int r = 0; r < 2; r++)
        rooted(1, r);
    symmetric();
    errors();
    CHECK(MPI_Comm_free(&between) == MPI_SUCCESS && MPI_Comm_free(&local) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
