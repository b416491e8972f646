// ranks 4
#include "check.h"

static int sum(MPI_Comm comm) {
    int mine = rank, total;
    CHECK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS);
    return total;
}

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, comm, other;
    MPI_Group all, part;
    int value, ranks[2] = {3, 1};
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    /* Handlers are inherited, and errors leave everything usable. */
    CHECK(MPI_Comm_dup(world, &comm) == MPI_SUCCESS);
    FAILS(MPI_Comm_split(comm, -7, 0, &other), MPI_ERR_ARG);
    CHECK(MPI_Comm_compare(world, comm, &value) == MPI_SUCCESS && value == MPI_CONGRUENT);
    CHECK(MPI_Comm_compare(comm, comm, &value) == MPI_SUCCESS && value == MPI_IDENT);
    CHECK(MPI_Comm_compare(comm, MPI_COMM_SELF, &value) == MPI_SUCCESS && value == MPI_UNEQUAL);
    CHECK(sum(comm) == 6);
    CHECK(MPI_Comm_disconnect(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    /* Division, in the order of the keys. */
    CHECK(MPI_Comm_split(world, rank % 2, -rank, &comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(comm, &value) == MPI_SUCCESS && value == (rank < 2));
    CHECK(sum(comm) == (rank % 2 ? 4 : 2));
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_split(world, rank ? 0 : MPI_UNDEFINED, 0, &comm) == MPI_SUCCESS);
    CHECK((comm == MPI_COMM_NULL) == (rank == 0));
    if (rank) CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_split(world, 0, 3 - rank, &comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_compare(world, comm, &value) == MPI_SUCCESS && value == MPI_SIMILAR);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    /* Groups: all ranks call the first, only the members the second. */
    CHECK(MPI_Comm_group(world, &all) == MPI_SUCCESS && MPI_Group_incl(all, 2, ranks, &part) == MPI_SUCCESS);
    CHECK(MPI_Comm_create(world, part, &comm) == MPI_SUCCESS);
    CHECK((comm == MPI_COMM_NULL) == (rank % 2 == 0));
    if (rank % 2) {
        CHECK(MPI_Comm_rank(comm, &value) == MPI_SUCCESS && value == (rank == 1) && sum(comm) == 4);
        CHECK(MPI_Comm_create_group(world, part, 7, &other) == MPI_SUCCESS);
        CHECK(MPI_Comm_compare(comm, other, &value) == MPI_SUCCESS && value == MPI_CONGRUENT);
        CHECK(sum(other) == 4 && MPI_Comm_free(&other) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS);
    }
    CHECK(MPI_Comm_create(world, MPI_GROUP_EMPTY, &comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    FAILS(MPI_Comm_create(world, MPI_GROUP_NULL, &comm), MPI_ERR_GROUP);
    FAILS(MPI_Comm_create(MPI_COMM_NULL, part, &comm), MPI_ERR_COMM);
    FAILS(MPI_Comm_create_group(world, part, -1, &comm), MPI_ERR_TAG);
    FAILS(MPI_Comm_create(MPI_COMM_SELF, all, &comm), MPI_ERR_GROUP);
    /* Without a parent. */
    CHECK(MPI_Comm_create_from_group(all, "a text", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    CHECK(sum(comm) == 6);
    FAILS(MPI_Comm_rank(comm, NULL), MPI_ERR_ARG);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    FAILS(MPI_Comm_create_from_group(all, NULL, MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm), MPI_ERR_ARG);
    CHECK(MPI_Group_free(&all) == MPI_SUCCESS && MPI_Group_free(&part) == MPI_SUCCESS);
    /* Types of divisions. */
    MPI_Info info;
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm) == MPI_SUCCESS);
    CHECK(sum(comm) == 6 && MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm) == MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_HW_UNGUIDED, 0, MPI_INFO_NULL, &comm) == MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL);
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_hw_resource_type", "mpi_shared_memory") == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm) == MPI_SUCCESS);
    CHECK(sum(comm) == 6 && MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_hw_resource_type", "no such thing") == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm) == MPI_SUCCESS);
    CHECK(comm == MPI_COMM_NULL && MPI_Info_delete(info, "mpi_hw_resource_type") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_pset_name", "mpi://WORLD") == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_RESOURCE_GUIDED, -rank, info, &comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(comm, &value) == MPI_SUCCESS && value == size - 1 - rank && MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_HW_GUIDED, 0, info, &comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    CHECK(MPI_Info_set(info, "mpi_pset_name", "MPI://self") == MPI_SUCCESS);
    CHECK(MPI_Comm_split_type(world, MPI_COMM_TYPE_RESOURCE_GUIDED, 0, info, &comm) == MPI_SUCCESS);
    CHECK(sum(comm) == rank && MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    /* Ranks that belong to no part take part in the call. */
    CHECK(MPI_Comm_split_type(world, rank ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED, 0, MPI_INFO_NULL, &comm) == MPI_SUCCESS);
    CHECK((comm == MPI_COMM_NULL) == (rank == 0));
    if (rank) CHECK(sum(comm) == 6 && MPI_Comm_free(&comm) == MPI_SUCCESS);
    FAILS(MPI_Comm_split_type(world, 12345, 0, MPI_INFO_NULL, &comm), MPI_ERR_ARG);
    FAILS(MPI_Comm_remote_size(world, &value), MPI_ERR_COMM);
    CHECK(MPI_Comm_get_parent(&comm) == MPI_SUCCESS && comm == MPI_COMM_NULL);
    FAILS(MPI_Comm_disconnect(&world), MPI_ERR_COMM);
    MPI_Finalize();
    return 0;
}
