/*
 * The loops of `benches/calls` in C: each sends messages of 8 bytes. `mpjdev/examples/calls.rs` has the same loops on
 * the device.
 *
 * `calls unexpected|exchange|start BATCHES COUNT [dup]` is for one rank, which sends to itself; `calls pingpong BATCHES COUNT
 * [dup]` for two. It prints the tenth percentile over the batches of the nanoseconds that one of COUNT rounds takes.
 * With `dup`, the communicator is a duplicate of MPI_COMM_WORLD.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 8, TAG = 1 };

static const char data[SIZE] = {7};
static char place[SIZE];
static MPI_Comm comm;

static void send_to(int to) { MPI_Send(data, SIZE, MPI_BYTE, to, TAG, comm); }

static void receive_from(int from)
{
    MPI_Status status;
    MPI_Recv(place, SIZE, MPI_BYTE, from, TAG, comm, &status);
}

static void unexpected(void)
{
    send_to(0);
    receive_from(0);
}

static void exchange(void)
{
    MPI_Request receive;
    MPI_Status status;
    MPI_Irecv(place, SIZE, MPI_BYTE, 0, TAG, comm, &receive);
    send_to(0);
    MPI_Wait(&receive, &status);
}

static void start(void)
{
    MPI_Request receive, send;
    MPI_Status status;
    MPI_Irecv(place, SIZE, MPI_BYTE, 0, TAG, comm, &receive);
    MPI_Isend(data, SIZE, MPI_BYTE, 0, TAG, comm, &send);
    MPI_Wait(&receive, &status);
    MPI_Wait(&send, &status);
}

static void ping(void)
{
    send_to(1);
    receive_from(1);
}

static void pong(void)
{
    receive_from(0);
    send_to(0);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int ascending(const void *one, const void *other)
{
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *name = argv[1];
    int batches = atoi(argv[2]), count = atoi(argv[3]);
    double *times = calloc(batches, sizeof *times);
    void (*round)(void) = strcmp(name, "unexpected") == 0 ? unexpected
                          : strcmp(name, "exchange") == 0 ? exchange
                          : strcmp(name, "start") == 0    ? start
                          : rank == 0                     ? ping
                                                          : pong;
    if (argc > 4)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    else
        comm = MPI_COMM_WORLD;
    for (int batch = 0; batch < batches; batch++) {
        double begin = now();
        for (int i = 0; i < count; i++)
            round();
        times[batch] = (now() - begin) / count;
    }
    qsort(times, batches, sizeof *times, ascending);
    if (rank == 0)
        printf("%.2f\n", times[batches / 10]);
    free(times);
    MPI_Finalize();
    return 0;
}
