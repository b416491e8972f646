// ranks 5
/* Reductions by an operation that does not commute, over many elements and over blocks of different lengths. */
#include "check.h"
#define MOST 30000

/* The map x -> a x + b; numbers wrap around. */
typedef struct { unsigned a, b; } Map;

static Map in[MOST], out[MOST + 1], copy[MOST];

static Map then(Map first, Map second) { return (Map){first.a * second.a, second.a * first.b + second.b}; }

static void compose(void *left, void *right, int *len, MPI_Datatype *type) {
    CHECK(*type == MPI_2INT);
    for (int i = 0; i < *len; i++)
        ((Map *)right)[i] = then(((Map *)left)[i], ((Map *)right)[i]);
}

static Map of_rank(int r, int i) { return (Map){2 * (unsigned)(r + i) + 3, (unsigned)(r * 7 + i % 13 + 1)}; }

static void reset(int count) {
    for (int i = 0; i < count; i++) in[i] = of_rank(rank, i);
    for (int i = 0; i <= count; i++) out[i] = (Map){77, 77};
}

/* Checks the composition of the maps of ranks `first` to `last`, from element `offset` on, and that no more was written. */
static void verify(int first, int last, int offset, int count) {
    for (int i = 0; i < count; i++) {
        Map all = of_rank(first, offset + i);
        for (int r = first + 1; r <= last; r++) all = then(all, of_rank(r, offset + i));
        CHECK(out[i].a == all.a && out[i].b == all.b);
    }
    CHECK(out[count].a == 77 && out[count].b == 77);
}

static void blocks(MPI_Op op, int base) {
    int counts[5], total = 0, before = 0;
    for (int r = 0; r < size; r++) {
        counts[r] = r == 1 ? 0 : base * (r + 1);
        before += r < rank ? counts[r] : 0;
        total += counts[r];
    }
    reset(total);
    CHECK(MPI_Reduce_scatter(in, out, counts, MPI_2INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
    verify(0, size - 1, before, counts[rank]);
    memcpy(copy, in, sizeof copy);
    CHECK(MPI_Reduce_scatter(MPI_IN_PLACE, copy, counts, MPI_2INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(memcmp(copy, out, (size_t)counts[rank] * sizeof(Map)) == 0);
}

int main(void) {
    start();
    MPI_Op op;
    const int counts[] = {0, 1, 7, 600, MOST};
    CHECK(MPI_Op_create(compose, 0, &op) == MPI_SUCCESS);
    for (int c = 0; c < 5; c++) {
        int count = counts[c];
        for (int root = 0; root < size; root++) {
            reset(count);
            CHECK(MPI_Reduce(in, out, count, MPI_2INT, op, root, MPI_COMM_WORLD) == MPI_SUCCESS);
            if (rank == root) verify(0, size - 1, 0, count);
            memcpy(copy, in, sizeof copy);
            CHECK(MPI_Reduce(rank == root ? MPI_IN_PLACE : (void *)copy, rank == root ? copy : NULL, count, MPI_2INT, op,
                             root, MPI_COMM_WORLD) == MPI_SUCCESS);
            if (rank == root) CHECK(memcmp(copy, out, (size_t)count * sizeof(Map)) == 0);
        }
        reset(count);
        CHECK(MPI_Allreduce(in, out, count, MPI_2INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
        verify(0, size - 1, 0, count);
        reset(count);
        CHECK(MPI_Scan(in, out, count, MPI_2INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
        verify(0, rank, 0, count);
        reset(count);
        CHECK(MPI_Exscan(in, out, count, MPI_2INT, op, MPI_COMM_WORLD) == MPI_SUCCESS);
        if (rank > 0) verify(0, rank - 1, 0, count);
        else for (int i = 0; i < count; i++) CHECK(out[i].a == 77 && out[i].b == 77);
    }
    for (int base = 1; base < 2000; base *= 11) blocks(op, base);
    CHECK(MPI_Op_free(&op) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
