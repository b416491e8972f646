// ranks 2
/* Absolute addresses: MPI_BOTTOM, MPI_Get_address, and memory far apart in one message. */
#include "check.h"

static int global = 5;

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    double local[2] = {1.5, 2.5};
    char *heap = malloc(100000), packed[64];
    MPI_Aint places[3];
    int lengths[3] = {1, 2, 3}, position = 0, other = 1 - rank;
    MPI_Datatype types[3] = {MPI_INT, MPI_DOUBLE, MPI_CHAR}, all;
    strcpy(heap, "abc");
    CHECK(MPI_Get_address(&global, &places[0]) == MPI_SUCCESS);
    CHECK(MPI_Get_address(local, &places[1]) == MPI_SUCCESS);
    CHECK(MPI_Address(heap, &places[2]) == MPI_SUCCESS && places[2] == (MPI_Aint)heap);
    CHECK(MPI_Aint_diff(MPI_Aint_add(places[1], 8), places[1]) == 8);
    CHECK((void *)MPI_Aint_add(places[1], 8) == &local[1]);
    CHECK(MPI_Type_create_struct(3, lengths, places, types, &all) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&all) == MPI_SUCCESS);
    if (rank == 0) {
        CHECK(MPI_Send(MPI_BOTTOM, 1, all, 1, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    } else {
        global = 0, local[0] = local[1] = 0, memset(heap, 0, 4);
        CHECK(MPI_Recv(MPI_BOTTOM, 1, all, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
        CHECK(global == 5 && local[0] == 1.5 && local[1] == 2.5 && strcmp(heap, "abc") == 0);
    }
    /* The same to itself, and packed. */
    global = 6 + rank;
    CHECK(MPI_Pack(MPI_BOTTOM, 1, all, packed, sizeof packed, &position, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(position == 23 && memcmp(packed + 20, "abc", 3) == 0);
    global = 0, local[1] = 0, position = 0;
    CHECK(MPI_Unpack(packed, 23, &position, MPI_BOTTOM, 1, all, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(global == 6 + rank && local[1] == 2.5);
    /* A relative datatype at a null address is refused; one without data is not. */
    FAILS(MPI_Send(MPI_BOTTOM, 1, MPI_INT, other, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    MPI_Datatype relative;
    CHECK(MPI_Type_vector(2, 1, 2, MPI_INT, &relative) == MPI_SUCCESS && MPI_Type_commit(&relative) == MPI_SUCCESS);
    FAILS(MPI_Send(NULL, 1, relative, other, 0, MPI_COMM_WORLD), MPI_ERR_BUFFER);
    CHECK(MPI_Sendrecv(NULL, 0, relative, other, 1, NULL, 0, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
          == MPI_SUCCESS);
    /* A receive that names a byte twice is refused, a send is not. */
    int twice[2] = {0, 0}, values[2] = {3, 4}, got[2] = {0};
    MPI_Datatype doubled;
    CHECK(MPI_Type_create_indexed_block(2, 1, twice, MPI_INT, &doubled) == MPI_SUCCESS);
    CHECK(MPI_Type_commit(&doubled) == MPI_SUCCESS);
    CHECK(MPI_Sendrecv(values, 1, doubled, other, 2, got, 2, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
          == MPI_SUCCESS);
    CHECK(got[0] == 3 && got[1] == 3);
    CHECK(MPI_Recv(got, 1, doubled, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    FAILS(MPI_Get_address(heap, NULL), MPI_ERR_ARG);
    CHECK(MPI_Type_free(&all) == MPI_SUCCESS && MPI_Type_free(&relative) == MPI_SUCCESS);
    CHECK(MPI_Type_free(&doubled) == MPI_SUCCESS);
    free(heap);
    MPI_Finalize();
    return 0;
}
