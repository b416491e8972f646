// Prints how many nanoseconds longer calls take that are recorded: each call by its name, which the recording library
// gets, and by its second name, which it does not get. Each figure is the median of many differences. In the second column
// the program walks through memory between two calls, as programs do that compute, so that caches have hardly anything of
// the recording library and of its memory left.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 1024, ROUNDS = 31, WALK = 96 << 10 };

static unsigned char memory[WALK];
static volatile unsigned char sum;

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void walk(size_t bytes)
{
    for (size_t at = 0; at < bytes; at += 64)
        sum += memory[at];
}

#define TIMED(call, bytes)                           \
    ({                                               \
        double took = 0;                             \
        for (int nth = 0; nth < CALLS; nth++) {      \
            walk(bytes);                             \
            double start = bytes ? MPI_Wtime() : 0;  \
            call;                                    \
            took += bytes ? MPI_Wtime() - start : 0; \
        }                                            \
        took;                                        \
    })

#define ROUND(call, bytes)                                   \
    ({                                                       \
        double start = MPI_Wtime(), took = TIMED(call, bytes); \
        bytes ? took : MPI_Wtime() - start;                  \
    })

#define COLUMN(recorded, plain, bytes)                                    \
    ({                                                                    \
        double differences[ROUNDS];                                       \
        for (int round = 0; round < ROUNDS; round++)                      \
            differences[round] = ROUND(recorded, bytes) - ROUND(plain, bytes); \
        qsort(differences, ROUNDS, sizeof(double), compare);              \
        differences[ROUNDS / 2] / CALLS * 1e9;                            \
    })

#define MEASURE(name, recorded, plain)                                    \
    printf("%-26s %6.1f ns %6.1f ns\n", name, COLUMN((recorded), (plain), 0), \
           COLUMN((recorded), (plain), WALK))

#define ARGS(buffer, rank, tag) &buffer, 1, MPI_INT, rank, tag, self
#define IGNORE MPI_STATUS_IGNORE

int main(int argc, char **argv)
{
    int out = 1, in = 0;
    MPI_Request request = MPI_REQUEST_NULL, both[2];
    MPI_Init(&argc, &argv);
    MPI_Comm self = MPI_COMM_SELF;
    memset(memory, 1, sizeof memory);
    MEASURE("MPI_Wait", MPI_Wait(&request, IGNORE), PMPI_Wait(&request, IGNORE));
    MEASURE("MPI_Barrier", MPI_Barrier(self), PMPI_Barrier(self));
    MEASURE("MPI_Allreduce", MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, self),
            PMPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, self));
    MEASURE("MPI_Send", (MPI_Send(ARGS(out, 0, 1)), PMPI_Recv(ARGS(in, 0, 1), IGNORE)),
            (PMPI_Send(ARGS(out, 0, 1)), PMPI_Recv(ARGS(in, 0, 1), IGNORE)));
    MEASURE("MPI_Recv", (PMPI_Send(ARGS(out, 0, 1)), MPI_Recv(ARGS(in, 0, 1), IGNORE)),
            (PMPI_Send(ARGS(out, 0, 1)), PMPI_Recv(ARGS(in, 0, 1), IGNORE)));
    MEASURE("MPI_Irecv", (MPI_Irecv(ARGS(in, 0, 1), both), PMPI_Send(ARGS(out, 0, 1)), PMPI_Wait(both, IGNORE)),
            (PMPI_Irecv(ARGS(in, 0, 1), both), PMPI_Send(ARGS(out, 0, 1)), PMPI_Wait(both, IGNORE)));
    MEASURE("MPI_Wait for a receive", (PMPI_Irecv(ARGS(in, 0, 1), both), PMPI_Send(ARGS(out, 0, 1)), MPI_Wait(both, IGNORE)),
            (PMPI_Irecv(ARGS(in, 0, 1), both), PMPI_Send(ARGS(out, 0, 1)), PMPI_Wait(both, IGNORE)));
    MEASURE("MPI_Irecv from any, Wait",
            (MPI_Irecv(ARGS(in, MPI_ANY_SOURCE, 1), both), PMPI_Send(ARGS(out, 0, 1)), MPI_Wait(both, IGNORE)),
            (PMPI_Irecv(ARGS(in, MPI_ANY_SOURCE, 1), both), PMPI_Send(ARGS(out, 0, 1)), PMPI_Wait(both, IGNORE)));
    MEASURE("MPI_Waitall for two",
            (PMPI_Irecv(ARGS(in, 0, 1), both), PMPI_Isend(ARGS(out, 0, 1), both + 1), MPI_Waitall(2, both, MPI_STATUSES_IGNORE)),
            (PMPI_Irecv(ARGS(in, 0, 1), both), PMPI_Isend(ARGS(out, 0, 1), both + 1), PMPI_Waitall(2, both, MPI_STATUSES_IGNORE)));
    MEASURE("MPI_Sendrecv", MPI_Sendrecv(&out, 1, MPI_INT, 0, 1, ARGS(in, 0, 1), IGNORE),
            PMPI_Sendrecv(&out, 1, MPI_INT, 0, 1, ARGS(in, 0, 1), IGNORE));
    return MPI_Finalize();
}
