// ranks 2
/* How the process was started: known before MPI_Init, between MPI_Init and MPI_Finalize, and afterwards. */
#include "check.h"

static char value[MPI_MAX_INFO_VAL];

/* Returns the value of a key, which must be there. */
static const char *get(MPI_Info info, const char *key) {
    int flag = 0, length = sizeof value;
    if (MPI_Info_get_string(info, key, &length, value, &flag) != MPI_SUCCESS || !flag) {
        fprintf(stderr, "there is no key %s\n", key);
        exit(99);
    }
    return value;
}

static void check(MPI_Info info, const char *program, const char *level) {
    CHECK(!strcmp(get(info, "command"), program) && !strcmp(get(info, "maxprocs"), "2"));
    CHECK(!strcmp(get(info, "soft"), "2") && strlen(get(info, "host")) > 0 && strlen(get(info, "arch")) > 0);
    CHECK(get(info, "wdir")[0] == '/' && !strcmp(get(info, "thread_level"), level));
}

static void check_both(int argc, char **argv, const char *level) {
    MPI_Info info;
    CHECK(MPI_Info_create_env(argc, argv, &info) == MPI_SUCCESS);
    check(info, argv[0], level);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    check(MPI_INFO_ENV, argv[0], level);
}

int main(int argc, char **argv) {
    int provided;
    check_both(argc, argv, "MPI_THREAD_SINGLE");
    CHECK(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided) == MPI_SUCCESS);
    check_both(argc, argv, "MPI_THREAD_SERIALIZED");
    CHECK(MPI_Finalize() == MPI_SUCCESS);
    check_both(argc, argv, "MPI_THREAD_SERIALIZED");
    return 0;
}
