//! Calls between ranks of two groups: ranks and statuses are those of the other group. Every job runs under a watchdog.

use mpj::{
    ANY_SOURCE, ANY_TAG, Error, ErrorClass, InterCommunicator, Op, PROC_NULL, Partition,
    RemoteLeader,
};
use mpj::{Root, Strided, StridedMut, World, collective};

use transport_lapi::bootstrap::monotonic_nanos;

use super::forms::forms;
use crate::job;

/// Runs `body` on five ranks: one group has world ranks 4, 2 and 0, the other 3 and 1, in this order.
#[track_caller]
fn job(body: impl Fn(&World, &InterCommunicator) + Send + Sync + 'static) {
    job::job(5, move |world| {
        let is_odd = world.rank() % 2 == 1;
        let half = world.split(is_odd.into(), -(world.rank() as i32)).unwrap();
        let leader = if is_odd { 0 } else { 1 };
        let other = RemoteLeader { peers: world, leader, tag: 0 };
        let between = half.create_inter(half.size() - 1, Some(other)).unwrap();
        body(world, &between);
    });
}

/// Returns the world rank of a rank of the other group.
fn in_the_world(between: &InterCommunicator, rank: usize) -> usize {
    between.remote_group().world_rank(rank).unwrap()
}

#[test]
fn messages_go_to_the_other_group() {
    job(|world, between| {
        let others = 0..between.remote_size();
        // A receive of the world gets no message of the groups, even with the same tag.
        let in_world = world.irecv(vec![0], ANY_SOURCE, ANY_TAG).unwrap();
        let mut sends: Vec<_> = others
            .clone()
            .map(|rank| between.isend(vec![world.rank(), rank], rank, 3).unwrap())
            .collect();
        for rank in others.clone().rev() {
            assert_eq!(between.probe(rank, 3).unwrap().source, rank);
            let mut got = [9; 2];
            let status = between.recv(&mut got, rank, ANY_TAG).unwrap();
            assert_eq!((status.source, status.tag), (rank, 3));
            assert_eq!(got, [in_the_world(between, rank), between.rank()]);
        }
        mpj::wait_all(&mut sends).unwrap();
        assert_eq!(between.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
        world.send(&[world.rank()], (world.rank() + 1) % 5, 3).unwrap();
        assert_eq!(in_world.wait().unwrap().0, [(world.rank() + 4) % 5]);
    });
}

#[test]
fn a_message_from_any_rank_names_its_sender() {
    job(|world, between| {
        // All ranks of the larger group send to rank 1 of the smaller one, which answers.
        if between.size() == 3 {
            between.ssend(&[world.rank()], 1, between.rank() as i32).unwrap();
            assert_eq!(between.recv_vec::<usize>(1, 9).unwrap().0, [between.rank()]);
        } else if between.rank() == 1 {
            for _ in 0..3 {
                let message = between.mprobe(ANY_SOURCE, ANY_TAG).unwrap();
                let (data, status) = message.recv_vec::<usize>().unwrap();
                assert_eq!(data, [in_the_world(between, status.source)]);
                assert_eq!(status.tag, status.source as i32);
                between.send(&[status.source], status.source, 9).unwrap();
            }
        }
        between.barrier().unwrap();
    });
}

#[test]
fn what_is_no_rank_of_the_other_group_is_refused() {
    job(|_, between| {
        let beyond = between.remote_size();
        let refused = between.send(&[1], beyond, 0).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Rank);
        assert!(refused.to_string().contains(&format!("ranks 0 to {}", beyond - 1)), "{refused}");
        assert!(between.irecv(vec![0], beyond, 0).is_err());
        assert!(between.send_init(vec![0], usize::MAX, 0).is_err());
        assert!(between.sendrecv(&[1], 0, -1, &mut [0], 0, 0).is_err());
        let status = between.sendrecv(&1, PROC_NULL, 0, &mut 2, PROC_NULL, 0).unwrap();
        assert_eq!((status.source, status.bytes), (PROC_NULL, 0));
        // A rank whose last call had an error would not wait for the others.
        between.barrier().unwrap();
    });
}

#[test]
fn collective_calls_that_are_started_end_in_any_order() {
    job(|world, between| {
        let (mine, size, others) = (world.rank() as i64, between.size(), between.remote_size());
        // World rank 2 is the root.
        let root = match between.size() {
            3 if between.rank() == 1 => Root::Here,
            3 => Root::Beside,
            _ => Root::There(1),
        };
        let word = between.start(collective::broadcast(vec![mine; 2], root)).unwrap();
        let sum = between.start(collective::all_reduce_into(vec![mine], vec![0], Op::Sum)).unwrap();
        let all = between.start(collective::all_gather(vec![mine], vec![9; others])).unwrap();
        let parts =
            between.start(collective::all_to_all(vec![mine; others], vec![9; others])).unwrap();
        let gathered = between.start(collective::gather(vec![mine], vec![9; 2], root)).unwrap();
        let part = between.start(collective::scatter(vec![5, 6], vec![9], root)).unwrap();
        let most = between.start(collective::reduce(vec![mine], vec![9], Op::Max, root)).unwrap();
        let counts = if size == 3 { vec![2; 3] } else { vec![3; 2] };
        let share = between.start(collective::reduce_scatter(
            vec![1; 6],
            vec![0; counts[0]],
            &counts,
            Op::Sum,
        ));
        let barrier = between.start(collective::barrier()).unwrap();

        let theirs: Vec<_> = (0..others).map(|rank| in_the_world(between, rank) as i64).collect();
        assert_eq!(share.unwrap().wait().unwrap().0, vec![others as i64; counts[0]]);
        assert_eq!(most.wait().unwrap().0, [if root == Root::Here { 3 } else { 9 }]);
        assert_eq!(part.wait().unwrap().0, [if size == 3 { 9 } else { 5 + between.rank() as i64 }]);
        assert_eq!(gathered.wait().unwrap().0, if root == Root::Here { [3, 1] } else { [9, 9] });
        assert_eq!(parts.wait().unwrap().0, theirs);
        assert_eq!(all.wait().unwrap().0, theirs);
        assert_eq!(sum.wait().unwrap().0, [theirs.iter().sum::<i64>()]);
        assert_eq!(word.wait().unwrap().0, [if size == 3 { mine } else { 2 }; 2]);
        barrier.wait().unwrap();
    });
}

#[test]
fn blocks_are_those_of_the_ranks_of_the_other_group() {
    job(|world, between| {
        let (mine, others) = (world.rank(), between.remote_size());
        let theirs: Vec<_> = (0..others).map(|rank| in_the_world(between, rank)).collect();
        // Each rank sends as many numbers as its world rank; the last block comes first.
        let lens: Vec<_> = theirs.iter().rev().copied().collect();
        let starts = [0, lens[0], lens[..2].iter().sum()];
        let blocks =
            Partition::at((0..others).map(|rank| (starts[others - 1 - rank], theirs[rank])));
        let expected: Vec<_> = lens.iter().flat_map(|&rank| vec![rank; rank]).collect();
        let (data, room) = (vec![mine; mine], vec![9; blocks.end()]);

        let mut all = room.clone();
        between.run(collective::all_gatherv(&data, &mut all, &blocks)).unwrap();
        assert_eq!(all, expected);
        let started =
            between.start(collective::all_gatherv(data.clone(), room.clone(), &blocks)).unwrap();
        assert_eq!(started.wait().unwrap().0, expected);
        // Every rank of the other group gets all data of this rank.
        let sent = Partition::at(vec![(0, mine); others]);
        let mut parts = room.clone();
        between.run(collective::all_to_allv(&data, &sent, &mut parts, &blocks)).unwrap();
        assert_eq!(parts, expected);
        // World rank 4 is the root.
        let root = match (between.size(), between.rank()) {
            (3, 0) => Root::Here,
            (3, _) => Root::Beside,
            _ => Root::There(0),
        };
        let mut gathered = room.clone();
        between.run(collective::gatherv(&data, &mut gathered, &blocks, root)).unwrap();
        assert_eq!(gathered, if root == Root::Here { &*expected } else { &*room });
        let mut again = vec![9; mine];
        between.run(collective::scatterv(&gathered, &blocks, &mut again, root)).unwrap();
        assert_eq!(again, vec![if between.size() == 3 { 9 } else { mine }; mine]);
    });
}

/// Returns the root of calls, which is world rank 2.
fn root_among(between: &InterCommunicator) -> Root {
    match (between.size(), between.rank()) {
        (3, 1) => Root::Here,
        (3, _) => Root::Beside,
        _ => Root::There(1),
    }
}

#[test]
fn calls_with_equal_parts_are_the_same_in_every_form() {
    job(|world, between| {
        let (others, root) = (between.remote_size(), root_among(between));
        let at_the_root = if root == Root::Here { 2 * others } else { 0 };
        let all = 2 * others;
        forms!(world, between by between, 0, 2, |_none, into| collective::broadcast(into, root));
        forms!(world, between by between, 2, at_the_root, |data, into| {
            collective::gather(data, into, root)
        });
        forms!(world, between by between, at_the_root, 2, |data, into| {
            collective::scatter(data, into, root)
        });
        forms!(world, between by between, 2, all, |data, into| collective::all_gather(data, into));
        forms!(world, between by between, all, all, |data, into| {
            collective::all_to_all(data, into)
        });
    });
}

#[test]
fn calls_with_listed_parts_are_the_same_in_every_form() {
    job(|world, between| {
        let (own, others, root) = (between.rank(), between.remote_size(), root_among(between));
        // Rank r of a group gives r + 1 numbers. The last block comes first, and there is a gap after each.
        let parts = Partition::at((0..others).map(|rank| (8 - 4 * rank, rank + 1)));
        let (mine, room) = (own + 1, 12);
        forms!(world, between by between, mine, room, |data, into| {
            collective::gatherv(data, into, &parts, root)
        });
        forms!(world, between by between, room, mine, |data, into| {
            collective::scatterv(data, &parts, into, root)
        });
        forms!(world, between by between, mine, room, |data, into| {
            collective::all_gatherv(data, into, &parts)
        });
        let sent = Partition::packed((0..others).map(|rank| own + rank));
        let received = Partition::at((0..others).map(|rank| (4 * (others - 1 - rank), own + rank)));
        forms!(world, between by between, sent.end(), room, |data, into| {
            collective::all_to_allv(data, &sent, into, &received)
        });
    });
}

#[test]
fn reductions_are_the_same_in_every_form() {
    job(|world, between| {
        let root = root_among(between);
        let counts: &[usize] = if between.size() == 3 { &[2, 0, 4] } else { &[1, 5] };
        let (mine, part) = (counts[between.rank()], 6 / between.size());
        forms!(world, between by between, 3, 3, |data, into| {
            collective::reduce(data, into, Op::Sum, root)
        });
        forms!(world, between by between, 3, 3, |data, into| {
            collective::all_reduce_into(data, into, Op::Max)
        });
        forms!(world, between by between, 6, mine, |data, into| {
            collective::reduce_scatter(data, into, counts, Op::Sum)
        });
        forms!(world, between by between, 6, part, |data, into| {
            collective::reduce_scatter_block(data, into, Op::Sum)
        });
    });
}

/// No rank leaves before all ranks of both groups have called the barrier.
#[test]
fn barriers_hold_both_groups_in_every_form() {
    job(|world, between| {
        let mut kept = between.persistent(collective::barrier()).unwrap();
        let (mut come, mut left) = (Vec::new(), Vec::new());
        for form in [0, 1, 2].repeat(20) {
            come.push(monotonic_nanos());
            let barrier = collective::barrier();
            let outcome = match form {
                0 => kept.start().and_then(|()| kept.wait()).map(drop),
                1 => between.start(barrier).and_then(|started| started.wait()).map(drop),
                _ => world.scope(|scope| scope.between(between).start(barrier)?.wait()).map(drop),
            };
            outcome.unwrap();
            left.push(monotonic_nanos());
        }
        // All ranks have one clock, also those on hosts out of namespaces.
        world.all_reduce(&mut come, Op::Max).unwrap();
        world.all_reduce(&mut left, Op::Min).unwrap();
        assert!(come.iter().zip(&left).all(|(come, left)| come <= left), "{come:?} {left:?}");
    });
}

/// Returns a column for each rank of the other group.
fn columns(matrix: &[usize], others: usize) -> Result<Vec<Strided<'_, usize>>, Error> {
    (0..others).map(|column| mpj::column(matrix, others, column)).collect()
}

/// Returns room for four elements from each rank of the other group: a row, every second element backwards, the middle
/// of a matrix.
fn shapes(memory: &mut [usize], others: usize) -> Result<Vec<StridedMut<'_, usize>>, Error> {
    let (row, rest) = memory.split_at_mut(4);
    let (second, matrix) = rest.split_at_mut(8);
    let all = [
        StridedMut::new(row, 0, 1, 4)?,
        StridedMut::new(second, 7, -2, 4)?,
        mpj::block_mut(matrix, 4, .., 1..3)?,
    ];
    Ok(all.into_iter().take(others).collect())
}

#[test]
fn an_exchange_of_shapes_is_the_same_in_every_form() {
    job(|world, between| {
        let others = between.remote_size();
        let numbers = |step: usize| -> Vec<_> {
            (0..4 * others).map(|index| 1000 * step + 100 * world.rank() + index).collect()
        };
        let kept = between.persistent(collective::all_to_allw_owned(
            numbers(0),
            |data| columns(data, others),
            vec![9; 20],
            |into| shapes(into, others),
        ));
        let mut kept = kept.unwrap();
        for step in 1..4 {
            let mut expected = vec![9; 20];
            let given = numbers(step);
            let data = columns(&given, others).unwrap();
            between
                .run(collective::all_to_allw(&data, &mut shapes(&mut expected, others).unwrap()))
                .unwrap();
            let (first, size) = (1000 * step + 100 * in_the_world(between, 0), between.size());
            let of_first: Vec<_> = (0..4).map(|row| first + between.rank() + row * size).collect();
            assert_eq!(expected[..4], of_first);

            kept.data_mut().unwrap().copy_from_slice(&given);
            kept.start().unwrap();
            let owning = between.start(collective::all_to_allw_owned(
                given.clone(),
                |data| columns(data, others),
                vec![9; 20],
                |into| shapes(into, others),
            ));
            let mut lent = vec![9; 20];
            let mut views = shapes(&mut lent, others).unwrap();
            let scoped = world.scope(|scope| {
                scope.between(between).start(collective::all_to_allw(&data, &mut views)).map(drop)
            });
            scoped.unwrap();
            kept.wait().unwrap();
            assert_eq!(owning.unwrap().wait().unwrap().0, expected);
            assert_eq!((&lent[..], kept.buffer().unwrap()), (&expected[..], &expected[..]));
        }
    });
}

#[test]
fn calls_that_fail_leave_the_groups_usable() {
    job(|world, between| {
        let class = |outcome: Result<(), Error>| outcome.unwrap_err().class();
        // A root that is not in the other group is refused, and the call does not count.
        let nobody = Root::There(between.remote_size());
        let mut word = 7;
        let refused = world.scope(|scope| {
            scope.between(between).start(collective::broadcast(&mut word, nobody)).map(drop)
        });
        assert_eq!(class(refused), ErrorClass::Root);
        let refused = between.persistent(collective::gather(vec![1], vec![0; 2], nobody));
        assert_eq!(class(refused.map(drop)), ErrorClass::Root);
        let blocks = Partition::at(vec![(0, 1); between.remote_size()]);
        assert_eq!(
            class(between.run(collective::gatherv(&[1], &mut [0], &blocks, Root::Here))),
            ErrorClass::Arg
        );
        let refused = between.persistent(collective::all_gather(vec![1], vec![0; 7]));
        assert_eq!(class(refused.map(drop)), ErrorClass::Count);

        // The ranks of the smaller group have too little room.
        let (root, is_short) = (root_among(between), between.size() == 2);
        let len = if is_short { 1 } else { 3 };
        let mut kept = between.persistent(collective::broadcast(vec![0; len], root)).unwrap();
        for _ in 0..2 {
            kept.start().unwrap();
            match kept.wait() {
                Err(error) => assert_eq!((error.class(), is_short), (ErrorClass::Truncate, true)),
                Ok(_) => assert!(!is_short),
            }
        }
        let mut words = vec![0; len];
        let outcome = world.scope(|scope| {
            scope.between(between).start(collective::broadcast(&mut words, root))?.wait().map(drop)
        });
        assert_eq!(outcome.is_err(), is_short);

        let mut theirs = vec![9; between.remote_size()];
        between.run(collective::all_gather(&between.rank(), &mut theirs)).unwrap();
        assert!(theirs.iter().copied().eq(0..between.remote_size()));
        // A call that is dropped while it is under way continues, since the other ranks need it.
        let mut dropped =
            between.persistent(collective::all_gather(vec![1], theirs.clone())).unwrap();
        dropped.start().unwrap();
        drop(dropped);
        between.barrier().unwrap();
    });
}
