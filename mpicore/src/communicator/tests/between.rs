//! How intercommunicators are divided, and made of groups alone.

use super::*;

/// An intercommunicator of the ranks below 2 and the others.
fn low_and_high(world: &Communicator) -> Communicator {
    let is_low = world.rank() < 2;
    let key = SplitKey { color: Some(is_low.into()), key: 0 };
    let part = world.split(key).unwrap().unwrap();
    let other = RemoteLeader { peers: world, leader: if is_low { 2 } else { 0 }, tag: 3 };
    part.create_inter(0, Some(other)).unwrap()
}

/// Returns the job ranks of both groups.
fn groups(between: &Communicator) -> [Vec<u32>; 2] {
    [between.group(), between.peers()].map(|group| group.iter().collect())
}

#[test]
fn ranks_of_both_groups_with_the_same_color_meet() {
    run(5, |world| {
        let (between, rank) = (low_and_high(world), world.rank());
        // Colors 0: ranks 0, 2 and 4; 1: ranks 1 and 3, the higher key first.
        let key = SplitKey { color: Some(rank % 2), key: -(rank as i32) };
        let part = between.split(key).unwrap().unwrap();
        let expected = [[vec![0], vec![4, 2]], [vec![1], vec![3]]];
        let [low, high] = expected[rank as usize % 2].clone();
        assert_eq!(groups(&part), if rank < 2 { [low, high] } else { [high, low] });
        part.inter_barrier().unwrap().run().unwrap();
        // A color that one group lacks.
        let color = if rank < 2 { Some(7) } else { (rank != 4).then_some(7) };
        let part = between.split(SplitKey { color, key: 0 }).unwrap();
        assert_eq!(part.is_none(), rank == 4);
        let color = Some(rank);
        assert!(between.split(SplitKey { color, key: 0 }).unwrap().is_none());
    });
}

#[test]
fn parts_of_both_groups_meet() {
    run(5, |world| {
        let (between, rank) = (low_and_high(world), world.rank());
        let ranks: &[u32] = if rank < 2 { &[1] } else { &[2, 0] };
        let part = between.create(&between.group().incl(ranks).unwrap()).unwrap();
        assert_eq!(part.is_some(), [1, 2, 4].contains(&rank));
        if let Some(part) = part {
            let [low, high] = [vec![1], vec![4, 2]];
            assert_eq!(groups(&part), if rank < 2 { [low, high] } else { [high, low] });
            part.inter_barrier().unwrap().run().unwrap();
        }
        // The other group gives no ranks.
        let part = if rank < 2 { between.group().clone() } else { Group::empty() };
        assert!(between.create(&part).unwrap().is_none());
        // The ranks of one group do not agree.
        let own = Group::of_ranks([rank]).unwrap();
        let refused = between.create(&own).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Group, "{refused}");
        assert_eq!(between.create(between.peers()).unwrap_err().class(), ErrorClass::Group);
        between.inter_barrier().unwrap().run().unwrap();
    });
}

#[test]
fn groups_meet_without_a_communicator() {
    run(5, |world| {
        let (low, high) = (Group::of_ranks([1, 0]).unwrap(), Group::of_ranks([2, 3, 4]).unwrap());
        let (own, other) = if world.rank() < 2 { (&low, &high) } else { (&high, &low) };
        let leaders = if world.rank() < 2 { [1, 2] } else { [2, 1] };
        let there = Some((other, leaders[1]));
        let made = |own: &Group, there| {
            Communicator::create_inter_from_groups(
                world.process(),
                (own, leaders[0]),
                there,
                b"met",
            )
        };
        let between = made(own, there).unwrap();
        assert_eq!(groups(&between), [own, other].map(|group| group.iter().collect::<Vec<_>>()));
        between.inter_barrier().unwrap().run().unwrap();
        // A leader that gives no other group tells its own.
        let refused = made(own, None).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Other, "{refused}");
    });
}

#[test]
fn a_duplicate_is_waited_for_among_other_requests() {
    run(3, |world| {
        let (request, created) = world.idup().unwrap().into_request();
        let summed = sum_plan(world, vec![1]).start().unwrap();
        let mut requests = [Some(request), Some(summed)];
        world.device().iwaitall(&mut requests).unwrap().into_iter().for_each(|one| {
            one.unwrap();
        });
        let twin = created.take().unwrap();
        assert_eq!(twin.compare(world), Relation::Congruent);
        assert_eq!(created.take().unwrap_err().class(), ErrorClass::Request);
        assert_eq!(sum(&twin, 1), 3);
    });
}
