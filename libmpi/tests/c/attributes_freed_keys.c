// ranks 2
/* Keys that are freed while attributes have them: they work until the last attribute is gone. */
#include "check.h"

static int deleted, refuse;
static void *last;

/* Delete callbacks may use the key that they get. */
static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    int flag;
    void *now;
    CHECK(MPI_Comm_get_attr(MPI_COMM_SELF, key, &now, &flag) == MPI_SUCCESS);
    CHECK(MPI_Comm_get_attr(comm, key, &now, &flag) == MPI_SUCCESS);
    last = value;
    deleted++;
    return refuse ? MPI_ERR_NO_SPACE : MPI_SUCCESS;
}

static int delete_of_type(MPI_Datatype type, int key, void *value, void *extra) {
    int flag;
    void *now;
    CHECK(MPI_Type_get_attr(MPI_INT, key, &now, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Type_get_attr(type, key, &now, &flag) == MPI_SUCCESS);
    last = value;
    deleted++;
    return MPI_SUCCESS;
}

static void *get(MPI_Comm comm, int key) {
    void *value = NULL;
    int flag = -1;
    CHECK(MPI_Comm_get_attr(comm, key, &value, &flag) == MPI_SUCCESS && flag == (value != NULL));
    return value;
}

static void *get_of_type(MPI_Datatype type, int key) {
    void *value = NULL;
    int flag = -1;
    CHECK(MPI_Type_get_attr(type, key, &value, &flag) == MPI_SUCCESS && flag == (value != NULL));
    return value;
}

static void communicators(void) {
    int key, saved, again, a, b, flag;
    void *value;
    MPI_Comm comm, twin;
    CHECK(MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_dup(MPI_COMM_WORLD, &comm) == MPI_SUCCESS && MPI_Comm_set_attr(comm, key, &a) == MPI_SUCCESS);
    saved = again = key;
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    /* The program has freed the key, and does so once. */
    FAILS(MPI_Comm_free_keyval(&again), MPI_ERR_KEYVAL);
    CHECK(get(comm, saved) == &a && get(MPI_COMM_SELF, saved) == NULL);
    CHECK(MPI_Comm_set_attr(comm, saved, &b) == MPI_SUCCESS && deleted == 1 && last == &a && get(comm, saved) == &b);
    /* Further attributes keep it, too: of a duplicate, and of another communicator. */
    CHECK(MPI_Comm_dup(comm, &twin) == MPI_SUCCESS && MPI_Comm_delete_attr(comm, saved) == MPI_SUCCESS && deleted == 2);
    CHECK(get(comm, saved) == NULL && get(twin, saved) == &b);
    CHECK(MPI_Comm_set_attr(comm, saved, &a) == MPI_SUCCESS);
    CHECK(MPI_Comm_free(&twin) == MPI_SUCCESS && deleted == 3 && last == &b && get(comm, saved) == &a);
    /* A callback that fails leaves the attribute, and so the key. */
    refuse = 1;
    FAILS(MPI_Comm_delete_attr(comm, saved), MPI_ERR_NO_SPACE);
    refuse = 0;
    CHECK(get(comm, saved) == &a && MPI_Comm_free(&comm) == MPI_SUCCESS && deleted == 5 && last == &a);
    /* The last one is gone. */
    FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, saved, &value, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, saved, &a), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, saved), MPI_ERR_KEYVAL);
    /* A key that nobody has is gone at once. */
    CHECK(MPI_Comm_create_keyval(NULL, NULL, &key, NULL) == MPI_SUCCESS);
    saved = key;
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, saved, &a), MPI_ERR_KEYVAL);
}

static void datatypes(void) {
    int key, saved, a, b, flag;
    void *value;
    MPI_Datatype type, twin;
    deleted = 0;
    CHECK(MPI_Type_create_keyval(MPI_TYPE_DUP_FN, delete_of_type, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Type_dup(MPI_INT, &type) == MPI_SUCCESS && MPI_Type_set_attr(type, key, &a) == MPI_SUCCESS);
    saved = key;
    CHECK(MPI_Type_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID && get_of_type(type, saved) == &a);
    CHECK(MPI_Type_set_attr(type, saved, &b) == MPI_SUCCESS && deleted == 1 && get_of_type(type, saved) == &b);
    CHECK(MPI_Type_dup(type, &twin) == MPI_SUCCESS && MPI_Type_free(&type) == MPI_SUCCESS && deleted == 2);
    CHECK(get_of_type(twin, saved) == &b && MPI_Type_delete_attr(twin, saved) == MPI_SUCCESS && deleted == 3);
    FAILS(MPI_Type_get_attr(twin, saved, &value, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_delete_attr(twin, saved), MPI_ERR_KEYVAL);
    CHECK(MPI_Type_free(&twin) == MPI_SUCCESS && deleted == 3);
}

int main(void) {
    int key;
    start();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    communicators();
    datatypes();
    /* MPI_Finalize deletes an attribute with such a key. */
    CHECK(MPI_Comm_create_keyval(NULL, delete, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_attr(MPI_COMM_SELF, key, &key) == MPI_SUCCESS && MPI_Comm_free_keyval(&key) == MPI_SUCCESS);
    deleted = 0;
    MPI_Finalize();
    if (deleted != 1 || last != &key) fprintf(stderr, "the attribute of MPI_COMM_SELF was not deleted\n");
    return 0;
}
