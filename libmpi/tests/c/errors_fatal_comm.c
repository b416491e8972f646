// ranks 2, exit 13
// stderr: MPI_Cart_rank failed on the grid, rank 1: argument coords: coordinate 7 is out of range
// stderr: MPI_ERR_ARG
#include "check.h"

int main(void) {
    start();
    MPI_Comm grid;
    int dims[1] = {2}, periods[1] = {0}, seven = 7, value;
    CHECK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &grid) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_name(grid, "the grid") == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    if (rank == 1) MPI_Cart_rank(grid, &seven, &value);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
