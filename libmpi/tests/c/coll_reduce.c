// ranks 5
#include "forms.h"

static int in[MOST], out[MOST];

static void operands(int *data, int count) {
    fill(in, MOST, -1);
    fill(out, MOST, -1);
    for (int i = 0; i < count; i++)
        data[i] = (rank + 1) * (i + 1);
}

/* The sum over the first `ranks` ranks of element `i`. */
static int sum(int ranks, int i) { return ranks * (ranks + 1) / 2 * (i + 1); }

static void check_sums(int ranks, int first, int count) {
    for (int i = 0; i < count; i++)
        CHECK(out[i] == sum(ranks, first + i));
}

static void reductions(int root) {
    int is_root = rank == root;
#define VERIFY                       \
    if (is_root)                     \
        check_sums(size, 0, 4);      \
    else                             \
        CHECK(out[0] == -1)
    ALL_FORMS(Reduce, Ireduce, operands(in, 4), VERIFY, in, is_root ? out : NULL, 4, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
    ALL_FORMS(Reduce, Ireduce, operands(is_root ? out : in, 4), VERIFY, is_root ? MPI_IN_PLACE : (void *)in,
              is_root ? out : NULL, 4, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
#undef VERIFY
}

static void divided(void) {
    int counts[5], first = 0, total = 0;
    MPI_Count long_counts[5];
    for (int r = 0; r < size; r++) {
        long_counts[r] = counts[r] = (r + 1) % 3;
        first += r < rank ? counts[r] : 0;
        total += counts[r];
    }
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, operands(in, 10), check_sums(size, 2 * rank, 2), in, out, 2,
              MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, operands(out, 10), check_sums(size, 2 * rank, 2),
              MPI_IN_PLACE, out, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    FORMS(Reduce_scatter, Ireduce_scatter, , operands(in, total), check_sums(size, first, counts[rank]), in, out, counts,
          MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    FORMS(Reduce_scatter, Ireduce_scatter, _c, operands(in, total), check_sums(size, first, counts[rank]), in, out,
          long_counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    FORMS(Reduce_scatter, Ireduce_scatter, , operands(out, total), check_sums(size, first, counts[rank]), MPI_IN_PLACE,
          out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(void) {
    start();
    for (int root = 0; root < size; root++)
        reductions(root);
    ALL_FORMS(Allreduce, Iallreduce, operands(in, 4), check_sums(size, 0, 4), in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ALL_FORMS(Allreduce, Iallreduce, operands(out, 4), check_sums(size, 0, 4), MPI_IN_PLACE, out, 4, MPI_INT, MPI_SUM,
              MPI_COMM_WORLD);
    divided();
    ALL_FORMS(Scan, Iscan, operands(in, 4), check_sums(rank + 1, 0, 4), in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ALL_FORMS(Scan, Iscan, operands(out, 4), check_sums(rank + 1, 0, 4), MPI_IN_PLACE, out, 4, MPI_INT, MPI_SUM,
              MPI_COMM_WORLD);
    /* The first rank gets nothing from an exclusive scan, and its receive buffer is not looked at. */
#define VERIFY                          \
    if (rank > 0)                       \
        check_sums(rank, 0, 4);         \
    else                                \
        CHECK(out[0] == -1 || out[0] == 1)
    ALL_FORMS(Exscan, Iexscan, operands(in, 4), VERIFY, in, rank > 0 ? out : NULL, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ALL_FORMS(Exscan, Iexscan, operands(out, 4), VERIFY, MPI_IN_PLACE, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* No elements, and no buffers. */
    ALL_FORMS(Allreduce, Iallreduce, (void)0, (void)0, NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, (void)0, (void)0, NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    /* Enough for the other algorithms. */
    enum { LONG = 40000 };
    double *many = malloc(LONG * sizeof(double));
    for (int i = 0; i < LONG; i++)
        many[i] = rank + i;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, many, LONG, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++)
        CHECK(many[i] == size - 1 + i);
    free(many);
    MPI_Finalize();
    return 0;
}
