// Prints how many nanoseconds longer calls take that are recorded: each call by its name, which the recording library
// gets, and by its second name, which it does not get. The figure is the median of many differences.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

// Not more in all than a rank has memory for from the beginning.
enum { CALLS = 1000, ROUNDS = 31 };

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

#define MEASURE(name, recorded, plain)                                      \
    do {                                                                    \
        double differences[ROUNDS];                                         \
        for (int round = 0; round < ROUNDS; round++) {                      \
            double start = MPI_Wtime();                                     \
            for (int call = 0; call < CALLS; call++)                        \
                recorded;                                                   \
            double between = MPI_Wtime();                                   \
            for (int call = 0; call < CALLS; call++)                        \
                plain;                                                      \
            double end = MPI_Wtime();                                       \
            differences[round] = (between - start) - (end - between);       \
        }                                                                   \
        qsort(differences, ROUNDS, sizeof(double), compare);                \
        printf("%-12s %6.1f ns\n", name, differences[ROUNDS / 2] / CALLS * 1e9); \
    } while (0)

int main(int argc, char **argv)
{
    int out = 1, in = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm self = MPI_COMM_SELF;
    MEASURE("MPI_Wait", MPI_Wait(&request, MPI_STATUS_IGNORE), PMPI_Wait(&request, MPI_STATUS_IGNORE));
    MEASURE("MPI_Barrier", MPI_Barrier(self), PMPI_Barrier(self));
    MEASURE("MPI_Send", (MPI_Send(&out, 1, MPI_INT, 0, 1, self), PMPI_Recv(&in, 1, MPI_INT, 0, 1, self, MPI_STATUS_IGNORE)),
            (PMPI_Send(&out, 1, MPI_INT, 0, 1, self), PMPI_Recv(&in, 1, MPI_INT, 0, 1, self, MPI_STATUS_IGNORE)));
    MEASURE("MPI_Recv", (PMPI_Send(&out, 1, MPI_INT, 0, 1, self), MPI_Recv(&in, 1, MPI_INT, 0, 1, self, MPI_STATUS_IGNORE)),
            (PMPI_Send(&out, 1, MPI_INT, 0, 1, self), PMPI_Recv(&in, 1, MPI_INT, 0, 1, self, MPI_STATUS_IGNORE)));
    return MPI_Finalize();
}
