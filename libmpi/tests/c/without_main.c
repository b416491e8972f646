// ranks 3
// stdout: rank 0: 3 lengths
// stdout: rank 1: 3 lengths
// stdout: rank 2: 3 lengths
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"

static pthread_barrier_t started;

/* Waits until the first thread of the process has ended: the process is then shown as a zombie. */
static void wait_until_main_has_left(void) {
    char name[64], text[256];
    snprintf(name, sizeof name, "/proc/%d/stat", (int)getpid());
    for (;;) {
        FILE *stat = fopen(name, "r");
        CHECK(stat != NULL && fgets(text, sizeof text, stat) != NULL);
        fclose(stat);
        if (strrchr(text, ')')[2] == 'Z') return;
        sched_yield();
    }
}

static char byte_of(int from, int to, size_t at) { return (char)(at * 7 + (size_t)from * 3 + (size_t)to); }

/* Each rank sends to each other one and receives from it, by rendezvous. */
static void exchange(size_t len) {
    MPI_Request requests[4];
    char *out[3], *in[3];
    int pending = 0;
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank) continue;
        CHECK((out[peer] = malloc(len)) != NULL && (in[peer] = calloc(len, 1)) != NULL);
        for (size_t at = 0; at < len; at++) out[peer][at] = byte_of(rank, peer, at);
        MPI_Irecv(in[peer], (int)len, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[pending++]);
        MPI_Isend(out[peer], (int)len, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[pending++]);
    }
    CHECK(MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    for (int peer = 0; peer < size; peer++) {
        if (peer == rank) continue;
        for (size_t at = 0; at < len; at++) CHECK(in[peer][at] == byte_of(peer, rank, at));
        free(out[peer]);
        free(in[peer]);
    }
}

static void *work(void *arg) {
    int level, lengths = 0;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_barrier_wait(&started);
    if (rank > 0) wait_until_main_has_left();
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t len = 100; len <= 1000000; len *= 100, lengths++) exchange(len);
    printf("rank %d: %d lengths\n", rank, lengths);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    if (rank > 0) exit(0);
    return NULL;
}

/* Threads exchange long messages with processes whose first threads have ended, in both directions. */
int main(void) {
    pthread_t worker;
    setenv("MPJ_BACKEND", "rendezvous", 1);
    CHECK(pthread_barrier_init(&started, NULL, 2) == 0);
    CHECK(pthread_create(&worker, NULL, work, NULL) == 0);
    pthread_barrier_wait(&started);
    if (rank > 0) pthread_exit(NULL);
    CHECK(pthread_join(worker, NULL) == 0);
    return 0;
}
