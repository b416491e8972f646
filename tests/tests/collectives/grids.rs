//! Grids on several hosts: with reordering, neighbours share a host, and messages still reach the right ranks.

use mpicore::topology::Cartesian;
use mpicore::{Communicator, Error};
use mpj_tests::conformance::collective::job;
use mpj_tests::conformance::network::Network;

use super::BACKENDS;

/// Returns this rank's place in a grid of all ranks, and how many of its neighbours are on other hosts.
fn place(world: &Communicator, dims: &[u32], reorder: bool) -> Result<(u32, usize), Error> {
    let grid = Cartesian::new(dims, &vec![false; dims.len()])?;
    let expected = world.cartesian_rank(&grid)?.expect("all ranks have a place");
    let placed = world.create_cartesian(grid.clone(), reorder)?.expect("all ranks have a place");
    assert!(placed.rank() == expected || !reorder, "a map says the same");
    let neighbours = grid.neighbours(placed.rank())?;
    let hosts = neighbours.into_iter().flatten().map(|neighbour| {
        let rank = placed.group().job_rank(neighbour)?;
        Ok(world.device().host_of(rank))
    });
    let hosts = hosts.collect::<Result<Vec<_>, Error>>()?;
    let elsewhere = hosts.iter().filter(|host| **host != world.device().host());
    placed.run_barrier()?;
    Ok((placed.rank(), elsewhere.count()))
}

/// Places of all ranks, and how many edges of the grid are between hosts.
fn placed(network: Network, dims: &'static [u32], reorder: bool) -> (Vec<u32>, usize) {
    let ranks = dims.iter().product::<u32>() as usize;
    let all = job::run_over(network, ranks, BACKENDS[0], move |world| {
        place(world, dims, reorder).map_err(|error| error.to_string())
    });
    let elsewhere: usize = all.iter().map(|(_, elsewhere)| elsewhere).sum();
    (all.into_iter().map(|(place, _)| place).collect(), elsewhere / 2)
}

#[test]
fn neighbours_share_a_host_if_ranks_may_be_reordered() {
    let dims: &[u32] = &[2, 3];
    // Ranks 0 and 3 are on one host, so are 1 and 4, and 2 and 5.
    assert_eq!(placed(Network::DealtHosts, dims, false), (vec![0, 1, 2, 3, 4, 5], 4));
    assert_eq!(placed(Network::DealtHosts, dims, true), (vec![0, 1, 2, 3, 4, 5], 4), "columns");
    let dims: &[u32] = &[3, 2];
    assert_eq!(placed(Network::DealtHosts, dims, false).1, 7);
    assert_eq!(placed(Network::DealtHosts, dims, true), (vec![0, 2, 4, 1, 3, 5], 4), "rows");
    let dims: &[u32] = &[2, 2, 2];
    assert_eq!(placed(Network::UnevenHosts, dims, true).0, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(placed(Network::Segment, dims, true), ((0..8).collect(), 0));
}
