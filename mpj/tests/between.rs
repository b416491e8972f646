//! What ranks of two groups send each other: ranks and statuses are those of the other group. Every job runs under a
//! watchdog.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mpj::{ANY_SOURCE, ANY_TAG, Blocks, ErrorClass, InterCommunicator, Op, OtherGroup, PROC_NULL};
use mpj::{Root, World, local};

/// How long a job may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `body` on five ranks: world ranks 4, 2 and 0 face 3 and 1, in this order.
#[track_caller]
fn job(body: impl Fn(&World, &InterCommunicator) + Send + Sync + 'static) {
    let (done, outcome) = mpsc::channel();
    let rank = move |world: World| {
        let is_odd = world.rank() % 2 == 1;
        let half = world.split(is_odd.into(), -(world.rank() as i32)).unwrap();
        let leader = if is_odd { 0 } else { 1 };
        let other = OtherGroup { peers: &world, leader, tag: 0 };
        let between = half.create_inter(half.size() - 1, Some(other)).unwrap();
        body(&world, &between);
    };
    // Nobody listens any more after the limit.
    thread::spawn(move || done.send(local::run(5, rank)));
    outcome.recv_timeout(LIMIT).expect("the job ends").unwrap_or_else(|error| panic!("{error}"));
}

/// Which rank of the world a rank of the other group is.
fn in_the_world(between: &InterCommunicator, rank: usize) -> usize {
    between.remote_group().world_rank(rank).unwrap()
}

#[test]
fn messages_go_to_the_other_group() {
    job(|world, between| {
        let others = 0..between.remote_size();
        // Under the same tag, what the world receives is no business of the groups.
        let in_world = world.irecv(vec![0], ANY_SOURCE, ANY_TAG).unwrap();
        let sends: Vec<_> = others
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
        mpj::wait_all(sends).unwrap();
        assert_eq!(between.iprobe(ANY_SOURCE, ANY_TAG).unwrap(), None);
        world.send(&[world.rank()], (world.rank() + 1) % 5, 3).unwrap();
        assert_eq!(in_world.wait().unwrap().0, [(world.rank() + 4) % 5]);
    });
}

#[test]
fn a_message_from_any_rank_names_its_sender() {
    job(|world, between| {
        // All of the larger group write to rank 1 of the smaller one, which answers.
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
        let word = between.ibroadcast(vec![mine; 2], root).unwrap();
        let sum = between.iall_reduce(vec![mine], vec![0], Op::Sum).unwrap();
        let all = between.iall_gather(vec![mine], vec![9; others]).unwrap();
        let parts = between.iall_to_all(vec![mine; others], vec![9; others]).unwrap();
        let gathered = between.igather(vec![mine], vec![9; 2], root).unwrap();
        let part = between.iscatter(vec![5, 6], vec![9], root).unwrap();
        let most = between.ireduce(vec![mine], vec![9], Op::Max, root).unwrap();
        let counts = if size == 3 { vec![2; 3] } else { vec![3; 2] };
        let share = between.ireduce_scatter(vec![1; 6], vec![0; counts[0]], &counts, Op::Sum);
        let barrier = between.ibarrier().unwrap();

        let theirs: Vec<_> = (0..others).map(|rank| in_the_world(between, rank) as i64).collect();
        assert_eq!(share.unwrap().wait().unwrap(), vec![others as i64; counts[0]]);
        assert_eq!(most.wait().unwrap(), [if root == Root::Here { 3 } else { 9 }]);
        assert_eq!(part.wait().unwrap(), [if size == 3 { 9 } else { 5 + between.rank() as i64 }]);
        assert_eq!(gathered.wait().unwrap(), if root == Root::Here { [3, 1] } else { [9, 9] });
        assert_eq!(parts.wait().unwrap(), theirs);
        assert_eq!(all.wait().unwrap(), theirs);
        assert_eq!(sum.wait().unwrap(), [theirs.iter().sum::<i64>()]);
        assert_eq!(word.wait().unwrap(), [if size == 3 { mine } else { 2 }; 2]);
        barrier.wait().unwrap();
    });
}

#[test]
fn blocks_are_those_of_the_ranks_of_the_other_group() {
    job(|world, between| {
        let (mine, others) = (world.rank(), between.remote_size());
        let theirs: Vec<_> = (0..others).map(|rank| in_the_world(between, rank)).collect();
        // A rank gives as many numbers as its rank in the world says; the last block comes first.
        let lens: Vec<_> = theirs.iter().rev().copied().collect();
        let starts = [0, lens[0], lens[..2].iter().sum()];
        let blocks = Blocks::at((0..others).map(|rank| (starts[others - 1 - rank], theirs[rank])));
        let expected: Vec<_> = lens.iter().flat_map(|&rank| vec![rank; rank]).collect();
        let (data, room) = (vec![mine; mine], vec![9; blocks.end()]);

        let mut all = room.clone();
        between.all_gatherv(&data, &mut all, &blocks).unwrap();
        assert_eq!(all, expected);
        let started = between.iall_gatherv(data.clone(), room.clone(), &blocks).unwrap();
        assert_eq!(started.wait().unwrap(), expected);
        // Every rank of the other group gets all that this one has.
        let sent = Blocks::at(vec![(0, mine); others]);
        let mut parts = room.clone();
        between.all_to_allv(&data, &sent, &mut parts, &blocks).unwrap();
        assert_eq!(parts, expected);
        // World rank 4 is the root.
        let root = match (between.size(), between.rank()) {
            (3, 0) => Root::Here,
            (3, _) => Root::Beside,
            _ => Root::There(0),
        };
        let mut gathered = room.clone();
        between.gatherv(&data, &mut gathered, &blocks, root).unwrap();
        assert_eq!(gathered, if root == Root::Here { &*expected } else { &*room });
        let mut again = vec![9; mine];
        between.scatterv(&gathered, &blocks, &mut again, root).unwrap();
        assert_eq!(again, vec![if between.size() == 3 { 9 } else { mine }; mine]);
    });
}
