// ranks 4
#include "check.h"

int main(void) {
    start();
    int mine[2] = {rank, 1}, sum[2];
    CHECK(MPI_Allreduce(mine, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(sum[0] == size * (size - 1) / 2 && sum[1] == size);
    double high = rank;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, &high, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(high == size - 1);
    struct { double value; int index; } pair = {10 - rank, rank}, least;
    CHECK(MPI_Allreduce_c(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(least.index == size - 1 && least.value == 11 - size);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Request request;
    CHECK(MPI_Ibarrier(MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    MPI_Finalize();
    return 0;
}
