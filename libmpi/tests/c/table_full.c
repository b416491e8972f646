// ranks 1
#include "check.h"

enum { MOST = 1 << 20 };
static MPI_Info infos[MOST + 1];

static void free_infos(int count) {
    for (int i = 0; i < count; i++) CHECK(MPI_Info_free(&infos[i]) == MPI_SUCCESS);
}

/* Calls that find no room for a request or a message start nothing, and take no message. */
int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int made = 0, in = -1, got = -1, flag = -1, data = 77, other = 78;
    while (made <= MOST && MPI_Info_create(&infos[made]) == MPI_SUCCESS) made++;
    CHECK(made <= MOST);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message message;
    MPI_Status status;
    FAILS(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request), MPI_ERR_OTHER);
    FAILS(MPI_Isendrecv(&other, 1, MPI_INT, 0, 6, &in, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &request), MPI_ERR_OTHER);
    FAILS(MPI_Issend(&other, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request), MPI_ERR_OTHER);
    FAILS(MPI_Iallreduce(&data, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF, &request), MPI_ERR_OTHER);
    CHECK(request == MPI_REQUEST_NULL && in == -1);
    CHECK(MPI_Send(&data, 1, MPI_INT, 0, 5, MPI_COMM_SELF) == MPI_SUCCESS && in == -1);
    FAILS(MPI_Mprobe(0, 5, MPI_COMM_SELF, &message, &status), MPI_ERR_OTHER);
    FAILS(MPI_Improbe(0, 5, MPI_COMM_SELF, &flag, &message, &status), MPI_ERR_OTHER);
    CHECK(MPI_Iprobe(0, 6, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS && !flag);
    CHECK(MPI_Iprobe(0, 5, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS && flag);
    CHECK(MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &status) == MPI_SUCCESS && got == 77 && in == -1);
    /* With room there is nothing left of them. */
    free_infos(made);
    CHECK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, &status) == MPI_SUCCESS && !flag);
    CHECK(MPI_Irecv(&in, 1, MPI_INT, 0, 5, MPI_COMM_SELF, &request) == MPI_SUCCESS);
    CHECK(MPI_Send(&data, 1, MPI_INT, 0, 5, MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && in == 77);
    MPI_Finalize();
    return 0;
}
