//! Collectives among neighbours in grids and graphs: what each rank receives, block by block.

use super::*;
use crate::collective::Blocks;
use crate::datatype::Datatype;
use crate::topology::{Adjacency, Cartesian, Edge, Graph};
use crate::{Input, Output, TypedBlock};

/// The word that a rank sends in a block.
fn word(rank: u32, block: usize) -> u64 {
    100 * u64::from(rank) + block as u64
}

/// Exchanges one word with each neighbour, and returns the words that were received; 9999 where there is no neighbour.
fn exchanged(over: &Communicator) -> Vec<u64> {
    let neighbours = over.neighbours().unwrap();
    let own = (0..neighbours.destinations.len()).map(|block| word(over.rank(), block)).collect();
    let into = Output::keeping(vec![9999; neighbours.sources.len()]);
    let blocks = Blocks::Equal { count: 1 };
    let plan = over.neighbour_alltoall((Input::keeping(own), blocks), into, blocks);
    plan.unwrap().run_and_keep().unwrap()
}

#[test]
fn neighbours_in_grids_exchange_blocks_along_each_dimension() {
    // Dimensions of length 1 and 2 in which both neighbours are the same rank, and one with ends.
    for (dims, periods) in [([1, 2, 3], [true, true, false]), ([3, 2, 1], [true, false, true])] {
        run(6, move |world| {
            let grid = Cartesian::new(&dims, &periods).unwrap();
            let placed = world.create_cartesian(grid.clone(), true).unwrap().unwrap();
            let expected: Vec<_> = (0..6)
                .map(|block| {
                    let neighbours = grid.neighbours(placed.rank()).unwrap();
                    // What comes from behind was sent forwards.
                    neighbours[block].map_or(9999, |source| word(source, block ^ 1))
                })
                .collect();
            for _ in 0..3 {
                assert_eq!(exchanged(&placed), expected);
            }
            let own = Input::keeping(vec![word(placed.rank(), 0)]);
            let into = Output::keeping(vec![9999; 6]);
            let blocks = Blocks::Equal { count: 1 };
            let plan = placed.neighbour_allgather((own, 1), into, blocks).unwrap();
            let expected: Vec<_> = grid.neighbours(placed.rank()).unwrap();
            let expected: Vec<_> =
                expected.iter().map(|source| source.map_or(9999, |rank| word(rank, 0))).collect();
            assert_eq!(plan.run_and_keep().unwrap(), expected);
        });
    }
}

#[test]
fn blocks_can_be_listed_or_have_datatypes() {
    run(3, |world| {
        let ring = Cartesian::new(&[3], &[true]).unwrap();
        let ring = world.create_cartesian(ring, true).unwrap().unwrap();
        let (rank, last, next) = (ring.rank(), (ring.rank() + 2) % 3, (ring.rank() + 1) % 3);
        // One word backwards, two words forwards; so two come from behind, and one from ahead.
        let own = || Input::keeping(vec![word(rank, 0), word(rank, 1), word(rank, 2)]);
        let sent = Blocks::Listed { counts: &[1, 2], displacements: &[0, 1] };
        let received = Blocks::Listed { counts: &[2, 1], displacements: &[2, 0] };
        let into = || Output::keeping(vec![9999; 4]);
        let expected = [word(next, 0), 9999, word(last, 1), word(last, 2)];
        let plan = ring.neighbour_alltoall((own(), sent), into(), received).unwrap();
        assert_eq!(plan.run_and_keep().unwrap(), expected);

        let datatype = Datatype::predefined(ElementKind::U64);
        let block = |count, at: isize| {
            let (displacement, datatype) = (8 * at, datatype.clone());
            TypedBlock { count, displacement, datatype }
        };
        let typed = Blocks::Typed { entries: 2 };
        let own = own().in_blocks(vec![block(1, 0), block(2, 1)]);
        let into = into().in_blocks(vec![block(2, 2), block(1, 0)]);
        let plan = ring.neighbour_alltoall((own, typed), into, typed).unwrap();
        assert_eq!(plan.run_and_keep().unwrap(), expected);
        let own = Input::keeping(vec![word(rank, 0)]);
        let into = Output::keeping(vec![9999; 3]);
        let blocks = Blocks::Listed { counts: &[1, 1], displacements: &[2, 0] };
        let plan = ring.neighbour_allgather((own, 1), into, blocks).unwrap();
        assert_eq!(plan.run_and_keep().unwrap(), [word(next, 0), 9999, word(last, 0)]);
    });
}

#[test]
fn graphs_have_the_neighbours_that_were_listed() {
    run(4, |world| {
        // A path of three nodes, with two edges between nodes 1 and 2.
        let graph = Graph::new(&[1, 4, 6], &[1, 0, 2, 2, 1, 1]).unwrap();
        let made = world.create_graph(graph).unwrap();
        assert_eq!(made.is_some(), world.rank() < 3);
        if let Some(path) = &made {
            let expected = [vec![100], vec![0, 200, 201], vec![101, 102]];
            assert_eq!(exchanged(path), expected[path.rank() as usize]);
            assert_eq!(path.dup().unwrap().topology(), path.topology());
            assert!(path.grid().is_none());
        }
        // Each rank sends to the next one, and rank 0 to rank 2 as well.
        let (rank, size) = (world.rank(), 4);
        let mut adjacency = Adjacency::default();
        adjacency.sources.push((rank + size - 1) % size);
        adjacency.destinations.push((rank + 1) % size);
        if rank == 2 {
            adjacency.sources.push(0);
        } else if rank == 0 {
            adjacency.destinations.push(2);
        }
        let ring = world.create_adjacent(adjacency).unwrap();
        let mut expected = vec![word((rank + 3) % 4, 0)];
        expected.extend((rank == 2).then_some(word(0, 1)));
        assert_eq!(exchanged(&ring), expected);
    });
}

#[test]
fn any_rank_may_give_the_edges_of_a_distributed_graph() {
    run(3, |world| {
        let edge = |source, destination, weight| Edge { source, destination, weight: Some(weight) };
        // Rank 0 gives none.
        let given: &[&[Edge]] =
            &[&[], &[edge(0, 1, 5), edge(1, 2, 0)], &[edge(0, 2, 7), edge(0, 1, 3), edge(2, 2, 1)]];
        let made = world.create_distributed(given[world.rank() as usize], true).unwrap();
        let expected =
            [vec![], vec![word(0, 0), word(0, 2)], vec![word(1, 0), word(0, 1), word(2, 0)]];
        assert_eq!(exchanged(&made), expected[made.rank() as usize]);
        if made.rank() == 0 {
            let Some(crate::topology::Topology::Adjacency(own)) = made.topology() else {
                unreachable!("it has one");
            };
            assert_eq!(own.weights, Some((vec![], vec![5, 7, 3])));
        }
        let wrong = Edge { source: 0, destination: 3, weight: None };
        let refused = world.create_distributed(&[wrong], false).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Rank);
        let none = world.neighbours().unwrap_err();
        assert_eq!(none.class(), ErrorClass::Topology);
        assert!(Graph::new(&[2, 1], &[0]).is_err() && Graph::new(&[1], &[0, 0]).is_err());
        assert!(Graph::new(&[1], &[1]).is_err());
        // A graph without edges.
        let empty = world.create_distributed(&[], false).unwrap();
        assert_eq!(exchanged(&empty), []);
        let empty = world.create_distributed(&[], world.rank() == 1).unwrap();
        let none = Adjacency { weights: Some((vec![], vec![])), ..Adjacency::default() };
        assert_eq!(empty.topology(), Some(&crate::topology::Topology::Adjacency(none)));
    });
}
