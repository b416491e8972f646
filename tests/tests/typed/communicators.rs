//! How communicators are made, what they keep, and when it is deleted as the world ends.
//!
//! Every job runs under a watchdog.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use mpj::tuning::Options;
use mpj::{
    AttributeKey, Cause, Communicator, Error, ErrorClass, Group, Relation, RemoteLeader, World,
};

use crate::job::{job, try_job};

/// Returns the class of the error that a call must have.
#[track_caller]
fn refused<T>(outcome: Result<T, Error>) -> ErrorClass {
    match outcome {
        Ok(_) => panic!("the call has succeeded"),
        Err(error) => error.class(),
    }
}

#[test]
fn bad_input_is_refused_and_costs_nothing() {
    job(4, |world| {
        let everyone = world.group();
        assert_eq!(refused(everyone.incl([4])), ErrorClass::Rank);
        assert_eq!(refused(everyone.incl([usize::MAX])), ErrorClass::Rank);
        assert_eq!(refused(everyone.excl([1, 1])), ErrorClass::Rank);
        assert_eq!(refused(Group::of_ranks([2, 2])), ErrorClass::Group);
        assert_eq!(refused(everyone.range_incl(&[[0, 3, 0].into()])), ErrorClass::Arg);
        let stranger = Group::of_ranks([0, 9]).unwrap();
        assert_eq!(refused(world.create(&stranger)), ErrorClass::Group);
        assert_eq!(refused(world.create_group(&stranger, 0)), ErrorClass::Group);
        let without = everyone.excl([world.rank()]).unwrap();
        assert_eq!(refused(world.create_group(&without, 0)), ErrorClass::Group);
        let grid = |dims: &[usize], periods: &[bool]| world.create_cartesian(dims, periods, true);
        assert_eq!(refused(grid(&[2, 3], &[false; 2])), ErrorClass::Dims);
        assert_eq!(refused(grid(&[2, 0], &[false; 2])), ErrorClass::Dims);
        assert_eq!(refused(grid(&[usize::MAX], &[false])), ErrorClass::Dims);
        assert_eq!(refused(grid(&[2, 2], &[false])), ErrorClass::Arg);
        assert_eq!(refused(mpj::dims_create(0, [0])), ErrorClass::Arg);
        assert_eq!(refused(mpj::dims_create(usize::MAX, [0])), ErrorClass::Dims);
        world.barrier().unwrap();
    });
}

#[test]
fn groups_of_a_call_that_overlap_are_refused() {
    job(3, |world| {
        // Ranks 0 and 1 do not agree; rank 2 is alone in either case.
        let given = [Group::of_ranks([0, 1]), Group::of_ranks([1, 2]), Group::of_ranks([2])];
        let given = given[world.rank()].clone().unwrap();
        let outcome = world.create(&given);
        if world.rank() < 2 {
            assert_eq!(refused(outcome), ErrorClass::Group);
        } else {
            outcome.unwrap().unwrap().barrier().unwrap();
        }
        let twin = world.dup().unwrap();
        let itself = RemoteLeader { peers: world, leader: 0, tag: 0 };
        assert_eq!(refused(twin.create_inter(0, Some(itself))), ErrorClass::Group);
        assert_eq!(refused(twin.create_inter(3, None)), ErrorClass::Root);
        assert_eq!(refused(twin.create_inter(usize::MAX, None)), ErrorClass::Root);
        assert_eq!(refused(twin.create_inter(0, None)), ErrorClass::Other);
        twin.barrier().unwrap();
        world.barrier().unwrap();
    });
}

#[test]
fn colors_and_keys_have_all_values() {
    job(4, |world| {
        let rank = world.rank();
        let keys = [i32::MAX, 0, -1, i32::MIN];
        let turned = world.split(u32::MAX, keys[rank]).unwrap();
        assert!(turned.group().iter().eq([3, 2, 1, 0]));
        let first = world.split_some((rank == 0).then_some(u32::MAX), 0).unwrap();
        assert_eq!(first.map(|first| first.size()), (rank == 0).then_some(1));
        let alone = world.split(rank as u32, 0).unwrap();
        assert_eq!(alone.compare(world.self_comm().unwrap()), Relation::Congruent);
        assert_eq!(world.self_comm().unwrap().name(), "self");
        turned.barrier().unwrap();
    });
}

#[test]
fn grids_keep_their_shape() {
    job(6, |world| {
        let dims = mpj::dims_create(world.size(), [0, 0]).unwrap();
        let grid = world.create_cartesian(&dims, &[true, false], false).unwrap().unwrap();
        assert_eq!((grid.dims(), grid.periods()), (vec![3, 2], &[true, false][..]));
        let twin = grid.dup().unwrap();
        let coords = twin.coords(world.rank()).unwrap();
        assert_eq!(twin.rank_of(&coords).unwrap(), world.rank());
        let column = twin.sub(&[true, false]).unwrap();
        assert_eq!((column.size(), column.rank() as i32), (3, coords[0]));
        column.barrier().unwrap();
        assert_eq!(refused(grid.coords(6)), ErrorClass::Rank);
        assert_eq!(refused(grid.coords(usize::MAX)), ErrorClass::Rank);
        assert_eq!(refused(grid.rank_of(&[0, 2])), ErrorClass::Arg);
        assert_eq!(refused(grid.rank_of(&[0])), ErrorClass::Arg);
        assert_eq!(refused(grid.shift(2, 1)), ErrorClass::Arg);
        assert_eq!(refused(grid.sub(&[true])), ErrorClass::Arg);
        let point = world.create_cartesian(&[], &[], false).unwrap();
        assert_eq!(point.is_some(), world.rank() == 0);
        world.barrier().unwrap();
    });
}

#[test]
fn copies_that_fail_are_told_and_keep_the_communicator() {
    job(2, |world| {
        let key = AttributeKey::<u8>::with(|_, _| Err(Cause::from("not this one")), |_, _| Ok(()));
        let one = world.dup().unwrap();
        one.set_attribute(&key, 1).unwrap();
        for outcome in [one.dup(), one.idup().and_then(|pending| pending.wait())] {
            let error = outcome.map(drop).unwrap_err();
            assert_eq!(error.class(), ErrorClass::Other);
            assert!(error.to_string().contains("not this one"), "{error}");
        }
        assert!(one.delete_attribute(&key).unwrap());
        one.dup().unwrap().barrier().unwrap();
    });
}

/// Leaves the world with attributes of this rank's own communicator and of the world. Returns the order in which they
/// are deleted.
fn leave(world: World, by_finish: bool) -> Vec<&'static str> {
    let order = Arc::new(Mutex::new(Vec::new()));
    let key = || {
        let order = order.clone();
        let delete = move |on: &Communicator, name: &Arc<&'static str>| {
            // The rank can still communicate with all others.
            on.barrier().map_err(Box::new)?;
            order.lock().unwrap().push(**name);
            Ok(())
        };
        AttributeKey::with(|_, _| Ok(None), delete)
    };
    let kept = AttributeKey::<Communicator>::new();
    world.set_attribute(&key(), "world").unwrap();
    // The world may be kept by an attribute of itself, and by values that outlive it.
    world.set_attribute(&kept, Communicator::clone(&world)).unwrap();
    let own = world.self_comm().unwrap().clone();
    own.set_attribute(&key(), "first").unwrap();
    own.set_attribute(&key(), "second").unwrap();
    let left = world.dup().unwrap();
    left.set_attribute(&kept, left.dup().unwrap()).unwrap();
    if by_finish {
        world.finish().unwrap();
    } else {
        drop(world);
    }
    assert!(left.barrier().is_err(), "the world is over");
    order.lock().unwrap().clone()
}

#[test]
fn attributes_of_the_rank_alone_go_first_when_the_world_ends() {
    for by_finish in [true, false] {
        let order = try_job(&Options::default(), 3, move |world| leave(world, by_finish));
        assert_eq!(order.unwrap(), [["second", "first", "world"]; 3]);
    }
}

#[test]
fn a_delete_callback_that_fails_keeps_no_rank_from_leaving() {
    let outcomes = try_job(&Options::default(), 2, |world| {
        let failures = Arc::new(AtomicUsize::new(0));
        let counted = failures.clone();
        let key = AttributeKey::<()>::with(|_, _| Ok(None), |_, _| Err("busy".into()));
        let own = world.self_comm().unwrap();
        own.set_error_handler(move |_, _| {
            counted.fetch_add(1, Ordering::Relaxed);
        });
        own.set_attribute(&key, ()).unwrap();
        let outcome = world.finish();
        (outcome.map_err(|error| error.to_string()), failures.load(Ordering::Relaxed) > 0)
    });
    let said = "the delete callback of an attribute failed: busy".to_owned();
    assert_eq!(outcomes.unwrap(), [(Err(said.clone()), true), (Err(said), true)]);
}
