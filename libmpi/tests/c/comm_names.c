// ranks 2
#include "check.h"

int main(void) {
    start();
    char name[MPI_MAX_OBJECT_NAME], longer[2 * MPI_MAX_OBJECT_NAME], value[16];
    int length, flag, buffer = sizeof value;
    MPI_Comm comm, twin;
    MPI_Info info;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_get_name(MPI_COMM_WORLD, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_COMM_WORLD"));
    CHECK(length == 14);
    CHECK(MPI_Comm_get_name(MPI_COMM_SELF, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_COMM_SELF"));
    CHECK(MPI_Comm_get_name(MPI_COMM_NULL, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_COMM_NULL"));
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length == 0 && name[0] == 0);
    CHECK(MPI_Comm_set_name(comm, "twin") == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length == 4 && !strcmp(name, "twin"));
    memset(longer, 'x', sizeof longer - 1), longer[sizeof longer - 1] = 0;
    CHECK(MPI_Comm_set_name(comm, longer) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length == MPI_MAX_OBJECT_NAME - 1);
    /* Bytes of any encoding. */
    CHECK(MPI_Comm_set_name(comm, "caf\xe9") == MPI_SUCCESS);
    CHECK(MPI_Comm_get_name(comm, name, &length) == MPI_SUCCESS && length == 4 && !strcmp(name, "caf\xe9"));
    FAILS(MPI_Comm_set_name(comm, NULL), MPI_ERR_ARG);
    FAILS(MPI_Comm_set_name(MPI_COMM_NULL, "x"), MPI_ERR_COMM);
    /* Hints: those of the standard are kept; a duplicate has only those that it is given. */
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_assert_no_any_tag", "true") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "unknown_hint", "true") == MPI_SUCCESS);
    CHECK(MPI_Comm_set_info(comm, info) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_info(comm, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_string(info, "mpi_assert_no_any_tag", &buffer, value, &flag) == MPI_SUCCESS);
    CHECK(flag && !strcmp(value, "true"));
    CHECK(MPI_Info_get_nkeys(info, &length) == MPI_SUCCESS && length == 2);
    CHECK(MPI_Comm_dup_with_info(comm, info, &twin) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_info(twin, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &length) == MPI_SUCCESS && length == 2);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && MPI_Comm_free(&twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(comm, &twin) == MPI_SUCCESS && MPI_Comm_get_info(twin, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &length) == MPI_SUCCESS && length == 1);
    buffer = sizeof value;
    CHECK(MPI_Info_get_string(info, "mpi_memory_alloc_kinds", &buffer, value, &flag) == MPI_SUCCESS);
    CHECK(flag && !strcmp(value, "mpi,system"));
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && MPI_Comm_free(&twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_info(comm, MPI_INFO_NULL) == MPI_SUCCESS);
    FAILS(MPI_Comm_set_info(comm, (MPI_Info)(size_t)0x1234567), MPI_ERR_INFO);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
