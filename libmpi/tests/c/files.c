// ranks 1
#include "check.h"

/* Files are not supported. Their errors go to the error handler of MPI_FILE_NULL, so with those of the start the calls
   return, though errors on communicators are fatal. */
static int calls;

static void on_file(MPI_File *file, int *code, ...) {
    CHECK(*file == MPI_FILE_NULL);
    calls++;
}

int main(void) {
    MPI_Errhandler handler;
    MPI_File file = MPI_FILE_NULL;
    start();
    FAILS(MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(file == MPI_FILE_NULL);
    FAILS(MPI_File_delete("x", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_close(&file), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_sync(file), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(MPI_File_create_errhandler(on_file, &handler) == MPI_SUCCESS);
    CHECK(MPI_File_set_errhandler(MPI_FILE_NULL, handler) == MPI_SUCCESS);
    CHECK(MPI_Errhandler_free(&handler) == MPI_SUCCESS);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "x", MPI_MODE_RDONLY, MPI_INFO_NULL, &file), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(calls == 1);
    FAILS(MPI_File_delete("x", MPI_INFO_NULL), MPI_ERR_UNSUPPORTED_OPERATION);
    CHECK(calls == 2);
    MPI_Finalize();
    return 0;
}
