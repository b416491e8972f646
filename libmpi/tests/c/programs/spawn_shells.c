/* Spawns shells, which print their processes and those of their children, and never join the job. */
#include "../check.h"

int main(void) {
    start();
    char *words[] = {"-c", "echo $$; sleep 600 & echo $!; wait", NULL};
    MPI_Comm shells;
    MPI_Comm_spawn("sh", words, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &shells, MPI_ERRCODES_IGNORE);
    return MPI_Finalize();
}
