/* Calls a collective in its three forms, and checks the results of each. */
#ifndef FORMS_H
#define FORMS_H
#include "check.h"

/* `reset` prepares the buffers, `verify` checks them; the arguments of the blocking call follow. */
#define FORMS(Name, Iname, suffix, reset, verify, ...)                                      \
    do {                                                                                    \
        MPI_Request request_ = MPI_REQUEST_NULL;                                            \
        reset;                                                                              \
        CHECK(MPI_##Name##suffix(__VA_ARGS__) == MPI_SUCCESS);                              \
        verify;                                                                             \
        reset;                                                                              \
        CHECK(MPI_##Iname##suffix(__VA_ARGS__, &request_) == MPI_SUCCESS);                  \
        CHECK(MPI_Wait(&request_, MPI_STATUS_IGNORE) == MPI_SUCCESS);                       \
        CHECK(request_ == MPI_REQUEST_NULL);                                                \
        verify;                                                                             \
        reset;                                                                              \
        CHECK(MPI_##Name##_init##suffix(__VA_ARGS__, MPI_INFO_NULL, &request_) == MPI_SUCCESS); \
        for (int turn_ = 0; turn_ < 2; turn_++) {                                           \
            reset;                                                                          \
            CHECK(MPI_Start(&request_) == MPI_SUCCESS);                                     \
            CHECK(MPI_Wait(&request_, MPI_STATUS_IGNORE) == MPI_SUCCESS);                   \
            CHECK(request_ != MPI_REQUEST_NULL);                                            \
            verify;                                                                         \
        }                                                                                   \
        CHECK(MPI_Request_free(&request_) == MPI_SUCCESS && request_ == MPI_REQUEST_NULL);  \
    } while (0)

/* The same with both types of counts, for calls without lists of counts. */
#define ALL_FORMS(Name, Iname, reset, verify, ...)            \
    do {                                                      \
        FORMS(Name, Iname, , reset, verify, __VA_ARGS__);     \
        FORMS(Name, Iname, _c, reset, verify, __VA_ARGS__);   \
    } while (0)

#define MOST 64

/* A datatype of two ints with a gap of one between them, and one behind. */
static inline MPI_Datatype gapped(void) {
    MPI_Datatype vector, type;
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &vector) == MPI_SUCCESS);
    CHECK(MPI_Type_contiguous(1, vector, &type) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&vector) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&type) == MPI_SUCCESS);
    return type;
}

static inline void fill(int *data, int count, int value) {
    for (int i = 0; i < count; i++)
        data[i] = value;
}
#endif
