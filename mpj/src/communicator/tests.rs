//! Ranks of communicators and of the world.

use std::sync::mpsc;

use mpj_harness::watch;

use super::*;
use crate::group::no_rank;
use crate::{ANY_SOURCE, ErrorClass, Source, World, local};

/// Runs `body` on four ranks, and fails if it does not end in time.
fn run(body: fn(World)) {
    watch(move || local::run(4, body)).unwrap();
}

#[test]
fn ranks_are_translated_both_ways() {
    run(|world| {
        let rank = world.rank();
        let odd_or_even = world.split(rank as u32 % 2, -(rank as i32)).unwrap();
        assert_eq!(odd_or_even.job_rank(0).unwrap(), 2 + rank % 2);
        assert_eq!(odd_or_even.source(Source::Rank(1)).unwrap(), Some(rank % 2));
        assert_eq!(odd_or_even.source(ANY_SOURCE).unwrap(), None);
        let status = odd_or_even.status(mpjdev::Status::new((rank % 2) as u32, 3, 8));
        assert_eq!((status.source, status.tag, status.bytes), (1, 3, 8));
        for rank in [2, usize::MAX] {
            let refused = odd_or_even.job_rank(rank).unwrap_err();
            assert_eq!(refused.class(), ErrorClass::Rank);
            assert!(refused.to_string().contains("ranks 0 to 1"), "{refused}");
        }
        assert_eq!(world.status(mpjdev::Status::new(3, 0, 0)).source, 3);
        // A rank whose last call had an error would not wait for the others.
        world.barrier().unwrap();
    });
}

#[test]
fn an_intercommunicator_speaks_of_the_other_group() {
    run(|world| {
        let is_high = world.rank() > 1;
        let half = world.split(is_high.into(), 0).unwrap();
        let leader = if is_high { 1 } else { 2 };
        let other = RemoteLeader { peers: &world, leader, tag: 0 };
        // The last rank of the low half and the first one of the high half are the leaders.
        let between = half.create_inter((!is_high).into(), Some(other)).unwrap();
        let there = if is_high { 1 } else { 3 };
        assert_eq!(between.communicator.job_rank(1).unwrap(), there);
        let status = mpjdev::Status::new(there as u32, 0, 0);
        assert_eq!(between.communicator.status(status).source, 1);
    });
}

#[test]
fn error_handlers_get_every_kind_of_error() {
    run(|world| {
        let (told, errors) = mpsc::channel();
        world.set_error_handler(move |on, error| {
            let told = told.send((on.size(), error.class(), error.to_string()));
            told.expect("the receiver is there");
        });
        let errors_of_all = [
            Error::Mixed,
            Error::Context { asked: 5, contexts: 1 },
            mpjdev::Error::Tag { tag: -1 }.into(),
            no_rank(world.core.group(), 7),
        ];
        for error in errors_of_all {
            let answer = world.answer(Err::<(), _>(error.clone())).unwrap_err();
            assert_eq!(answer.to_string(), error.to_string());
            assert_eq!(errors.try_recv().unwrap(), (4, error.class(), error.to_string()));
        }
        world.answer(Ok::<(), Error>(())).unwrap();
        assert!(errors.try_recv().is_err());
    });
}
