// ranks 3
// stdout: done
/* Every operation of one-sided communication, in each kind of epoch, with its forms for requests and large counts. */
#include "check.h"

enum { N = 8 };

static MPI_Win win;
static int *memory, target;

static void reset(void) {
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win) == MPI_SUCCESS);
    for (int i = 0; i < N; i++) memory[i] = 100 * rank + i;
    CHECK(MPI_Win_unlock(rank, win) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
}

/* Opens and closes an epoch of a kind for accesses to the target. */
static void begin(int kind) {
    MPI_Group all;
    switch (kind) {
    case 0: CHECK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win) == MPI_SUCCESS); break;
    case 1:
        CHECK(MPI_Win_get_group(win, &all) == MPI_SUCCESS);
        CHECK(MPI_Win_post(all, 0, win) == MPI_SUCCESS);
        CHECK(MPI_Win_start(all, 0, win) == MPI_SUCCESS);
        CHECK(MPI_Group_free(&all) == MPI_SUCCESS);
        break;
    case 2: CHECK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win) == MPI_SUCCESS); break;
    case 3: CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win) == MPI_SUCCESS); break;
    default: CHECK(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
    }
}

static void end(int kind) {
    int flag = 0;
    switch (kind) {
    case 0: CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS); break;
    case 1:
        CHECK(MPI_Win_complete(win) == MPI_SUCCESS);
        while (!flag) CHECK(MPI_Win_test(win, &flag) == MPI_SUCCESS);
        break;
    case 2:
    case 3: CHECK(MPI_Win_unlock(target, win) == MPI_SUCCESS); break;
    default: CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS);
    }
}

static void operations(int kind) {
    int from[2] = {7, 8}, got[N], old = -1, swapped = -1, none = -1, one = 1, expected = 100 * target + 4;
    MPI_Datatype pair;
    CHECK(MPI_Type_vector(2, 1, 3, MPI_INT, &pair) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&pair) == MPI_SUCCESS);
    reset();
    begin(kind);
    /* Elements 0 and 3 are written, 1 is added to, 4 is swapped, 5 is fetched; the others stay. */
    CHECK(MPI_Put(from, 2, MPI_INT, target, 0, 1, pair, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(&one, 1, MPI_INT, target, 1, 1, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate_c(&none, 1, MPI_INT, &old, 1, MPI_INT, target, 5, 1, MPI_INT, MPI_NO_OP, win) == MPI_SUCCESS);
    CHECK(MPI_Compare_and_swap(from, &expected, &swapped, MPI_INT, target, 4, win) == MPI_SUCCESS);
    CHECK(MPI_Put(from, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS);
    end(kind);
    CHECK(old == 100 * target + 5 && swapped == 100 * target + 4);
    begin(kind);
    CHECK(MPI_Get_c(got, N, MPI_INT, target, 0, N, MPI_INT, win) == MPI_SUCCESS);
    end(kind);
    CHECK(got[0] == 7 && got[3] == 8 && got[1] == 100 * target + 2 && got[2] == 100 * target + 2);
    CHECK(got[4] == 7 && got[5] == 100 * target + 5 && got[7] == 100 * target + 7);
    begin(kind);
    CHECK(MPI_Fetch_and_op(&one, &old, MPI_INT, target, 6, MPI_REPLACE, win) == MPI_SUCCESS);
    end(kind);
    CHECK(old == 100 * target + 6);
    CHECK(MPI_Type_free(&pair) == MPI_SUCCESS);
}

static void requests(void) {
    MPI_Request all[4];
    int from[2] = {3, 4}, got[2] = {-1, -1}, old[2] = {-1, -1};
    reset();
    CHECK(MPI_Win_lock_all(MPI_MODE_NOCHECK, win) == MPI_SUCCESS);
    CHECK(MPI_Rput(from, 2, MPI_INT, target, 0, 2, MPI_INT, win, &all[0]) == MPI_SUCCESS);
    CHECK(MPI_Raccumulate_c(from, 2, MPI_INT, target, 2, 2, MPI_INT, MPI_MAX, win, &all[1]) == MPI_SUCCESS);
    CHECK(MPI_Rget(got, 2, MPI_INT, target, 0, 2, MPI_INT, win, &all[2]) == MPI_SUCCESS);
    CHECK(MPI_Rget_accumulate(from, 2, MPI_INT, old, 2, MPI_INT, target, 4, 2, MPI_INT, MPI_SUM, win, &all[3]) == MPI_SUCCESS);
    CHECK(MPI_Waitall(4, all, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(got[0] == 3 && got[1] == 4 && old[0] == 100 * target + 4 && old[1] == 100 * target + 5);
    CHECK(MPI_Rget(got, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, all) == MPI_SUCCESS);
    CHECK(MPI_Wait(all, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(target, win) == MPI_SUCCESS);
    CHECK(MPI_Get(got, 2, MPI_INT, target, 4, 2, MPI_INT, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush_local_all(win) == MPI_SUCCESS);
    CHECK(got[0] == 100 * target + 7 && got[1] == 100 * target + 9);
    CHECK(MPI_Win_flush_all(win) == MPI_SUCCESS && MPI_Win_flush_local(target, win) == MPI_SUCCESS);
    CHECK(MPI_Win_sync(win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS);
}

/* All ranks count at one place; the values that they fetch are all different. */
static void counter(void) {
    enum { TURNS = 50 };
    long one = 1, got, before = -1, *place;
    MPI_Win counting;
    CHECK(MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &place, &counting) == MPI_SUCCESS);
    CHECK(*place == 0);
    CHECK(MPI_Win_fence(0, counting) == MPI_SUCCESS && MPI_Win_fence(MPI_MODE_NOSUCCEED, counting) == MPI_SUCCESS);
    CHECK(MPI_Win_lock_all(0, counting) == MPI_SUCCESS);
    for (int turn = 0; turn < TURNS; turn++) {
        CHECK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 0, 0, MPI_SUM, counting) == MPI_SUCCESS);
        CHECK(MPI_Win_flush(0, counting) == MPI_SUCCESS);
        CHECK(got > before && got < TURNS * size);
        before = got;
    }
    CHECK(MPI_Win_unlock_all(counting) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(rank != 0 || *place == TURNS * size);
    CHECK(MPI_Win_free(&counting) == MPI_SUCCESS && counting == MPI_WIN_NULL);
}

/* The pairs of MPI_MINLOC, some with padding, and a datatype made of them. */
static void pairs(void) {
    struct { double value; int index; } *place, mine[2] = {{size - rank, rank}, {rank, rank}};
    MPI_Datatype two;
    MPI_Win of_pairs;
    CHECK(MPI_Type_contiguous(2, MPI_DOUBLE_INT, &two) == MPI_SUCCESS && MPI_Type_commit(&two) == MPI_SUCCESS);
    CHECK(MPI_Win_allocate(2 * sizeof *place, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &place, &of_pairs) == MPI_SUCCESS);
    for (int i = 0; i < 2; i++) place[i].value = 1000, place[i].index = -1;
    CHECK(MPI_Win_fence(0, of_pairs) == MPI_SUCCESS);
    for (int to = 0; to < size; to++) {
        CHECK(MPI_Accumulate(mine, 1, two, to, 0, 2, MPI_DOUBLE_INT, MPI_MINLOC, of_pairs) == MPI_SUCCESS);
    }
    CHECK(MPI_Win_fence(0, of_pairs) == MPI_SUCCESS);
    CHECK(place[0].value == 1 && place[0].index == size - 1 && place[1].value == 0 && place[1].index == 0);
    CHECK(MPI_Win_free(&of_pairs) == MPI_SUCCESS && MPI_Type_free(&two) == MPI_SUCCESS);
}

/* Elements of datatypes without data, for which no operation is wrong. */
static void empty(void) {
    MPI_Datatype none;
    CHECK(MPI_Type_contiguous(0, MPI_INT, &none) == MPI_SUCCESS && MPI_Type_commit(&none) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(0, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(NULL, 2, none, target, 0, 3, none, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, NULL, 1, none, target, 0, 2, none, MPI_BXOR, win) == MPI_SUCCESS);
    CHECK(MPI_Put(NULL, 1, none, target, 0, 0, MPI_INT, win) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS && MPI_Type_free(&none) == MPI_SUCCESS);
}

/* Long data with gaps on both sides, on memory that a rank attaches in two halves. */
static void dynamic(void) {
    enum { LONG = 100000 };
    int *here = malloc(2 * LONG * sizeof(int)), *there = malloc(LONG * sizeof(int));
    MPI_Win open;
    MPI_Datatype every_second;
    MPI_Aint at, *places = malloc(size * sizeof *places);
    CHECK(MPI_Type_vector(LONG, 1, 2, MPI_INT, &every_second) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&every_second) == MPI_SUCCESS);
    CHECK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &open) == MPI_SUCCESS);
    CHECK(MPI_Win_attach(open, here + LONG, LONG * sizeof(int)) == MPI_SUCCESS);
    CHECK(MPI_Win_attach(open, here, LONG * sizeof(int)) == MPI_SUCCESS);
    CHECK(MPI_Get_address(here, &at) == MPI_SUCCESS);
    CHECK(MPI_Allgather(&at, 1, MPI_AINT, places, 1, MPI_AINT, MPI_COMM_WORLD) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) there[i] = rank + i, here[2 * i] = here[2 * i + 1] = -1;
    CHECK(MPI_Win_fence(0, open) == MPI_SUCCESS);
    CHECK(MPI_Put(there, LONG, MPI_INT, target, places[target], 1, every_second, open) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(0, open) == MPI_SUCCESS);
    for (int i = 0; i < LONG; i++) CHECK(here[2 * i] == (rank + size - 1) % size + i && here[2 * i + 1] == -1);
    CHECK(MPI_Win_detach(open, here) == MPI_SUCCESS && MPI_Win_detach(open, here + LONG) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, open) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&open) == MPI_SUCCESS && MPI_Type_free(&every_second) == MPI_SUCCESS);
    free(here), free(there), free(places);
}

/* Long data, contiguous at the target and with gaps at the origin, to each rank, in each kind of epoch. */
static void lengthy(void) {
    enum { LONG = 200000 };
    static int from[2 * LONG], into[2 * LONG];
    int *base;
    MPI_Datatype every_second;
    CHECK(MPI_Type_vector(LONG, 1, 2, MPI_INT, &every_second) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&every_second) == MPI_SUCCESS);
    CHECK(MPI_Win_allocate(LONG * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    for (int kind = 0; kind < 5; kind++) {
        for (target = 0; target < size; target++) {
            for (int i = 0; i < LONG; i++) from[2 * i] = target + kind + i, into[2 * i] = into[2 * i + 1] = -1;
            CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
            begin(kind);
            if (target == (rank + 1) % size)
                CHECK(MPI_Put(from, 1, every_second, target, 0, LONG, MPI_INT, win) == MPI_SUCCESS);
            end(kind);
            begin(kind);
            if (target == (rank + 1) % size) {
                CHECK(MPI_Accumulate(from, 1, every_second, target, 0, LONG, MPI_INT, MPI_SUM, win) == MPI_SUCCESS);
                CHECK(MPI_Accumulate(from + 1, LONG, MPI_INT, target, 0, LONG, MPI_INT, MPI_NO_OP, win) == MPI_SUCCESS);
            }
            end(kind);
            CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
            CHECK(target != rank || (base[0] == 2 * (target + kind) && base[LONG - 1] == 2 * (target + kind + LONG - 1)));
            CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
            begin(kind);
            CHECK(MPI_Get(into, 1, every_second, target, 0, LONG, MPI_INT, win) == MPI_SUCCESS);
            end(kind);
            for (int i = 0; i < LONG; i++) CHECK(into[2 * i] == 2 * from[2 * i] && into[2 * i + 1] == -1);
        }
    }
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS && MPI_Type_free(&every_second) == MPI_SUCCESS);
}

int main(void) {
    start();
    target = (rank + 1) % size;
    memory = malloc(N * sizeof(int));
    CHECK(MPI_Win_create(memory, N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    for (int kind = 0; kind < 5; kind++) operations(kind);
    requests();
    empty();
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
    counter();
    pairs();
    dynamic();
    lengthy();
    if (rank == 0) printf("done\n");
    return MPI_Finalize();
}
