//! The graph of who waits for whom: shortest cycles, and longest chains if there is no cycle. It knows no messages.

use std::collections::VecDeque;

/// For each node, in ascending order, the nodes that it waits for.
pub(super) type Edges = [Vec<usize>];

/// The shortest cycle, beginning at its smallest node; of several, the one with the smallest node.
pub(super) fn shortest_cycle(edges: &Edges) -> Option<Vec<usize>> {
    let mut best: Option<Vec<usize>> = None;
    for start in 0..edges.len() {
        let shorter_than = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(cycle) = cycle_from(edges, start, shorter_than) {
            best = Some(cycle);
        }
    }
    best
}

/// The shortest cycle through `start` and larger nodes, if it has fewer than `shorter_than` nodes. Every cycle is found
/// from its smallest node.
fn cycle_from(edges: &Edges, start: usize, shorter_than: usize) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; edges.len()];
    let mut queue = VecDeque::from([(start, 1)]);
    while let Some((node, length)) = queue.pop_front() {
        if length >= shorter_than {
            return None;
        }
        for &next in edges[node].iter().filter(|&&next| next >= start) {
            if next == start {
                return Some(path_to(node, start, &before));
            }
            if before[next].is_none() {
                before[next] = Some(node);
                queue.push_back((next, length + 1));
            }
        }
    }
    None
}

fn path_to(end: usize, start: usize, before: &[Option<usize>]) -> Vec<usize> {
    let step = |&node: &usize| if node == start { None } else { before[node] };
    let mut path: Vec<usize> = std::iter::successors(Some(end), step).collect();
    path.reverse();
    path
}

/// The longest chain to each node that waits for nobody and is waited for; longer ones first. The graph must have no
/// cycle.
pub(super) fn longest_chains(edges: &Edges) -> Vec<Vec<usize>> {
    let mut waiters = vec![0_usize; edges.len()];
    edges.iter().flatten().for_each(|&node| waiters[node] += 1);
    let mut ready: VecDeque<usize> = (0..edges.len()).filter(|&node| waiters[node] == 0).collect();
    let mut longest = vec![1_usize; edges.len()];
    let mut before: Vec<Option<usize>> = vec![None; edges.len()];
    while let Some(node) = ready.pop_front() {
        for &next in &edges[node] {
            if longest[next] < longest[node] + 1 {
                longest[next] = longest[node] + 1;
                before[next] = Some(node);
            }
            waiters[next] -= 1;
            if waiters[next] == 0 {
                ready.push_back(next);
            }
        }
    }
    let ends = (0..edges.len()).filter(|&node| edges[node].is_empty() && before[node].is_some());
    let mut chains: Vec<_> = ends.map(|end| chain_to(end, &before)).collect();
    chains.sort_by_key(|chain| std::cmp::Reverse(chain.len()));
    chains
}

fn chain_to(end: usize, before: &[Option<usize>]) -> Vec<usize> {
    let mut chain: Vec<usize> = std::iter::successors(Some(end), |&node| before[node]).collect();
    chain.reverse();
    chain
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A graph of `nodes` nodes in which bit `from * nodes + to` is an edge.
    fn graph(nodes: usize, bits: u64) -> Vec<Vec<usize>> {
        let to = |from: usize| (0..nodes).filter(move |to| bits >> (from * nodes + to) & 1 == 1);
        (0..nodes).map(|from| to(from).collect()).collect()
    }

    /// The length of the shortest walk from each node back to itself, by trying every length.
    fn shortest_by_walking(edges: &Edges) -> Option<usize> {
        let step = |from: &Vec<bool>| -> Vec<bool> {
            (0..edges.len())
                .map(|to| (0..edges.len()).any(|node| from[node] && edges[node].contains(&to)))
                .collect()
        };
        let back = |start: usize| {
            let mut reached: Vec<bool> = (0..edges.len()).map(|node| node == start).collect();
            (1..=edges.len()).find(|_| {
                reached = step(&reached);
                reached[start]
            })
        };
        (0..edges.len()).filter_map(back).min()
    }

    /// The longest chain that ends at a node, by following every edge backwards.
    fn longest_by_recursion(edges: &Edges, end: usize) -> usize {
        let before = (0..edges.len()).filter(|&node| edges[node].contains(&end));
        1 + before.map(|node| longest_by_recursion(edges, node)).max().unwrap_or(0)
    }

    fn is_path(edges: &Edges, path: &[usize]) -> bool {
        path.windows(2).all(|pair| edges[pair[0]].contains(&pair[1]))
    }

    proptest! {
        #[test]
        fn the_cycle_is_one_and_none_is_shorter(nodes in 1..=7_usize, bits: u64, thin: u64) {
            let edges = graph(nodes, bits & thin);
            let cycle = shortest_cycle(&edges);
            prop_assert_eq!(cycle.as_ref().map(Vec::len), shortest_by_walking(&edges));
            if let Some(cycle) = cycle {
                prop_assert!(is_path(&edges, &cycle));
                prop_assert!(edges[cycle[cycle.len() - 1]].contains(&cycle[0]));
                prop_assert_eq!(cycle.iter().min(), cycle.first());
            }
        }

        #[test]
        fn chains_are_the_longest_to_each_end(nodes in 1..=8_usize, bits: u64, thin: u64) {
            let mut edges = graph(nodes, bits & thin);
            // Only edges to larger nodes: without cycles.
            edges.iter_mut().enumerate().for_each(|(from, to)| to.retain(|&to| to > from));
            let chains = longest_chains(&edges);
            let waited_for = |end: &usize| edges.iter().any(|to| to.contains(end));
            let ends = (0..nodes).filter(|&end| edges[end].is_empty()).filter(waited_for);
            prop_assert_eq!(chains.len(), ends.count());
            for chain in chains {
                prop_assert!(is_path(&edges, &chain));
                let end = chain[chain.len() - 1];
                prop_assert!(edges[end].is_empty());
                prop_assert_eq!(chain.len(), longest_by_recursion(&edges, end));
            }
        }
    }

    #[test]
    fn the_largest_graphs_are_quick() {
        let all: Vec<Vec<usize>> = vec![(0..256).collect(); 256];
        assert_eq!(shortest_cycle(&all), Some(vec![0]));
        let upwards: Vec<Vec<usize>> = (0..256).map(|from| (from + 1..256).collect()).collect();
        assert_eq!(shortest_cycle(&upwards), None);
        assert_eq!(longest_chains(&upwards), [(0..256).collect::<Vec<_>>()]);
    }
}
