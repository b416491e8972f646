//! Collective calls among neighbours: random graphs and all forms of the calls, against what a list of edges says.
//!
//! Every job runs under a watchdog.

use job::{job, job_with};
use mpj::tuning::{BackendChoice, Options};
use mpj::{Communicator, Edge, Error, ErrorClass, Partition, collective};
use proptest::prelude::*;

mod job;

/// The edges that each rank gives: from which rank to which.
type Graph = Vec<Vec<(usize, usize)>>;

fn graphs() -> impl Strategy<Value = Graph> {
    (1..=5_usize).prop_flat_map(|ranks| {
        let edges = prop::collection::vec((0..ranks, 0..ranks), 0..=4);
        prop::collection::vec(edges, ranks)
    })
}

/// The edges of a graph in the order of the ranks that give them, each with how many equal ones come before it.
fn numbered(graph: &Graph) -> Vec<(usize, usize, usize)> {
    let all: Vec<_> = graph.iter().flatten().copied().collect();
    let before = |at: usize| all[..at].iter().filter(|edge| **edge == all[at]).count();
    all.iter().enumerate().map(|(at, &(from, to))| (from, to, before(at))).collect()
}

/// What travels along an edge if every edge carries one number.
fn parcel((from, to, turn): (usize, usize, usize)) -> usize {
    100 * from + 10 * to + turn
}

/// What travels along an edge if edges carry different numbers of numbers.
fn parcels(edge: (usize, usize, usize)) -> Vec<usize> {
    vec![parcel(edge); (edge.0 + 2 * edge.1 + edge.2) % 3]
}

/// Runs a call in all forms on the same buffers, and compares its results.
macro_rules! all_forms {
    ($on:expr, $call:path, $data:expr, [$($before:expr)?], $expected:expr, [$($after:expr)?]) => {
        let (on, data, expected): (&Communicator, &Vec<usize>, &Vec<usize>) = ($on, $data, $expected);
        let fresh = || vec![usize::MAX; expected.len()];
        let mut into = fresh();
        on.run($call(data, $($before,)? &mut into $(, $after)?)).unwrap();
        assert_eq!(&into, expected);
        into = fresh();
        on.scope(|scope| scope.start($call(data, $($before,)? &mut into $(, $after)?)).map(drop)).unwrap();
        assert_eq!(&into, expected);
        let started = on.start($call(data.clone(), $($before,)? fresh() $(, $after)?)).unwrap();
        assert_eq!(&started.wait().unwrap().0, expected);
        let mut kept = on.persistent($call(data.clone(), $($before,)? fresh() $(, $after)?)).unwrap();
        for _ in 0..2 {
            kept.buffer_mut().unwrap().fill(usize::MAX);
            kept.start().unwrap();
            kept.wait().unwrap();
            assert_eq!(kept.buffer().unwrap(), expected);
        }
    };
}

/// Makes all calls on a communicator with these neighbours.
fn exchange(on: &Communicator, edges: &[(usize, usize, usize)]) {
    let own = on.rank();
    let sources: Vec<_> = edges.iter().copied().filter(|edge| edge.1 == own).collect();
    let destinations: Vec<_> = edges.iter().copied().filter(|edge| edge.0 == own).collect();
    let each = |edges: &[_]| edges.iter().copied().map(parcel).collect::<Vec<_>>();
    let lists = |edges: &[_]| edges.iter().copied().map(parcels).collect::<Vec<_>>();
    let blocks = |lists: &[Vec<usize>]| Partition::packed(lists.iter().map(Vec::len));

    let expected = sources.iter().flat_map(|edge| [edge.0, 7]).collect();
    all_forms!(on, collective::neighbour_all_gather, &vec![own, 7], [], &expected, []);

    let lengths = Partition::packed(sources.iter().map(|edge| edge.0 % 3));
    let expected = sources.iter().flat_map(|edge| vec![edge.0; edge.0 % 3]).collect();
    let mine = vec![own; own % 3];
    all_forms!(on, collective::neighbour_all_gatherv, &mine, [], &expected, [&lengths]);

    let (sent, expected) = (each(&destinations), each(&sources));
    all_forms!(on, collective::neighbour_all_to_all, &sent, [], &expected, []);

    let (sent, received) = (lists(&destinations), lists(&sources));
    let (from, to) = (blocks(&sent), blocks(&received));
    let (data, expected) = (sent.concat(), received.concat());
    all_forms!(on, collective::neighbour_all_to_allv, &data, [&from], &expected, [&to]);

    let mut into: Vec<_> = received.iter().map(|list| vec![0; list.len()]).collect();
    on.neighbour_all_to_allw(&sent, &mut into).unwrap();
    assert_eq!(into, received);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn neighbours_in_any_graph_get_what_was_sent_to_them(graph in graphs(), eager: bool) {
        let backend = if eager { BackendChoice::Eager } else { BackendChoice::Rendezvous };
        let ranks = graph.len();
        job_with(&Options::with_backend(backend), ranks, move |world| {
            let edges = numbered(&graph);
            let given = graph[world.rank()].iter().map(|&(from, to)| Edge::new(from, to));
            let distributed = world.create_distributed_graph(given).unwrap();
            let own = world.rank();
            let into = edges.iter().filter(|edge| edge.1 == own).map(|edge| edge.0);
            let out = edges.iter().filter(|edge| edge.0 == own).map(|edge| edge.1);
            assert!(distributed.sources().into_iter().eq(into));
            assert!(distributed.destinations().into_iter().eq(out));
            exchange(&distributed, &edges);
            let (sources, destinations) = (distributed.sources(), distributed.destinations());
            exchange(&world.create_adjacent(&sources, &destinations).unwrap().dup().unwrap(), &edges);
        });
    }
}

#[test]
fn ghost_cells_travel_by_one_call() {
    job(4, |world| {
        let grid = world.create_cartesian(&[2, 2], &[true, false], false).unwrap().unwrap();
        let cell = |rank: usize| 10 * rank;
        let mut around = [99; 4];
        grid.neighbour_all_to_all(&[0, 1, 2, 3].map(|side| cell(grid.rank()) + side), &mut around)
            .unwrap();
        let from = |side: usize, of: Option<usize>| of.map_or(99, |rank| cell(rank) + (side ^ 1));
        let expected = grid.neighbours().into_iter().enumerate().map(|(side, of)| from(side, of));
        assert!(around.into_iter().eq(expected), "{around:?}");
    });
}

#[test]
fn what_has_no_neighbours_is_refused() {
    job(2, |world| {
        let class = |error: Error| error.class();
        let error = world.neighbour_all_gather(&1, &mut [0; 2]).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Topology, "{error}");
        let error = world.create_adjacent(&[2], &[]).err().expect("there is no rank 2");
        assert!(error.to_string().contains('2'), "{error}");
        let refused = [world.create_graph(&[[1], [5]]).err(), world.create_graph(&[[0]; 3]).err()];
        assert_eq!(
            refused.map(|error| error.map(class)),
            [ErrorClass::Rank, ErrorClass::Dims].map(Some)
        );
        let heavy = Edge::new(0, 1).weighing(u32::MAX);
        assert_eq!(world.create_distributed_graph([heavy]).err().map(class), Some(ErrorClass::Arg));
        // All ranks have refused, so the next call meets its like.
        let ring = world.create_cartesian(&[2], &[true], false).unwrap().unwrap();
        let error = ring.neighbour_all_to_all(&[1, 2], &mut [0; 3]).unwrap_err();
        assert!(matches!(error, Error::Division { elements: 3, ranks: 2 }), "{error}");
    });
}
