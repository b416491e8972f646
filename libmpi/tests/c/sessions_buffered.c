// ranks 2
#include "check.h"
#define LONG 200000

/* The buffer of a session is for the communicators that come from it, unless they have one of their own. */

static int many[LONG], got[LONG];
enum { BYTES = LONG * sizeof(int) + MPI_BSEND_OVERHEAD };
static char room[BYTES + 1];

static MPI_Comm communicator(MPI_Session session, int by_union) {
    MPI_Group group, part, whole;
    MPI_Comm comm;
    int first = 0;
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    if (by_union) {
        CHECK(MPI_Group_incl(group, 1, &first, &part) == MPI_SUCCESS);
        CHECK(MPI_Group_union(part, group, &whole) == MPI_SUCCESS);
        MPI_Group_free(&part), MPI_Group_free(&group);
        group = whole;
    }
    CHECK(MPI_Comm_create_from_group(group, "session", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    return comm;
}

/* A long message waits in the buffer until its receiver comes. */
static void exchange(MPI_Session session, MPI_Comm comm, int other, int waits) {
    MPI_Request flushed, receive;
    for (int i = 0; i < LONG; i++) many[i] = rank + i;
    CHECK(MPI_Bsend(many, LONG, MPI_INT, other, 2, comm) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) many[i] = -1;
    FAILS(MPI_Bsend(room, BYTES + 1, MPI_CHAR, other, 2, comm), MPI_ERR_BUFFER);
    if (waits)
        CHECK(MPI_Session_iflush_buffer(session, &flushed) == MPI_SUCCESS);
    CHECK(MPI_Irecv(got, LONG, MPI_INT, other, 2, comm, &receive) == MPI_SUCCESS);
    CHECK(MPI_Wait(&receive, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(got[0] == other && got[LONG - 1] == other + LONG - 1);
    CHECK((waits ? MPI_Wait(&flushed, MPI_STATUS_IGNORE) : MPI_Session_flush_buffer(session)) == MPI_SUCCESS);
}

int main(void) {
    MPI_Session session, second;
    MPI_Comm comm, twin, elsewhere;
    MPI_Group group;
    void *address = NULL;
    MPI_Count long_length = -1;
    int length = -1, other, one = 1;
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session) == MPI_SUCCESS);
    CHECK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &second) == MPI_SUCCESS);
    comm = communicator(session, 0);
    elsewhere = communicator(second, 1);
    MPI_Comm_rank(comm, &rank);
    other = 1 - rank;
    FAILS(MPI_Bsend(&one, 1, MPI_INT, other, 1, comm), MPI_ERR_BUFFER);
    CHECK(MPI_Session_attach_buffer(session, room, BYTES) == MPI_SUCCESS);
    FAILS(MPI_Session_attach_buffer(session, room, 1), MPI_ERR_BUFFER);
    FAILS(MPI_Session_attach_buffer(second, NULL, 1), MPI_ERR_BUFFER);
    exchange(session, comm, other, 0);

    /* What is made of its communicators has it, too, also by way of their groups; what comes from another one has not. */
    CHECK(MPI_Comm_dup(comm, &twin) == MPI_SUCCESS);
    exchange(session, twin, other, 1);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS && MPI_Comm_group(comm, &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, "group", MPI_INFO_NULL, MPI_ERRORS_RETURN, &twin) == MPI_SUCCESS);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS);
    exchange(session, twin, other, 1);
    FAILS(MPI_Bsend(&one, 1, MPI_INT, other, 1, elsewhere), MPI_ERR_BUFFER);
    CHECK(MPI_Session_attach_buffer_c(second, MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    CHECK(MPI_Bsend(&one, 1, MPI_INT, other, 1, elsewhere) == MPI_SUCCESS);
    CHECK(MPI_Recv(&one, 1, MPI_INT, other, 1, elsewhere, MPI_STATUS_IGNORE) == MPI_SUCCESS);

    /* A communicator's own buffer comes first. */
    CHECK(MPI_Comm_attach_buffer(twin, room, 1) == MPI_SUCCESS);
    FAILS(MPI_Bsend(many, 1, MPI_INT, other, 1, twin), MPI_ERR_BUFFER);
    CHECK(MPI_Comm_detach_buffer(twin, &address, &length) == MPI_SUCCESS && length == 1);

    /* What waits when all handles are gone still leaves. */
    for (int i = 0; i < LONG; i++) many[i] = rank + i;
    CHECK(MPI_Session_detach_buffer_c(session, &address, &long_length) == MPI_SUCCESS);
    CHECK(address == room && long_length == BYTES);
    CHECK(MPI_Session_detach_buffer(session, &address, &length) == MPI_SUCCESS && address == NULL && length == 0);
    FAILS(MPI_Bsend(many, 1, MPI_INT, other, 1, twin), MPI_ERR_BUFFER);
    CHECK(MPI_Bsend(many, LONG, MPI_INT, other, 3, elsewhere) == MPI_SUCCESS);
    CHECK(MPI_Recv(got, LONG, MPI_INT, other, 3, elsewhere, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(got[LONG - 1] == other + LONG - 1);
    if (rank == 0) {
        CHECK(MPI_Bsend(many, LONG, MPI_INT, other, 4, elsewhere) == MPI_SUCCESS);
        CHECK(MPI_Comm_free(&elsewhere) == MPI_SUCCESS && MPI_Session_finalize(&second) == MPI_SUCCESS);
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS && MPI_Barrier(comm) == MPI_SUCCESS);
    } else {
        CHECK(MPI_Barrier(comm) == MPI_SUCCESS);
        CHECK(MPI_Recv(got, LONG, MPI_INT, other, 4, elsewhere, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(got[0] == 0 && MPI_Barrier(comm) == MPI_SUCCESS);
        CHECK(MPI_Comm_free(&elsewhere) == MPI_SUCCESS && MPI_Session_finalize(&second) == MPI_SUCCESS);
    }
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS && MPI_Comm_free(&comm) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
    return 0;
}
