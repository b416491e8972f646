/* Macros that bindings which are made from headers leave out, or give another type with each MPI. */
#include <mpi.h>

const void *const mpj_bench_in_place = MPI_IN_PLACE;
const int mpj_bench_lock_shared = MPI_LOCK_SHARED;
