/* What the programs here have in common: a check that ends the job and says where. */
#ifndef CHECK_H
#define CHECK_H
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                      \
    do {                                                                      \
        if (!(condition)) {                                                   \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            MPI_Abort(MPI_COMM_WORLD, 99);                                    \
        }                                                                     \
    } while (0)

/* Checks the error class of a call. */
#define FAILS(call, class)                                                    \
    do {                                                                      \
        int code_ = (call), class_ = -1;                                      \
        MPI_Error_class(code_, &class_);                                      \
        if (class_ != (class)) {                                              \
            fprintf(stderr, "%s:%d: %s gave %d instead of %d\n", __FILE__, __LINE__, #call, class_, (class)); \
            MPI_Abort(MPI_COMM_WORLD, 99);                                    \
        }                                                                     \
    } while (0)

static int rank, size;

/* Initializes MPI, and gets rank and size. */
static inline void start(void) {
    CHECK(MPI_Init(NULL, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS);
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS);
}
#endif
