// ranks 6
#include "check.h"

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, grid, row, none, twin;
    int dims[3] = {2, 3, 0}, periods[3] = {0, 1, 0}, remain[2] = {0, 1}, coords[3], lengths[3], value, from, to;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK(MPI_Cart_create(world, 2, dims, periods, 1, &grid) == MPI_SUCCESS);
    CHECK(MPI_Topo_test(grid, &value) == MPI_SUCCESS && value == MPI_CART);
    CHECK(MPI_Topo_test(world, &value) == MPI_SUCCESS && value == MPI_UNDEFINED);
    CHECK(MPI_Cartdim_get(grid, &value) == MPI_SUCCESS && value == 2);
    CHECK(MPI_Cart_get(grid, 2, lengths, periods, coords) == MPI_SUCCESS);
    CHECK(lengths[0] == 2 && lengths[1] == 3 && !periods[0] && periods[1]);
    CHECK(coords[0] == rank / 3 && coords[1] == rank % 3);
    CHECK(MPI_Cart_rank(grid, coords, &value) == MPI_SUCCESS && value == rank);
    coords[1] -= 3;
    CHECK(MPI_Cart_rank(grid, coords, &value) == MPI_SUCCESS && value == rank);
    coords[0] = 2;
    FAILS(MPI_Cart_rank(grid, coords, &value), MPI_ERR_ARG);
    CHECK(MPI_Cart_coords(grid, 5, 2, coords) == MPI_SUCCESS && coords[0] == 1 && coords[1] == 2);
    FAILS(MPI_Cart_coords(grid, 6, 2, coords), MPI_ERR_RANK);
    FAILS(MPI_Cart_coords(grid, -1, 2, coords), MPI_ERR_RANK);
    FAILS(MPI_Cart_coords(grid, 0, 1, coords), MPI_ERR_ARG);
    CHECK(MPI_Cart_shift(grid, 0, 1, &from, &to) == MPI_SUCCESS);
    CHECK(from == (rank < 3 ? MPI_PROC_NULL : rank - 3) && to == (rank < 3 ? rank + 3 : MPI_PROC_NULL));
    CHECK(MPI_Cart_shift(grid, 1, -1, &from, &to) == MPI_SUCCESS);
    CHECK(from == rank / 3 * 3 + (rank + 1) % 3 && to == rank / 3 * 3 + (rank + 2) % 3);
    FAILS(MPI_Cart_shift(grid, 2, 1, &from, &to), MPI_ERR_ARG);
    FAILS(MPI_Cart_shift(grid, -1, 1, &from, &to), MPI_ERR_ARG);
    FAILS(MPI_Cart_shift(world, 0, 1, &from, &to), MPI_ERR_TOPOLOGY);
    /* A duplicate has the grid; a division does not. */
    CHECK(MPI_Comm_dup(grid, &twin) == MPI_SUCCESS && MPI_Topo_test(twin, &value) == MPI_SUCCESS);
    CHECK(value == MPI_CART && MPI_Comm_free(&twin) == MPI_SUCCESS);
    CHECK(MPI_Cart_sub(grid, remain, &row) == MPI_SUCCESS);
    CHECK(MPI_Cart_get(row, 1, lengths, periods, coords) == MPI_SUCCESS && lengths[0] == 3 && periods[0]);
    CHECK(coords[0] == rank % 3 && MPI_Comm_free(&row) == MPI_SUCCESS);
    remain[1] = 0;
    CHECK(MPI_Cart_sub(grid, remain, &row) == MPI_SUCCESS && MPI_Cartdim_get(row, &value) == MPI_SUCCESS);
    CHECK(value == 0 && MPI_Comm_size(row, &value) == MPI_SUCCESS && value == 1 && MPI_Comm_free(&row) == 0);
    /* Ranks without a place; a grid without dimensions. */
    dims[1] = 2, periods[0] = 0;
    CHECK(MPI_Cart_create(world, 2, dims, periods, 0, &none) == MPI_SUCCESS && (none == MPI_COMM_NULL) == (rank > 3));
    if (none != MPI_COMM_NULL) CHECK(MPI_Comm_free(&none) == MPI_SUCCESS);
    CHECK(MPI_Cart_map(world, 2, dims, periods, &value) == MPI_SUCCESS && value == (rank < 4 ? rank : MPI_UNDEFINED));
    CHECK(MPI_Cart_create(world, 0, NULL, NULL, 0, &none) == MPI_SUCCESS && (none == MPI_COMM_NULL) == (rank > 0));
    if (none != MPI_COMM_NULL) CHECK(MPI_Comm_free(&none) == MPI_SUCCESS);
    dims[1] = 4;
    FAILS(MPI_Cart_create(world, 2, dims, periods, 0, &none), MPI_ERR_DIMS);
    dims[1] = -4;
    FAILS(MPI_Cart_create(world, 2, dims, periods, 0, &none), MPI_ERR_DIMS);
    dims[1] = 0;
    FAILS(MPI_Cart_create(world, 2, dims, periods, 0, &none), MPI_ERR_DIMS);
    FAILS(MPI_Cart_create(world, -1, dims, periods, 0, &none), MPI_ERR_DIMS);
    FAILS(MPI_Cart_create(world, 2, NULL, periods, 0, &none), MPI_ERR_ARG);
    /* Even grids. */
    dims[0] = dims[1] = dims[2] = 0;
    CHECK(MPI_Dims_create(12, 3, dims) == MPI_SUCCESS && dims[0] == 3 && dims[1] == 2 && dims[2] == 2);
    dims[0] = 0, dims[1] = 3;
    CHECK(MPI_Dims_create(6, 2, dims) == MPI_SUCCESS && dims[0] == 2 && dims[1] == 3);
    FAILS(MPI_Dims_create(7, 2, dims), MPI_ERR_DIMS);
    dims[0] = -1;
    FAILS(MPI_Dims_create(6, 2, dims), MPI_ERR_DIMS);
    FAILS(MPI_Dims_create(6, -2, dims), MPI_ERR_DIMS);
    dims[0] = dims[1] = 0;
    FAILS(MPI_Dims_create(0, 2, dims), MPI_ERR_ARG);
    CHECK(MPI_Dims_create(1, 0, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&grid) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
