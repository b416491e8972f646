//! Graphs: one that all ranks know, and distributed ones (MPI-5.0 sections 8.5.3 and 8.5.4).

use std::ffi::c_int;

use mpicore::topology::{Adjacency, Edge, Graph, Topology, TopologyError};

use super::{copy_out, natural};
use crate::abi::*;
use crate::call::{Fault, Outcome, mpi, negative, out};
use crate::comm::Comm;
use crate::comm::create::place_of_new;

impl Comm {
    /// Returns the graph that all ranks know.
    ///
    /// # Errors
    /// MPI_ERR_TOPOLOGY.
    fn graph(&self) -> Outcome<&Graph> {
        match self.core.topology() {
            Some(Topology::Graph(graph)) => Ok(graph),
            _ => Err(self.has_no("graph; make one by MPI_Graph_create")),
        }
    }

    /// Returns this rank's part of a distributed graph.
    ///
    /// # Errors
    /// MPI_ERR_TOPOLOGY.
    fn adjacency(&self) -> Outcome<&Adjacency> {
        match self.core.topology() {
            Some(Topology::Adjacency(adjacency)) => Ok(adjacency),
            _ => Err(self.has_no("distributed graph; make one by MPI_Dist_graph_create")),
        }
    }

    fn has_no(&self, what: &str) -> Fault {
        Fault::argument(MPI_ERR_TOPOLOGY, "comm", format!("{} has no {what}", self.title()))
    }
}

/// Returns a list of ranks or numbers that are not negative.
unsafe fn naturals(
    list: *const c_int,
    len: c_int,
    code: c_int,
    name: &'static str,
) -> Outcome<Vec<u32>> {
    if len < 0 {
        return Err(negative(MPI_ERR_ARG, name, len));
    }
    // SAFETY: FC1.
    let list = unsafe { out::list(list, len.into(), name) }?;
    list.iter()
        .map(|&number| u32::try_from(number).map_err(|_| negative(code, name, number)))
        .collect()
}

/// Returns a graph that a program describes.
unsafe fn graph(nnodes: c_int, index: *const c_int, edges: *const c_int) -> Outcome<Graph> {
    // SAFETY: FC1.
    let index = unsafe { naturals(index, nnodes, MPI_ERR_ARG, "index") }?;
    let number = index.last().map_or(0, |number| *number as c_int);
    // SAFETY: FC1.
    let edges = unsafe { naturals(edges, number, MPI_ERR_RANK, "edges") }?;
    Ok(Graph::new(&index, &edges)?)
}

/// Returns the weights of edges; `None` for MPI_UNWEIGHTED.
unsafe fn weights(
    list: *const c_int,
    len: usize,
    name: &'static str,
) -> Outcome<Option<Vec<c_int>>> {
    match list.addr() {
        MPI_UNWEIGHTED => Ok(None),
        MPI_WEIGHTS_EMPTY if len > 0 => {
            let text = format!("MPI_WEIGHTS_EMPTY is given for {len} edges");
            Err(Fault::argument(MPI_ERR_ARG, name, text))
        }
        MPI_WEIGHTS_EMPTY => Ok(Some(Vec::new())),
        // SAFETY: FC1.
        _ => Ok(Some(unsafe { out::list(list, len as i64, name) }?.to_vec())),
    }
}

/// Copies the first entries of a list, unless the place is a constant of the standard.
unsafe fn copy_first(
    list: &[c_int],
    place: *mut c_int,
    most: c_int,
    name: &'static str,
) -> Outcome {
    if matches!(place.addr(), MPI_UNWEIGHTED | MPI_WEIGHTS_EMPTY) {
        return Ok(());
    }
    let len = list.len().min(most as usize);
    // SAFETY: FC1.
    unsafe { out::list_mut(place, len as i64, name) }?.copy_from_slice(&list[..len]);
    Ok(())
}

/// Returns the rank of a process in a topology with this many nodes, in which ranks keep their order.
fn mapped(comm: &Comm, nodes: u32) -> Outcome<c_int> {
    let (rank, ranks) = (comm.core.rank(), comm.core.size());
    match nodes <= ranks {
        true => Ok(if rank < nodes { rank as c_int } else { MPI_UNDEFINED }),
        false => Err(TopologyError::Ranks { nodes, ranks }.into()),
    }
}

mpi! {
    fn MPI_Graph_create(
        comm_old: MPI_Comm, nnodes: c_int, index: *const c_int, edges: *const c_int, reorder: c_int,
        comm_graph: *mut MPI_Comm
    ) -> c_int {
        let _ = reorder;
        let place = place_of_new(comm_graph, "comm_graph")?;
        let comm = comm_old.find()?;
        let graph = graph(nnodes, index, edges)?;
        *place = comm.child_or_null(comm.core.create_graph(graph)?)?;
        Ok(())
    }

    fn MPI_Graphdims_get(comm: MPI_Comm, nnodes: *mut c_int, nedges: *mut c_int) -> c_int {
        let comm = comm.find()?;
        let graph = comm.graph()?;
        out::write(nnodes, "nnodes", graph.size() as c_int)?;
        out::write(nedges, "nedges", graph.edges().len() as c_int)
    }

    fn MPI_Graph_get(
        comm: MPI_Comm, maxindex: c_int, maxedges: c_int, index: *mut c_int, edges: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let graph = comm.graph()?;
        let number = |number: &u32| *number as c_int;
        copy_out(graph.index().iter().map(number), index, (maxindex, "maxindex"), "index")?;
        copy_out(graph.edges().iter().map(number), edges, (maxedges, "maxedges"), "edges")
    }

    fn MPI_Graph_neighbors_count(comm: MPI_Comm, rank: c_int, nneighbors: *mut c_int) -> c_int {
        let comm = comm.find()?;
        let found = comm.graph()?.neighbours(comm.named(rank)?)?;
        out::write(nneighbors, "nneighbors", found.len() as c_int)
    }

    fn MPI_Graph_neighbors(comm: MPI_Comm, rank: c_int, maxneighbors: c_int, neighbors: *mut c_int) -> c_int {
        let comm = comm.find()?;
        let found = comm.graph()?.neighbours(comm.named(rank)?)?;
        let found = found.iter().map(|rank| *rank as c_int);
        copy_out(found, neighbors, (maxneighbors, "maxneighbors"), "neighbors")
    }

    fn MPI_Graph_map(
        comm: MPI_Comm, nnodes: c_int, index: *const c_int, edges: *const c_int, newrank: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let graph = graph(nnodes, index, edges)?;
        out::write(newrank, "newrank", mapped(&comm, graph.size())?)
    }

    fn MPI_Dist_graph_create_adjacent(
        comm_old: MPI_Comm, indegree: c_int, sources: *const c_int, sourceweights: *const c_int, outdegree: c_int,
        destinations: *const c_int, destweights: *const c_int, info: MPI_Info, reorder: c_int,
        comm_dist_graph: *mut MPI_Comm
    ) -> c_int {
        let _ = reorder;
        let place = place_of_new(comm_dist_graph, "comm_dist_graph")?;
        let comm = comm_old.find()?;
        drop(info.copied()?);
        let sources = naturals(sources, indegree, MPI_ERR_RANK, "sources")?;
        let destinations = naturals(destinations, outdegree, MPI_ERR_RANK, "destinations")?;
        let of_sources = weights(sourceweights, sources.len(), "sourceweights")?;
        let of_destinations = weights(destweights, destinations.len(), "destweights")?;
        let weights = match (of_sources, of_destinations) {
            (None, None) => None,
            (Some(of_sources), Some(of_destinations)) => Some((of_sources, of_destinations)),
            _ => {
                let text = "MPI_UNWEIGHTED is given for the edges of one direction only";
                return Err(Fault::argument(MPI_ERR_ARG, "sourceweights", text));
            }
        };
        let made = comm.core.create_adjacent(Adjacency { sources, destinations, weights })?;
        *place = comm.child(made)?;
        Ok(())
    }

    fn MPI_Dist_graph_create(
        comm_old: MPI_Comm, n: c_int, sources: *const c_int, degrees: *const c_int, destinations: *const c_int,
        weights: *const c_int, info: MPI_Info, reorder: c_int, comm_dist_graph: *mut MPI_Comm
    ) -> c_int {
        let _ = reorder;
        let place = place_of_new(comm_dist_graph, "comm_dist_graph")?;
        let comm = comm_old.find()?;
        drop(info.copied()?);
        natural(n, "n")?;
        let sources = naturals(sources, n, MPI_ERR_RANK, "sources")?;
        let degrees = naturals(degrees, n, MPI_ERR_ARG, "degrees")?;
        let total = degrees.iter().map(|degree| i64::from(*degree)).sum::<i64>();
        let total = c_int::try_from(total).map_err(|_| {
            Fault::argument(MPI_ERR_ARG, "degrees", format!("their sum, {total}, is too large"))
        })?;
        let destinations = naturals(destinations, total, MPI_ERR_RANK, "destinations")?;
        let weights = self::weights(weights, destinations.len(), "weights")?;
        let ends = sources.iter().zip(&degrees).flat_map(|(source, degree)| (0..*degree).map(|_| *source));
        let edges = ends.zip(destinations).enumerate().map(|(place, (source, destination))| {
            Edge { source, destination, weight: weights.as_ref().map(|weights| weights[place]) }
        });
        let edges: Vec<_> = edges.collect();
        *place = comm.child(comm.core.create_distributed(&edges, weights.is_some())?)?;
        Ok(())
    }

    fn MPI_Dist_graph_neighbors_count(
        comm: MPI_Comm, indegree: *mut c_int, outdegree: *mut c_int, weighted: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let own = comm.adjacency()?;
        out::write(indegree, "indegree", own.sources.len() as c_int)?;
        out::write(outdegree, "outdegree", own.destinations.len() as c_int)?;
        out::write(weighted, "weighted", own.weights.is_some().into())
    }

    // Lists that are longer than the places are cut, as the standard says.
    fn MPI_Dist_graph_neighbors(
        comm: MPI_Comm, maxindegree: c_int, sources: *mut c_int, sourceweights: *mut c_int, maxoutdegree: c_int,
        destinations: *mut c_int, destweights: *mut c_int
    ) -> c_int {
        let comm = comm.find()?;
        let own = comm.adjacency()?;
        natural(maxindegree, "maxindegree")?;
        natural(maxoutdegree, "maxoutdegree")?;
        let ranks = |ranks: &[u32]| ranks.iter().map(|rank| *rank as c_int).collect::<Vec<_>>();
        copy_first(&ranks(&own.sources), sources, maxindegree, "sources")?;
        copy_first(&ranks(&own.destinations), destinations, maxoutdegree, "destinations")?;
        if let Some((of_sources, of_destinations)) = &own.weights {
            copy_first(of_sources, sourceweights, maxindegree, "sourceweights")?;
            copy_first(of_destinations, destweights, maxoutdegree, "destweights")?;
        }
        Ok(())
    }
}
