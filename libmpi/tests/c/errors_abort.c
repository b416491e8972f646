// ranks 2, exit 5
// stderr: MPI_Comm_call_errhandler failed on MPI_COMM_WORLD, rank 0: the program called the error handler
// stderr: the reactor is too hot
#include "check.h"

int main(void) {
    start();
    int class, code;
    MPI_Errhandler handler;
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ABORT) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_errhandler(MPI_COMM_WORLD, &handler) == MPI_SUCCESS && handler == MPI_ERRORS_ABORT);
    CHECK(MPI_Add_error_class(&class) == MPI_SUCCESS);
    do CHECK(MPI_Add_error_code(class, &code) == MPI_SUCCESS);
    while (code % 256 != 5);
    CHECK(MPI_Add_error_string(code, "the reactor is too hot") == MPI_SUCCESS);
    if (rank == 0) MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
