// ranks 3, exit 0
// stdout: sum 3
// stderr: mpjrun: ranks 0-2 exited with code 0 without finishing, which may lose messages: in C, call MPI_Finalize
#include "check.h"

/* A program that succeeds without MPI_Finalize has succeeded. */
int main(void) {
    start();
    int sum;
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("sum %d\n", sum);
    return 0;
}
