// ranks 3
#include "check.h"

static int copies, deletions;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    copies++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    deletions++;
    return MPI_SUCCESS;
}

int main(void) {
    start();
    MPI_Comm one = MPI_COMM_NULL, two = MPI_COMM_NULL, three = MPI_COMM_NULL;
    MPI_Request requests[2], request;
    MPI_Info info;
    int key, flag, mine = 1, total;
    char *value;
    CHECK(MPI_Comm_create_keyval(copy, delete, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, "abc") == MPI_SUCCESS);
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "mpi_assert_exact_length", "true") == MPI_SUCCESS);
    CHECK(MPI_Comm_idup(MPI_COMM_WORLD, &one, &requests[0]) == MPI_SUCCESS);
    CHECK(MPI_Comm_idup_with_info(MPI_COMM_WORLD, info, &two, &requests[1]) == MPI_SUCCESS);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    /* Collective calls on the parent do not disturb it. */
    CHECK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && total == 3);
    /* The duplicates do not get what is attached later. */
    CHECK(MPI_Comm_set_attr(MPI_COMM_WORLD, key, "xyz") == MPI_SUCCESS && deletions == 1);
    CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) == MPI_SUCCESS);
    CHECK(requests[0] == MPI_REQUEST_NULL && one != MPI_COMM_NULL && two != MPI_COMM_NULL && copies == 2);
    CHECK(MPI_Comm_get_attr(one, key, &value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "bc"));
    CHECK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, one) == MPI_SUCCESS && total == 3);
    CHECK(MPI_Comm_get_info(two, &info) == MPI_SUCCESS && MPI_Info_get_nkeys(info, &flag) == MPI_SUCCESS);
    CHECK(flag == 2 && MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Comm_idup(two, &three, &request) == MPI_SUCCESS && MPI_Comm_free(&two) == MPI_SUCCESS);
    flag = 0;
    while (!flag) CHECK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, three) == MPI_SUCCESS && total == 3);
    CHECK(MPI_Comm_free(&one) == MPI_SUCCESS && MPI_Comm_free(&three) == MPI_SUCCESS && deletions == 4);
    CHECK(MPI_Comm_delete_attr(MPI_COMM_WORLD, key) == MPI_SUCCESS && deletions == 5);
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    MPI_Finalize();
    return 0;
}
