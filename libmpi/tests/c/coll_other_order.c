// ranks 2, exit 125, checked 16
// stderr: allreduce, call 0 on world: rank 0 has come; rank 1 has gone on to call 1 (allreduce)
/* Ranks make two collective calls in different orders, which the standard forbids also if one of them is nonblocking. The
   launcher says who has come to which call. */
#include "check.h"

int main(void) {
    int in = 1, out = 0;
    MPI_Request request;
    start();
    if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(&in, &out, 1, MPI_INT, MPI_BAND, MPI_COMM_WORLD, &request);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
