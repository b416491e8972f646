// ranks 1
#define _GNU_SOURCE
#include <unwind.h>
#include "check.h"

/* Error handlers in C++ may throw. An exception that nobody catches comes back from where it is thrown, so the library
   must not catch it on its way. */
static int calls;
static struct _Unwind_Exception thrown;

static void throws(void) {
    calls++;
    CHECK(_Unwind_RaiseException(&thrown) == _URC_END_OF_STACK);
}

static void on_comm(MPI_Comm *comm, int *code, ...) { throws(); }

static void on_session(MPI_Session *session, int *code, ...) { throws(); }

static void on_file(MPI_File *file, int *code, ...) { throws(); }

int main(void) {
    MPI_Errhandler of_comm, of_session, of_file;
    MPI_Session session;
    int value;
    start();
    CHECK(MPI_Comm_create_errhandler(on_comm, &of_comm) == MPI_SUCCESS);
    CHECK(MPI_Session_create_errhandler(on_session, &of_session) == MPI_SUCCESS);
    CHECK(MPI_File_create_errhandler(on_file, &of_file) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, of_comm) == MPI_SUCCESS);
    FAILS(MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    CHECK(calls == 1);
    CHECK(MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER) == MPI_SUCCESS && calls == 2);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, of_file) == MPI_SUCCESS);
    CHECK(MPI_File_call_errhandler(MPI_FILE_NULL, MPI_ERR_IO) == MPI_SUCCESS && calls == 3);
    CHECK(MPI_Session_init(MPI_INFO_NULL, of_session, &session) == MPI_SUCCESS);
    CHECK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER) == MPI_SUCCESS && calls == 4);
    CHECK(MPI_Session_finalize(&session) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_free(&of_comm) == 0 && MPI_Errhandler_free(&of_session) == 0);
    CHECK(MPI_Errhandler_free(&of_file) == 0);
    MPI_Finalize();
    return 0;
}
