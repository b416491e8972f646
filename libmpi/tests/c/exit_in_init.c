// ranks 2, exit 3
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void leave(int signal) { exit(3); }

/* A signal handler may end a process that waits in MPI_Init for a rank that never comes. */
int main(void) {
    const char *number = getenv("MPJ_RANK");
    if (number && strcmp(number, "0") != 0) {
        for (;;) pause();
    }
    struct itimerval once = {.it_value = {.tv_usec = 300000}};
    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &once, NULL);
    MPI_Init(NULL, NULL);
    return 0;
}
