// ranks 3
// stdout: sum 3
#include "check.h"

static int calls;

static void on_session(MPI_Session *session, int *code, ...) { calls++; }

/* A program that uses sessions only, twice. */
static void use(void) {
    MPI_Session session;
    MPI_Errhandler handler;
    MPI_Group group;
    MPI_Comm comm;
    MPI_Info info;
    int number, length, flag, mine, total;
    char name[MPI_MAX_PSET_NAME_LEN], value[32];
    CHECK(MPI_Session_create_errhandler(on_session, &handler) == MPI_SUCCESS);
    CHECK(MPI_Session_init(MPI_INFO_NULL, handler, &session) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == 0);
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &number) == MPI_SUCCESS && number >= 2);
    length = 0;
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL) == MPI_SUCCESS && length == 12);
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name) == MPI_SUCCESS);
    CHECK(!strcmp(name, "mpi://WORLD"));
    CHECK(MPI_Session_get_pset_info(session, name, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "mpi_size", 31, value, &flag) == MPI_SUCCESS && flag && atoi(value) == 3);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && MPI_Session_get_info(session, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "thread_level", 31, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strcmp(value, "MPI_THREAD_MULTIPLE"));
    CHECK(MPI_Info_get(info, "mpi_memory_alloc_kinds", 31, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strcmp(value, "mpi,system") && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Group_from_session_pset(session, "mpi://SELF", &group) == MPI_SUCCESS);
    CHECK(MPI_Group_size(group, &number) == MPI_SUCCESS && number == 1 && MPI_Group_free(&group) == MPI_SUCCESS);
    /* In scheme and authority of a URI, upper and lower case are the same. */
    CHECK(MPI_Group_from_session_pset(session, "MPI://world", &group) == MPI_SUCCESS);
    CHECK(MPI_Group_size(group, &number) == MPI_SUCCESS && number == 3 && MPI_Group_free(&group) == MPI_SUCCESS);
    CHECK(MPI_Group_from_session_pset(session, "mpi://self", &group) == MPI_SUCCESS);
    CHECK(MPI_Group_size(group, &number) == MPI_SUCCESS && number == 1 && MPI_Group_free(&group) == MPI_SUCCESS);
    CHECK(MPI_Session_get_pset_info(session, "mpi://World", &info) == MPI_SUCCESS && MPI_Info_free(&info) == 0);
    calls = 0;
    FAILS(MPI_Group_from_session_pset(session, "mpi://OTHER", &group), MPI_ERR_ARG);
    CHECK(calls == 1);
    FAILS(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, number + 9, &length, name), MPI_ERR_ARG);
    CHECK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER) == MPI_SUCCESS && calls == 3);
    CHECK(MPI_Session_set_errhandler(session, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Session_get_num_psets(session, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_from_group(group, "sessions", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm) == MPI_SUCCESS);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS && MPI_Comm_rank(comm, &mine) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS && total == 3);
    if (mine == 0) printf("sum %d\n", total);
    CHECK(MPI_Comm_disconnect(&comm) == MPI_SUCCESS);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS && session == MPI_SESSION_NULL);
}

/* The error handler that is an argument gets all errors of the call. */
static void errors(void) {
    MPI_Session session = MPI_SESSION_NULL;
    MPI_Errhandler handler;
    MPI_Info info;
    char value[32];
    int flag;
    CHECK(MPI_Session_create_errhandler(on_session, &handler) == MPI_SUCCESS && MPI_Info_create(&info) == MPI_SUCCESS);
    calls = 0;
    CHECK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALISED") == MPI_SUCCESS);
    FAILS(MPI_Session_init(info, MPI_ERRORS_RETURN, &session), MPI_ERR_INFO_VALUE);
    CHECK(session == MPI_SESSION_NULL);
    FAILS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, NULL), MPI_ERR_ARG);
    CHECK(MPI_Info_set(info, "thread_level", "MPI_THREAD_SERIALIZED") == MPI_SUCCESS);
    CHECK(MPI_Session_init(info, handler, &session) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Session_get_info(session, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "thread_level", 31, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strcmp(value, "MPI_THREAD_SERIALIZED") && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS && MPI_Session_finalize(&session) == MPI_SUCCESS && calls == 0);
}

int main(void) {
    use();
    errors();
    use();
    return 0;
}
