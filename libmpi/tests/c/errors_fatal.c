// ranks 2, exit 4
// stderr: MPI_Send failed on MPI_COMM_WORLD, rank 1: argument tag: -7 is no tag
// stderr: MPI_ERR_TAG
#include "check.h"

int main(void) {
    start();
    int data = 1;
    if (rank == 1) MPI_Send(&data, 1, MPI_INT, 0, -7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
