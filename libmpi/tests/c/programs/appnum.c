#include "../check.h"

int main(void) {
    int *number, flag;
    start();
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag) == MPI_SUCCESS);
    if (flag) printf("%d: %d\n", rank, *number);
    else printf("%d: none\n", rank);
    MPI_Finalize();
    return 0;
}
