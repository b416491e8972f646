// ranks 1
/* What a layer for Fortran tells the library: the first call counts. */
#include "check.h"

int main(void) {
    int yes = 1, no = 0, truth = 7, falsehood = 7, set = -1, major = -1, minor = -1;
    long long wide;
    CHECK(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS && major == MPI_ABI_VERSION && minor == MPI_ABI_SUBVERSION);
    CHECK(MPI_Abi_get_fortran_booleans(4, &truth, &falsehood, &set) == MPI_SUCCESS && set == 0 && truth == 7);
    CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_booleans(4, &truth, &falsehood, &set) == MPI_SUCCESS);
    CHECK(set == 1 && truth == 1 && falsehood == 0);
    CHECK(MPI_Abi_get_fortran_booleans(8, &wide, &wide, &set) == MPI_SUCCESS && set == 0);
    /* The sizes of the interface's own types. */
    MPI_Info info, other;
    char text[16];
    int len = sizeof text, flag;
    CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_get_string(info, "mpi_count_size", &len, text, &flag) == MPI_SUCCESS);
    CHECK(flag == 1 && atoi(text) == sizeof(MPI_Count) && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    FAILS(MPI_Abi_set_fortran_booleans(4, &no, &yes), MPI_ERR_ABI);
    FAILS(MPI_Abi_set_fortran_booleans(3, &no, &yes), MPI_ERR_ARG);
    FAILS(MPI_Abi_get_fortran_booleans(4, NULL, &no, &set), MPI_ERR_ARG);
    CHECK(MPI_Abi_get_fortran_booleans(4, &truth, &falsehood, &set) == MPI_SUCCESS && truth == 1);
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_integer_size", "8") == MPI_SUCCESS);
    FAILS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    CHECK(MPI_Info_set(info, "mpi_integer_size", "4") == MPI_SUCCESS);
    FAILS(MPI_Abi_set_fortran_info(MPI_INFO_NULL), MPI_ERR_INFO);
    CHECK(MPI_Abi_set_fortran_info(info) == MPI_SUCCESS);
    FAILS(MPI_Abi_set_fortran_info(info), MPI_ERR_ABI);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && MPI_Abi_get_fortran_info(&other) == MPI_SUCCESS);
    len = sizeof text;
    CHECK(MPI_Info_get_string(other, "mpi_integer_size", &len, text, &flag) == MPI_SUCCESS && flag == 1);
    CHECK(strcmp(text, "4") == 0 && MPI_Info_free(&other) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
