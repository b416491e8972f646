//! Collectives of ranks on several hosts: their results, and how many messages travel between hosts.

use super::reduction::{in_order, merged, tree};
use super::{Actor, Op, elements, joined, outputs, unset};
use crate::collective::{
    Blocks, Collective, Division, Exchange, Hosts, Member, Message, Operands, Order, Schedule,
    allgatherv,
};

/// The host of each rank.
type Placement = &'static [u32];

/// Hosts with consecutive ranks, and others.
const PLACEMENTS: [Placement; 11] = [
    &[0, 1],
    &[0, 0, 1, 1],
    &[4, 4, 4, 2],
    &[0, 1, 1, 1, 1, 1],
    &[0, 0, 0, 1, 1, 2, 2, 2, 2],
    &[0, 1, 2, 3, 4],
    &[0, 0, 0, 0, 1, 1, 1, 1],
    &[0, 1, 0, 1],
    &[0, 1, 2, 0, 1, 2, 0],
    &[1, 0, 0, 0, 1, 1, 0, 1],
    &[0, 1, 0, 0, 0],
];
const COUNTS: [u64; 3] = [0, 1, 5];

/// The schedules of all ranks.
fn schedules(
    hosts: Placement,
    build: impl Fn(Member<'_>) -> Result<Schedule, super::super::CollectiveError>,
) -> Vec<Schedule> {
    let size = hosts.len() as u32;
    let build = |rank| {
        let hosts = Hosts::of(rank, size, |rank| hosts[rank as usize]);
        assert!(hosts.is_some(), "several hosts");
        build(Member::new(rank, size).unwrap().on(hosts.as_ref())).unwrap()
    };
    (0..size).map(build).collect()
}

/// The outputs of all ranks after a collective, for which `buffers` gives input and output.
fn played(
    hosts: Placement,
    collective: impl Fn(u32) -> Collective,
    buffers: impl Fn(u32) -> (Vec<String>, Vec<String>),
    op: Op,
) -> Vec<Vec<String>> {
    let schedules =
        schedules(hosts, |member| collective(member.rank()).schedule(member, Division::NONE));
    let actors = (0..).zip(schedules).map(|(rank, schedule)| {
        let (input, output) = buffers(rank);
        Actor::new(schedule, input, output)
    });
    outputs(&actors.collect::<Vec<_>>(), 0, op)
}

fn nothing(_: &str, _: &str) -> String {
    unreachable!("nothing is reduced")
}

/// Every placement with every count and root.
fn with_roots() -> impl Iterator<Item = (Placement, u32, u64)> {
    let roots = PLACEMENTS
        .into_iter()
        .flat_map(|hosts| (0..hosts.len() as u32).map(move |root| (hosts, root)));
    roots.flat_map(|(hosts, root)| COUNTS.map(|count| (hosts, root, count)))
}

#[test]
fn no_rank_leaves_a_barrier_before_all_have_come() {
    for hosts in PLACEMENTS {
        let schedules =
            schedules(hosts, |member| Collective::Barrier.schedule(member, Division::NONE));
        let actors = |absent: Option<usize>| {
            let nothing = super::barrier(super::member(0, 1));
            let schedules = schedules.iter().enumerate();
            let schedules = schedules
                .map(|(rank, schedule)| if Some(rank) == absent { &nothing } else { schedule });
            schedules.map(|schedule| Actor::new(schedule.clone(), vec![], vec![])).collect()
        };
        super::run(actors(None), 0, nothing, 3).unwrap();
        for absent in 0..hosts.len() {
            let why = super::run(actors(Some(absent)), 0, nothing, 7).unwrap_err();
            for rank in (0..hosts.len()).filter(|&rank| rank != absent) {
                assert!(why.contains(&format!("rank {rank} waits")), "{hosts:?} {absent}: {why}");
            }
        }
    }
}

#[test]
fn all_get_what_the_root_broadcasts() {
    for (hosts, root, count) in with_roots() {
        let buffers = |rank| {
            let data = if rank == root { elements(root, 0, count) } else { unset(count) };
            (vec![], data)
        };
        let outputs = played(hosts, |_| Collective::Bcast { root, count }, buffers, nothing);
        let expected = vec![elements(root, 0, count); hosts.len()];
        assert_eq!(outputs, expected, "{hosts:?} {root} {count}");
    }
}

/// The blocks of all ranks.
fn blocks(size: u32, count: u64) -> Vec<String> {
    (0..size).flat_map(|rank| elements(rank, 0, count)).collect()
}

/// Room for the blocks of all ranks, with that of `own` in its place if it is given.
fn room(size: u32, count: u64, own: Option<u32>) -> Vec<String> {
    let block = |rank| if Some(rank) == own { elements(rank, 0, count) } else { unset(count) };
    (0..size).flat_map(block).collect()
}

#[test]
fn the_root_gathers_and_scatters_blocks() {
    for ((hosts, root, count), in_place) in
        with_roots().flat_map(|case| [(case, false), (case, true)])
    {
        let size = hosts.len() as u32;
        let is_in_place = |rank| in_place && rank == root;
        let own = |rank| (!is_in_place(rank)).then_some(count);
        let gather =
            |rank| Collective::Gather { root, send: own(rank), receive: count, directly: false };
        let buffers = |rank| {
            let output = if rank == root { size } else { 0 };
            let own = is_in_place(rank).then_some(rank);
            (
                if own.is_none() { elements(rank, 0, count) } else { vec![] },
                room(output, count, own),
            )
        };
        let gathered = played(hosts, gather, buffers, nothing);
        assert_eq!(gathered[root as usize], blocks(size, count), "{hosts:?} {root} {count}");

        let scatter =
            |rank| Collective::Scatter { root, send: count, receive: own(rank), directly: false };
        let buffers = |rank| {
            let input = if rank == root { blocks(size, count) } else { vec![] };
            (input, if is_in_place(rank) { vec![] } else { unset(count) })
        };
        for (rank, output) in (0..).zip(played(hosts, scatter, buffers, nothing)) {
            let block = if is_in_place(rank) { vec![] } else { elements(rank, 0, count) };
            assert_eq!(output, block, "{hosts:?} {root} {count} {rank}");
        }
    }
}

#[test]
fn all_gather_all_blocks() {
    for (hosts, count) in
        PLACEMENTS.into_iter().flat_map(|hosts| COUNTS.map(|count| (hosts, count)))
    {
        let size = hosts.len() as u32;
        for (in_place, are_long) in [(false, false), (false, true), (true, false), (true, true)] {
            let send = (!in_place).then_some(count);
            let collective = |_| Collective::Allgather { send, receive: count, are_long };
            let buffers = |rank| {
                let input = if in_place { vec![] } else { elements(rank, 0, count) };
                (input, room(size, count, in_place.then_some(rank)))
            };
            let expected = vec![blocks(size, count); hosts.len()];
            let outputs = played(hosts, collective, buffers, nothing);
            assert_eq!(outputs, expected, "{hosts:?} {count} {are_long}");
        }
    }
}

#[test]
fn blocks_of_any_length_go_around_the_hosts() {
    for hosts in PLACEMENTS {
        let size = hosts.len() as u64;
        let counts: Vec<u64> = (0..size).map(|rank| rank % 3).collect();
        let displacements: Vec<i64> = (0..size as i64).rev().map(|rank| 2 * rank).collect();
        let receive = Blocks::Listed { counts: &counts, displacements: &displacements };
        let schedules = schedules(hosts, |member| {
            allgatherv(member, Some(counts[member.rank() as usize]), receive)
        });
        let actors = (0_u32..).zip(schedules).map(|(rank, schedule)| {
            Actor::new(schedule, elements(rank, 0, counts[rank as usize]), unset(2 * size))
        });
        let mut expected = unset(2 * size);
        for (rank, (&count, &first)) in (0..).zip(counts.iter().zip(&displacements)) {
            expected[first as usize..][..count as usize]
                .clone_from_slice(&elements(rank, 0, count));
        }
        let outputs = outputs(&actors.collect::<Vec<_>>(), 0, nothing);
        assert_eq!(outputs, vec![expected; hosts.len()], "{hosts:?}");
    }
}

/// An operation for operands in this order.
fn op_for(order: Order) -> Op {
    if order == Order::Free { merged } else { joined }
}

/// The results of a reduction of all ranks in this order.
fn reduced(size: u32, count: u64, order: Order) -> Vec<String> {
    let all = in_order(size, 0, count);
    if order == Order::Free { all.iter().map(|all| merged(all, "")).collect() } else { all }
}

/// Input and output of a rank with operands.
fn operands_at(rank: u32, place: Operands, count: u64, results: u64) -> (Vec<String>, Vec<String>) {
    match place {
        Operands::Input => (elements(rank, 0, count), unset(results)),
        Operands::InPlace => (vec![], elements(rank, 0, count)),
    }
}

#[test]
fn reductions_keep_the_order_of_ranks_unless_it_is_free() {
    for (hosts, root, count) in with_roots() {
        let size = hosts.len() as u32;
        for (order, in_place) in
            [(Order::Free, false), (Order::Free, true), (Order::Ranks, false), (Order::Ranks, true)]
        {
            let place_of =
                |rank| if in_place && rank == root { Operands::InPlace } else { Operands::Input };
            let reduce = |rank| Collective::Reduce { root, count, operands: place_of(rank), order };
            let buffers = |rank| {
                operands_at(rank, place_of(rank), count, if rank == root { count } else { 0 })
            };
            let outputs = played(hosts, reduce, buffers, op_for(order));
            let expected = reduced(size, count, order);
            assert_eq!(outputs[root as usize], expected, "{hosts:?} {root} {count} {order:?}");
        }
    }
}

/// The outputs of an allreduce.
fn allreduced(
    hosts: Placement,
    (count, operands): (u64, Operands),
    (order, exchange): (Order, Exchange),
    op: Op,
) -> Vec<Vec<String>> {
    let collective = |_| Collective::Allreduce { count, operands, order, exchange };
    played(hosts, collective, |rank| operands_at(rank, operands, count, count), op)
}

#[test]
fn all_get_the_same_result_of_a_reduction() {
    for (hosts, count) in
        PLACEMENTS.into_iter().flat_map(|hosts| COUNTS.map(|count| (hosts, count)))
    {
        let size = hosts.len() as u32;
        for operands in [Operands::Input, Operands::InPlace] {
            for how in [Exchange::Whole, Exchange::Halves]
                .into_iter()
                .flat_map(|exchange| [(Order::Free, exchange), (Order::Ranks, exchange)])
            {
                let outputs = allreduced(hosts, (count, operands), how, op_for(how.0));
                let expected = vec![reduced(size, count, how.0); hosts.len()];
                assert_eq!(outputs, expected, "{hosts:?} {count} {operands:?} {how:?}");
                let trees = allreduced(hosts, (count, operands), how, tree);
                assert!(trees.iter().all(|tree| *tree == trees[0]), "{hosts:?} {how:?}: {trees:?}");
            }
        }
    }
}

/// If hosts have consecutive ranks, and as many, a power of two, it does not matter how many hosts there are.
#[test]
fn equal_hosts_associate_operands_as_one_host() {
    let free = (Order::Free, Exchange::Whole);
    let [two, one] = [&[0_u32, 0, 0, 0, 1, 1, 1, 1], &[0, 1, 2, 3, 4, 5, 6, 7]]
        .map(|hosts: &'static [u32; 8]| allreduced(hosts, (1, Operands::Input), free, tree));
    assert_eq!(two, one);
    assert!(one[0][0].starts_with("(((<0.0> <1.0>) (<2.0> <3.0>)) ((<4.0>"), "{one:?}");
}

/// How often messages follow one another between hosts, at most, and how many a host sends, at most. Each message counts
/// for its round.
fn between_hosts(hosts: Placement, collective: impl Fn(u32) -> Collective) -> (usize, usize) {
    let schedules =
        schedules(hosts, |member| collective(member.rank()).schedule(member, Division::NONE));
    let crosses = |from: usize, to: u32| hosts[from] != hosts[to as usize];
    let sends = |rank: usize| {
        let messages = schedules[rank].rounds().flat_map(|round| round.messages);
        messages.filter(
            move |message| matches!(message, Message::Send { peer, .. } if crosses(rank, *peer)),
        )
    };
    let of_host = |host| (0..hosts.len()).filter(move |&rank| hosts[rank] == host);
    let most = hosts.iter().map(|&host| of_host(host).map(|rank| sends(rank).count()).sum());
    let rounds = (0..hosts.len()).map(|rank| {
        let crossing = |message: &Message| {
            matches!(message, Message::Receive { peer, .. } if crosses(rank, *peer))
        };
        schedules[rank].rounds().filter(|round| round.messages.iter().any(crossing)).count()
    });
    (rounds.max().unwrap(), most.max().unwrap())
}

#[test]
fn few_messages_travel_between_hosts() {
    let (count, operands) = (1, Operands::Input);
    let (order, exchange) = (Order::Free, Exchange::Whole);
    let allreduce = |_| Collective::Allreduce { count, operands, order, exchange };
    let allgather = |_| Collective::Allgather { send: Some(1), receive: 1, are_long: false };
    let bcast = |_| Collective::Bcast { root: 2, count };
    let reduce = |_| Collective::Reduce { root: 2, count, operands, order };
    let gather = |_| Collective::Gather { root: 1, send: Some(1), receive: 1, directly: false };
    for hosts in [&[0, 0, 1, 1][..], &[0, 0, 0, 1, 1, 1, 1, 1], &[1, 0, 1, 0, 1, 0]] {
        // One exchange, both ways at once.
        assert_eq!(between_hosts(hosts, |_| Collective::Barrier), (1, 1), "{hosts:?}");
        assert_eq!(between_hosts(hosts, allreduce), (1, 1), "{hosts:?}");
        assert_eq!(between_hosts(hosts, bcast), (1, 1), "{hosts:?}");
        assert_eq!(between_hosts(hosts, reduce), (1, 1), "{hosts:?}");
        if hosts.is_sorted() {
            assert_eq!(between_hosts(hosts, allgather), (1, 1), "{hosts:?}");
            assert_eq!(between_hosts(hosts, gather), (1, 1), "{hosts:?}");
        }
    }
    let four = &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3];
    assert_eq!(between_hosts(four, |_| Collective::Barrier), (2, 2));
    assert_eq!(between_hosts(four, allreduce), (2, 2));
    assert_eq!(between_hosts(four, allgather), (2, 3), "one host's blocks go round the end");
    assert_eq!(between_hosts(four, gather), (1, 1));
}

/// A ring of hosts enters each host once, wherever the ranks are.
#[test]
fn each_block_enters_each_host_once() {
    let allgather = |_| Collective::Allgather { send: Some(1), receive: 1, are_long: true };
    for hosts in PLACEMENTS {
        let (_, sent) = between_hosts(hosts, allgather);
        assert_eq!(sent, hosts.len() - 1, "{hosts:?}");
    }
}

/// Where all ranks take part in the exchange between hosts, each host sends as much as one rank for all would.
#[test]
fn halves_divide_the_results_of_a_host_first() {
    for hosts in [&[0, 0, 1, 1][..], &[0, 1, 0, 1], &[1, 1, 1, 1, 0, 0, 0, 0]] {
        let (order, exchange) = (Order::Free, Exchange::Halves);
        let collective =
            Collective::Allreduce { count: 8, operands: Operands::Input, order, exchange };
        let schedules = schedules(hosts, |member| collective.schedule(member, Division::NONE));
        let elements: u64 = (0..)
            .zip(&schedules)
            .filter(|(rank, _)| hosts[*rank] == 0)
            .flat_map(|(rank, schedule)| {
                let messages = schedule.rounds().flat_map(|round| round.messages);
                messages.map(move |message| match *message {
                    Message::Send { peer, from } if hosts[peer as usize] != hosts[rank] => {
                        from.count().unwrap()
                    }
                    _ => 0,
                })
            })
            .sum();
        assert_eq!(elements, 8, "{hosts:?}");
    }
}

#[test]
fn positions_count_ranks_host_by_host() {
    let hosts = Hosts::of(4, 6, |rank| [9, 3, 9, 5, 3, 9][rank as usize]).unwrap();
    assert_eq!((hosts.count(), hosts.own(), hosts.are_consecutive()), (3, 1, false));
    let ranks: Vec<_> = (0..6).map(|position| hosts.rank_at(position)).collect();
    assert_eq!(ranks, [0, 2, 5, 1, 4, 3]);
    let positions: Vec<_> = (0..6).map(|rank| hosts.position(rank)).collect();
    assert_eq!(positions, [0, 3, 1, 5, 4, 2]);
    assert_eq!([0, 2, 3, 5].map(|position| hosts.host_at(position)), [0, 0, 1, 2]);
}
