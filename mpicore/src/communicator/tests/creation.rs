//! How communicators are made, and when their ids become free.

use std::sync::Barrier;

use super::*;
use crate::plan::Tag;

#[test]
fn a_duplicate_has_messages_of_its_own() {
    run(3, |world| {
        let other = world.dup().unwrap();
        assert_eq!(other.compare(world), Relation::Congruent);
        assert_eq!(world.clone().compare(world), Relation::Identical);
        assert_ne!(other.context(), world.context());
        // The calls are started in different orders on the two ranks; each has its own messages.
        let plans = [sum_plan(world, vec![1]), sum_plan(&other, vec![10])];
        let mut requests = plans.map(|plan| Some(plan.start().unwrap()));
        if world.rank() == 1 {
            requests.reverse();
        }
        world.device().iwaitall(&mut requests).unwrap().into_iter().for_each(|one| {
            one.unwrap();
        });
    });
}

#[test]
fn ranks_are_divided_by_color_and_ordered_by_key() {
    run(5, |world| {
        let rank = world.rank();
        let key = -i32::try_from(rank).unwrap();
        let color = (rank != 4).then_some(rank % 2);
        let part = world.split(SplitKey { color, key }).unwrap();
        assert_eq!(part.is_none(), rank == 4);
        let Some(part) = part else { return };
        let expected = if rank % 2 == 0 { [2, 0] } else { [3, 1] };
        assert!(part.group().iter().eq(expected), "{part:?}");
        assert_eq!(part.compare(world), Relation::Unequal);
        assert_eq!(sum(&part, rank.into()), if rank % 2 == 0 { 2 } else { 4 });
        let again = part.split_by_host(0).unwrap().unwrap();
        assert_eq!(again.compare(&part), Relation::Congruent);
    });
}

#[test]
fn members_of_a_group_get_a_communicator() {
    run(4, |world| {
        let group = world.group().incl(&[3, 1]).unwrap();
        let is_member = world.rank() % 2 == 1;
        let all_call = world.create(&group).unwrap();
        assert_eq!(all_call.is_some(), is_member);
        if is_member {
            let members_call = world.create_group(&group, 7).unwrap();
            let strangers =
                Communicator::create_from_group(world.process(), &group, b"odd").unwrap();
            let all_call = all_call.unwrap();
            for one in [&all_call, &members_call, &strangers] {
                assert!(one.group().iter().eq([3, 1]));
                assert_eq!(sum(one, world.rank().into()), 4);
            }
        } else {
            let refused = world.create_group(&group, 7).unwrap_err();
            assert_eq!(refused.class(), ErrorClass::Group, "{refused}");
        }
        let alone = Group::of_ranks([9]).unwrap();
        assert_eq!(world.create(&alone).unwrap_err().class(), ErrorClass::Group);
        assert_eq!(sum(world, 1), 4, "a refusal costs nothing");
    });
}

/// An intercommunicator of the even and the odd ranks.
fn even_and_odd(world: &Communicator) -> Result<Communicator, Error> {
    let is_odd = world.rank() % 2;
    let key = SplitKey { color: Some(is_odd), key: 0 };
    let part = world.split(key).unwrap().unwrap();
    // The leaders are the last even rank and rank 1.
    let leader = if is_odd == 1 { 0 } else { part.size() - 1 };
    let last_even = 2 * (world.size().div_ceil(2) - 1);
    let there = if is_odd == 1 { last_even } else { 1 };
    let other = RemoteLeader { peers: world, leader: there, tag: 5 };
    part.create_inter(leader, Some(other))
}

#[test]
fn two_groups_meet_and_become_one() {
    run(5, |world| {
        let between = even_and_odd(world).unwrap();
        let is_odd = world.rank() % 2 == 1;
        assert!(between.is_inter());
        assert_eq!(between.peers().size(), if is_odd { 3 } else { 2 });
        between.inter_barrier().unwrap().run().unwrap();
        for (high, first) in [(is_odd, [0, 2]), (!is_odd, [1, 3]), (true, [0, 2])] {
            let merged = between.merge(high).unwrap();
            assert!(merged.group().iter().take(2).eq(first), "{merged:?}");
            assert_eq!(sum(&merged, 1), 5);
        }
        let twin = between.dup().unwrap();
        let third = twin.idup().unwrap().wait().unwrap();
        assert_eq!(third.compare(&between), Relation::Congruent);
        third.inter_barrier().unwrap().run().unwrap();
        // Each rank gets part of the sum of the words of the other group.
        let reduction =
            Reduction { op: Predefined::Sum.into(), operand: Operand::Kind(ElementKind::U64) };
        let counts = if is_odd { vec![4, 2] } else { vec![1, 3, 2] };
        let own = Output::keeping(vec![0; counts[between.rank() as usize] as usize]);
        let input = Input::keeping((1..=6).map(|word| word * u64::from(world.rank())).collect());
        let plan = between.inter_reduce_scatter(input, own, &counts, reduction).unwrap();
        let first: u64 = counts[..between.rank() as usize].iter().sum();
        let factor = if is_odd { 6 } else { 4 };
        let expected = (first + 1..).take(counts[between.rank() as usize] as usize);
        assert!(plan.run_and_keep().unwrap().into_iter().eq(expected.map(|word| word * factor)));
        let refused = world.merge(true).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Comm);
        let refused = between.barrier().and_then(Plan::run).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Comm);
    });
}

#[test]
fn groups_that_overlap_or_have_no_other_are_refused_on_all_ranks() {
    run(3, |world| {
        let other = RemoteLeader { peers: world, leader: world.rank() / 2 * 2, tag: 0 };
        let refused = world.create_inter(0, None).unwrap_err();
        assert!(matches!(refused, Error::Leader { leader: 0 }), "{refused}");
        let part = world.dup().unwrap();
        // The leader of both groups is rank 0, which meets itself.
        let refused = part.create_inter(0, Some(other)).unwrap_err();
        assert!(matches!(refused, Error::Overlap { rank: 0 }), "{refused}");
        assert_eq!(sum(world, 1), 3);
    });
}

/// Makes communicators and drops them, at different times on each rank.
fn make_and_drop(world: &Communicator, times: u32) {
    let kept = world.dup().unwrap();
    let mut others = Vec::new();
    for number in 0..times {
        let one = world.dup().unwrap();
        if number % 7 == world.rank() {
            others.push(one);
        }
        if others.len() > 20 {
            others.clear();
        }
    }
    assert_eq!(sum(&kept, 1), u64::from(world.size()));
}

#[test]
fn ids_are_used_again_a_hundred_thousand_times() {
    run_with_ids(1, 256, |world| make_and_drop(world, 100_000));
}

#[test]
fn ids_are_used_again_by_several_ranks() {
    run_with_ids(3, 128, |world| make_and_drop(world, 1000));
}

#[test]
#[ignore = "takes a minute on two processors without optimisation"]
fn ids_are_used_again_a_hundred_thousand_times_by_several_ranks() {
    run_with_ids(3, 256, |world| make_and_drop(world, 100_000));
}

#[test]
fn running_out_of_ids_is_an_error_and_costs_nothing() {
    run_with_ids(3, 7, |world| {
        // There are ids 2 to 6; rank 1 uses one of them alone.
        let own = Communicator::self_comm(world.process().clone()).unwrap();
        let of_rank_1 = (world.rank() == 1).then(|| own.dup().unwrap());
        let mut made = Vec::new();
        let refused = loop {
            match world.dup() {
                Ok(one) => made.push(one),
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, Error::Contexts { most: 7 }), "{refused}");
        assert_eq!(made.len(), 4);
        assert!(made.iter().all(|one| sum(one, 1) == 3));
        made.pop();
        drop(of_rank_1);
        let again = [world.dup().unwrap(), world.idup().unwrap().wait().unwrap()];
        assert!(again.iter().all(|one| sum(one, 1) == 3));
    });
}

#[test]
fn an_id_is_not_used_again_while_something_is_pending_under_it() {
    run_with_ids(2, 3, |world| {
        let first = world.dup().unwrap();
        let context = first.context();
        let (device, peer) = (world.device(), 1 - world.rank());
        let receive =
            device.irecv(mpjdev::RecvRegion::EMPTY, Some(peer as usize), Some(0), context);
        let receive = receive.unwrap();
        drop(first);
        let refused = world.dup().unwrap_err();
        assert!(matches!(refused, Error::Contexts { .. }), "{refused}");
        let sent =
            device.send(mpjdev::SendRegion::EMPTY, peer as usize, 0, context, Default::default());
        sent.unwrap();
        device.iwait(receive).unwrap();
        assert_eq!(world.dup().unwrap().context(), context);
    });
}

#[test]
fn threads_create_on_different_communicators_at_the_same_time() {
    run_with_ids(3, 256, |world| {
        let parents: Vec<_> = (0..4).map(|_| world.dup().unwrap()).collect();
        let start = Barrier::new(parents.len());
        let create = |parent: &Communicator| {
            start.wait();
            let made: Vec<_> = (0..20).map(|_| parent.dup().unwrap()).collect();
            assert!(made.iter().all(|one| sum(one, 1) == 3));
            made.iter().map(Communicator::context).collect::<Vec<_>>()
        };
        let contexts: Vec<Vec<u32>> = thread::scope(|scope| {
            let threads: Vec<_> =
                parents.iter().map(|parent| scope.spawn(|| create(parent))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut all = contexts.concat();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() >= 20, "those of one thread are different");
    });
}

#[test]
fn duplications_end_in_different_orders() {
    run(3, |world| {
        let parents: Vec<_> = (0..5).map(|_| world.dup().unwrap()).collect();
        let mut open: Vec<_> = parents.iter().map(|parent| parent.idup().unwrap()).collect();
        if world.rank() == 1 {
            open.reverse();
        }
        let mut made: Vec<_> = open.into_iter().map(|one| one.wait().unwrap()).collect();
        if world.rank() == 1 {
            made.reverse();
        }
        let contexts = made.iter().map(|one| u64::from(one.context()));
        for (one, context) in made.iter().zip(contexts) {
            assert_eq!(sum(one, context), 3 * context, "all ranks have the same one");
        }
    });
}

#[test]
fn a_duplication_can_be_tested_and_given_up() {
    run(2, |world| {
        drop(world.idup().unwrap());
        let mut open = world.idup().unwrap();
        let made = loop {
            match open.test().unwrap() {
                Ok(made) => break made,
                Err(still) => open = still,
            }
        };
        assert_eq!(sum(&made, 1), 2);
    });
}

/// How a test makes a communicator of both ranks.
type Make = fn(&Communicator) -> Result<Communicator, Error>;

/// On each of two ranks two threads make the calls at the same time. The first call of one rank is the second one of
/// the other.
fn cross(calls: [Make; 2]) {
    run(2, move |world| {
        let [first, second] = if world.rank() == 0 { [0, 1] } else { [1, 0] };
        for _ in 0..20 {
            let mut made = thread::scope(|scope| {
                let earlier = scope.spawn(|| calls[first](world));
                // What this rank tells the other one first belongs to its first call.
                while world.device().dump().unwrap().contains("open requests: 0")
                    && !earlier.is_finished()
                {
                    thread::yield_now();
                }
                let later = calls[second](world).unwrap();
                [earlier.join().unwrap().unwrap(), later]
            });
            if world.rank() == 1 {
                made.reverse();
            }
            for one in made {
                let context = u64::from(one.context());
                assert_eq!(sum(world, context), 2 * context, "the ranks have different ones");
                assert_eq!(sum(&one, 3), 6);
            }
        }
    });
}

#[test]
fn calls_of_groups_are_told_apart_by_their_whole_tags() {
    cross([
        |world| world.create_group(world.group(), 1),
        |world| world.create_group(world.group(), i32::MAX),
    ]);
    run(2, |world| {
        let refused = world.create_group(world.group(), -1).unwrap_err();
        assert_eq!(refused.class(), ErrorClass::Tag, "{refused}");
    });
}

#[test]
fn calls_of_groups_are_told_apart_by_their_texts() {
    fn make(world: &Communicator, text: &[u8]) -> Result<Communicator, Error> {
        Communicator::create_from_group(world.process(), world.group(), text)
    }
    // Their hashes of 32 bits are equal, modulo 2^30.
    cross([|world| make(world, b"solver_2347"), |world| make(world, b"north/2200")]);
    cross([|world| make(world, b""), |world| make(world, &[0])]);
}

/// Texts whose places are the same: the messages of the calls cannot be told apart, but the texts can.
#[test]
fn texts_in_one_place_are_an_error_of_both_calls() {
    let texts: [[&[u8]; 2]; 4] =
        [[b"one", b"two"], [b"", b"\0"], [b"seven..", b"seven..\0"], [&[7; 1000], &[7; 1001]]];
    run(2, move |world| {
        let place = (u32::MAX, Tag::own(0));
        for pair in texts {
            let text = pair[world.rank() as usize];
            let made = world.agree_among(world.group(), place, text);
            let refused = made.map(drop).unwrap_err();
            let is_refusal =
                matches!(refused, Error::Texts | Error::Short { .. } | Error::Long { .. });
            assert!(is_refusal, "{refused}");
            assert!(world.agree_among(world.group(), place, pair[0]).is_ok());
        }
    });
}
