// ranks 2
/* Datatypes chosen by size, by precision, and by value and index. */
#include "check.h"

static void chosen(MPI_Datatype type, int bytes, int combiner, int count, int first) {
    int got, ints, addresses, types, kind, numbers[2];
    MPI_Datatype copy = type;
    CHECK(MPI_Type_size(type, &got) == MPI_SUCCESS && got == bytes);
    CHECK(MPI_Type_get_envelope(type, &ints, &addresses, &types, &kind) == MPI_SUCCESS);
    CHECK(kind == combiner && ints == count && addresses == 0 && types == 0);
    CHECK(MPI_Type_get_contents(type, count, 0, 0, numbers, NULL, NULL) == MPI_SUCCESS && numbers[0] == first);
    FAILS(MPI_Type_free(&copy), MPI_ERR_TYPE);
    CHECK(copy == type && MPI_Type_commit(&copy) == MPI_SUCCESS && copy == type);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Datatype type, same, inner, outer;
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type) == MPI_SUCCESS && type == MPI_REAL8);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_REAL, 16, &type) == MPI_SUCCESS);
    CHECK(type == MPI_REAL16);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 2, &type) == MPI_SUCCESS && type == MPI_INTEGER2);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_COMPLEX, 8, &type) == MPI_SUCCESS && type == MPI_COMPLEX8);
    FAILS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, -4, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_match_size(7, 4, &type), MPI_ERR_ARG);
    CHECK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &type) == MPI_SUCCESS);
    chosen(type, 8, MPI_COMBINER_F90_REAL, 2, 15);
    CHECK(MPI_Type_create_f90_real(15, MPI_UNDEFINED, &same) == MPI_SUCCESS && same == type);
    CHECK(MPI_Type_create_f90_real(14, MPI_UNDEFINED, &same) == MPI_SUCCESS && same != type);
    /* They are committed, match what they stand for, and keep their handle inside of others. */
    double real = rank + 0.5, got = 0;
    CHECK(MPI_Sendrecv(&real, 1, type, 1 - rank, 0, &got, 1, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(got == 1.5 - rank);
    CHECK(MPI_Type_dup(type, &outer) == MPI_SUCCESS);
    CHECK(MPI_Type_get_contents(outer, 0, 0, 1, NULL, NULL, &inner) == MPI_SUCCESS && inner == type);
    CHECK(MPI_Type_free(&outer) == MPI_SUCCESS);
    CHECK(MPI_Type_create_f90_complex(6, 30, &type) == MPI_SUCCESS);
    chosen(type, 8, MPI_COMBINER_F90_COMPLEX, 2, 6);
    CHECK(MPI_Type_create_f90_integer(12, &type) == MPI_SUCCESS);
    chosen(type, 8, MPI_COMBINER_F90_INTEGER, 1, 12);
    FAILS(MPI_Type_create_f90_integer(99, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type), MPI_ERR_ARG);
    CHECK(MPI_Type_get_value_index(MPI_DOUBLE, MPI_INT, &type) == MPI_SUCCESS && type == MPI_DOUBLE_INT);
    CHECK(MPI_Type_get_value_index(MPI_INTEGER, MPI_INTEGER, &type) == MPI_SUCCESS && type == MPI_2INTEGER);
    CHECK(MPI_Type_get_value_index(MPI_INT, MPI_INT, &type) == MPI_SUCCESS && type == MPI_2INT);
    CHECK(MPI_Type_get_value_index(MPI_REAL, MPI_REAL, &type) == MPI_SUCCESS && type == MPI_2REAL);
    CHECK(MPI_Type_get_value_index(MPI_CHAR, MPI_INT, &type) == MPI_SUCCESS && type == MPI_DATATYPE_NULL);
    FAILS(MPI_Type_get_value_index(MPI_DATATYPE_NULL, MPI_INT, &type), MPI_ERR_TYPE);
    MPI_Finalize();
    return 0;
}
