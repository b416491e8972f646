// ranks 2
/* Calls that make no communicator: what they leave in its place, and which error handler they call. */
#include "check.h"

static int calls, last;

static void on_error(MPI_Comm *comm, int *code, ...) {
    calls++;
    MPI_Error_class(*code, &last);
}

/* The call fails, and the place has MPI_COMM_NULL. */
#define MAKES_NONE(call, class)      \
    do {                             \
        made = MPI_COMM_SELF;        \
        FAILS(call, class);          \
        CHECK(made == MPI_COMM_NULL); \
    } while (0)

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, made;
    MPI_Group group;
    MPI_Errhandler handler;
    int dims[2] = {2, 2}, periods[2] = {0, 0}, remain[2] = {1, 1}, index[2] = {1, 2}, edges[2] = {1, 2}, other = 9;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_group(world, &group) == MPI_SUCCESS);
    MAKES_NONE(MPI_Cart_create(world, 2, dims, periods, 0, &made), MPI_ERR_DIMS);
    MAKES_NONE(MPI_Cart_create(world, -1, dims, periods, 0, &made), MPI_ERR_DIMS);
    MAKES_NONE(MPI_Cart_create(MPI_COMM_NULL, 2, dims, periods, 0, &made), MPI_ERR_COMM);
    MAKES_NONE(MPI_Cart_sub(world, remain, &made), MPI_ERR_TOPOLOGY);
    MAKES_NONE(MPI_Graph_create(world, 2, index, edges, 0, &made), MPI_ERR_RANK);
    MAKES_NONE(MPI_Dist_graph_create(world, -1, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made), MPI_ERR_ARG);
    MAKES_NONE(MPI_Dist_graph_create_adjacent(world, 1, &other, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                              &made), MPI_ERR_RANK);
    MAKES_NONE(MPI_Comm_create(world, MPI_GROUP_NULL, &made), MPI_ERR_GROUP);
    MAKES_NONE(MPI_Comm_create_group(world, group, -1, &made), MPI_ERR_TAG);
    MAKES_NONE(MPI_Comm_split(world, -7, 0, &made), MPI_ERR_ARG);
    MAKES_NONE(MPI_Comm_split_type(world, 12345, 0, MPI_INFO_NULL, &made), MPI_ERR_ARG);
    MAKES_NONE(MPI_Intercomm_create(world, 9, world, 0, 0, &made), MPI_ERR_RANK);
    MAKES_NONE(MPI_Intercomm_merge(world, 0, &made), MPI_ERR_COMM);
    MAKES_NONE(MPI_Comm_create_from_group(group, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), MPI_ERR_ARG);
    /* Calls without a communicator use the error handler that is their argument, whatever is wrong. */
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    CHECK(MPI_Comm_create_errhandler(on_error, &handler) == MPI_SUCCESS);
    FAILS(MPI_Comm_create_from_group(group, "no place", MPI_INFO_NULL, handler, NULL), MPI_ERR_ARG);
    CHECK(calls == 1 && last == MPI_ERR_ARG);
    FAILS(MPI_Comm_create_from_group(MPI_GROUP_NULL, "no group", MPI_INFO_NULL, handler, &made), MPI_ERR_GROUP);
    CHECK(calls == 2 && last == MPI_ERR_GROUP);
    FAILS(MPI_Intercomm_create_from_groups(group, 0, group, 0, "no place", MPI_INFO_NULL, handler, NULL), MPI_ERR_ARG);
    CHECK(calls == 3 && last == MPI_ERR_ARG);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS && MPI_Group_free(&group) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
