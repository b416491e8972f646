// ranks 2
#define _DEFAULT_SOURCE
#include "check.h"
#include <unistd.h>

int main(void) {
    MPI_Session before, within, none;
    MPI_Group group;
    MPI_Comm comm;
    int flag;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &before) == MPI_SUCCESS);
    start();
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &within) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    none = MPI_SESSION_NULL;
    FAILS(MPI_Session_get_num_psets(none, MPI_INFO_NULL, &flag), MPI_ERR_SESSION);
    FAILS(MPI_Session_finalize(&none), MPI_ERR_SESSION);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&within) == MPI_SUCCESS);
    CHECK(MPI_Finalize() == MPI_SUCCESS && MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    /* The session is open, so its communicators work. */
    CHECK(MPI_Group_from_session_pset(before, "mpi://WORLD", &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, "after", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    CHECK(MPI_Barrier(comm) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Group_free(&group) == 0);
    CHECK(MPI_Session_finalize(&before) == MPI_SUCCESS);
    /* All processes may exit now, and sessions connect those that do not yet. */
    for (int round = 0; round < 3; round++) {
        int sum = 1, number = -1;
        MPI_Session after;
        CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &after) == MPI_SUCCESS);
        CHECK(MPI_Group_from_session_pset(after, "mpi://WORLD", &group) == MPI_SUCCESS);
        CHECK(MPI_Comm_create_from_group(group, "again", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
        CHECK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && sum == size);
        /* What is sent last arrives, though the sender waits for nobody. */
        for (int i = 0; i < 1000 && rank == 1; i++)
            CHECK(MPI_Send(&i, 1, MPI_INT, 0, 3, comm) == MPI_SUCCESS);
        if (rank == 0 && round == 2)
            usleep(50000);
        for (int i = 0; i < 1000 && rank == 0; i++)
            CHECK(MPI_Recv(&number, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE) == MPI_SUCCESS && number == i);
        CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Group_free(&group) == MPI_SUCCESS);
        CHECK(MPI_Session_finalize(&after) == MPI_SUCCESS);
    }
    /* Rank 1 may have ended. */
    if (rank == 0) {
        CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &within) == MPI_SUCCESS);
        CHECK(MPI_Group_from_session_pset(within, "mpi://SELF", &group) == MPI_SUCCESS);
        CHECK(MPI_Comm_create_from_group(group, "alone", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS && MPI_Group_free(&group) == 0);
        CHECK(MPI_Session_finalize(&within) == MPI_SUCCESS);
    }
    return 0;
}
