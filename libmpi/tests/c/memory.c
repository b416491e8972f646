// ranks 1
/* MPI_Alloc_mem and MPI_Free_mem. */
#include "check.h"
#include <stdint.h>

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Aint sizes[] = {0, 1, 100, 5000000};
    char *memory[4];
    for (int i = 0; i < 4; i++) {
        CHECK(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &memory[i]) == MPI_SUCCESS && memory[i] != NULL);
        CHECK((uintptr_t)memory[i] % 16 == 0);
        memset(memory[i], i, sizes[i]);
    }
    for (int i = 0; i < 4; i++) CHECK(sizes[i] == 0 || memory[i][sizes[i] - 1] == i);
    for (int i = 0; i < 4; i++) CHECK(MPI_Free_mem(memory[i]) == MPI_SUCCESS);
    FAILS(MPI_Free_mem(memory[1]), MPI_ERR_BASE);
    FAILS(MPI_Free_mem(&rank), MPI_ERR_BASE);
    CHECK(MPI_Free_mem(NULL) == MPI_SUCCESS);
    /* An alignment that the program asks for. */
    MPI_Info info;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "8192") == MPI_SUCCESS);
    CHECK(MPI_Alloc_mem(10, info, &memory[2]) == MPI_SUCCESS && (uintptr_t)memory[2] % 8192 == 0);
    CHECK(MPI_Free_mem(memory[2]) == MPI_SUCCESS);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    char *kept = memory[0];
    FAILS(MPI_Alloc_mem(-1, MPI_INFO_NULL, &kept), MPI_ERR_ARG);
    FAILS(MPI_Alloc_mem(INTPTR_MAX, MPI_INFO_NULL, &kept), MPI_ERR_NO_MEM);
    FAILS(MPI_Alloc_mem(1, MPI_INFO_NULL, NULL), MPI_ERR_ARG);
    CHECK(kept == memory[0]);
    MPI_Finalize();
    return 0;
}
