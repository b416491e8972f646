// ranks 1
#include "check.h"

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Status status;
    MPI_Count large = -1;
    int count = -1, value = -1;
    memset(&status, 0, sizeof status);
    CHECK(MPI_Status_set_source(&status, 5) == MPI_SUCCESS && status.MPI_SOURCE == 5);
    CHECK(MPI_Status_set_tag(&status, 6) == MPI_SUCCESS && status.MPI_TAG == 6);
    CHECK(MPI_Status_set_error(&status, 7) == MPI_SUCCESS && status.MPI_ERROR == 7);
    CHECK(MPI_Status_get_source(&status, &value) == MPI_SUCCESS && value == 5);
    CHECK(MPI_Status_get_tag(&status, &value) == MPI_SUCCESS && value == 6);
    CHECK(MPI_Status_get_error(&status, &value) == MPI_SUCCESS && value == 7);
    CHECK(MPI_Status_set_cancelled(&status, 3) == MPI_SUCCESS);
    CHECK(MPI_Test_cancelled(&status, &value) == MPI_SUCCESS && value);
    CHECK(MPI_Status_set_cancelled(&status, 0) == MPI_SUCCESS);
    CHECK(MPI_Test_cancelled(&status, &value) == MPI_SUCCESS && !value);
    /* Whole elements and parts of them. */
    MPI_Datatype pair;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    CHECK(MPI_Status_set_elements(&status, MPI_INT, 3) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Get_count(&status, MPI_BYTE, &count) == MPI_SUCCESS && count == 12);
    CHECK(MPI_Get_count(&status, pair, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Get_count(&status, MPI_DOUBLE, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Get_elements(&status, pair, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Get_elements(&status, MPI_INT, &count) == MPI_SUCCESS && count == 3);
    CHECK(MPI_Status_set_elements(&status, pair, 5) == MPI_SUCCESS);
    CHECK(MPI_Get_elements_c(&status, MPI_BYTE, &large) == MPI_SUCCESS && large == 20);
    /* A pair of different types: an element of each. */
    CHECK(MPI_Status_set_elements_c(&status, MPI_DOUBLE_INT, 3) == MPI_SUCCESS);
    CHECK(MPI_Get_elements_x(&status, MPI_BYTE, &large) == MPI_SUCCESS && large == 20);
    CHECK(MPI_Get_elements_x(&status, MPI_DOUBLE_INT, &large) == MPI_SUCCESS && large == 3);
    CHECK(MPI_Get_count(&status, MPI_DOUBLE_INT, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    /* Numbers beyond an int. */
    MPI_Count many = 5000000000;
    CHECK(MPI_Status_set_elements_x(&status, MPI_INT, many) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Get_elements(&status, MPI_INT, &count) == MPI_SUCCESS && count == MPI_UNDEFINED);
    CHECK(MPI_Get_count_c(&status, MPI_INT, &large) == MPI_SUCCESS && large == many);
    CHECK(MPI_Get_elements_x(&status, pair, &large) == MPI_SUCCESS && large == many);
    FAILS(MPI_Status_set_elements(&status, MPI_INT, -1), MPI_ERR_COUNT);
    FAILS(MPI_Status_set_elements(&status, MPI_DATATYPE_NULL, 1), MPI_ERR_TYPE);
    FAILS(MPI_Status_set_elements(NULL, MPI_INT, 1), MPI_ERR_ARG);
    FAILS(MPI_Get_count(&status, MPI_DATATYPE_NULL, &count), MPI_ERR_TYPE);
    FAILS(MPI_Get_count(NULL, MPI_INT, &count), MPI_ERR_ARG);
    FAILS(MPI_Get_elements(&status, MPI_INT, NULL), MPI_ERR_ARG);
    /* A message without data. */
    CHECK(MPI_Sendrecv(NULL, 0, MPI_INT, 0, 1, NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, &status) == MPI_SUCCESS);
    CHECK(MPI_Get_count(&status, MPI_INT, &count) == MPI_SUCCESS && count == 0);
    CHECK(MPI_Get_elements(&status, pair, &count) == MPI_SUCCESS && count == 0);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
