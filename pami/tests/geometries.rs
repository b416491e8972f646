//! Geometries: how they come and go, members with several endpoints, active-message collectives, and random programs of
//! several threads.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

use mpj_doubles::numbers::Numbers;
use pami::{
    AmMessage, Collective, CollectiveCall, Context, Error, Finished, Geometry, Guard, Hint, Hints,
    Members, Reduction, Section, Setting, Xfer,
};
use support::collectives::{carry_out, create, destroy, each, oracle, post};
use support::{Kind, Log, Task, pattern, run, run_with, until};

/// Carries out a gather of the members' task numbers on a context, if it is a member.
fn tasks_of(guard: &mut Guard<'_>, geometry: &Geometry) -> Vec<u8> {
    let own = vec![guard.endpoint().task() as u8];
    let call = CollectiveCall::new(geometry, Collective::Allgather { block: 1 }, own);
    carry_out(guard, call).unwrap().output
}

#[test]
fn geometries_are_made_of_ranges_lists_and_endpoints() {
    for kind in [Kind::Threads, Kind::Shm, Kind::Channels] {
        run(kind, 4, |task| {
            let world = task.client.world();
            assert_eq!((world.id(), world.members().len()), (0, 4));
            let list = |tasks: [u32; 2]| tasks.map(|one| task.endpoint(one)).to_vec();
            let forms = [
                (Members::Ranges(vec![3..=3, 0..=1], Some(0)), vec![3, 0, 1]),
                (Members::Tasks(vec![2, 0], Some(0)), vec![2, 0]),
                (Members::Endpoints(list([1, 3])), vec![1, 3]),
            ];
            for (id, (members, tasks)) in (1..).zip(forms) {
                // With a parent all its tasks take part, and without one those of the members.
                for parent in [Some(world), None] {
                    let is_member = tasks.contains(&(task.id() as u8));
                    if parent.is_none() && !is_member {
                        continue;
                    }
                    let made = create(task, id, members.clone(), parent).unwrap();
                    assert_eq!(made.is_some(), is_member, "{members:?}");
                    if let Some(geometry) = made {
                        let rank = geometry.rank(task.endpoint(task.id())).unwrap();
                        assert_eq!(u32::from(tasks[rank]), task.id());
                        assert_eq!(tasks_of(&mut task.lock(), &geometry), tasks);
                        // The id is used again.
                        destroy(task, &geometry);
                    }
                }
            }
            // Two at a time with the same id.
            let own = task.id() % 2;
            let members = Members::Tasks(vec![own, own + 2], Some(0));
            let half = create(task, 7, members, Some(world)).unwrap().unwrap();
            assert_eq!(tasks_of(&mut task.lock(), &half), [own as u8, own as u8 + 2]);
            destroy(task, &half);
        });
    }
}

#[test]
fn an_id_is_used_again_by_members_of_whom_this_task_knows_nothing_yet() {
    let posted = Barrier::new(2);
    run(Kind::Threads, 2, move |task| {
        let both = Members::Tasks(vec![0, 1], Some(0));
        if task.id() == 0 {
            let old = create(task, 5, Members::Tasks(vec![0], Some(0)), None).unwrap().unwrap();
            posted.wait();
            for _ in 0..100 {
                let _ = task.lock().advance(1).unwrap();
            }
            destroy(task, &old);
            let new = create(task, 5, both, None).unwrap().unwrap();
            assert_eq!(tasks_of(&mut task.lock(), &new), [0, 1]);
        } else {
            let made = Log::new();
            let to = made.clone();
            let on_done = Box::new(move |_: &mut Section<'_>, result| to.push(result));
            let mut guard = task.lock();
            guard.geometry_create(5, both, None, on_done).unwrap();
            let _ = guard.advance(1).unwrap();
            posted.wait();
            until(&mut guard, || made.len() == 1);
            let new = made.take().remove(0).unwrap().unwrap();
            assert_eq!(tasks_of(&mut guard, &new), [0, 1]);
        }
    });
}

#[test]
fn messages_of_a_geometry_that_a_loss_has_ended_are_none_of_the_next_one() {
    let (begun, survivors) = (Barrier::new(3), Barrier::new(2));
    run_with(Kind::Threads, 3, 1, move |task| {
        let members = Members::Tasks(vec![1, 0, 2], Some(0));
        let old = create(task, 5, members, None).unwrap().unwrap();
        let (ends, mut guard) = (Log::new(), task.lock());
        if task.id() == 1 {
            // Its first message is for task 0, which does not begin the barrier.
            post(&mut guard, CollectiveCall::new(&old, Collective::Barrier, vec![]), &ends);
            let _ = guard.advance(1).unwrap();
        }
        begun.wait();
        if task.id() == 2 {
            task.losses.declare();
            return false;
        }
        let wait_for_loss = |guard: &mut Guard<'_>| loop {
            match guard.advance(1) {
                Ok(_) => thread::yield_now(),
                Err(error) => break assert!(matches!(error, Error::Lost { task: 2 }), "{error}"),
            }
        };
        wait_for_loss(&mut guard);
        let expected = usize::from(task.id() == 1);
        until(&mut guard, || ends.len() == expected);
        let gone = Log::new();
        let to = gone.clone();
        let on_done = Box::new(move |_: &mut Section<'_>, result| to.push(result));
        guard.geometry_destroy(&old, Some(on_done)).unwrap();
        until(&mut guard, || gone.len() == 1);
        assert!(matches!(gone.take()[0], Err(Error::Lost { task: 2 })));
        drop(guard);
        let new = create(task, 5, Members::Tasks(vec![1, 0], Some(0)), None).unwrap().unwrap();
        assert_eq!(tasks_of(&mut task.lock(), &new), [1, 0]);
        // Whoever leaves first is lost for the other one.
        survivors.wait();
        false
    });
}

#[test]
fn a_creation_that_has_failed_is_repeated() {
    let turn = Barrier::new(3);
    run(Kind::Threads, 3, move |task| {
        let (own, made) = (task.id(), Log::new());
        let create = |guard: &mut Guard<'_>| {
            let to = made.clone();
            let on_done = Box::new(move |_: &mut Section<'_>, result| to.push(result));
            let all = Members::Ranges(vec![0..=2], Some(0));
            guard.geometry_create(5, all, None, on_done).unwrap();
        };
        let mut guard = task.lock();
        // Task 2 does not come. Task 0 takes what task 1 has said for the first time into the second attempt.
        if own == 1 {
            create(&mut guard);
            let _ = guard.advance(1).unwrap();
        }
        turn.wait();
        if own == 0 {
            create(&mut guard);
            let _ = guard.advance(1).unwrap();
        }
        turn.wait();
        let others = [&[2][..], &[2], &[0, 1]][own as usize].iter();
        let others: Vec<_> = others.map(|other| task.endpoint(*other)).collect();
        guard.purge(&others).unwrap();
        let expected = usize::from(own != 2);
        until(&mut guard, || made.len() == expected);
        assert!(made.take().iter().all(|result| matches!(result, Err(Error::Lost { task: 2 }))));
        turn.wait();
        guard.resume(&others).unwrap();
        turn.wait();
        let work = |guard: &mut Guard<'_>| while guard.advance(1).is_err() {};
        let repeat = |guard: &mut Guard<'_>| loop {
            create(guard);
            while made.len() == 0 {
                work(guard);
                thread::yield_now();
            }
            match made.take().remove(0) {
                Ok(made) => break made.unwrap(),
                // The connection is not open yet.
                Err(error) => assert!(matches!(error, Error::Lost { .. }), "{error}"),
            }
        };
        // Two of them need not wait for the third, which has said once that it is ready.
        let first = (own != 1).then(|| repeat(&mut guard));
        turn.wait();
        let geometry = first.unwrap_or_else(|| repeat(&mut guard));
        assert_eq!(tasks_of(&mut guard, &geometry), [0, 1, 2]);
        drop(guard);
        destroy(task, &geometry);
    });
}

#[test]
fn wrong_geometries_are_refused() {
    run_with(Kind::Threads, 2, 2, |task| {
        let (world, own) = (task.client.world(), task.id());
        let refused = |id, members, parent: Option<&Geometry>| {
            let error = create(task, id, members, parent).unwrap_err();
            assert_eq!(error.code(), pami::Code::Inval);
            error.to_string()
        };
        let tasks = |tasks: &[u32]| Members::Tasks(tasks.to_vec(), Some(0));
        let is_id = |id| {
            format!(
                "there is a geometry {id} already; destroy it first, or choose another id above 0"
            )
        };
        assert_eq!(refused(0, tasks(&[0]), Some(world)), is_id(0));
        assert_eq!(
            refused(1, tasks(&[1, 0, 1]), None),
            "geometry 1 with 3 members, of which 2 differ; give one at least, and each once"
        );
        assert!(refused(1, tasks(&[]), None).starts_with("geometry 1 with 0 members"));
        for nowhere in
            [Members::Ranges(vec![0..=u32::MAX], Some(0)), Members::Tasks(vec![0], Some(2))]
        {
            assert!(
                refused(1, nowhere, None).contains("the job has tasks 0 to 1, of 2 contexts each")
            );
        }
        assert_eq!(
            refused(1, Members::Tasks(vec![0], None), Some(world)),
            "geometry 1 cannot have the parent 0: it has all contexts of its tasks; create it without a parent"
        );
        assert_eq!(
            refused(1, tasks(&[1 - own]), None),
            format!(
                "endpoint ({own}, 0) is no member of geometry 1, as this call needs; call it on a member"
            )
        );
        let single = create(task, 1, tasks(&[own]), None).unwrap().unwrap();
        assert_eq!(refused(1, tasks(&[own]), None), is_id(1));
        assert_eq!(
            refused(2, tasks(&[0, 1]), Some(&single)),
            "geometry 2 cannot have the parent 1: a task is none of the parent; create it without a parent"
        );
        // A context that is no member.
        let mut other = task.contexts[1].lock().unwrap();
        let call = CollectiveCall::new(&single, Collective::Barrier, vec![]);
        assert!(matches!(other.collective(call), Err(Error::NoMember { id: 1, .. })));
        drop(other);
        true
    });
}

#[test]
fn what_is_in_use_is_the_world_or_is_gone_is_not_destroyed() {
    run(Kind::Threads, 2, |task| {
        let (world, own) = (task.client.world(), task.id());
        let tasks = |tasks: &[u32]| Members::Tasks(tasks.to_vec(), Some(0));
        let single = create(task, 1, tasks(&[own]), None).unwrap().unwrap();
        let mut guard = task.lock();
        let ends = Log::new();
        let pair = CollectiveCall::new(world, Collective::Barrier, vec![]);
        post(&mut guard, pair, &ends);
        let text = |error: Error| error.to_string();
        assert_eq!(
            text(guard.geometry_destroy(world, None).unwrap_err()),
            "geometry 0 cannot be destroyed: it is the world"
        );
        until(&mut guard, || ends.len() == 1);
        drop(guard);
        destroy(task, &single);
        let mut guard = task.lock();
        assert_eq!(
            text(guard.geometry_destroy(&single, None).unwrap_err()),
            "geometry 1 was destroyed, or is another client's; create it again"
        );
        let call = CollectiveCall::new(&single, Collective::Barrier, vec![]);
        assert!(matches!(guard.collective(call), Err(Error::NoGeometry { id: 1 })));
        drop(guard);
        let two = create(task, 3, tasks(&[0, 1]), None).unwrap().unwrap();
        let mut guard = task.lock();
        if own == 0 {
            // The other one has not begun, so this has not ended.
            post(&mut guard, CollectiveCall::new(&two, Collective::Barrier, vec![]), &ends);
            assert_eq!(
                text(guard.geometry_destroy(&two, None).unwrap_err()),
                "geometry 3 cannot be destroyed: a collective has not ended; wait for its callback"
            );
        }
        tasks_of(&mut guard, world);
        if own == 1 {
            post(&mut guard, CollectiveCall::new(&two, Collective::Barrier, vec![]), &ends);
        }
        until(&mut guard, || ends.len() == 2);
        drop(guard);
        destroy(task, &two);
    });
}

#[test]
fn a_geometry_of_a_context_that_was_not_created_is_refused() {
    for client in pami::Client::in_process("test", 1, 2).unwrap() {
        let mut client = client;
        let context = client.create_contexts(1).unwrap().remove(0);
        let mut guard = context.lock().unwrap();
        for _ in 0..2 {
            let on_done = Box::new(|_: &mut Section<'_>, _| unreachable!("it was refused"));
            let members = Members::Tasks(vec![0], Some(1));
            let error = guard.geometry_create(1, members, None, on_done).unwrap_err();
            assert!(matches!(error, Error::NoContext { task: 0, offset: 1 }), "{error}");
        }
    }
}

/// How a member of an active-message collective sees it.
type Seen = (u32, u32, Xfer, Vec<u8>, Vec<u8>);

/// Bytes that members answer.
const ANSWER: usize = 5_000;
/// The tasks of the members.
const TASKS: [u32; 3] = [3, 0, 1];

/// An operation whose order matters.
fn mix(left: &[u8], right: &mut [u8]) {
    let both = left.iter().zip(right);
    both.for_each(|(left, right)| *right = left.wrapping_mul(3).wrapping_sub(*right));
}

fn answer(task: u32) -> Vec<u8> {
    pattern(task as usize, ANSWER)
}

/// The active-message collectives: each with its input and its output, and with the header and the data that a member
/// with this rank sees.
type Case = (Collective, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>);

fn active(dispatch: usize, len: usize, rank: usize) -> [Case; 4] {
    let (header, own) = (vec![5, 6], vec![rank as u8; 4]);
    let headers = || (0..3).map(|rank| vec![rank; 4]).collect::<Vec<_>>();
    let [first, second, mut mixed] = TASKS.map(answer);
    mix(&second, &mut mixed);
    mix(&first, &mut mixed);
    let (broadcast, scatter) = (pattern(1, len), pattern(2, 3 * len));
    let block = scatter[rank * len..][..len].to_vec();
    let op = Reduction::function(1, false, mix);
    [
        (
            Collective::Ambroadcast { dispatch, header: header.clone(), len },
            broadcast.clone(),
            vec![],
            header.clone(),
            broadcast,
        ),
        (
            Collective::Amscatter { dispatch, headers: headers(), block: len },
            scatter,
            vec![],
            own.clone(),
            block,
        ),
        (
            Collective::Amgather { dispatch, headers: headers(), block: ANSWER },
            vec![],
            TASKS.map(answer).concat(),
            own,
            vec![],
        ),
        (
            Collective::Amreduce { dispatch, header: header.clone(), len: ANSWER, op },
            vec![],
            mixed,
            header,
            vec![],
        ),
    ]
}

#[test]
fn active_message_collectives_run_functions_on_all_members() {
    for kind in Kind::ALL {
        run(kind, 4, move |task| {
            let members = Members::Tasks(TASKS.to_vec(), Some(0));
            let geometry = create(task, 9, members, Some(task.client.world())).unwrap();
            let mut guard = task.lock();
            let seen: Log<Seen> = Log::new();
            let asynchronous = Hints::default().with(Hint::RecvImmediate, Setting::Disable);
            for (id, hints) in [(7, Hints::default()), (8, asynchronous)] {
                let (to, own) = (seen.clone(), task.id());
                let take = move |_: &mut Section<'_>, message: AmMessage<'_>| {
                    let AmMessage { geometry, root, xfer, header, data } = message;
                    to.push((geometry.id(), root.task(), xfer, header.to_vec(), data.to_vec()));
                    answer(own)
                };
                guard.amcollective_dispatch_set(id, take, hints).unwrap();
            }
            let Some(geometry) = geometry else { return };
            let rank = geometry.rank(guard.endpoint()).unwrap();
            // Members begin them in turn; all wait until everybody has seen each.
            for (dispatch, turn, len) in [(7, 0, 0), (8, 1, 300), (7, 2, 20_000), (8, 2, 0)] {
                for (collective, input, output, header, data) in active(dispatch, len, rank) {
                    let xfer = collective.xfer();
                    if rank == turn {
                        let call = CollectiveCall::new(&geometry, collective, input);
                        let found = carry_out(&mut guard, call).unwrap();
                        assert!(found.output == output, "{xfer:?}");
                    }
                    until(&mut guard, || seen.len() == 1);
                    assert!(
                        seen.take() == [(9, TASKS[turn], xfer, header, data)],
                        "{xfer:?} {len}"
                    );
                    tasks_of(&mut guard, &geometry);
                }
            }
        });
    }
}

#[test]
fn wrong_active_message_collectives_are_refused() {
    run(Kind::Threads, 1, |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        let broadcast = |dispatch, header: usize| {
            let collective = Collective::Ambroadcast { dispatch, header: vec![0; header], len: 0 };
            CollectiveCall::new(world, collective, vec![])
        };
        for id in [255, 300] {
            let error = guard.collective(broadcast(id, 0)).unwrap_err();
            assert!(matches!(error, Error::DispatchRange { .. }), "{error}");
            assert!(!guard.is_dispatch_set(id));
        }
        assert!(matches!(guard.collective(broadcast(7, 0)), Err(Error::NoDispatch { id: 7, .. })));
        guard.amcollective_dispatch_set(7, |_, _| vec![1, 2, 3], Hints::default()).unwrap();
        let error = guard.collective(broadcast(7, 2033)).unwrap_err();
        assert!(matches!(error, Error::HeaderLen { len: 2049 }));
        let headers = vec![vec![]; 2];
        let call = CollectiveCall::new(
            world,
            Collective::Amgather { dispatch: 7, headers, block: 4 },
            vec![],
        );
        let error = guard.collective(call).unwrap_err();
        assert_eq!(error.to_string(), "2 entries for 1 ranks; give one for each");
        // A function that answers with another length.
        let headers = vec![vec![]];
        let call = CollectiveCall::new(
            world,
            Collective::Amgather { dispatch: 7, headers, block: 4 },
            vec![],
        );
        let error = carry_out(&mut guard, call).unwrap_err();
        assert!(
            error.to_string().contains("endpoint (0, 0) has 3 bytes where this member has 4 bytes")
        );
        // The dispatch of collectives is not for programs.
        let to = guard.endpoint();
        assert!(matches!(
            guard.send_immediate(to, 255, &[], &[]),
            Err(Error::DispatchRange { id: 255 })
        ));
        let call = pami::SendCall::new(to, 255);
        assert!(matches!(guard.send(call), Err(Error::DispatchRange { id: 255 })));
    });
}

/// A step of a random program: which geometry, and the seed of the collective.
type Program = Vec<(usize, usize)>;

/// Makes the program with a seed.
fn program(seed: u64, steps: usize) -> Program {
    let mut numbers = Numbers(seed);
    (0..steps).map(|_| (numbers.below(4), numbers.next_number() as usize)).collect()
}

/// Runs the part of a context, with several collectives at a time.
fn play(context: &Context, geometries: &[Geometry], program: &Program, left: &AtomicUsize) {
    let own = context.endpoint();
    let mut awaited = Vec::new();
    for (which, seed) in program {
        let geometry = &geometries[*which];
        let Some(rank) = geometry.rank(own) else { continue };
        let members = geometry.members().len();
        let collectives = each(rank, members, seed % 37);
        let collective = collectives[seed / 37 % collectives.len()].clone();
        let (input, expected) = oracle(&collective, *seed % 256, rank, members);
        let ends = Log::new();
        let mut guard = context.lock().unwrap();
        post(&mut guard, CollectiveCall::new(geometry, collective, input), &ends);
        awaited.push((ends, expected, geometry.id()));
        if awaited.len() > 3 {
            check(&mut guard, awaited.remove(0));
        }
    }
    let mut guard = context.lock().unwrap();
    awaited.into_iter().for_each(|one| check(&mut guard, one));
    // Others may still need this context.
    left.fetch_sub(1, Ordering::SeqCst);
    until(&mut guard, || left.load(Ordering::SeqCst) == 0);
}

fn check(
    guard: &mut Guard<'_>,
    (ends, expected, id): (Log<Result<Finished, Error>>, Vec<u8>, u32),
) {
    until(guard, || ends.len() == 1);
    let Finished { output, algorithm } = ends.take().remove(0).unwrap();
    assert!(output == expected, "{algorithm} in geometry {id}");
}

#[test]
fn random_programs_of_several_threads_in_geometries_with_all_contexts() {
    for (seed, kind) in [(1, Kind::Threads), (2, Kind::Shm), (3, Kind::Channels), (4, Kind::Hosts)]
    {
        let (tasks, contexts) = (3, 2);
        let left = Arc::new(AtomicUsize::new(tasks * contexts));
        run_with(kind, tasks, contexts, move |task| {
            let all = |task: &Task, id, members| create(task, id, members, None).unwrap().unwrap();
            let mixed = [(1, 1), (0, 0), (2, 1), (1, 0)];
            let mixed =
                mixed.map(|(task_of, offset)| task.client.endpoint(task_of, offset).unwrap());
            let geometries = [
                task.client.world().clone(),
                all(task, 1, Members::Ranges(vec![0..=2], None)),
                all(task, 2, Members::Tasks(vec![2, 0, 1], Some(1))),
                all(task, 3, Members::Endpoints(mixed.to_vec())),
            ];
            let program = program(seed, 150);
            thread::scope(|scope| {
                for context in &task.contexts {
                    scope.spawn(|| play(context, &geometries, &program, &left));
                }
            });
            geometries[1..].iter().for_each(|geometry| destroy(task, geometry));
            true
        });
    }
}
