/* Makes mistakes between two ranks, which a job with --check finds. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

static int rank;

/* Whether a receive of other types than were sent fails, and leaves its place as it was. */
static int is_refused(int error, const int *place) {
    int class = MPI_SUCCESS;
    MPI_Error_class(error, &class);
    return class == MPI_ERR_TYPE && place[0] == -1 && place[7] == -1;
}

int main(int argc, char **argv) {
    double sent[4] = {1, 2, 3, 4}, right[4];
    int place[8] = {-1, -1, -1, -1, -1, -1, -1, -1}, first = 0, second = 0;
    struct { double number; char name; } pair = {7, 'x'}, other;
    MPI_Datatype layout;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_DOUBLE, MPI_CHAR}, &layout);
    MPI_Type_commit(&layout);
    if (rank == 0) {
        MPI_Send(sent, 4, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        MPI_Ssend(sent, 4, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD);
        MPI_Request requests[3];
        MPI_Isend(sent, 4, MPI_DOUBLE, 1, 2, MPI_COMM_WORLD, requests);
        MPI_Isend(&pair, 1, layout, 1, 3, MPI_COMM_WORLD, requests + 1);
        MPI_Isend(sent, 32, MPI_BYTE, 1, 4, MPI_COMM_WORLD, requests + 2);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        if (argc > 1) {
            MPI_Send(sent, 2, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD);
        }
    } else {
        MPI_Request request;
        first = is_refused(MPI_Recv(place, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE), place);
        MPI_Irecv(place, 8, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
        second = is_refused(MPI_Wait(&request, MPI_STATUS_IGNORE), place);
        int rest = MPI_Recv(right, 4, MPI_DOUBLE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        rest |= MPI_Recv(&other, 1, layout, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        rest |= MPI_Recv(right, 4, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("%d %d %d\n", first, second, rest == MPI_SUCCESS && right[3] == 4 && other.name == 'x');
    }
    MPI_Type_free(&layout);
    return MPI_Finalize();
}
