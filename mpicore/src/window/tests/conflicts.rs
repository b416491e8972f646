//! Accesses that conflict, in jobs that look for mistakes.

use super::*;
use crate::error::Conflict;

/// Runs `body` with windows of 64 bytes of both kinds, in jobs that compare accesses.
fn run_checked(ranks: usize, body: impl Fn(&Communicator, Window) + Clone + Send + Sync + 'static) {
    for make in [private as Make, mapped] {
        let body = body.clone();
        ranks::run_checked(ranks, move |world| {
            body(world, make(world, 64, 8));
            world.device().finish().unwrap();
        });
    }
}

fn conflict(outcome: Result<impl Sized, Error>) -> Conflict {
    match outcome.map(drop).unwrap_err() {
        Error::Conflict(conflict) => *conflict,
        other => panic!("{other}"),
    }
}

/// All ranks learn of it, and the epochs go on.
#[test]
fn a_fence_finds_conflicts_of_all_ranks() {
    run_checked(3, |world, window| {
        let (rank, number) = (world.rank(), &number());
        window.fence(false, true).unwrap();
        for round in 0..3 {
            let (_, sink) = Fetched::of(2);
            match rank {
                0 => window.put(source(&[1, 2]), at(2, 3, 2, number)).unwrap(),
                1 if round != 1 => window.get(sink, at(2, 4, 2, number)).unwrap(),
                _ => window.get(sink, at(2, 0, 2, number)).unwrap(),
            }
            let fenced = window.fence(true, round < 2);
            if round == 1 {
                fenced.unwrap();
                continue;
            }
            let Conflict { target, bytes, origins, calls } = conflict(fenced);
            assert_eq!((target, bytes, origins), (2, (32, 40), [0, 1]));
            assert_eq!(calls, ["put(16 bytes)", "get(16 bytes)"]);
        }
        window.free().unwrap();
    });
}

/// What a rank has read before it tells others so is not in conflict with what they write then.
#[test]
fn results_that_others_were_told_of_are_no_conflict() {
    run_checked(2, |world, window| {
        let number = &number();
        window.fence(false, true).unwrap();
        for is_told in [true, false] {
            let (_, sink) = Fetched::of(1);
            if world.rank() == 0 {
                window.get(sink, at(1, 0, 1, number)).unwrap();
                window.settle_local(Some(1)).unwrap();
            }
            if is_told {
                world.run_barrier().unwrap();
            }
            if world.rank() == 1 {
                window.put(source(&[1]), at(1, 0, 1, number)).unwrap();
            }
            let fenced = window.fence(true, is_told);
            match is_told {
                true => fenced.unwrap(),
                // In a message, the target has answered meanwhile, which may have told something.
                false if window.0.direct.is_some() => drop(conflict(fenced)),
                false => drop(fenced),
            }
        }
        window.free().unwrap();
    });
}

/// The target learns of it at the end of its exposure.
#[test]
fn a_target_finds_conflicts_of_its_origins() {
    run_checked(3, |world, window| {
        let number = &number();
        let group = |ranks: &[u32]| Group::of_ranks(ranks.iter().copied()).unwrap();
        for round in 0..4 {
            if world.rank() == 0 {
                window.post(&group(&[1, 2])).unwrap();
                let waited = match round % 2 {
                    0 => window.wait(),
                    _ => std::iter::repeat_with(|| window.test())
                        .find(|tested| !matches!(tested, Ok(false)))
                        .map_or(Ok(()), |tested| tested.map(drop)),
                };
                if round < 2 {
                    let found = conflict(waited);
                    assert_eq!((found.bytes, found.origins), ((8, 16), [1, 2]));
                } else {
                    waited.unwrap();
                }
            } else {
                window.start(&group(&[0])).unwrap();
                let place = if round < 2 { 1 } else { world.rank().into() };
                window.put(source(&[1]), at(0, place, 1, number)).unwrap();
                window.complete().unwrap();
            }
        }
        window.free().unwrap();
    });
}

/// What MPI leaves undefined is reported to programs that are written for it.
#[test]
fn accesses_of_one_rank_need_a_flush_in_mpi() {
    run_checked(2, |world, window| {
        let (other, number) = (1 - world.rank(), &number());
        let put = || window.put(source(&[1]), at(other, 1, 1, number));
        let get = || window.get(Fetched::of(2).1, at(other, 0, 2, number));
        window.lock_all(true).unwrap();
        put().unwrap();
        get().unwrap();
        window.check_as_mpi();
        put().unwrap();
        assert_eq!(conflict(get()).target, other);
        window.flush(Some(other)).unwrap();
        get().unwrap();
        assert_eq!(class(put()), ErrorClass::RmaConflict);
        window.flush(None).unwrap();
        put().unwrap();
        window.unlock_all().unwrap();
        // A result that is there is no access any more.
        window.lock(LockKind::Shared, other, true).unwrap();
        get().unwrap();
        window.flush_local(Some(other)).unwrap();
        put().unwrap();
        window.unlock(other).unwrap();
        window.fence(false, true).unwrap();
        let op = [Predefined::Sum, Predefined::Max][world.rank() as usize];
        window.accumulate(source(&[1]), op, at(0, 0, 1, number)).unwrap();
        let found = conflict(window.fence(true, false));
        assert_eq!(found.calls, ["accumulate(MPI_SUM, 8 bytes)", "accumulate(MPI_MAX, 8 bytes)"]);
        window.free().unwrap();
    });
}
