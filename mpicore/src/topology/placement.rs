//! Which rank gets which node of a grid, if the ranks run on several hosts.
//!
//! The rule is simple: if all hosts have as many ranks, each gets a block of the grid, all blocks of one shape, whose
//! lengths divide those of the grid. Of these shapes the one counts that leaves the fewest edges between hosts. Blocks
//! are given to hosts row by row, in the order of the lowest ranks of the hosts, and the nodes of a block to the ranks
//! of its host likewise. Where there is no such shape, or none that is better, ranks keep their order.

use super::Cartesian;

impl Cartesian {
    /// Chooses for each node the rank that gets it, such that neighbours share a host more often than with ranks in
    /// their order. `hosts` has the host of each rank, numbered in any way. Returns `None` if ranks keep their order.
    ///
    /// ```
    /// use mpicore::topology::Cartesian;
    /// let grid = Cartesian::new(&[2, 4], &[false, false])?;
    /// let order = grid.order_by_hosts(&[0, 0, 0, 0, 1, 1, 1, 1]);
    /// assert_eq!(order, Some(vec![0, 1, 4, 5, 2, 3, 6, 7]));
    /// assert_eq!(grid.order_by_hosts(&[0; 8]), None);
    /// # Ok::<(), mpicore::topology::TopologyError>(())
    /// ```
    pub fn order_by_hosts(&self, hosts: &[u32]) -> Option<Vec<u32>> {
        let (ranks, each) =
            by_host(hosts).filter(|(ranks, _)| ranks.len() == self.size as usize)?;
        let shapes = self.shapes(each);
        let shape = shapes.iter().min_by_key(|shape| self.edges_between_blocks(shape))?;
        let mut order = vec![0; ranks.len()];
        for node in 0..self.size {
            let (mut block, mut inside) = (0, 0);
            for (dimension, &length) in shape.iter().enumerate() {
                let coordinate = self.coordinate(node, dimension);
                block = block * (self.dims[dimension] / length) + coordinate / length;
                inside = inside * length + coordinate % length;
            }
            order[node as usize] = ranks[(block * each + inside) as usize];
        }
        let now = self.edges_between(|node| hosts[node as usize]);
        let then = self.edges_between(|node| hosts[order[node as usize] as usize]);
        (then < now).then_some(order)
    }

    /// The shapes of blocks of so many nodes whose lengths divide those of the grid.
    fn shapes(&self, nodes: u32) -> Vec<Vec<u32>> {
        let mut shapes = vec![(Vec::new(), nodes)];
        for &length in &self.dims {
            let longer = shapes.iter().flat_map(|(shape, rest)| {
                let divides = move |by: &u32| length % by == 0 && rest % by == 0;
                let lengths = (1..=length.min(*rest)).filter(divides);
                lengths.map(move |by| ([&shape[..], &[by]].concat(), rest / by))
            });
            shapes = longer.collect();
        }
        shapes.into_iter().filter(|(_, rest)| *rest == 1).map(|(shape, _)| shape).collect()
    }

    /// The number of edges between blocks of this shape.
    fn edges_between_blocks(&self, shape: &[u32]) -> u64 {
        let along = |(dimension, &length): (usize, &u32)| {
            let of_grid = self.dims[dimension];
            let blocks = of_grid / length;
            let crossings = match blocks {
                2.. if self.periods[dimension] => blocks,
                _ => blocks - 1,
            };
            u64::from(crossings) * u64::from(self.size / of_grid)
        };
        shape.iter().enumerate().map(along).sum()
    }

    /// The number of edges between nodes on different hosts.
    pub(super) fn edges_between(&self, host_of: impl Fn(u32) -> u32) -> u64 {
        let nodes = 0..self.size;
        let edges = nodes.flat_map(|node| {
            let next = (0..self.dims.len()).filter_map(move |along| self.moved(node, along, 1));
            next.map(move |next| (node, next))
        });
        edges.filter(|&(node, next)| host_of(node) != host_of(next)).count() as u64
    }
}

/// The ranks host by host, and how many each host has; `None` unless there are several, and all have as many.
fn by_host(hosts: &[u32]) -> Option<(Vec<u32>, u32)> {
    let mut seen = std::collections::BTreeMap::new();
    let mut ranks: Vec<Vec<u32>> = Vec::new();
    for (rank, host) in (0..).zip(hosts) {
        let number = *seen.entry(host).or_insert(ranks.len());
        if number == ranks.len() {
            ranks.push(Vec::new());
        }
        ranks[number].push(rank);
    }
    let each = ranks.first()?.len();
    let are_equal = ranks.len() > 1 && ranks.iter().all(|of_host| of_host.len() == each);
    are_equal.then(|| (ranks.concat(), each as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The edges between hosts before and after, and the order.
    fn placed(
        dims: &[u32],
        periods: &[bool],
        host_of: impl Fn(u32) -> u32,
    ) -> (u64, u64, Option<Vec<u32>>) {
        let grid = Cartesian::new(dims, periods).unwrap();
        let hosts: Vec<u32> = (0..grid.size()).map(host_of).collect();
        let before = grid.edges_between(|node| hosts[node as usize]);
        let order = grid.order_by_hosts(&hosts);
        let after = order.as_ref().map_or(before, |order| {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..grid.size()), "{order:?} has each rank once");
            grid.edges_between(|node| hosts[order[node as usize] as usize])
        });
        (before, after, order)
    }

    #[test]
    fn hosts_get_blocks_with_few_edges_between_them() {
        let (before, after, order) = placed(&[4, 4], &[false; 2], |rank| rank / 4);
        assert_eq!((before, after), (12, 8), "rows become squares");
        let order = order.unwrap();
        assert_eq!(order[..8], [0, 1, 4, 5, 2, 3, 6, 7]);
        let edges = |dims: &[u32], periods: &[bool], host_of: fn(u32) -> u32| {
            let (before, after, _) = placed(dims, periods, host_of);
            (before, after)
        };
        assert_eq!(
            edges(&[4, 4], &[true; 2], |rank| rank / 4),
            (16, 16),
            "with wrap-around, rows are as good"
        );
        assert_eq!(edges(&[8, 8, 8], &[false; 3], |rank| rank / 64), (448, 192));
        assert_eq!(edges(&[8, 8, 8], &[true; 3], |rank| rank / 64), (512, 384));
        assert_eq!(edges(&[4, 4], &[false; 2], |rank| rank % 4), (12, 8));
        assert_eq!(edges(&[6], &[true], |rank| rank % 2), (6, 2), "dealt out to two hosts");
        assert_eq!(edges(&[2, 9], &[false; 2], |rank| rank / 6), (11, 4));
    }

    #[test]
    fn ranks_keep_their_order_where_no_block_fits_or_none_is_better() {
        let keep = |dims: &[u32], host_of: fn(u32) -> u32| {
            let (before, after, order) = placed(dims, &vec![false; dims.len()], host_of);
            assert_eq!((order, before), (None, after), "{dims:?}");
        };
        keep(&[4, 4], |_| 3);
        keep(&[4, 4], |rank| rank / 8);
        keep(&[3, 5], |rank| rank / 4);
        keep(&[5, 7], |rank| u32::from(rank > 20));
        keep(&[], |_| 0);
        keep(&[1, 1, 1], |_| 0);
        let grid = Cartesian::new(&[4], &[false]).unwrap();
        assert_eq!(grid.order_by_hosts(&[0, 1]), None, "hosts of other ranks");
    }
}
