/* A path for a file, in a new folder that all ranks know and the first one removes. */
#ifndef PATH_H
#define PATH_H
#include "check.h"
#include <unistd.h>

static char folder[512], path[600];

static inline void make_path(void) {
    const char *parent = getenv("TMPDIR");
    if (rank == 0) {
        snprintf(folder, sizeof folder, "%s/mpj-file-XXXXXX", parent ? parent : "/tmp");
        CHECK(mkdtemp(folder));
    }
    CHECK(MPI_Bcast(folder, sizeof folder, MPI_CHAR, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    snprintf(path, sizeof path, "%s/file", folder);
}

/* Removes the folder, which is empty. */
static inline void remove_path(void) {
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(rank != 0 || rmdir(folder) == 0);
}
#endif
