// ranks 4, universe 4
// stdout: 2 clients came
// Groups of one job meet at ports, whose names they find by that of a service.

#define _DEFAULT_SOURCE
#include "check.h"
#include <unistd.h>

static void serve(MPI_Comm half) {
    char port[MPI_MAX_PORT_NAME];
    int half_rank, clients;
    MPI_Comm_rank(half, &half_rank);
    if (half_rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        CHECK(MPI_Publish_name("shop", MPI_INFO_NULL, port) == MPI_SUCCESS);
        FAILS(MPI_Publish_name("shop", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // A group of two, then one of one.
    for (clients = 0; clients < 2; clients++) {
        MPI_Comm client;
        int there, got, tell = 5 + clients;
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &client);
        MPI_Comm_remote_size(client, &there);
        CHECK(there == 2 - clients);
        MPI_Sendrecv(&tell, 1, MPI_INT, 0, 1, &got, 1, MPI_INT, 0, 1, client, MPI_STATUS_IGNORE);
        CHECK(got == 7 + clients);
        MPI_Comm_disconnect(&client);
    }
    if (half_rank == 0) {
        CHECK(MPI_Unpublish_name("shop", MPI_INFO_NULL, port) == MPI_SUCCESS);
        FAILS(MPI_Unpublish_name("shop", MPI_INFO_NULL, port), MPI_ERR_SERVICE);
        FAILS(MPI_Lookup_name("shop", MPI_INFO_NULL, port + 100), MPI_ERR_NAME);
        CHECK(MPI_Close_port(port) == MPI_SUCCESS);
        FAILS(MPI_Close_port(port), MPI_ERR_PORT);
        FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &(MPI_Comm){0}), MPI_ERR_PORT);
        FAILS(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &(MPI_Comm){0}), MPI_ERR_PORT);
        FAILS(MPI_Comm_connect("mpj:another-job:0:0", MPI_INFO_NULL, 0, MPI_COMM_SELF, &(MPI_Comm){0}), MPI_ERR_PORT);
        FAILS(MPI_Comm_connect("nonsense", MPI_INFO_NULL, 0, MPI_COMM_SELF, &(MPI_Comm){0}), MPI_ERR_PORT);
        printf("%d clients came\n", clients);
    }
}

static void visit(MPI_Comm half) {
    char port[MPI_MAX_PORT_NAME];
    int half_rank;
    MPI_Comm_rank(half, &half_rank);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_Lookup_name("shop", MPI_INFO_NULL, port) == MPI_SUCCESS);
    for (int visits = 0; visits < 2; visits++) {
        MPI_Comm own = visits == 0 ? half : MPI_COMM_SELF, server;
        // The port counts at the root only.
        if (visits == 0 && half_rank == 0)
            port[0] = 0;
        if (visits == 1 && half_rank == 0)
            return;
        MPI_Comm_connect(port, MPI_INFO_NULL, visits == 0, own, &server);
        int got, tell = 7 + visits, there;
        MPI_Comm_remote_size(server, &there);
        CHECK(there == 2);
        if (visits == 1 || half_rank == 0)
            for (int from = 0; from < 2; from++)
                MPI_Sendrecv(&tell, 1, MPI_INT, from, 1, &got, 1, MPI_INT, from, 1, server, MPI_STATUS_IGNORE);
        MPI_Comm_disconnect(&server);
    }
}

int main(void) {
    start();
    MPI_Comm half;
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    if (rank % 2)
        visit(half);
    else
        serve(half);
    MPI_Comm_free(&half);
    // A port that is closed accepts nobody: neither who waits for it, nor who comes meanwhile or later.
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm none;
    for (int round = 0; round < 40; round++) {
        if (rank == 0)
            MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            // Nor does it accept its own process.
            FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none), MPI_ERR_PORT);
            usleep(round == 0 ? 100000 : round * 10);
            CHECK(MPI_Close_port(port) == MPI_SUCCESS);
        } else {
            FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none), MPI_ERR_PORT);
        }
    }
    // A process that finalizes MPI closes its ports.
    if (rank == 0)
        MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Bcast(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank != 0)
        FAILS(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &none), MPI_ERR_PORT);
    return MPI_Finalize();
}
