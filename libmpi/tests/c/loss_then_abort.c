// ranks 2, exit 137
// stderr: mpjrun: rank 1 (pid
// stderr: was killed by signal 9 (SIGKILL)
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

enum { MESSAGES = 4000, LEN = 64, MEMORY = 1 << 29 };

/* A rank that aborts because another one was killed is not the cause. The kernel takes a while to end a process with
   much memory, which answers nobody meanwhile. */
int main(void) {
    static char bytes[LEN];
    static MPI_Request requests[MESSAGES];
    setenv("MPJ_BACKEND", "rendezvous", 1);
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 1) {
        char *memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(memory != MAP_FAILED);
        memset(memory, 1, MEMORY);
        int own = getpid();
        MPI_Request sent;
        for (int i = 0; i < MESSAGES; i++) MPI_Isend(bytes, LEN, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(&own, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, &sent);
        for (;;) MPI_Wait(&sent, MPI_STATUS_IGNORE);
    }
    int other, code = MPI_SUCCESS;
    CHECK(MPI_Recv(&other, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    kill(other, SIGKILL);
    for (int i = 0; i < MESSAGES && code == MPI_SUCCESS; i++) {
        code = MPI_Recv(bytes, LEN, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    while (code == MPI_SUCCESS) code = MPI_Recv(bytes, LEN, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Abort(MPI_COMM_WORLD, 77);
}
