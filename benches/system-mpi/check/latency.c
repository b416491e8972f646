/*
 * Latency in plain C, to compare with what the worker reports for the same MPI: half of the mean time of
 * a round trip, over powers of two, in the loop that MPI users know from other suites. Rank r stays on
 * the r-th usable processor, as the worker does.
 *
 *   mpicc -O2 -o latency latency.c
 *   mpiexec -n 2 --bind-to none ./latency [largest size in bytes]
 *
 * Run both in turns a few times and compare the smallest figures: machines change their minds.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 8192, PING = 1, PONG = 2 };

/* Keeps this process on the r-th of the processors that it may use. */
static void stay(int r)
{
    cpu_set_t usable, only;
    CPU_ZERO(&only);
    if (sched_getaffinity(0, sizeof usable, &usable) != 0)
        return;
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (CPU_ISSET(processor, &usable) && r-- == 0) {
            CPU_SET(processor, &only);
            sched_setaffinity(0, sizeof only, &only);
            return;
        }
    }
}

/* Seconds of so many round trips. */
static double round_trips(int count, int rank, const char *out, char *in, int size)
{
    MPI_Status status;
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        if (rank == 0) {
            MPI_Send(out, size, MPI_BYTE, 1, PING, MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_BYTE, 1, PONG, MPI_COMM_WORLD, &status);
        } else {
            MPI_Recv(in, size, MPI_BYTE, 0, PING, MPI_COMM_WORLD, &status);
            MPI_Send(out, size, MPI_BYTE, 0, PONG, MPI_COMM_WORLD);
        }
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    stay(rank);
    int largest = argc > 1 ? atoi(argv[1]) : 4 << 20;
    if (ranks != 2 || largest < 1 || largest > 1 << 28) {
        fprintf(stderr, "latency: start 2 ranks, with a size up to 256 MiB\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* Where in its page a buffer begins moves the figures from 4 KiB on by up to a fifth. */
    size_t pages = ((size_t)largest + 4095) / 4096 * 4096;
    char *out = aligned_alloc(4096, pages), *in = aligned_alloc(4096, pages);
    if (out == NULL || in == NULL) {
        fprintf(stderr, "latency: no memory for messages of %d bytes\n", largest);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(out, 'o', pages);
    memset(in, 'i', pages);
    if (rank == 0)
        printf("# Size          Latency (us)\n");
    for (int size = 0; size <= largest; size = size ? 2 * size : 1) {
        int count = size <= LONG ? 10000 : 1000;
        MPI_Barrier(MPI_COMM_WORLD);
        round_trips(count / 100, rank, out, in, size);
        double seconds = round_trips(count, rank, out, in, size);
        if (rank == 0)
            printf("%-10d%18.3f\n", size, seconds * 1e6 / 2 / count);
    }
    MPI_Finalize();
    return 0;
}
