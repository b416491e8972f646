/* Writes a matrix of doubles with all ranks together, and reads it again. Prints the seconds of both.
 *
 * files FILE MIB blocks      each rank has the blocks of 64 x 64 elements that a block-cyclic distribution on a grid of
 *                            2 x SIZE/2 ranks gives it
 * files FILE MIB contiguous  each rank has its part of the file in one piece
 * files FILE MIB alone       one rank, by the system's write and read, in pieces of 4 MiB
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 64, COLUMNS = 16384, PIECE = 4 << 20 };

static void fail(const char *what)
{
    fprintf(stderr, "files: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The filetype of this rank, and where its part of the file begins. */
static MPI_Datatype view(const char *mode, int rank, int size, int rows, MPI_Offset bytes, MPI_Offset *from)
{
    int shape[2] = {rows, COLUMNS}, cyclic[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC};
    int blocks[2] = {BLOCK, BLOCK}, grid[2] = {2, size / 2};
    MPI_Datatype type;
    *from = 0;
    if (strcmp(mode, "blocks") != 0) {
        *from = rank * bytes;
        return MPI_DOUBLE;
    }
    MPI_Type_create_darray(size, rank, 2, shape, cyclic, blocks, grid, MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

static void together(const char *name, MPI_Datatype type, MPI_Offset from, double *out, double *in, int count, double *at)
{
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        fail("the file cannot be opened");
    MPI_File_set_view(file, from, MPI_DOUBLE, type, "native", MPI_INFO_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    at[0] = MPI_Wtime();
    MPI_File_write_at_all(file, 0, out, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    at[1] = MPI_Wtime();
    MPI_File_read_at_all(file, 0, in, count, MPI_DOUBLE, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    at[2] = MPI_Wtime();
    MPI_File_close(&file);
}

static void alone(const char *name, const char *out, char *in, size_t len, double *at)
{
    int file = open(name, O_CREAT | O_RDWR, 0600);
    at[0] = MPI_Wtime();
    for (size_t i = 0; i < len; i += PIECE)
        if (write(file, out + i, PIECE) != PIECE) fail("write");
    at[1] = MPI_Wtime();
    lseek(file, 0, SEEK_SET);
    for (size_t i = 0; i < len; i += PIECE)
        if (read(file, in + i, PIECE) != PIECE) fail("read");
    at[2] = MPI_Wtime();
    close(file);
}

int main(int argc, char **argv)
{
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) fail("usage: files FILE MIB blocks|contiguous|alone");
    size_t bytes = ((size_t)atol(argv[2]) << 20) / size;
    int count = bytes / sizeof(double);
    double *out = malloc(bytes), *in = malloc(bytes), at[3];
    for (int i = 0; i < count; i++) out[i] = rank * 1e9 + i, in[i] = 0;
    if (strcmp(argv[3], "alone") == 0) {
        alone(argv[1], (char *)out, (char *)in, bytes, at);
    } else {
        MPI_Offset from;
        int rows = bytes * size / sizeof(double) / COLUMNS;
        MPI_Datatype type = view(argv[3], rank, size, rows, bytes, &from);
        together(argv[1], type, from, out, in, count, at);
    }
    if (memcmp(out, in, bytes) != 0) fail("what was read is not what was written");
    if (rank == 0) printf("%.4f %.4f\n", at[1] - at[0], at[2] - at[1]);
    MPI_Finalize();
    return 0;
}
