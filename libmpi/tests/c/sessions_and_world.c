// ranks 2
#include "check.h"

int main(void) {
    MPI_Session before, within;
    MPI_Group group;
    MPI_Comm comm;
    int flag;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before) == MPI_SUCCESS);
    start();
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &within) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&within) == MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS && MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    /* The session is open, so its communicators work. */
    CHECK(MPI_Group_from_session_pset(before, "mpi://WORLD", &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, "after", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Group_free(&group) == 0);
    CHECK(MPI_Session_finalize(&before) == MPI_SUCCESS);
    return 0;
}
