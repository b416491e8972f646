// ranks 2, universe 6
// stdout: spawned 2 of 8
// What cannot be spawned is an error on all ranks, and the job goes on.

#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm parents, children;
    MPI_Comm_get_parent(&parents);
    if (parents != MPI_COMM_NULL) {
        char folder[4096];
        CHECK(strcmp(argv[1], "first") == 0 || strcmp(argv[1], "second") == 0);
        int *number, flag;
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
        CHECK(flag && *number == (strcmp(argv[1], "second") == 0));
        FILE *own = popen("pwd", "r");
        CHECK(fgets(folder, sizeof folder, own) != NULL);
        pclose(own);
        CHECK((strcmp(folder, "/\n") == 0) == (*number == 1));
        return MPI_Finalize();
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int codes[8] = {0};
    FAILS(MPI_Comm_spawn("/no/such/program", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes),
          MPI_ERR_SPAWN);
    CHECK(children == MPI_COMM_NULL && codes[0] == MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 5, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes),
          rank == 0 ? MPI_ERR_ARG : MPI_ERR_SPAWN);
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 2, MPI_COMM_WORLD, &children, codes), MPI_ERR_RANK);
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "host", "elsewhere.example");
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    MPI_Info_set(info, "host", "localhost");
    MPI_Info_set(info, "wdir", "/no/such/folder");
    FAILS(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, info, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    MPI_Info_set(info, "wdir", "/");
    MPI_Info_set(info, "soft", "9223372036854775807:-9223372036854775808:-2");
    char *commands[] = {argv[0], argv[0]}, *first[] = {"first", NULL}, *second[] = {"second", NULL};
    char **words[] = {first, second};
    int most[] = {1, 7}, there;
    MPI_Info infos[] = {MPI_INFO_NULL, info};
    // The first program starts, the interpreter of the second one is missing: the place of the first one is used up, and 3 are left.
    char script[] = "/tmp/mpj-script-XXXXXX";
    int file = mkstemp(script), ones[] = {1, 1};
    CHECK(dprintf(file, "#!/no/such/interpreter\n") > 0 && fchmod(file, 0700) == 0 && close(file) == 0);
    MPI_Info none[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    FAILS(MPI_Comm_spawn_multiple(2, (char *[]){argv[0], script}, words, ones, none, 0, MPI_COMM_WORLD, &children, codes),
          MPI_ERR_SPAWN);
    CHECK(codes[0] == MPI_ERR_SPAWN && codes[1] == MPI_ERR_SPAWN);
    unlink(script);
    FAILS(MPI_Comm_spawn(argv[0], first, 4, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes), MPI_ERR_SPAWN);
    MPI_Comm_spawn_multiple(2, commands, words, most, infos, 0, MPI_COMM_WORLD, &children, codes);
    MPI_Comm_remote_size(children, &there);
    for (int code = 0; code < 8; code++)
        CHECK(codes[code] == (code < 2 ? MPI_SUCCESS : MPI_ERR_SPAWN));
    if (rank == 0)
        printf("spawned %d of 8\n", there);
    MPI_Info_free(&info);
    // On an intercommunicator nothing is started, so the last place is still free.
    MPI_Comm other;
    MPI_Comm_set_errhandler(children, MPI_ERRORS_RETURN);
    FAILS(MPI_Comm_spawn(argv[0], first, 1, MPI_INFO_NULL, 0, children, &other, codes), MPI_ERR_COMM);
    FAILS(MPI_Comm_accept("port", MPI_INFO_NULL, 0, children, &other), MPI_ERR_COMM);
    CHECK(MPI_Comm_spawn(argv[0], first, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, codes) == MPI_SUCCESS);
    return MPI_Finalize();
}
