// ranks 1
/* Attributes of datatypes: when callbacks run, what they get, and what their errors do. */
#include "check.h"

static int copies, deletes, state = 17, refuse;
static MPI_Datatype seen, global;

static int copy(MPI_Datatype from, int key, void *extra, void *in, void *out, int *flag) {
    CHECK(extra == &state && in == &state);
    seen = from;
    copies++;
    *(void **)out = (char *)in + key * 0 + 1;
    *flag = copies != 2;
    return refuse ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int delete(MPI_Datatype from, int key, void *value, void *extra) {
    int bytes;
    CHECK(extra == &state && value != NULL && key != MPI_KEYVAL_INVALID);
    /* The datatype is still there. */
    CHECK(MPI_Type_size(from, &bytes) == MPI_SUCCESS);
    seen = from;
    deletes++;
    global = MPI_DATATYPE_NULL;
    return refuse ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static void *get(MPI_Datatype type, int key) {
    void *value = NULL;
    int flag = -1;
    CHECK(MPI_Type_get_attr(type, key, &value, &flag) == MPI_SUCCESS && (flag == 0 || flag == 1));
    CHECK(flag == (value != NULL));
    return value;
}

int main(void) {
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int key, plain, lost, flag;
    MPI_Datatype type, twin, kept;
    CHECK(MPI_Type_create_keyval(copy, delete, &key, &state) == MPI_SUCCESS);
    CHECK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &plain, NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &lost, NULL) == MPI_SUCCESS);
    CHECK(key != plain && MPI_Type_contiguous(2, MPI_INT, &type) == MPI_SUCCESS && get(type, key) == NULL);
    CHECK(MPI_Type_set_attr(type, key, &state) == MPI_SUCCESS && get(type, key) == &state);
    CHECK(MPI_Type_set_attr(type, plain, &key) == MPI_SUCCESS && MPI_Type_set_attr(type, lost, &key) == MPI_SUCCESS);
    CHECK(MPI_Type_dup(type, &twin) == MPI_SUCCESS && copies == 1 && seen == type);
    CHECK(get(twin, key) == (char *)&state + 1 && get(twin, plain) == &key && get(twin, lost) == NULL);
    /* A value that is replaced is deleted, as is one of a datatype that is freed. */
    CHECK(MPI_Type_set_attr(twin, key, &state) == MPI_SUCCESS && deletes == 1 && seen == twin);
    kept = twin;
    CHECK(MPI_Type_free(&twin) == MPI_SUCCESS && deletes == 2 && seen == kept);
    /* A callback may change the variable that the call was given. */
    CHECK(MPI_Type_dup(MPI_INT, &global) == MPI_SUCCESS && MPI_Type_set_attr(global, key, &state) == MPI_SUCCESS);
    kept = global;
    CHECK(MPI_Type_free(&global) == MPI_SUCCESS && deletes == 3 && seen == kept && global == MPI_DATATYPE_NULL);
    FAILS(MPI_Type_free(&kept), MPI_ERR_TYPE);
    deletes = 2;
    CHECK(MPI_Type_dup(type, &twin) == MPI_SUCCESS && copies == 2 && get(twin, key) == NULL);
    CHECK(MPI_Type_free(&twin) == MPI_SUCCESS && deletes == 2);
    /* Errors of callbacks are those of the call, which then changes nothing. */
    refuse = 1;
    twin = MPI_DATATYPE_NULL;
    FAILS(MPI_Type_dup(type, &twin), MPI_ERR_INTERN);
    CHECK(twin == MPI_DATATYPE_NULL);
    FAILS(MPI_Type_delete_attr(type, key), MPI_ERR_INTERN);
    FAILS(MPI_Type_set_attr(type, key, NULL), MPI_ERR_INTERN);
    FAILS(MPI_Type_free(&type), MPI_ERR_INTERN);
    CHECK(get(type, key) == &state && type != MPI_DATATYPE_NULL);
    refuse = 0;
    /* A freed key works on for the values that have it. */
    int before = deletes, old = key;
    CHECK(MPI_Type_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    CHECK(get(type, old) == &state);
    CHECK(MPI_Type_free(&type) == MPI_SUCCESS && deletes == before + 1);
    /* Predefined datatypes have attributes, too. */
    CHECK(MPI_Type_set_attr(MPI_INT, plain, &flag) == MPI_SUCCESS && get(MPI_INT, plain) == &flag);
    CHECK(get(MPI_LONG, plain) == NULL && MPI_Type_delete_attr(MPI_INT, plain) == MPI_SUCCESS);
    CHECK(get(MPI_INT, plain) == NULL);
    FAILS(MPI_Type_set_attr(MPI_INT, MPI_KEYVAL_INVALID, NULL), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_get_attr(MPI_INT, MPI_TAG_UB, &kept, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_get_attr(MPI_INT, -5, &kept, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_set_attr(MPI_DATATYPE_NULL, plain, NULL), MPI_ERR_TYPE);
    FAILS(MPI_Type_free_keyval(&key), MPI_ERR_KEYVAL);
    MPI_Finalize();
    return 0;
}
