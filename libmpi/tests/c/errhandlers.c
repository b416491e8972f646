// ranks 2
#include "check.h"

static int calls, last;
static MPI_Comm where;

static void on_comm(MPI_Comm *comm, int *code, ...) {
    int value;
    calls++, last = *code, where = *comm;
    /* A handler may call MPI. */
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &value) == MPI_SUCCESS && value == rank);
}

static void on_file(MPI_File *file, int *code, ...) {
    CHECK(*file == MPI_FILE_NULL);
    calls++, last = *code;
}

int main(void) {
    /* Made before MPI_Init. */
    MPI_Errhandler handler, same, of_file, old;
    CHECK(MPI_Comm_create_errhandler(on_comm, &handler) == MPI_SUCCESS);
    start();
    MPI_Comm twin, part;
    int value;
    CHECK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &old) == MPI_SUCCESS && old == MPI_ERRORS_ARE_FATAL);
    CHECK(MPI_Errhandler_free(&old) == MPI_SUCCESS && old == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(twin, handler) == MPI_SUCCESS);
    FAILS(MPI_Send(&value, -1, MPI_INT, 0, 0, twin), MPI_ERR_COUNT);
    CHECK(calls == 1 && last == MPI_ERR_COUNT && where == twin);
    /* The same handle, as often as it is asked for; an object keeps the handler. */
    CHECK(MPI_Comm_get_errhandler(twin, &same) == MPI_SUCCESS && same == handler);
    CHECK(MPI_Errhandler_free(&same) == MPI_SUCCESS && same == MPI_ERRHANDLER_NULL);
    CHECK(MPI_Comm_set_errhandler(twin, handler) == MPI_SUCCESS);
    same = handler;
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, same), MPI_ERR_ERRHANDLER);
    FAILS(MPI_Errhandler_free(&same), MPI_ERR_ERRHANDLER);
    /* Inherited. */
    CHECK(MPI_Comm_split(twin, 0, 0, &part) == MPI_SUCCESS);
    FAILS(MPI_Comm_size(part, NULL), MPI_ERR_ARG);
    CHECK(calls == 2 && where == part);
    CHECK(MPI_Comm_get_errhandler(part, &handler) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, handler) == MPI_SUCCESS && MPI_Errhandler_free(&handler) == 0);
    CHECK(MPI_Comm_free(&part) == MPI_SUCCESS && MPI_Comm_free(&twin) == MPI_SUCCESS);
    /* Errors without an object go to MPI_COMM_SELF. */
    FAILS(MPI_Group_size(MPI_GROUP_NULL, &value), MPI_ERR_GROUP);
    CHECK(calls == 3 && where == MPI_COMM_SELF);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_TOPOLOGY) == MPI_SUCCESS && calls == 4);
    CHECK(last == MPI_ERR_TOPOLOGY);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_TOPOLOGY) == MPI_SUCCESS && calls == 4);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    /* Files return errors; windows do not exist. */
    CHECK(MPI_File_get_errhandler(MPI_FILE_NULL, &old) == MPI_SUCCESS && old == MPI_ERRORS_RETURN);
    CHECK(MPI_File_create_errhandler(on_file, &of_file) == MPI_SUCCESS);
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_file), MPI_ERR_ERRHANDLER);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, of_file) == MPI_SUCCESS && MPI_Errhandler_free(&of_file) == 0);
    CHECK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO) == MPI_SUCCESS && calls == 5 && last == MPI_ERR_IO);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Win_set_errhandler(MPI_WIN_NULL, MPI_ERRORS_RETURN), MPI_ERR_WIN);
    FAILS(MPI_Comm_create_errhandler(NULL, &handler), MPI_ERR_ARG);
    FAILS(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRHANDLER_NULL), MPI_ERR_ERRHANDLER);
    /* The names of MPI-1. */
    CHECK(MPI_Errhandler_create(on_comm, &handler) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_set(MPI_COMM_WORLD, handler) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_get(MPI_COMM_WORLD, &same) == MPI_SUCCESS && same == handler);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS && MPI_Errhandler_free(&same) == MPI_SUCCESS);
    FAILS(MPI_Comm_rank(MPI_COMM_WORLD, NULL), MPI_ERR_ARG);
    CHECK(calls == 6 && where == MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
