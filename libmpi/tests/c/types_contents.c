// ranks 1
/* The constructor of a datatype, and its arguments. */
#include "check.h"

static int ints[30];
static MPI_Aint addresses[10];
static MPI_Count counts[30];
static MPI_Datatype types[4];

/* Checks the numbers of arguments, and gets them. */
static void envelope(MPI_Datatype type, int combiner, int i, int a, int t) {
    int n_ints, n_addresses, n_types, got;
    MPI_Count c_ints, c_addresses, c_counts, c_types;
    CHECK(MPI_Type_get_envelope(type, &n_ints, &n_addresses, &n_types, &got) == MPI_SUCCESS);
    CHECK(got == combiner && n_ints == i && n_addresses == a && n_types == t);
    CHECK(MPI_Type_get_envelope_c(type, &c_ints, &c_addresses, &c_counts, &c_types, &got) == MPI_SUCCESS);
    CHECK(got == combiner && c_ints == i && c_addresses == a && c_types == t && c_counts == 0);
    CHECK(MPI_Type_get_contents(type, i, a, t, ints, addresses, types) == MPI_SUCCESS);
    CHECK(MPI_Type_get_contents_c(type, i, a, 0, t, ints, addresses, NULL, types) == MPI_SUCCESS);
}

/* The same for a constructor with large counts. */
static void large(MPI_Datatype type, int combiner, int i, int c, int t) {
    int n, got;
    MPI_Count c_ints, c_addresses, c_counts, c_types;
    FAILS(MPI_Type_get_envelope(type, &n, &n, &n, &got), MPI_ERR_TYPE);
    FAILS(MPI_Type_get_contents(type, 30, 10, 4, ints, addresses, types), MPI_ERR_TYPE);
    CHECK(MPI_Type_get_envelope_c(type, &c_ints, &c_addresses, &c_counts, &c_types, &got) == MPI_SUCCESS);
    CHECK(got == combiner && c_ints == i && c_addresses == 0 && c_types == t && c_counts == c);
    CHECK(MPI_Type_get_contents_c(type, i, 0, c, t, ints, NULL, counts, types) == MPI_SUCCESS);
}

#define INTS(...) CHECK(memcmp(ints, (int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__})) == 0)
#define COUNTS(...) CHECK(memcmp(counts, (MPI_Count[]){__VA_ARGS__}, sizeof((MPI_Count[]){__VA_ARGS__})) == 0)

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Datatype type, inner;
    int lengths[2] = {2, 1}, places[2] = {3, 0};
    MPI_Aint bytes[2] = {12, 0};
    CHECK(MPI_Type_vector(4, 2, 3, MPI_FLOAT, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_VECTOR, 3, 0, 1);
    INTS(4, 2, 3);
    CHECK(types[0] == MPI_FLOAT);
    FAILS(MPI_Type_get_contents(type, 2, 0, 1, ints, addresses, types), MPI_ERR_ARG);
    FAILS(MPI_Type_get_contents(type, 3, 0, 1, NULL, addresses, types), MPI_ERR_ARG);
    FAILS(MPI_Type_get_contents(type, 3, 0, 0, ints, addresses, types), MPI_ERR_ARG);
    FAILS(MPI_Type_get_contents(MPI_INT, 3, 0, 0, ints, addresses, types), MPI_ERR_TYPE);
    /* A derived datatype inside is a new handle, which lives on its own. */
    CHECK(MPI_Type_dup(type, &inner) == MPI_SUCCESS && MPI_Type_free(&type) == MPI_SUCCESS);
    envelope(inner, MPI_COMBINER_DUP, 0, 0, 1);
    CHECK(MPI_Type_free(&inner) == MPI_SUCCESS);
    type = types[0];
    envelope(type, MPI_COMBINER_VECTOR, 3, 0, 1);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_hvector(4, 2, 30, MPI_C_BOOL, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_HVECTOR, 2, 1, 1);
    CHECK(addresses[0] == 30 && types[0] == MPI_C_BOOL && MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_indexed(2, lengths, places, MPI_2INTEGER, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_INDEXED, 5, 0, 1);
    INTS(2, 2, 1, 3, 0);
    CHECK(types[0] == MPI_2INTEGER && MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_hindexed(2, lengths, bytes, MPI_REAL16, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_HINDEXED, 3, 2, 1);
    CHECK(addresses[0] == 12 && types[0] == MPI_REAL16 && MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_indexed_block(2, 5, places, MPI_INT64_T, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_INDEXED_BLOCK, 4, 0, 1);
    INTS(2, 5, 3, 0);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_hindexed_block(2, 5, bytes, MPI_INT64_T, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_HINDEXED_BLOCK, 2, 2, 1);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    MPI_Datatype parts[2] = {MPI_CHAR, MPI_LONG_DOUBLE_INT};
    CHECK(MPI_Type_create_struct(2, lengths, bytes, parts, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_STRUCT, 3, 2, 2);
    CHECK(types[0] == MPI_CHAR && types[1] == MPI_LONG_DOUBLE_INT && MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_resized(MPI_WCHAR, -8, 40, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_RESIZED, 0, 2, 1);
    CHECK(addresses[0] == -8 && addresses[1] == 40 && MPI_Type_free(&type) == MPI_SUCCESS);
    int sizes[2] = {4, 6}, some[2] = {2, 3}, starts[2] = {1, 2};
    CHECK(MPI_Type_create_subarray(2, sizes, some, starts, MPI_ORDER_FORTRAN, MPI_INT, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_SUBARRAY, 8, 0, 1);
    INTS(2, 4, 6, 2, 3, 1, 2, MPI_ORDER_FORTRAN);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    int ways[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
    CHECK(MPI_Type_create_darray(4, 3, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &type) == MPI_SUCCESS);
    envelope(type, MPI_COMBINER_DARRAY, 12, 0, 1);
    INTS(4, 3, 2, 4, 6, MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_DFLT_DARG, 2, 2, 2, MPI_ORDER_C);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    /* Large counts. */
    MPI_Count many[2] = {2, 1}, far[2] = {12, 0};
    CHECK(MPI_Type_contiguous_c(7, MPI_INT, &type) == MPI_SUCCESS);
    large(type, MPI_COMBINER_CONTIGUOUS, 0, 1, 1);
    COUNTS(7);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Type_create_hindexed_c(2, many, far, MPI_INT, &type) == MPI_SUCCESS);
    large(type, MPI_COMBINER_HINDEXED, 0, 5, 1);
    COUNTS(2, 2, 1, 12, 0);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
