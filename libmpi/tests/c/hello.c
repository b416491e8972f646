// ranks 3
// stdout: rank 0 of 3
// stdout: rank 2 of 3
#include "check.h"

int main(void) {
    int flag = -1, major, minor, len;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && !flag);
    double before = MPI_Wtime();
    CHECK(MPI_Get_version(&major, &minor) == MPI_SUCCESS && major == 5 && minor == 0);
    start();
    CHECK(MPI_Initialized(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Get_library_version(text, &len) == MPI_SUCCESS && (int)strlen(text) == len);
    CHECK(MPI_Get_processor_name(text, &len) == MPI_SUCCESS && (int)strlen(text) == len && len > 0);
    CHECK(MPI_Is_thread_main(&flag) == MPI_SUCCESS && flag);
    CHECK(MPI_Wtime() >= before && MPI_Wtick() > 0);
    CHECK(MPI_Comm_fromint(MPI_Comm_toint(MPI_COMM_WORLD)) == MPI_COMM_WORLD);
    CHECK(MPI_Pcontrol(1, "further", "arguments") == MPI_SUCCESS);
    printf("rank %d of %d\n", rank, size);
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && flag);
    return 0;
}
