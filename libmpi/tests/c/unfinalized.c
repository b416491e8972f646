// ranks 2, exit 1
// stderr: exited with code 0 without finishing: in C, call MPI_Finalize
#include "check.h"

int main(void) {
    start();
    if (rank == 0) MPI_Finalize();
    return 0;
}
