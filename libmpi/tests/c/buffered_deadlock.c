// ranks 2, exit 125
// stderr: (wait: send tag 1) -> 1 waits for 0 (wait: send tag 1) -> 0
/* Each rank waits until its buffered message has left, and nobody receives it. The message is too long for the memory of
   unexpected messages. */
#include "check.h"
#define LONG (80 << 20)

static char many[LONG];

int main(void) {
    start();
    MPI_Request request;
    CHECK(MPI_Buffer_attach_c(MPI_BUFFER_AUTOMATIC, 0) == MPI_SUCCESS);
    CHECK(MPI_Bsend(many, LONG, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 0) MPI_Buffer_flush();
    CHECK(MPI_Buffer_iflush(&request) == MPI_SUCCESS);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return 0;
}
