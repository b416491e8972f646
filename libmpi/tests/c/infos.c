// ranks 1
#include "check.h"

int main(int argc, char **argv) {
    /* Info objects exist before MPI_Init and after MPI_Finalize. */
    MPI_Info info, copy, stale;
    char value[MPI_MAX_INFO_VAL], key[MPI_MAX_INFO_KEY], longer[MPI_MAX_INFO_KEY + 1];
    int flag, length, number;
    CHECK(MPI_Info_create(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "one", "first") == MPI_SUCCESS && MPI_Info_set(info, "two", "second") == MPI_SUCCESS);
    CHECK(MPI_Info_set(info, "one", "1") == MPI_SUCCESS);
    start();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Info_get_nkeys(info, &number) == MPI_SUCCESS && number == 2);
    CHECK(MPI_Info_get_nthkey(info, 1, key) == MPI_SUCCESS && !strcmp(key, "two"));
    CHECK(MPI_Info_get_valuelen(info, "two", &length, &flag) == MPI_SUCCESS && flag && length == 6);
    CHECK(MPI_Info_get(info, "one", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "1"));
    /* Values are cut to the places that they get. */
    CHECK(MPI_Info_get(info, "two", 3, value, &flag) == MPI_SUCCESS && flag && !strcmp(value, "sec"));
    length = 4;
    CHECK(MPI_Info_get_string(info, "two", &length, value, &flag) == MPI_SUCCESS && flag && length == 7);
    CHECK(!strcmp(value, "sec"));
    length = 0;
    CHECK(MPI_Info_get_string(info, "two", &length, NULL, &flag) == MPI_SUCCESS && flag && length == 7);
    CHECK(MPI_Info_get_string(info, "three", &length, value, &flag) == MPI_SUCCESS && !flag && length == 7);
    CHECK(MPI_Info_dup(info, &copy) == MPI_SUCCESS && MPI_Info_delete(info, "one") == MPI_SUCCESS);
    CHECK(MPI_Info_get_nkeys(info, &number) == MPI_SUCCESS && number == 1);
    CHECK(MPI_Info_get_nkeys(copy, &number) == MPI_SUCCESS && number == 2);
    /* Errors. */
    memset(longer, 'k', MPI_MAX_INFO_KEY), longer[MPI_MAX_INFO_KEY] = 0;
    FAILS(MPI_Info_delete(info, "one"), MPI_ERR_INFO_NOKEY);
    FAILS(MPI_Info_set(info, longer, "x"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(info, "", "x"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(info, NULL, "x"), MPI_ERR_INFO_KEY);
    FAILS(MPI_Info_set(info, "x", NULL), MPI_ERR_INFO_VALUE);
    char *much = malloc(2 * MPI_MAX_INFO_VAL);
    memset(much, 'v', 2 * MPI_MAX_INFO_VAL), much[2 * MPI_MAX_INFO_VAL - 1] = 0;
    FAILS(MPI_Info_set(info, "x", much), MPI_ERR_INFO_VALUE);
    free(much);
    FAILS(MPI_Info_get_nthkey(info, 1, key), MPI_ERR_ARG);
    FAILS(MPI_Info_get_nthkey(info, -1, key), MPI_ERR_ARG);
    FAILS(MPI_Info_get(info, "two", -1, value, &flag), MPI_ERR_ARG);
    FAILS(MPI_Info_get_nkeys(MPI_INFO_NULL, &number), MPI_ERR_INFO);
    FAILS(MPI_Info_dup(MPI_INFO_NULL, &stale), MPI_ERR_INFO);
    stale = info;
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
    FAILS(MPI_Info_free(&stale), MPI_ERR_INFO);
    /* How the process was started. */
    CHECK(MPI_Info_get(MPI_INFO_ENV, "command", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strcmp(value, argv[0]));
    FAILS(MPI_Info_set(MPI_INFO_ENV, "x", "y"), MPI_ERR_INFO);
    stale = MPI_INFO_ENV;
    FAILS(MPI_Info_free(&stale), MPI_ERR_INFO);
    CHECK(MPI_Info_create_env(argc, argv, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "command", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag);
    CHECK(!strcmp(value, argv[0]));
    CHECK(MPI_Info_get(info, "maxprocs", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && flag && atoi(value) == size);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Info_create_env(0, NULL, &info) == MPI_SUCCESS);
    CHECK(MPI_Info_get(info, "command", MPI_MAX_INFO_VAL - 1, value, &flag) == MPI_SUCCESS && !flag);
    CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
    CHECK(MPI_Get_hw_resource_info(&info) == MPI_SUCCESS && MPI_Info_get_nkeys(info, &number) == MPI_SUCCESS);
    CHECK(number > 0 && MPI_Info_free(&info) == MPI_SUCCESS);
    MPI_Finalize();
    CHECK(MPI_Info_free(&copy) == MPI_SUCCESS);
    return 0;
}
