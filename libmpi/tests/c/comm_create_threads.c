// ranks 3
/* Threads make communicators of groups at the same time, told apart by their tags. */
#include "check.h"
#include <pthread.h>
#define THREADS 4
#define ROUNDS 20

static MPI_Group members[THREADS];

static void *make(void *tag) {
    int number = *(int *)tag, there;
    CHECK(MPI_Group_rank(members[number], &there) == MPI_SUCCESS);
    for (int round = 0; there != MPI_UNDEFINED && round < ROUNDS; round++) {
        int mine[2] = {number, round}, least[2], most[2], count, own;
        MPI_Comm comm;
        CHECK(MPI_Comm_create_group(MPI_COMM_WORLD, members[number], number, &comm) == MPI_SUCCESS);
        CHECK(MPI_Comm_rank(comm, &own) == MPI_SUCCESS && own == there);
        CHECK(MPI_Comm_size(comm, &count) == MPI_SUCCESS && count == (number == 0 ? size : 2));
        CHECK(MPI_Allreduce(mine, least, 2, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS);
        CHECK(MPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, comm) == MPI_SUCCESS);
        CHECK(memcmp(least, mine, sizeof mine) == 0 && memcmp(most, mine, sizeof mine) == 0);
        CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS);
    }
    return NULL;
}

int main(void) {
    int level, numbers[THREADS];
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS && MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
    MPI_Group world;
    pthread_t threads[THREADS];
    CHECK(MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
    for (int i = 0; i < THREADS; i++) {
        /* All ranks, then those without one of them, in another order. */
        int ranks[3] = {2, 0, 1}, pair[2] = {i % 3, (i + 1) % 3};
        CHECK(MPI_Group_incl(world, i == 0 ? size : 2, i == 0 ? ranks : pair, &members[i]) == MPI_SUCCESS);
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, make, &numbers[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(MPI_Group_free(&members[i]) == MPI_SUCCESS);
    }
    CHECK(MPI_Group_free(&world) == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
