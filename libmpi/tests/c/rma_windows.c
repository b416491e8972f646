// ranks 2
// stdout: done
/* What a program can ask and set of windows: attributes, names, hints, groups, error handlers; shared memory. */
#include "check.h"

static int errors, deleted;

static void handler(MPI_Win *win, int *code, ...) {
    int class;
    CHECK(*win != MPI_WIN_NULL && MPI_Error_class(*code, &class) == MPI_SUCCESS);
    errors = class;
}

static int on_delete(MPI_Win win, int keyval, void *value, void *extra) {
    deleted += *(int *)value;
    return MPI_SUCCESS;
}

static void attributes(MPI_Win win, void *base, MPI_Aint length, int unit, int flavor) {
    void *value;
    int flag;
    CHECK(MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag) == MPI_SUCCESS && flag && value == base);
    CHECK(MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag) == MPI_SUCCESS && flag && *(MPI_Aint *)value == length);
    CHECK(MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag) == MPI_SUCCESS && flag && *(int *)value == unit);
    CHECK(MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag) == MPI_SUCCESS && flag && *(int *)value == flavor);
    CHECK(MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag) == MPI_SUCCESS && flag && *(int *)value == MPI_WIN_UNIFIED);
}

static void asked(void) {
    int *base, key, value = 5, flag, length, result, *got;
    char name[MPI_MAX_OBJECT_NAME], text[32];
    MPI_Group group, world;
    MPI_Errhandler own, found;
    MPI_Info info;
    MPI_Win win, open;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS && MPI_Info_set(info, "no_locks", "true") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "unknown", "x") == MPI_SUCCESS);
    CHECK(MPI_Win_allocate_c(40, 4, info, MPI_COMM_WORLD, &base, &win) == MPI_SUCCESS);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    attributes(win, base, 40, 4, MPI_WIN_FLAVOR_ALLOCATE);
    CHECK(MPI_Win_get_info(win, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "no_locks", 31, text, &flag) == MPI_SUCCESS && flag && !strcmp(text, "true"));
    CHECK(MPI_Info_get(info, "accumulate_ordering", 31, text, &flag) == MPI_SUCCESS && flag && !strcmp(text, "rar,raw,war,waw"));
    CHECK(MPI_Info_get(info, "unknown", 31, text, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Win_set_info(win, info) == MPI_SUCCESS && MPI_Info_free(&info) == MPI_SUCCESS);

    CHECK(MPI_Win_get_name(win, name, &length) == MPI_SUCCESS && length == 0);
    CHECK(MPI_Win_set_name(win, "board") == MPI_SUCCESS);
    CHECK(MPI_Win_get_name(win, name, &length) == MPI_SUCCESS && length == 5 && !strcmp(name, "board"));
    CHECK(MPI_Win_get_group(win, &group) == MPI_SUCCESS && MPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS);
    CHECK(MPI_Group_compare(group, world, &result) == MPI_SUCCESS && result == MPI_IDENT);
    CHECK(MPI_Group_free(&group) == MPI_SUCCESS && MPI_Group_free(&world) == MPI_SUCCESS);
    CHECK(MPI_Win_fromint(MPI_Win_toint(win)) == win);

    CHECK(MPI_Win_create_keyval(MPI_WIN_DUP_FN, on_delete, &key, NULL) == MPI_SUCCESS);
    CHECK(MPI_Win_set_attr(win, key, &value) == MPI_SUCCESS);
    CHECK(MPI_Win_get_attr(win, key, &got, &flag) == MPI_SUCCESS && flag && got == &value);
    CHECK(MPI_Win_delete_attr(win, key) == MPI_SUCCESS && deleted == 5);
    CHECK(MPI_Win_get_attr(win, key, &got, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Win_set_attr(win, key, &value) == MPI_SUCCESS);

    CHECK(MPI_Win_get_errhandler(win, &found) == MPI_SUCCESS && found == MPI_ERRORS_ARE_FATAL);
    CHECK(MPI_Win_create_errhandler(handler, &own) == MPI_SUCCESS && MPI_Win_set_errhandler(win, own) == MPI_SUCCESS);
    CHECK(MPI_Win_get_errhandler(win, &found) == MPI_SUCCESS && found == own);
    CHECK(MPI_Errhandler_free(&own) == MPI_SUCCESS && MPI_Errhandler_free(&found) == MPI_SUCCESS);
    CHECK(MPI_Win_call_errhandler(win, MPI_ERR_OTHER) == MPI_SUCCESS && errors == MPI_ERR_OTHER);
    FAILS(MPI_Win_set_attr(win, MPI_WIN_BASE, NULL), MPI_ERR_KEYVAL);
    FAILS(MPI_Put(base, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    CHECK(errors == MPI_ERR_RMA_SYNC);

    CHECK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Win_fence(0, win) == MPI_SUCCESS);
    FAILS(MPI_Put(base, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    FAILS(MPI_Put(base, 1, MPI_INT, 0, 10, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    FAILS(MPI_Put(base, -1, MPI_INT, 0, 0, -1, MPI_INT, win), MPI_ERR_COUNT);
    FAILS(MPI_Put(base, 1, MPI_INT, 0, 0, 1, MPI_DATATYPE_NULL, win), MPI_ERR_TYPE);
    FAILS(MPI_Put(NULL, 1, MPI_INT, 0, 0, 1, MPI_INT, win), MPI_ERR_BUFFER);
    FAILS(MPI_Accumulate(base, 1, MPI_DOUBLE, 0, 0, 1, MPI_DOUBLE, MPI_BXOR, win), MPI_ERR_OP);
    FAILS(MPI_Accumulate(base, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_OP_NULL, win), MPI_ERR_OP);
    FAILS(MPI_Win_fence(MPI_MODE_NOCHECK, win), MPI_ERR_ASSERT);
    FAILS(MPI_Win_lock(77, 0, 0, win), MPI_ERR_LOCKTYPE);
    FAILS(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_attach(win, base, 4), MPI_ERR_RMA_FLAVOR);
    CHECK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win) == MPI_SUCCESS);
    CHECK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win) == MPI_SUCCESS);
    FAILS(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win), MPI_ERR_RMA_SYNC);
    FAILS(MPI_Win_free(&win), MPI_ERR_RMA_SYNC);
    CHECK(MPI_Win_unlock(0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_lock(MPI_LOCK_SHARED, MPI_PROC_NULL, 0, win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock(MPI_PROC_NULL, win) == MPI_SUCCESS);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS && win == MPI_WIN_NULL && deleted == 10);
    CHECK(MPI_Win_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    CHECK(MPI_Win_get_name(MPI_WIN_NULL, name, &length) == MPI_SUCCESS && !strcmp(name, "MPI_WIN_NULL"));

    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Win_fence(0, MPI_WIN_NULL), MPI_ERR_WIN);
    FAILS(MPI_Win_create(&value, -1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_SIZE);
    FAILS(MPI_Win_create(&value, 4, 0, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_DISP);
    FAILS(MPI_Win_create(NULL, 4, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win), MPI_ERR_BASE);

    CHECK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &open) == MPI_SUCCESS);
    attributes(open, MPI_BOTTOM, 0, 1, MPI_WIN_FLAVOR_DYNAMIC);
    CHECK(MPI_Win_set_errhandler(open, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    CHECK(MPI_Win_attach(open, &value, sizeof value) == MPI_SUCCESS);
    FAILS(MPI_Win_attach(open, &value, sizeof value), MPI_ERR_RMA_ATTACH);
    CHECK(MPI_Win_detach(open, &value) == MPI_SUCCESS);
    FAILS(MPI_Win_detach(open, &value), MPI_ERR_RMA_ATTACH);
    CHECK(MPI_Win_free(&open) == MPI_SUCCESS);
}

/* Ranks store into the memory of each other by themselves, while operations work on it, too. */
static void shared(void) {
    MPI_Win win;
    MPI_Aint length;
    long *own, *theirs, *first;
    int unit, other = 1 - rank;
    CHECK(MPI_Win_allocate_shared((rank + 1) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win) == MPI_SUCCESS);
    attributes(win, own, (rank + 1) * sizeof(long), sizeof(long), MPI_WIN_FLAVOR_SHARED);
    CHECK(MPI_Win_shared_query(win, other, &length, &unit, &theirs) == MPI_SUCCESS);
    CHECK(length == (MPI_Aint)((other + 1) * sizeof(long)) && unit == sizeof(long));
    CHECK(MPI_Win_shared_query_c(win, MPI_PROC_NULL, &length, &length, &first) == MPI_SUCCESS);
    CHECK(rank == 0 ? first == own && theirs == own + 1 : first == theirs && own == theirs + 1);
    for (int turn = 0; turn < 100; turn++) {
        CHECK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win) == MPI_SUCCESS);
        (rank == 1 ? own : theirs)[0] = turn == 0 && rank == 0 ? 1 : (rank == 1 ? own : theirs)[0];
        CHECK(MPI_Win_unlock(1, win) == MPI_SUCCESS);
    }
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK((rank == 1 ? own : theirs)[0] == 1);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(MPI_Win_lock_all(0, win) == MPI_SUCCESS);
    theirs[0] = 40 + rank;
    CHECK(MPI_Win_sync(win) == MPI_SUCCESS && MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS && MPI_Win_sync(win) == MPI_SUCCESS);
    CHECK(own[0] == 40 + other);
    CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    long two = 2;
    CHECK(MPI_Accumulate(&two, 1, MPI_LONG, other, 0, 1, MPI_LONG, MPI_SUM, win) == MPI_SUCCESS);
    CHECK(MPI_Win_unlock_all(win) == MPI_SUCCESS && MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(own[0] == 42 + other && theirs[0] == 42 + rank);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);

    /* A rank without memory has no address. */
    CHECK(MPI_Win_allocate_shared(rank * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win) == MPI_SUCCESS);
    CHECK(MPI_Win_shared_query(win, 0, &length, &unit, &theirs) == MPI_SUCCESS && length == 0 && theirs == NULL);
    CHECK(MPI_Win_shared_query(win, 1, &length, &unit, &theirs) == MPI_SUCCESS && length == sizeof(long) && theirs != NULL);
    CHECK(MPI_Win_free(&win) == MPI_SUCCESS);

    /* More than there is. The error goes to the handler of the communicator. */
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) == MPI_SUCCESS);
    FAILS(MPI_Win_allocate_shared((MPI_Aint)1 << 40, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win), MPI_ERR_RMA_SHARED);
    CHECK(win == MPI_WIN_NULL);
}

int main(void) {
    start();
    asked();
    shared();
    if (rank == 0) printf("done\n");
    return MPI_Finalize();
}
