// ranks 2
// stdout: deleted first
// stdout: deleted second
#include "check.h"

static int deleted, refuse;
static MPI_Comm last_comm, global;
static int last_key;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    int rank_there;
    /* Callbacks may call MPI. */
    CHECK(MPI_Comm_rank(comm, &rank_there) == MPI_SUCCESS && rank_there == rank);
    CHECK(extra == (void *)&deleted);
    if (refuse == 1) return MPI_ERR_OTHER;
    *(void **)out = in;
    *flag = refuse != 2;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    if (refuse == 3) return MPI_ERR_NO_SPACE;
    last_comm = comm, last_key = key;
    global = MPI_COMM_NULL;
    deleted++;
    return MPI_SUCCESS;
}

static int at_finalize(MPI_Comm comm, int key, void *value, void *extra) {
    int flag;
    CHECK(MPI_Finalized(&flag) == MPI_SUCCESS && !flag && comm == MPI_COMM_SELF);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    if (rank == 0) printf("deleted %s\n", (char *)value);
    return MPI_SUCCESS;
}

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, comm, twin;
    int key, old, shared, none, other, flag, data, stale;
    void *value;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_create_keyval(copy, delete, &key, &deleted) == MPI_SUCCESS && key != MPI_KEYVAL_INVALID);
    CHECK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &shared, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete, &none, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(world, &comm) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Comm_delete_attr(comm, key) == MPI_SUCCESS && deleted == 0);
    CHECK(MPI_Comm_set_attr(comm, key, &data) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(comm, shared, &flag) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(comm, none, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && flag && value == &data);
    CHECK(MPI_Comm_get_attr(comm, none, &value, &flag) == MPI_SUCCESS && flag && value == NULL);
    /* A value that is replaced is deleted. */
    CHECK(MPI_Comm_set_attr(comm, key, &key) == MPI_SUCCESS && deleted == 1 && last_comm == comm && last_key == key);
    CHECK(MPI_Comm_dup(comm, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(twin, key, &value, &flag) == MPI_SUCCESS && flag && value == &key);
    CHECK(MPI_Comm_get_attr(twin, shared, &value, &flag) == MPI_SUCCESS && flag && value == &flag);
    CHECK(MPI_Comm_get_attr(twin, none, &value, &flag) == MPI_SUCCESS && !flag);
    MPI_Comm kept = twin;
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS && deleted == 2 && last_comm == kept);
    /* A callback may change the variable that the call was given. */
    CHECK(MPI_Comm_dup(world, &global) == MPI_SUCCESS && MPI_Comm_set_attr(global, key, &key) == MPI_SUCCESS);
    kept = global;
    CHECK(MPI_Comm_free(&global) == MPI_SUCCESS && deleted == 3 && last_comm == kept && global == MPI_COMM_NULL);
    FAILS(MPI_Comm_free(&kept), MPI_ERR_COMM);
    deleted = 2;
    /* The flag, and errors of callbacks, which leave everything as it was. */
    refuse = 2;
    CHECK(MPI_Comm_dup(comm, &twin) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(twin, key, &value, &flag) == MPI_SUCCESS && !flag && MPI_Comm_free(&twin) == 0);
    refuse = 1;
    twin = world;
    FAILS(MPI_Comm_dup(comm, &twin), MPI_ERR_OTHER);
    CHECK(twin == MPI_COMM_NULL);
    refuse = 3;
    FAILS(MPI_Comm_delete_attr(comm, key), MPI_ERR_NO_SPACE);
    FAILS(MPI_Comm_set_attr(comm, key, NULL), MPI_ERR_NO_SPACE);
    FAILS(MPI_Comm_free(&comm), MPI_ERR_NO_SPACE);
    CHECK(comm != MPI_COMM_NULL);
    refuse = 0;
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && flag && value == &key);
    /* A key that is freed stays in the attributes. */
    stale = key, deleted = 0;
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    CHECK(MPI_Comm_get_attr(comm, stale, &value, &flag) == MPI_SUCCESS && flag && value == &key);
    FAILS(MPI_Comm_set_attr(comm, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_get_attr(MPI_COMM_NULL, none, &value, &flag), MPI_ERR_COMM);
    CHECK(MPI_Comm_free(&comm) == MPI_SUCCESS && deleted == 2);
    CHECK(MPI_Comm_free_keyval(&none) == MPI_SUCCESS && MPI_Comm_free_keyval(&shared) == MPI_SUCCESS);
    /* The names of MPI-1. */
    CHECK(MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &old, NULL) == MPI_SUCCESS);
    CHECK(MPI_Attr_put(world, old, &data) == MPI_SUCCESS);
    CHECK(MPI_Attr_get(world, old, &value, &flag) == MPI_SUCCESS && flag && value == &data);
    CHECK(MPI_Attr_delete(world, old) == MPI_SUCCESS && MPI_Keyval_free(&old) == MPI_SUCCESS);
    /* MPI_Finalize deletes those of MPI_COMM_SELF first, the last one first. */
    CHECK(MPI_Comm_create_keyval(NULL, at_finalize, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_create_keyval(NULL, at_finalize, &other, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(MPI_COMM_SELF, key, "first") == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(MPI_COMM_SELF, other, "second") == MPI_SUCCESS);
    MPI_Finalize();
    return 0;
}
