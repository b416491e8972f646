// ranks 4
#define _DEFAULT_SOURCE
#include "path.h"

/* All ways to read and write a file: each writes numbers that another one reads. */
#define MANY 1000
static int numbers[MANY], found[MANY];
static MPI_File file;
static MPI_Status status;
static MPI_Request request;

static void fill(int first) {
    for (int i = 0; i < MANY; i++)
        numbers[i] = first + i * size + rank;
}

static void moved(int count) {
    int ints;
    CHECK(MPI_Get_count(&status, MPI_INT, &ints) == MPI_SUCCESS && ints == count);
    memset(&status, 0, sizeof status);
}

static void same(int from, int count) {
    CHECK(!memcmp(found, numbers + from, count * sizeof(int)));
    memset(found, 0, sizeof found);
}

/* Every rank has every fourth number. */
static void interleaved(int block) {
    MPI_Datatype part;
    int bytes = block * sizeof(int);
    CHECK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * size, &part) == MPI_SUCCESS);
    if (block > 1) {
        MPI_Datatype blocks;
        CHECK(MPI_Type_free(&part) == MPI_SUCCESS && MPI_Type_contiguous(block, MPI_INT, &blocks) == MPI_SUCCESS);
        CHECK(MPI_Type_create_resized(blocks, 0, (MPI_Aint)bytes * size, &part) == MPI_SUCCESS);
        CHECK(MPI_Type_free(&blocks) == MPI_SUCCESS);
    }
    CHECK(MPI_Type_commit(&part) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(file, rank * bytes, MPI_INT, part, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&part) == MPI_SUCCESS);
}

static void synchronize(void) {
    CHECK(MPI_File_sync(file) == MPI_SUCCESS && MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
}

static void blocking(void) {
    fill(0);
    CHECK(MPI_File_set_size(file, 0) == MPI_SUCCESS);
    CHECK(MPI_File_write_at(file, 0, numbers, 10, MPI_INT, &status) == MPI_SUCCESS);
    moved(10);
    CHECK(MPI_File_write_at_all(file, 10, numbers + 10, 20, MPI_INT, &status) == MPI_SUCCESS);
    moved(20);
    CHECK(MPI_File_seek(file, 30, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_write(file, numbers + 30, 5, MPI_INT, &status) == MPI_SUCCESS);
    moved(5);
    CHECK(MPI_File_write_all_c(file, numbers + 35, MANY - 35, MPI_INT, &status) == MPI_SUCCESS);
    moved(MANY - 35);
    synchronize();
    CHECK(MPI_File_read_at(file, 0, found, MANY, MPI_INT, &status) == MPI_SUCCESS);
    moved(MANY), same(0, MANY);
    CHECK(MPI_File_read_at_all_c(file, 5, found, 7, MPI_INT, &status) == MPI_SUCCESS);
    moved(7), same(5, 7);
    CHECK(MPI_File_seek(file, -3, MPI_SEEK_END) == MPI_SUCCESS);
    CHECK(MPI_File_read(file, found, 100, MPI_INT, &status) == MPI_SUCCESS);
    moved(3), same(MANY - 3, 3);
    CHECK(MPI_File_seek(file, MANY - 9, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_read_all(file, found, 100, MPI_INT, &status) == MPI_SUCCESS);
    moved(9), same(MANY - 9, 9);
    CHECK(MPI_File_read_all(file, found, 0, MPI_INT, &status) == MPI_SUCCESS);
    moved(0);
}

static void nonblocking(void) {
    int flag;
    fill(7);
    CHECK(MPI_File_iwrite_at(file, 0, numbers, 10, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Request_get_status(request, &flag, &status) == MPI_SUCCESS && flag);
    moved(10);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && request == MPI_REQUEST_NULL);
    moved(10);
    CHECK(MPI_File_iwrite_at_all(file, 10, numbers + 10, 10, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_seek(file, 20, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_iwrite(file, numbers + 20, 10, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    moved(10);
    CHECK(MPI_File_iwrite_all(file, numbers + 30, 10, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    moved(10);
    synchronize();
    MPI_Request requests[4];
    MPI_Status statuses[4];
    CHECK(MPI_File_seek(file, 20, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_iread_at(file, 0, found, 10, MPI_INT, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_File_iread_at_all(file, 10, found + 10, 10, MPI_INT, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_File_iread(file, found + 20, 10, MPI_INT, &requests[2]) == MPI_SUCCESS);
    CHECK(MPI_File_iread_all(file, found + 30, 10, MPI_INT, &requests[3]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(4, requests, statuses) == MPI_SUCCESS);
    for (int i = 0; i < 4; i++) {
        status = statuses[i];
        moved(10);
    }
    same(0, 40);
}

static void split(void) {
    fill(21);
    CHECK(MPI_File_seek(file, 40, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_write_all_begin(file, numbers, 10, MPI_INT) == MPI_SUCCESS);
    FAILS(MPI_File_write_at_all_begin(file, 0, numbers, 10, MPI_INT), MPI_ERR_IO);
    FAILS(MPI_File_read_all_end(file, found, &status), MPI_ERR_IO);
    CHECK(MPI_File_write_all_end(file, numbers, &status) == MPI_SUCCESS);
    moved(10);
    CHECK(MPI_File_write_at_all_begin_c(file, 50, numbers + 10, 10, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_write_at_all_end(file, numbers + 10, &status) == MPI_SUCCESS);
    moved(10);
    /* It is wrong on all ranks but one, and that one does not wait for them. */
    CHECK(MPI_File_write_all_begin(file, numbers, 0, MPI_INT) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_File_write_all_end(file, numbers, &status) == MPI_SUCCESS);
        CHECK(MPI_File_write_at_all_begin(file, 40, numbers, 10, MPI_INT) == MPI_SUCCESS);
        CHECK(MPI_File_write_at_all_end(file, numbers, &status) == MPI_SUCCESS);
        moved(10);
    } else {
        FAILS(MPI_File_write_at_all_begin(file, 40, numbers, 10, MPI_INT), MPI_ERR_IO);
        CHECK(MPI_File_write_all_end(file, numbers, &status) == MPI_SUCCESS);
        moved(0);
    }
    synchronize();
    CHECK(MPI_File_seek(file, 40, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_read_all_begin(file, found, 10, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_read_all_end(file, found, &status) == MPI_SUCCESS);
    moved(10);
    CHECK(MPI_File_read_at_all_begin(file, 50, found + 10, 10, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_read_at_all_end(file, found + 10, &status) == MPI_SUCCESS);
    moved(10), same(0, 20);
}

/* The shared pointer: ranks follow each other in ordered calls, and in others each number is read once. */
static void shared(void) {
    int sum = 0, total;
    MPI_Offset at;
    CHECK(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    fill(0);
    CHECK(MPI_File_write_ordered(file, numbers, rank, MPI_INT, &status) == MPI_SUCCESS);
    moved(rank);
    CHECK(MPI_File_write_ordered_begin(file, numbers, 1, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_write_ordered_end(file, numbers, &status) == MPI_SUCCESS);
    moved(1);
    CHECK(MPI_File_get_position_shared(file, &at) == MPI_SUCCESS && at == size * (size - 1) / 2 + size);
    CHECK(MPI_File_read_at(file, rank * (rank - 1) / 2, found, rank, MPI_INT, &status) == MPI_SUCCESS);
    moved(rank), same(0, rank);
    CHECK(MPI_File_seek_shared(file, -size, MPI_SEEK_CUR) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered(file, found, 1, MPI_INT, &status) == MPI_SUCCESS);
    moved(1), same(0, 1);
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered_begin(file, found, rank, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered_end(file, found, &status) == MPI_SUCCESS);
    moved(rank), same(0, rank);
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    for (int i = 0; i < 20; i++) {
        int one = 1;
        CHECK(MPI_File_write_shared(file, &one, 1, MPI_INT, &status) == MPI_SUCCESS);
        moved(1);
        CHECK(MPI_File_iwrite_shared(file, &one, 1, MPI_INT, &request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
        moved(1);
    }
    synchronize();
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    for (int i = 0; i < 20; i++) {
        CHECK(MPI_File_read_shared(file, found, 1, MPI_INT, &status) == MPI_SUCCESS);
        moved(1);
        CHECK(MPI_File_iread_shared(file, found + 1, 1, MPI_INT, &request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
        sum += found[0] + found[1];
    }
    CHECK(MPI_Allreduce(&sum, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && total == 40 * size);
}

/* A matrix that is dealt to a grid of 2 times 2 ranks in blocks, then read by rows. */
static void matrix(void) {
    enum { N = 60, BLOCK = 7 };
    int sizes[2] = {N, N}, kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_CYCLIC}, blocks[2] = {BLOCK, BLOCK};
    int grid[2] = {2, 2}, bytes, own = 0;
    double part[N * N];
    MPI_Datatype dealt;
    CHECK(MPI_Type_create_darray(size, rank, 2, sizes, kinds, blocks, grid, MPI_ORDER_C, MPI_DOUBLE, &dealt) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&dealt) == MPI_SUCCESS && MPI_Type_size(dealt, &bytes) == MPI_SUCCESS);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (i / BLOCK % 2 == rank / 2 && j / BLOCK % 2 == rank % 2)
                part[own++] = i * N + j;
    CHECK(own * (int)sizeof(double) == bytes);
    CHECK(MPI_File_set_size(file, 0) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(file, 16, MPI_DOUBLE, dealt, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_write_all(file, part, own, MPI_DOUBLE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_File_read_at_all(file, 0, part, own, MPI_DOUBLE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    for (int i = 0, at = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (i / BLOCK % 2 == rank / 2 && j / BLOCK % 2 == rank % 2)
                CHECK(part[at++] == i * N + j);
    synchronize();
    CHECK(MPI_File_set_view(file, 16, MPI_DOUBLE, MPI_DOUBLE, "native", MPI_INFO_NULL) == MPI_SUCCESS);
    for (int i = rank; i < N; i += size) {
        CHECK(MPI_File_read_at(file, i * N, part, N, MPI_DOUBLE, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        for (int j = 0; j < N; j++)
            CHECK(part[j] == i * N + j);
    }
    CHECK(MPI_Type_free(&dealt) == MPI_SUCCESS);
}

/* Whether this process has the file open. */
static int is_open(void) {
    char name[32], target[700];
    for (int fd = 0; fd < 256; fd++) {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        ssize_t len = readlink(name, target, sizeof target);
        if (len >= (ssize_t)strlen(path) && !memcmp(target, path, strlen(path)))
            return 1;
    }
    return 0;
}

int main(void) {
    start();
    make_path();
    int amode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE;
    CHECK(MPI_File_open(MPI_COMM_WORLD, path, amode, MPI_INFO_NULL, &file) == MPI_SUCCESS);
    for (int block = 1; block <= 125; block *= 5) {
        interleaved(block);
        blocking();
        nonblocking();
        split();
    }
    for (int atomic = 0; atomic < 2; atomic++) {
        CHECK(MPI_File_set_atomicity(file, atomic) == MPI_SUCCESS);
        interleaved(1);
        blocking();
        shared();
        matrix();
    }
    CHECK(is_open() && MPI_File_close(&file) == MPI_SUCCESS && !is_open());
    remove_path();
    MPI_Finalize();
    return 0;
}
