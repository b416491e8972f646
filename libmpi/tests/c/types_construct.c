// ranks 1
/* Constructors: sizes, bounds, the order of the data, large counts, MPI-1's names, errors. */
#include "check.h"

static MPI_Datatype type;

/* Checks size and bounds, and frees the datatype. */
static void is(int bytes, MPI_Aint low, MPI_Aint extent, MPI_Aint true_low, MPI_Aint true_extent) {
    int got;
    MPI_Aint at, span;
    CHECK(MPI_Type_size(type, &got) == MPI_SUCCESS && got == bytes);
    CHECK(MPI_Type_get_extent(type, &at, &span) == MPI_SUCCESS && at == low && span == extent);
    CHECK(MPI_Type_get_true_extent(type, &at, &span) == MPI_SUCCESS && at == true_low && span == true_extent);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS && type == MPI_DATATYPE_NULL);
}

/* Packs one element from the numbers 0 to 99, and checks which numbers come. */
static void takes(const int *expected, int count) {
    int numbers[100], packed[100], position = 0, back[100];
    for (int i = 0; i < 100; i++) numbers[i] = i, back[i] = -1;
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    CHECK(MPI_Pack(numbers, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(position == 4 * count && memcmp(packed, expected, position) == 0);
    position = 0;
    CHECK(MPI_Unpack(packed, 4 * count, &position, back, 1, type, MPI_COMM_SELF) == MPI_SUCCESS);
    for (int i = 0; i < count; i++) {
        CHECK(back[expected[i]] == expected[i]);
        back[expected[i]] = -1;
    }
    for (int i = 0; i < 100; i++) CHECK(back[i] == -1);
}
#define TAKES(...) takes((int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void blocks(void) {
    CHECK(MPI_Type_contiguous(3, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(0, 1, 2);
    is(12, 0, 12, 0, 12);
    CHECK(MPI_Type_contiguous_c(3, MPI_INT, &type) == MPI_SUCCESS);
    is(12, 0, 12, 0, 12);
    CHECK(MPI_Type_vector(2, 2, 5, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(0, 1, 5, 6);
    is(16, 0, 28, 0, 28);
    CHECK(MPI_Type_vector_c(2, 1, -3, MPI_INT, &type) == MPI_SUCCESS);
    is(8, -12, 16, -12, 16);
    CHECK(MPI_Type_create_hvector(2, 1, 8, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(0, 2);
    is(8, 0, 12, 0, 12);
    CHECK(MPI_Type_create_hvector_c(2, 1, 8, MPI_INT, &type) == MPI_SUCCESS);
    is(8, 0, 12, 0, 12);
    CHECK(MPI_Type_hvector(2, 1, 8, MPI_INT, &type) == MPI_SUCCESS);
    is(8, 0, 12, 0, 12);
    int lengths[3] = {2, 0, 1}, places[3] = {4, 50, 1};
    MPI_Aint bytes[3] = {16, 200, 4};
    MPI_Count large[3] = {2, 0, 1}, far[3] = {4, 50, 1}, wide[3] = {16, 200, 4};
    CHECK(MPI_Type_indexed(3, lengths, places, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(4, 5, 1);
    is(12, 4, 20, 4, 20);
    CHECK(MPI_Type_indexed_c(3, large, far, MPI_INT, &type) == MPI_SUCCESS);
    is(12, 4, 20, 4, 20);
    CHECK(MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(4, 5, 1);
    is(12, 4, 20, 4, 20);
    CHECK(MPI_Type_hindexed(3, lengths, bytes, MPI_INT, &type) == MPI_SUCCESS);
    is(12, 4, 20, 4, 20);
    CHECK(MPI_Type_create_hindexed_c(3, large, wide, MPI_INT, &type) == MPI_SUCCESS);
    is(12, 4, 20, 4, 20);
    CHECK(MPI_Type_create_indexed_block(2, 2, places, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(4, 5, 50, 51);
    is(16, 16, 192, 16, 192);
    CHECK(MPI_Type_create_indexed_block_c(2, 2, far, MPI_INT, &type) == MPI_SUCCESS);
    is(16, 16, 192, 16, 192);
    CHECK(MPI_Type_create_hindexed_block(2, 1, bytes, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(4, 50);
    is(8, 16, 188, 16, 188);
    CHECK(MPI_Type_create_hindexed_block_c(2, 1, wide, MPI_INT, &type) == MPI_SUCCESS);
    is(8, 16, 188, 16, 188);
    CHECK(MPI_Type_contiguous(0, MPI_INT, &type) == MPI_SUCCESS);
    is(0, 0, 0, 0, 0);
    CHECK(MPI_Type_indexed(0, NULL, NULL, MPI_INT, &type) == MPI_SUCCESS);
    is(0, 0, 0, 0, 0);
}

static void structures(void) {
    struct record {
        double value;
        char letter;
    };
    int lengths[2] = {1, 1};
    MPI_Aint places[2] = {0, 8};
    MPI_Count large[2] = {1, 1}, far[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_DOUBLE, MPI_CHAR}, record, twice;
    CHECK(MPI_Type_create_struct(2, lengths, places, types, &type) == MPI_SUCCESS);
    is(9, 0, sizeof(struct record), 0, 9);
    CHECK(MPI_Type_struct(2, lengths, places, types, &type) == MPI_SUCCESS);
    is(9, 0, sizeof(struct record), 0, 9);
    CHECK(MPI_Type_create_struct_c(2, large, far, types, &type) == MPI_SUCCESS);
    is(9, 0, sizeof(struct record), 0, 9);
    /* Bounds that were set stay in datatypes made from it; the functions of MPI-1 see them. */
    CHECK(MPI_Type_create_resized(MPI_INT, -4, 12, &record) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(2, record, &twice) == MPI_SUCCESS);
    MPI_Aint low, high, extent;
    CHECK(MPI_Type_lb(twice, &low) == MPI_SUCCESS && low == -4);
    CHECK(MPI_Type_ub(twice, &high) == MPI_SUCCESS && high == 20);
    CHECK(MPI_Type_extent(twice, &extent) == MPI_SUCCESS && extent == 24);
    CHECK(MPI_Type_free(&record) == MPI_SUCCESS);
    type = twice;
    is(8, -4, 24, 0, 16);
    CHECK(MPI_Type_create_resized_c(MPI_INT, 0, 0, &type) == MPI_SUCCESS);
    is(4, 0, 0, 0, 4);
    /* A datatype with a negative extent. */
    CHECK(MPI_Type_create_resized(MPI_INT, 0, -4, &type) == MPI_SUCCESS);
    is(4, 0, -4, 0, 4);
}

static void arrays(void) {
    int sizes[2] = {4, 6}, parts[2] = {2, 3}, starts[2] = {1, 2};
    MPI_Count large[2] = {4, 6}, some[2] = {2, 3}, from[2] = {1, 2};
    CHECK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(8, 9, 10, 14, 15, 16);
    is(24, 0, 96, 32, 36);
    CHECK(MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(9, 10, 13, 14, 17, 18);
    is(24, 0, 96, 36, 40);
    CHECK(MPI_Type_create_subarray_c(2, large, some, from, MPI_ORDER_C, MPI_INT, &type) == MPI_SUCCESS);
    is(24, 0, 96, 32, 36);
    int ways[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
    int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2}, grid[2] = {2, 2};
    CHECK(MPI_Type_create_darray(4, 3, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &type) == MPI_SUCCESS);
    TAKES(14, 15, 20, 21);
    is(16, 0, 96, 56, 32);
    CHECK(MPI_Type_create_darray_c(4, 3, 2, large, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &type) == MPI_SUCCESS);
    is(16, 0, 96, 56, 32);
    FAILS(MPI_Type_create_subarray(0, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_DIMS);
    FAILS(MPI_Type_create_subarray(2, sizes, parts, starts, 7, MPI_INT, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_subarray(2, sizes, sizes, starts, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_subarray(2, NULL, parts, starts, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    ways[0] = 99;
    FAILS(MPI_Type_create_darray(4, 3, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
    ways[0] = MPI_DISTRIBUTE_NONE;
    FAILS(MPI_Type_create_darray(4, 3, 2, sizes, ways, arguments, grid, MPI_ORDER_C, MPI_INT, &type), MPI_ERR_ARG);
}

static void errors(void) {
    int lengths[1] = {-1}, places[1] = {0}, value;
    MPI_Datatype types[1] = {MPI_DATATYPE_NULL};
    MPI_Aint bytes[1] = {0};
    type = MPI_INT;
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    FAILS(MPI_Type_contiguous(1, MPI_DATATYPE_NULL, &type), MPI_ERR_TYPE);
    FAILS(MPI_Type_contiguous(1, MPI_INT, NULL), MPI_ERR_ARG);
    FAILS(MPI_Type_vector(-1, 1, 1, MPI_INT, &type), MPI_ERR_COUNT);
    FAILS(MPI_Type_vector(1, -1, 1, MPI_INT, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_indexed(1, lengths, places, MPI_INT, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_indexed(-1, lengths, places, MPI_INT, &type), MPI_ERR_COUNT);
    FAILS(MPI_Type_indexed(1, NULL, places, MPI_INT, &type), MPI_ERR_ARG);
    FAILS(MPI_Type_create_indexed_block(1, -1, places, MPI_INT, &type), MPI_ERR_ARG);
    lengths[0] = 1;
    FAILS(MPI_Type_create_struct(1, lengths, bytes, types, &type), MPI_ERR_TYPE);
    FAILS(MPI_Type_commit(NULL), MPI_ERR_ARG);
    FAILS(MPI_Type_free(NULL), MPI_ERR_ARG);
    CHECK(type == MPI_INT);
    /* Sizes that no int can hold, and datatypes that no memory can. */
    MPI_Datatype giant;
    MPI_Count large;
    CHECK(MPI_Type_contiguous(2000000000, MPI_DOUBLE, &giant) == MPI_SUCCESS);
    CHECK(MPI_Type_size(giant, &value) == MPI_SUCCESS && value == MPI_UNDEFINED);
    CHECK(MPI_Type_size_x(giant, &large) == MPI_SUCCESS && large == 16000000000);
    CHECK(MPI_Pack_size(1, giant, MPI_COMM_SELF, &value) == MPI_SUCCESS && value == MPI_UNDEFINED);
    CHECK(MPI_Type_contiguous(1000000000, giant, &type) != MPI_SUCCESS);
    CHECK(MPI_Type_free(&giant) == MPI_SUCCESS);
    /* Communication needs a commit; a duplicate is committed like its original. */
    MPI_Datatype fresh, twin;
    CHECK(MPI_Type_contiguous(1, MPI_INT, &fresh) == MPI_SUCCESS);
    FAILS(MPI_Send(&value, 1, fresh, 0, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
    CHECK(MPI_Type_dup(fresh, &twin) == MPI_SUCCESS);
    FAILS(MPI_Send(&value, 1, twin, 0, 0, MPI_COMM_SELF), MPI_ERR_TYPE);
    CHECK(MPI_Type_free(&twin) == MPI_SUCCESS && MPI_Type_commit(&fresh) == MPI_SUCCESS);
    CHECK(MPI_Type_dup(fresh, &twin) == MPI_SUCCESS);
    int ping = 5, pong = 0;
    MPI_Request request;
    CHECK(MPI_Isend(&ping, 1, twin, 0, 0, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&twin) == MPI_SUCCESS && MPI_Type_free(&fresh) == MPI_SUCCESS);
    CHECK(MPI_Recv(&pong, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE) == MPI_SUCCESS && pong == 5);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    blocks();
    structures();
    arrays();
    errors();
    MPI_Finalize();
    return 0;
}
