// ranks 4
#include "check.h"

int main(void) {
    start();
    MPI_Group world, evens, odds, group, all;
    int ranks[4], got[4], value, list[2] = {0, 2};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
    CHECK(MPI_Group_size(world, &value) == MPI_SUCCESS && value == 4);
    CHECK(MPI_Group_rank(world, &value) == MPI_SUCCESS && value == rank);
    CHECK(MPI_Group_incl(world, 2, list, &evens) == MPI_SUCCESS);
    CHECK(MPI_Group_excl(world, 2, list, &odds) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(evens, &value) == MPI_SUCCESS && value == (rank % 2 ? MPI_UNDEFINED : rank / 2));
    CHECK(MPI_Group_rank(odds, &value) == MPI_SUCCESS && value == (rank % 2 ? rank / 2 : MPI_UNDEFINED));
    CHECK(MPI_Group_union(evens, odds, &all) == MPI_SUCCESS);
    CHECK(MPI_Group_compare(all, world, &value) == MPI_SUCCESS && value == MPI_SIMILAR);
    CHECK(MPI_Group_compare(evens, odds, &value) == MPI_SUCCESS && value == MPI_UNEQUAL);
    ranks[0] = 3, ranks[1] = MPI_PROC_NULL, ranks[2] = 0, ranks[3] = 2;
    CHECK(MPI_Group_translate_ranks(world, 4, ranks, evens, got) == MPI_SUCCESS);
    CHECK(got[0] == MPI_UNDEFINED && got[1] == MPI_PROC_NULL && got[2] == 0 && got[3] == 1);
    /* A group without members is the constant, and may be freed. */
    CHECK(MPI_Group_intersection(evens, odds, &group) == MPI_SUCCESS && group == MPI_GROUP_EMPTY);
    CHECK(MPI_Group_size(group, &value) == MPI_SUCCESS && value == 0);
    CHECK(MPI_Group_rank(group, &value) == MPI_SUCCESS && value == MPI_UNDEFINED);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS && group == MPI_GROUP_NULL);
    CHECK(MPI_Group_incl(world, 0, NULL, &group) == MPI_SUCCESS && group == MPI_GROUP_EMPTY);
    CHECK(MPI_Group_difference(world, evens, &group) == MPI_SUCCESS);
    CHECK(MPI_Group_compare(group, odds, &value) == MPI_SUCCESS && value == MPI_IDENT);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    /* Ranges. */
    int down[1][3] = {{3, 0, -1}}, steps[2][3] = {{0, 3, 2}, {1, 1, 5}}, away[1][3] = {{0, 3, -1}};
    int zero[1][3] = {{0, 3, 0}}, twice[2][3] = {{0, 3, 1}, {2, 2, 1}};
    CHECK(MPI_Group_range_incl(world, 1, down, &group) == MPI_SUCCESS);
    CHECK(MPI_Group_rank(group, &value) == MPI_SUCCESS && value == 3 - rank);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    CHECK(MPI_Group_range_excl(world, 2, steps, &group) == MPI_SUCCESS);
    CHECK(MPI_Group_size(group, &value) == MPI_SUCCESS && value == 1);
    CHECK(MPI_Group_rank(group, &value) == MPI_SUCCESS && value == (rank == 3 ? 0 : MPI_UNDEFINED));
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    FAILS(MPI_Group_range_incl(world, 1, away, &group), MPI_ERR_ARG);
    FAILS(MPI_Group_range_incl(world, 1, zero, &group), MPI_ERR_ARG);
    FAILS(MPI_Group_range_incl(world, 2, twice, &group), MPI_ERR_RANK);
    /* Errors. */
    list[1] = 4;
    FAILS(MPI_Group_incl(world, 2, list, &group), MPI_ERR_RANK);
    list[1] = -1;
    FAILS(MPI_Group_excl(world, 2, list, &group), MPI_ERR_RANK);
    list[1] = 0;
    FAILS(MPI_Group_incl(world, 2, list, &group), MPI_ERR_RANK);
    FAILS(MPI_Group_incl(world, -1, list, &group), MPI_ERR_ARG);
    FAILS(MPI_Group_incl(world, 2, NULL, &group), MPI_ERR_ARG);
    FAILS(MPI_Group_incl(world, 1, list, NULL), MPI_ERR_ARG);
    FAILS(MPI_Group_size(MPI_GROUP_NULL, &value), MPI_ERR_GROUP);
    ranks[0] = 9;
    FAILS(MPI_Group_translate_ranks(world, 1, ranks, evens, got), MPI_ERR_RANK);
    MPI_Group stale = evens;
    CHECK(MPI_Group_free(&evens) == MPI_SUCCESS && evens == MPI_GROUP_NULL);
    FAILS(MPI_Group_size(stale, &value), MPI_ERR_GROUP);
    FAILS(MPI_Group_free(&stale), MPI_ERR_GROUP);
    FAILS(MPI_Group_free(&evens), MPI_ERR_GROUP);
    CHECK(MPI_Group_free(&world) == MPI_SUCCESS && MPI_Group_free(&odds) == MPI_SUCCESS);
    CHECK(MPI_Group_free(&all) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
