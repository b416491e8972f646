// ranks 2, exit 125
// stderr: deadlock: every rank that is left waits for another one
// stderr: cycle: 0 waits for 1
#include <pthread.h>

#include "check.h"

static void *idle(void *lock) {
    pthread_mutex_lock(lock);
    return NULL;
}

static void *wait_for_other(void *arg) {
    MPI_Recv(NULL, 0, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return NULL;
}

/* A deadlock is found in processes whose first threads have ended, also beside an idle thread. */
int main(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_t one;
    int level;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    pthread_mutex_lock(&lock);
    CHECK(pthread_create(&one, NULL, wait_for_other, NULL) == 0);
    if (rank == 1) CHECK(pthread_create(&one, NULL, idle, &lock) == 0);
    pthread_exit(NULL);
}
