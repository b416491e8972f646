// ranks 4
#include "check.h"

int main(void) {
    start();
    MPI_Comm world = MPI_COMM_WORLD, graph, none;
    /* 0 - 1 - 2, 0 - 2, and an edge of 1 to itself. */
    int index[3] = {2, 5, 7}, edges[7] = {1, 2, 0, 2, 1, 0, 1}, got_index[3], got_edges[7], nodes, number, value;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    CHECK(MPI_Graph_create(world, 3, index, edges, 0, &graph) == MPI_SUCCESS);
    CHECK((graph == MPI_COMM_NULL) == (rank == 3));
    if (graph != MPI_COMM_NULL) {
        CHECK(MPI_Topo_test(graph, &value) == MPI_SUCCESS && value == MPI_GRAPH);
        CHECK(MPI_Graphdims_get(graph, &nodes, &number) == MPI_SUCCESS && nodes == 3 && number == 7);
        CHECK(MPI_Graph_get(graph, 3, 7, got_index, got_edges) == MPI_SUCCESS);
        CHECK(!memcmp(index, got_index, sizeof index) && !memcmp(edges, got_edges, sizeof edges));
        CHECK(MPI_Graph_neighbors_count(graph, 1, &number) == MPI_SUCCESS && number == 3);
        CHECK(MPI_Graph_neighbors(graph, 1, 3, got_edges) == MPI_SUCCESS);
        CHECK(got_edges[0] == 0 && got_edges[1] == 2 && got_edges[2] == 1);
        FAILS(MPI_Graph_neighbors(graph, 1, 2, got_edges), MPI_ERR_ARG);
        FAILS(MPI_Graph_neighbors_count(graph, 3, &number), MPI_ERR_RANK);
        FAILS(MPI_Cartdim_get(graph, &number), MPI_ERR_TOPOLOGY);
        CHECK(MPI_Comm_free(&graph) == MPI_SUCCESS);
    }
    CHECK(MPI_Graph_map(world, 3, index, edges, &value) == MPI_SUCCESS && value == (rank < 3 ? rank : MPI_UNDEFINED));
    CHECK(MPI_Graph_create(world, 0, NULL, NULL, 0, &none) == MPI_SUCCESS && none == MPI_COMM_NULL);
    FAILS(MPI_Graph_create(world, -1, index, edges, 0, &none), MPI_ERR_ARG);
    FAILS(MPI_Graphdims_get(world, &nodes, &number), MPI_ERR_TOPOLOGY);
    edges[0] = 3;
    FAILS(MPI_Graph_create(world, 3, index, edges, 0, &none), MPI_ERR_RANK);
    edges[0] = 1, index[1] = 1;
    FAILS(MPI_Graph_create(world, 3, index, edges, 0, &none), MPI_ERR_ARG);

    /* A ring in both forms of distributed graphs. */
    int before = (rank + 3) % 4, after = (rank + 1) % 4, weight = 10 + rank, back = 10 + before;
    int in, out, weighted, sources[2] = {-1, -1}, targets[2] = {-1, -1}, of_sources[2], of_targets[2];
    CHECK(MPI_Dist_graph_create_adjacent(world, 1, &before, &back, 1, &after, &weight, MPI_INFO_NULL, 0, &graph) == 0);
    CHECK(MPI_Topo_test(graph, &value) == MPI_SUCCESS && value == MPI_DIST_GRAPH);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS);
    CHECK(in == 1 && out == 1 && weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, 1, sources, of_sources, 1, targets, of_targets) == MPI_SUCCESS);
    CHECK(sources[0] == before && targets[0] == after && of_sources[0] == 10 + before && of_targets[0] == weight);
    sources[0] = -1;
    CHECK(MPI_Dist_graph_neighbors(graph, 0, sources, of_sources, 1, targets, MPI_UNWEIGHTED) == MPI_SUCCESS);
    CHECK(sources[0] == -1 && MPI_Comm_free(&graph) == MPI_SUCCESS);
    /* Rank 0 gives all edges, each to both neighbours, and the others none. */
    int from[4] = {0, 1, 2, 3}, degrees[4] = {2, 2, 2, 2}, to[8] = {1, 3, 2, 0, 3, 1, 0, 2};
    CHECK(MPI_Dist_graph_create(world, rank ? 0 : 4, from, degrees, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &graph) == 0);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS);
    CHECK(in == 2 && out == 2 && !weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, 2, sources, MPI_UNWEIGHTED, 2, targets, MPI_UNWEIGHTED) == MPI_SUCCESS);
    CHECK(targets[0] == after && targets[1] == before && sources[0] + sources[1] == before + after);
    CHECK(MPI_Comm_free(&graph) == MPI_SUCCESS);
    int weights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    CHECK(MPI_Dist_graph_create(world, rank ? 0 : 4, from, degrees, to, rank ? MPI_WEIGHTS_EMPTY : weights,
                                MPI_INFO_NULL, 1, &graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS && weighted);
    CHECK(MPI_Dist_graph_neighbors(graph, 2, sources, of_sources, 2, targets, of_targets) == MPI_SUCCESS);
    CHECK(of_targets[0] == 2 * rank + 1 && of_targets[1] == 2 * rank + 2 && MPI_Comm_free(&graph) == MPI_SUCCESS);
    /* Graphs without edges have weights or not. */
    CHECK(MPI_Dist_graph_create(world, 0, NULL, NULL, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 1, &graph) == 0);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS && weighted && !in && !out);
    CHECK(MPI_Dist_graph_neighbors(graph, 0, NULL, NULL, 0, NULL, NULL) == MPI_SUCCESS && MPI_Comm_free(&graph) == 0);
    CHECK(MPI_Dist_graph_create(world, 0, NULL, NULL, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 1, &graph) == 0);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS && !weighted);
    CHECK(MPI_Comm_free(&graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_create_adjacent(world, 0, NULL, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                         &graph) == MPI_SUCCESS);
    CHECK(MPI_Dist_graph_neighbors_count(graph, &in, &out, &weighted) == MPI_SUCCESS && weighted && !in && !out);
    CHECK(MPI_Comm_free(&graph) == MPI_SUCCESS);
    /* Errors. */
    before = 4;
    FAILS(MPI_Dist_graph_create_adjacent(world, 1, &before, MPI_UNWEIGHTED, 0, NULL, MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                         &graph), MPI_ERR_RANK);
    before = 0, weight = -1;
    FAILS(MPI_Dist_graph_create_adjacent(world, 1, &before, &weight, 0, NULL, MPI_WEIGHTS_EMPTY, MPI_INFO_NULL, 0,
                                         &graph), MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_create_adjacent(world, 1, &before, MPI_WEIGHTS_EMPTY, 0, NULL, MPI_WEIGHTS_EMPTY,
                                         MPI_INFO_NULL, 0, &graph), MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_create(world, -1, from, degrees, to, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph), MPI_ERR_ARG);
    FAILS(MPI_Dist_graph_neighbors_count(world, &in, &out, &weighted), MPI_ERR_TOPOLOGY);
    MPI_Finalize();
    return 0;
}
