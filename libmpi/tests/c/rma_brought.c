// ranks 2
// stdout: done
/* Memory that the program brings to a window is accessed by the origin alone: the target calls no function meanwhile. */
#define _GNU_SOURCE
#include "check.h"
#include <stdatomic.h>
#include <sys/mman.h>

enum { WORDS = 4096, ROUNDS = 200 };

static long expected(int word) {
    return word < ROUNDS ? 3 * word : word < 2 * ROUNDS ? 5 : 0;
}

/* Puts, updates and gets of single words, more of them than are gathered; words are updated twice. */
static void single_words(MPI_Win win) {
    static long ones[ROUNDS], back[2 * ROUNDS];
    const long two = 2, three = 3;
    for (int word = 0; word < ROUNDS; word++) {
        ones[word] = 3 * word;
        CHECK(MPI_Put(&ones[word], 1, MPI_LONG, 1, word, 1, MPI_LONG, win) == MPI_SUCCESS);
    }
    for (int word = ROUNDS; word < 2 * ROUNDS; word++) {
        CHECK(MPI_Accumulate(&two, 1, MPI_LONG, 1, word, 1, MPI_LONG, MPI_SUM, win) == MPI_SUCCESS);
        CHECK(MPI_Accumulate(&three, 1, MPI_LONG, 1, word, 1, MPI_LONG, MPI_SUM, win) == MPI_SUCCESS);
    }
    CHECK(MPI_Win_flush(1, win) == MPI_SUCCESS);
    for (int word = 0; word < 2 * ROUNDS; word++)
        CHECK(MPI_Get(&back[word], 1, MPI_LONG, 1, word, 1, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush_local(1, win) == MPI_SUCCESS);
    for (int word = 0; word < 2 * ROUNDS; word++) CHECK(back[word] == expected(word));
}

/* A column of more blocks than one system call copies, elements combined there, and a long block. */
static void many_words(MPI_Win win) {
    static long column[1500], back[WORDS];
    MPI_Datatype blocks;
    CHECK(MPI_Type_vector(1500, 1, 2, MPI_LONG, &blocks) == MPI_SUCCESS && MPI_Type_commit(&blocks) == MPI_SUCCESS);
    for (int word = 0; word < 1500; word++) column[word] = word;
    CHECK(MPI_Put(column, 1500, MPI_LONG, 1, 1000, 1, blocks, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(1, win) == MPI_SUCCESS);
    CHECK(MPI_Accumulate(column, 1500, MPI_LONG, 1, 1000, 1, blocks, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Get_accumulate(column, 1500, MPI_LONG, back, 1500, MPI_LONG, 1, 1000, 1, blocks, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(1, win) == MPI_SUCCESS);
    for (int word = 0; word < 1500; word++) CHECK(back[word] == 2 * word);
    CHECK(MPI_Get(back, WORDS, MPI_LONG, 1, 0, WORDS, MPI_LONG, win) == MPI_SUCCESS);
    CHECK(MPI_Win_flush(1, win) == MPI_SUCCESS);
    for (int word = 1000; word < WORDS; word++)
        CHECK(back[word] == (word < 4000 && word % 2 == 0 ? 3 * (word - 1000) / 2 : 0));
    CHECK(MPI_Type_free(&blocks) == MPI_SUCCESS);
}

/* What the target does not have any more is an error, not a fault. */
static void withdrawn(void) {
    const size_t length = 1 << 16;
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int told = 1;
    MPI_Win win;
    CHECK(memory != MAP_FAILED);
    CHECK(MPI_Win_create(memory, length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    CHECK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    if (rank == 1) CHECK(munmap(memory, length) == 0);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win) == MPI_SUCCESS);
        /* Short operations fail in the call that waits for them. */
        int put = MPI_Put(&told, 1, MPI_INT, 1, 8, 1, MPI_INT, win), ended = MPI_Win_flush(1, win);
        FAILS(put == MPI_SUCCESS ? ended : put, MPI_ERR_RMA_RANGE);
        put = MPI_Put(&told, 1, MPI_INT, 1, 8, 1, MPI_INT, win), MPI_Put(&told, 1, MPI_INT, 1, 8, 1, MPI_INT, win);
        ended = MPI_Win_unlock(1, win);
        FAILS(put == MPI_SUCCESS ? ended : put, MPI_ERR_RMA_RANGE);
    }
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
}

int main(void) {
    static _Atomic long base[WORDS];
    const long one = 1;
    long got = -1;
    MPI_Win win;
    CHECK(setenv("MPJ_GET", "cma", 1) == 0);
    start();
    CHECK(MPI_Win_create((void *)base, sizeof base, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win) == MPI_SUCCESS);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win) == MPI_SUCCESS);
        single_words(win);
        many_words(win);
        CHECK(MPI_Win_unlock(1, win) == MPI_SUCCESS);
        CHECK(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
        CHECK(MPI_Fetch_and_op(&one, &got, MPI_LONG, 1, WORDS - 1, MPI_SUM, win) == MPI_SUCCESS);
        CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS && got == 0);
    } else {
        while (atomic_load(base + WORDS - 1) == 0) {}
        for (int word = 0; word < 1000; word++) CHECK(base[word] == expected(word));
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);
    withdrawn();
    if (rank == 0) printf("done\n");
    return MPI_Finalize();
}
