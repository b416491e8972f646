/* MPI_IN_PLACE is a macro with a cast, which bindings that are made from headers leave out. */
#include <mpi.h>

const void *const mpj_bench_in_place = MPI_IN_PLACE;
