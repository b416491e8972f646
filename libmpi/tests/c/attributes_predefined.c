// ranks 2
#include "check.h"

int main(void) {
    start();
    int *value, flag, code, key = MPI_TAG_UB;
    MPI_Comm twin;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && flag && *value >= 32767);
    /* The highest tag works. */
    int got = -1;
    CHECK(MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, *value, &got, 1, MPI_INT, 1 - rank, *value, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS && got == 1 - rank);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_HOST, &value, &flag) == MPI_SUCCESS && flag);
    CHECK(*value == MPI_PROC_NULL);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_IO, &value, &flag) == MPI_SUCCESS && flag);
    CHECK(*value == MPI_ANY_SOURCE);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &value, &flag) == MPI_SUCCESS && flag);
    CHECK(*value == 0 || *value == 1);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag) == MPI_SUCCESS);
    CHECK(!flag || *value >= size);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &value, &flag) == MPI_SUCCESS && flag);
    CHECK(*value == 0);
    CHECK(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag) == MPI_SUCCESS && flag);
    CHECK(*value == MPI_ERR_LASTCODE);
    CHECK(MPI_Add_error_class(&code) == MPI_SUCCESS && code > MPI_ERR_LASTCODE && *value == code);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &twin) == MPI_SUCCESS);
    CHECK(MPI_Attr_get(twin, MPI_TAG_UB, &value, &flag) == MPI_SUCCESS && flag && *value >= 32767);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, MPI_TAG_UB, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, MPI_IO), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
    MPI_Finalize();
    return 0;
}
