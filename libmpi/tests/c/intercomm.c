// ranks 5
#include "check.h"

static int exchange(MPI_Comm inter) {
    /* The ranks with the same number in both groups exchange their world ranks. */
    int mine, there, got = -1;
    MPI_Status status;
    CHECK(MPI_Comm_rank(inter, &mine) == MPI_SUCCESS && MPI_Comm_remote_size(inter, &there) == MPI_SUCCESS);
    if (mine >= there) return -1;
    CHECK(MPI_Sendrecv(&rank, 1, MPI_INT, mine, 5, &got, 1, MPI_INT, MPI_ANY_SOURCE, 5, inter, &status) == 0);
    CHECK(status.MPI_SOURCE == mine);
    return got;
}

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, half, inter, twin, merged, part;
    MPI_Group group, sub;
    int value, lower = rank < 2, one = 1, zero[1] = {0}, expected[5] = {3, 4, -1, 0, 1};
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    /* Groups {0, 1} and {2, 3, 4}. */
    CHECK(MPI_Comm_split(world, lower, rank, &half) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create(half, 0, world, lower ? 2 : 0, 9, &inter) == MPI_SUCCESS);
    CHECK(MPI_Comm_test_inter(inter, &value) == MPI_SUCCESS && value);
    CHECK(MPI_Comm_test_inter(half, &value) == MPI_SUCCESS && !value);
    CHECK(MPI_Comm_size(inter, &value) == MPI_SUCCESS && value == (lower ? 2 : 3));
    CHECK(MPI_Comm_remote_size(inter, &value) == MPI_SUCCESS && value == (lower ? 3 : 2));
    CHECK(MPI_Comm_remote_group(inter, &group) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(group, &value) == MPI_SUCCESS && value == MPI_UNDEFINED);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    value = exchange(inter);
    CHECK(value == (rank == 4 ? -1 : (rank + 2) % 4));
    CHECK(MPI_Comm_dup(inter, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(inter, twin, &value) == MPI_SUCCESS && value == MPI_CONGRUENT);
    CHECK(exchange(twin) == (rank == 4 ? -1 : (rank + 2) % 4));
    CHECK(MPI_Comm_disconnect(&twin) == MPI_SUCCESS);
    /* One communicator of both, the higher group behind. */
    CHECK(MPI_Intercomm_merge(inter, lower, &merged) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(merged, &value) == MPI_SUCCESS && value == (lower ? rank + 3 : rank - 2));
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, merged) == MPI_SUCCESS && one == 5);
    FAILS(MPI_Intercomm_merge(merged, 0, &part), MPI_ERR_COMM);
    CHECK(MPI_Comm_free(&merged) == MPI_SUCCESS);
    /* If both groups give the same value, either may come first, but all ranks agree. */
    for (int high = 0; high < 2; high++) {
        int own, order[5];
        CHECK(MPI_Intercomm_merge(inter, high, &merged) == MPI_SUCCESS && MPI_Comm_rank(merged, &own) == MPI_SUCCESS);
        CHECK(MPI_Allgather(&rank, 1, MPI_INT, order, 1, MPI_INT, merged) == MPI_SUCCESS && order[own] == rank);
        for (int i = 0; i < 5; i++) CHECK(order[i] == (order[0] == 0 ? i : (i + 2) % 5));
        CHECK(MPI_Comm_free(&merged) == MPI_SUCCESS);
    }
    /* Division: {1} with {3}; color 2 is in one group only. */
    CHECK(MPI_Comm_split(inter, rank == 4 ? 2 : rank % 2, 0, &part) == MPI_SUCCESS);
    if (rank == 4) CHECK(part == MPI_COMM_NULL);
    else {
        CHECK(exchange(part) == (rank + 2) % 4);
        CHECK(MPI_Comm_remote_size(part, &value) == MPI_SUCCESS && value == 1 && MPI_Comm_free(&part) == 0);
    }
    CHECK(MPI_Comm_split(inter, 0, -rank, &part) == MPI_SUCCESS);
    value = exchange(part);
    CHECK(value == expected[rank] && MPI_Comm_free(&part) == MPI_SUCCESS);
    /* Parts of both groups: their first ranks. */
    CHECK(MPI_Comm_group(inter, &group) == MPI_SUCCESS && MPI_Group_incl(group, 1, zero, &sub) == MPI_SUCCESS);
    CHECK(MPI_Comm_create(inter, sub, &part) == MPI_SUCCESS);
    if (rank == 0 || rank == 2) CHECK(exchange(part) == 2 - rank && MPI_Comm_free(&part) == MPI_SUCCESS);
    else CHECK(part == MPI_COMM_NULL);
    CHECK(MPI_Comm_create(inter, lower ? MPI_GROUP_EMPTY : group, &part) == MPI_SUCCESS && part == MPI_COMM_NULL);
    FAILS(MPI_Cart_create(inter, 1, &one, zero, 0, &part), MPI_ERR_COMM);
    CHECK(MPI_Barrier(inter) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&inter) == MPI_SUCCESS);
    FAILS(MPI_Intercomm_create(half, 9, world, 0, 9, &inter), MPI_ERR_RANK);
    FAILS(MPI_Intercomm_create(MPI_COMM_NULL, 0, world, 0, 9, &inter), MPI_ERR_COMM);
    FAILS(MPI_Intercomm_create(half, 0, world, 0, -9, &inter), MPI_ERR_TAG);
    /* A leader that fails tells its group. */
    CHECK(MPI_Comm_rank(half, &value) == MPI_SUCCESS);
    FAILS(MPI_Intercomm_create(half, 0, MPI_COMM_NULL, 0, 9, &inter), value ? MPI_ERR_OTHER : MPI_ERR_COMM);
    /* Without any common communicator. */
    MPI_Group all, there;
    int range[1][3] = {{lower ? 2 : 0, lower ? 4 : 1, 1}};
    CHECK(MPI_Comm_group(world, &all) == MPI_SUCCESS && MPI_Group_range_incl(all, 1, range, &there) == MPI_SUCCESS);
    CHECK(MPI_Intercomm_create_from_groups(group, 1, there, 1, "two groups", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                           &inter) == MPI_SUCCESS);
    CHECK(exchange(inter) == (rank == 4 ? -1 : (rank + 2) % 4));
    FAILS(MPI_Comm_remote_size(inter, NULL), MPI_ERR_ARG);
    CHECK(MPI_Comm_free(&inter) == MPI_SUCCESS && MPI_Comm_free(&half) == MPI_SUCCESS);
    CHECK(MPI_Group_free(&group) == 0 && MPI_Group_free(&sub) == 0 && MPI_Group_free(&all) == 0);
    CHECK(MPI_Group_free(&there) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
