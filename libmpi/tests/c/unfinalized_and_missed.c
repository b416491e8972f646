// ranks 2, exit 1
// stderr: mpjrun: rank 1 (pid
// stderr: exited with code 0 without finishing: in C, call MPI_Finalize
// stderr: 0      recv        rank 1
#include "check.h"

/* A rank that ends with code 0 is the cause of a deadlock if another one waits for it. */
int main(void) {
    start();
    if (rank == 0) MPI_Recv(NULL, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 0;
}
