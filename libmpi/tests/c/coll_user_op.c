// ranks 5
#include "forms.h"
#include <stddef.h>

/* Joins two lists of numbers, which does not commute: x -> a x + b. */
typedef struct { int a; int gap; int b; } Map;

static MPI_Datatype expected;
/* The number of bytes from the first datum of an element to its address. */
static MPI_Aint shift;
static int calls;

static void compose(void *in, void *inout, int *len, MPI_Datatype *type) {
    Map *first = (Map *)((char *)in - shift), *second = (Map *)((char *)inout - shift);
    int size_of = 0;
    CHECK(*type == expected || expected == MPI_DATATYPE_NULL);
    CHECK(MPI_Type_size(*type, &size_of) == MPI_SUCCESS && size_of == 2 * (int)sizeof(int));
    for (int i = 0; i < *len; i++) {
        int a = first[i].a * second[i].a, b = second[i].a * first[i].b + second[i].b;
        second[i].a = a, second[i].b = b;
    }
    calls++;
}

static void sum_of_counts(void *in, void *inout, MPI_Count *len, MPI_Datatype *type) {
    CHECK(*type == MPI_INT);
    for (MPI_Count i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* Calls MPI, even a collective, while the reduction is under way. */
static void sum_with_mpi(void *in, void *inout, int *len, MPI_Datatype *type) {
    int flag, mine = 1, all = 0;
    MPI_Request request;
    CHECK(*type == MPI_INT);
    CHECK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && all == 1);
    for (int i = 0; i < *len; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static Map in[8], out[8];

static Map of_rank(int r, int i) { return (Map){r + 2 + i, 77, r + 1}; }

static Map expect(int first, int last, int i) {
    Map all = of_rank(first, i);
    for (int r = first + 1; r <= last; r++) {
        Map next = of_rank(r, i);
        all = (Map){all.a * next.a, 0, next.a * all.b + next.b};
    }
    return all;
}

static void reset(void) {
    for (int i = 0; i < 8; i++)
        in[i] = of_rank(rank, i), out[i] = (Map){-1, -7, -1};
}

/* The gaps between the data keep what was in them. */
static void verify(int first, int last, int offset, int count) {
    for (int i = 0; i < count; i++) {
        Map map = expect(first, last, offset + i);
        CHECK(out[i].a == map.a && out[i].b == map.b && out[i].gap == -7);
    }
    CHECK(out[count].a == -1);
}

static void with(MPI_Op op, int stride) {
    MPI_Datatype type;
    CHECK(MPI_Type_vector(2, 1, stride, MPI_INT, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    shift = stride < 0 ? offsetof(Map, b) : 0;
    char *send = (char *)in + shift, *receive = (char *)out + shift;
    expected = type;
    for (int root = 0; root < size; root++) {
        if (rank == root)
            ALL_FORMS(Reduce, Ireduce, reset(), verify(0, size - 1, 0, 3), send, receive, 3, type, op, root, MPI_COMM_WORLD);
        else
            ALL_FORMS(Reduce, Ireduce, reset(), CHECK(out[0].a == -1), send, NULL, 3, type, op, root, MPI_COMM_WORLD);
    }
    ALL_FORMS(Allreduce, Iallreduce, reset(), verify(0, size - 1, 0, 3), send, receive, 3, type, op, MPI_COMM_WORLD);
    ALL_FORMS(Scan, Iscan, reset(), verify(0, rank, 0, 3), send, receive, 3, type, op, MPI_COMM_WORLD);
    if (rank > 0)
        ALL_FORMS(Exscan, Iexscan, reset(), verify(0, rank - 1, 0, 3), send, receive, 3, type, op, MPI_COMM_WORLD);
    else
        ALL_FORMS(Exscan, Iexscan, reset(), CHECK(out[0].a == -1), send, receive, 3, type, op, MPI_COMM_WORLD);
    ALL_FORMS(Reduce_scatter_block, Ireduce_scatter_block, reset(), verify(0, size - 1, rank, 1), send, receive, 1, type, op,
              MPI_COMM_WORLD);
    /* In the function, first comes the operand of the lower rank. */
    reset();
    out[0] = of_rank(1, 0), out[0].gap = -7, in[0] = of_rank(0, 0);
    CHECK(MPI_Reduce_local(send, receive, 1, type, op) == MPI_SUCCESS);
    CHECK(out[0].a == expect(0, 1, 0).a && out[0].b == expect(0, 1, 0).b && out[0].gap == -7);
    /* A datatype may be freed while its reduction is under way; then the function gets another handle for it. */
    MPI_Request request;
    reset();
    CHECK(MPI_Iallreduce(send, receive, 3, type, op, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    expected = MPI_DATATYPE_NULL;
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    verify(0, size - 1, 0, 3);
}

int main(void) {
    start();
    MPI_Op op, other;
    int commutes = -1, mine = rank, all = -1;
    CHECK(MPI_Op_create(compose, 0, &op) == MPI_SUCCESS && op != MPI_OP_NULL);
    CHECK(MPI_Op_commutative(op, &commutes) == MPI_SUCCESS && commutes == 0);
    with(op, 2);
    with(op, -2);
    CHECK(calls > 0);
    CHECK(MPI_Op_free(&op) == MPI_SUCCESS && op == MPI_OP_NULL);
    CHECK(MPI_Op_create_c(sum_of_counts, 1, &op) == MPI_SUCCESS);
    CHECK(MPI_Op_commutative(op, &commutes) == MPI_SUCCESS && commutes == 1);
    CHECK(MPI_Op_create(sum_with_mpi, 1, &other) == MPI_SUCCESS);
    ALL_FORMS(Allreduce, Iallreduce, all = -1, CHECK(all == size * (size - 1) / 2), &mine, &all, 1, MPI_INT, op, MPI_COMM_WORLD);
    ALL_FORMS(Allreduce, Iallreduce, all = -1, CHECK(all == size * (size - 1) / 2), &mine, &all, 1, MPI_INT, other, MPI_COMM_WORLD);
    /* An operation lives as long as its reductions. */
    MPI_Request request;
    all = -1;
    CHECK(MPI_Iallreduce(&mine, &all, 1, MPI_INT, op, MPI_COMM_WORLD, &request) == MPI_SUCCESS);
    CHECK(MPI_Op_free(&op) == MPI_SUCCESS && MPI_Op_free(&other) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS && all == size * (size - 1) / 2);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    other = op;
    FAILS(MPI_Op_free(&other), MPI_ERR_OP);
    FAILS(MPI_Op_commutative(MPI_OP_NULL, &commutes), MPI_ERR_OP);
    FAILS(MPI_Op_create(NULL, 1, &op), MPI_ERR_ARG);
    FAILS(MPI_Op_create(compose, 1, NULL), MPI_ERR_ARG);
    MPI_Finalize();
    return 0;
}
