// ranks 2, universe 16
// stdout: spawned 3, merged 5
// stdout: child 2 of 3 says x y
// Ranks spawn others, talk to them, merge with them and part from them, twice.

#include "check.h"
#include <stdlib.h>

static void child(MPI_Comm parents, int argc, char **argv) {
    int rank, size, remote, word, *number, flag;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_remote_size(parents, &remote);
    CHECK(size == 3 && remote == 2);
    CHECK(argc == 3 && strcmp(argv[1], "x") == 0 && strcmp(argv[2], "y") == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    CHECK(flag && *number == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &number, &flag);
    CHECK(flag && *number == 16);
    MPI_Bcast(&word, 1, MPI_INT, 0, parents);
    CHECK(word == 42);
    // Long enough for the rendezvous.
    int *long_one = malloc(1 << 22);
    MPI_Recv(long_one, 1 << 20, MPI_INT, rank % 2, 7, parents, MPI_STATUS_IGNORE);
    CHECK(long_one[0] == rank && long_one[(1 << 20) - 1] == rank);
    free(long_one);
    MPI_Comm all;
    MPI_Intercomm_merge(parents, 1, &all);
    MPI_Comm_size(all, &size);
    CHECK(size == 5);
    int sum = 1;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
    CHECK(sum == 5);
    MPI_Comm_disconnect(&all);
    MPI_Comm_get_parent(&parents);
    MPI_Comm_disconnect(&parents);
    MPI_Comm_get_parent(&parents);
    CHECK(parents == MPI_COMM_NULL);
    if (rank == 2) {
        printf("child %d of 3 says %s %s\n", rank, argv[1], argv[2]);
        fflush(stdout);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parents, children, all;
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        child(parents, argc, argv);
        return MPI_Finalize();
    }
    int rank, size, codes[3];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int round = 0; round < 2; round++) {
        char *words[] = {"x", "y", NULL};
        memset(codes, 1, sizeof codes);
        MPI_Comm_spawn(argv[0], words, 3, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &children, codes);
        CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS && codes[2] == MPI_SUCCESS);
        MPI_Comm_remote_size(children, &size);
        CHECK(size == 3);
        int word = 42;
        MPI_Bcast(&word, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, children);
        int *long_one = malloc(1 << 22);
        for (int child = rank; child < 3; child += 2) {
            for (int i = 0; i < 1 << 20; i++)
                long_one[i] = child;
            MPI_Send(long_one, 1 << 20, MPI_INT, child, 7, children);
        }
        free(long_one);
        MPI_Intercomm_merge(children, 0, &all);
        MPI_Comm_size(all, &size);
        int sum = 1, place;
        MPI_Comm_rank(all, &place);
        CHECK(place == rank);
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all);
        CHECK(sum == 5);
        MPI_Comm_disconnect(&all);
        MPI_Comm_disconnect(&children);
        CHECK(children == MPI_COMM_NULL);
    }
    if (rank == 0)
        printf("spawned 3, merged %d\n", size);
    return MPI_Finalize();
}
