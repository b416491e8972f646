// ranks 2
// stdout: joined
// Two ranks with a socket between them make a communicator of it.

#define _GNU_SOURCE
#include "check.h"
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(void) {
    start();
    // An abstract name, of which nothing remains.
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int pid = getpid();
    MPI_Bcast(&pid, 1, MPI_INT, 0, MPI_COMM_WORLD);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "mpj-join-%d", pid);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (rank == 0) {
        CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 1) == 0);
        MPI_Barrier(MPI_COMM_WORLD);
        fd = accept(fd, NULL, NULL);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
    }
    MPI_Comm other;
    CHECK(MPI_Comm_join(fd, &other) == MPI_SUCCESS && other != MPI_COMM_NULL);
    int got = -1, there;
    MPI_Comm_remote_size(other, &there);
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 0, &got, 1, MPI_INT, 0, 0, other, MPI_STATUS_IGNORE);
    CHECK(there == 1 && got == 1 - rank);
    MPI_Comm_disconnect(&other);

    // What is at the other end is no rank of this job.
    int pair[2];
    char strange[32] = "nobody that this job knows, sir";
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[1], strange, 32) == 32);
    CHECK(MPI_Comm_join(pair[0], &other) == MPI_SUCCESS && other == MPI_COMM_NULL);

    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    close(pair[1]);
    FAILS(MPI_Comm_join(pair[0], &other), MPI_ERR_ARG);
    FAILS(MPI_Comm_join(-1, &other), MPI_ERR_ARG);
    if (rank == 0)
        printf("joined\n");
    return MPI_Finalize();
}
