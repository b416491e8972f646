//! What builders of schedules refuse, with error classes and texts.

use super::member;
use crate::ErrorClass;
use crate::collective::inter::{self, InterMember, Root};
use crate::collective::{
    Blocks, CollectiveError, Exchange, Member, Operands, Order, Schedule, allgather, allgatherv,
    allreduce, alltoall, bcast, divided_bcast, exscan, gather, gatherv, reduce, reduce_scatter,
    reduce_scatter_block, scan, scatter, scatterv,
};

const TOO_MANY: u64 = i64::MAX as u64 + 1;
const NONE: Blocks<'static> = Blocks::Equal { count: 0 };

fn refused(built: Result<Schedule, CollectiveError>) -> CollectiveError {
    built.expect_err("this is refused")
}

#[test]
fn a_rank_that_the_communicator_has_not_is_refused() {
    let error = Member::new(3, 3).unwrap_err();
    assert_eq!(error, CollectiveError::Rank { rank: 3, size: 3 });
    assert_eq!(InterMember::new(3, 3, 9), Err(error));
    assert_eq!(error.class(), ErrorClass::Rank);
    let text = "rank 3 is out of range: the communicator has 3 ranks, counted from 0";
    assert_eq!(error.to_string(), text);
}

#[test]
fn a_root_that_is_no_rank_is_refused() {
    let (me, error) = (member(0, 2), CollectiveError::Root { root: 2, size: 2 });
    let built = [
        bcast(me, 2, 0),
        divided_bcast(me, 2, 0),
        gather(me, 2, Some(0), 0),
        gatherv(me, 2, Some(0), NONE),
        scatter(me, 2, 0, Some(0)),
        scatterv(me, 2, NONE, Some(0)),
        reduce(me, 2, 0, Operands::Input, Order::Free),
    ];
    let (here, root) = (InterMember::new(0, 5, 2).unwrap(), Root::Remote(2));
    let between_groups = [
        inter::bcast(here, root, 0),
        inter::gather(here, root, 0, NONE),
        inter::scatter(here, root, NONE, 0),
        inter::reduce(here, root, 0),
    ];
    for built in built.into_iter().chain(between_groups) {
        assert_eq!(refused(built), error);
    }
    assert_eq!(error.class(), ErrorClass::Root);
    let text = "root 2 is out of range: the group of the root has 2 ranks, counted from 0";
    assert_eq!(error.to_string(), text);
}

#[test]
fn only_the_root_works_in_place() {
    let (me, error) = (member(1, 2), CollectiveError::InPlace { rank: 1, root: 0 });
    assert_eq!(refused(gather(me, 0, None, 0)), error);
    assert_eq!(refused(gatherv(me, 0, None, NONE)), error);
    assert_eq!(refused(scatter(me, 0, 0, None)), error);
    assert_eq!(refused(scatterv(me, 0, NONE, None)), error);
    assert_eq!(refused(reduce(me, 0, 0, Operands::InPlace, Order::Free)), error);
    assert_eq!(error.class(), ErrorClass::Buffer);
    let text = "rank 1 cannot work in place: only the root, rank 0, can; give it a buffer";
    assert_eq!(error.to_string(), text);
}

#[test]
fn lists_have_one_entry_for_each_rank() {
    let (me, error) = (member(0, 2), CollectiveError::Entries { given: 1, size: 2 });
    let lists = [
        Blocks::Listed { counts: &[1], displacements: &[0, 0] },
        Blocks::Listed { counts: &[1, 1], displacements: &[0] },
        Blocks::Typed { entries: 1 },
    ];
    for list in lists {
        assert_eq!(refused(gatherv(me, 0, Some(0), list)), error);
        assert_eq!(refused(scatterv(me, 0, list, Some(0))), error);
        assert_eq!(refused(allgatherv(me, Some(0), list)), error);
        assert_eq!(refused(alltoall(me, Some(list), NONE)), error);
        assert_eq!(refused(alltoall(me, None, list)), error);
        // Arguments that matter only at the root are not checked elsewhere.
        assert!(gatherv(me, 1, Some(0), list).is_ok() && scatterv(me, 1, list, Some(0)).is_ok());
    }
    assert_eq!(refused(reduce_scatter(me, &[1], Operands::Input)), error);
    assert_eq!(error.class(), ErrorClass::Arg);
    assert_eq!(error.to_string(), "1 entries for 2 ranks; give one for each");
}

#[test]
fn more_elements_than_can_be_indexed_are_refused() {
    let (me, half) = (member(0, 2), TOO_MANY / 2);
    let input = Operands::Input;
    let once = CollectiveError::Count { count: TOO_MANY, blocks: 1 };
    for built in [
        bcast(me, 0, TOO_MANY),
        divided_bcast(me, 0, TOO_MANY),
        allreduce(me, TOO_MANY, input, Exchange::Halves),
        scan(me, TOO_MANY, input),
        exscan(me, TOO_MANY, input),
        gatherv(me, 0, Some(TOO_MANY), NONE),
        allgather(me, Some(TOO_MANY), 0),
    ] {
        assert_eq!(refused(built), once);
    }
    let twice = CollectiveError::Count { count: half, blocks: 2 };
    for built in [
        gather(me, 0, Some(0), half),
        gather(me, 1, Some(half), 0),
        scatter(me, 0, half, Some(0)),
        scatter(me, 1, 0, Some(half)),
        allgather(me, Some(0), half),
        alltoall(me, None, Blocks::Equal { count: half }),
        reduce(me, 0, half, input, Order::Free),
        reduce_scatter_block(me, half, input),
        reduce_scatter(me, &[half, half], input),
    ] {
        assert_eq!(refused(built), twice);
    }
    let third = TOO_MANY / 3 + 1;
    let working = CollectiveError::Count { count: third, blocks: 3 };
    assert_eq!(refused(reduce_scatter(me, &[third, 0], input)), working);
    assert_eq!(once.class(), ErrorClass::Count);
    let text = "2 times 4611686018427387904 elements are more than 9223372036854775807; give fewer";
    assert_eq!(twice.to_string(), text);
}

#[test]
fn blocks_end_where_elements_can_be_indexed() {
    let list = Blocks::Listed { counts: &[1, 1], displacements: &[-1, i64::MAX] };
    let error = refused(alltoall(member(0, 2), None, list));
    let expected = CollectiveError::Block { rank: 1, count: 1, displacement: i64::MAX };
    assert_eq!((error, error.class()), (expected, ErrorClass::Arg));
    let text = "the block of rank 1, 1 elements from 9223372036854775807 on, ends beyond \
        9223372036854775807";
    assert_eq!(error.to_string(), text);
}

/// Schedules of ranks near the largest number are computed without overflow.
#[test]
fn the_largest_communicator_has_schedules() {
    let last = member(u32::MAX - 1, u32::MAX);
    for rank in [0, 1, 1 << 31, u32::MAX - 1] {
        let me = member(rank, u32::MAX);
        assert!(super::barrier(me).messages() >= 2);
        assert!(bcast(me, last.rank(), 1).is_ok() && scan(me, 1, Operands::Input).is_ok());
        assert!(
            gather(me, 7, Some(1), 1).is_ok()
                && allreduce(me, 1, Operands::Input, Exchange::Whole).is_ok()
        );
    }
}
