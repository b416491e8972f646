//! Memory in the shared areas: the origin carries operations out by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use transport_lapi::{
    Context, Getv, LapiError, Next, Operation, Put, Putv, Query, RemoteRegion, Rmw, RmwOp, Sent,
    SharedMemory, Vector, Xfer,
};

use crate::support::board::Board;
use crate::support::buffers::{Landing, null_source, pattern, source};
use crate::support::job::{Kind, run};

const LEN: usize = 100_000;

/// The kinds of adapters with shared areas.
const WITH_AREAS: [Kind; 2] = [Kind::Shm, Kind::ShmAm];

fn alloc(context: &Context<()>, board: &Board, len: usize) -> SharedMemory {
    let memory = context.session().unwrap().alloc_shared(len).unwrap();
    board.publish(context, memory.region());
    memory
}

fn contents(memory: &SharedMemory) -> Vec<u8> {
    let mut bytes = vec![0; memory.len()];
    memory.read(0, &mut bytes).unwrap();
    bytes
}

/// Puts and gets of every length, by one block and by vectors, while the target makes no progress.
#[test]
fn the_target_need_not_make_progress() {
    for kind in WITH_AREAS {
        let board = Board::new(2);
        let gate = Arc::new(std::sync::Barrier::new(2));
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let memory = alloc(context, &board, LEN);
                if context.task() == 1 {
                    gate.wait();
                    let mut expected = vec![0; LEN];
                    expected[5..5 + 70_000].copy_from_slice(pattern(2, 70_000));
                    for i in 0..1000 {
                        expected[90_000 + 10 * i..][..4]
                            .copy_from_slice(&pattern(3, 4000)[4 * i..][..4]);
                    }
                    assert!(contents(&memory) == expected, "{kind:?}");
                    gate.wait();
                    return;
                }
                let (remote, target) = (board.of(1), 1);
                let landing = Landing::new(LEN);
                let counter = context.session().unwrap().counter();
                let mut session = context.session().unwrap();
                for len in [0, 1, 8, 63, 300, 5000, 70_000] {
                    let bytes = source(pattern(2, len));
                    let call = Put::new(target, remote, 5, bytes);
                    let on_origin = Next::Counter(counter);
                    let call = Put { on_origin, cmpl_cntr: Some(counter), ..call };
                    assert_eq!(session.put(call).unwrap(), Sent::Now);
                    assert_eq!(session.getcntr(counter).unwrap(), 2, "both at once");
                    let (into, next) = (landing.region(len), Next::Counter(counter));
                    session.get(target, remote, 5, into, next).unwrap();
                    assert_eq!(session.getcntr(counter).unwrap(), 3);
                    assert!(landing.holds(pattern(2, len)), "{kind:?}: {len} bytes");
                    landing.wipe();
                    session.setcntr(counter, 0).unwrap();
                }
                let every = |base, stride| Vector::Strided { base, block: 4, stride, count: 1000 };
                let (org_vec, tgt_vec) = (&every(0, 4), &every(90_000, 10));
                let (on_origin, tgt_cntr, cmpl_cntr) = (Next::Nothing, None, None);
                let memory = source(pattern(3, 4000));
                let call = Putv {
                    target,
                    remote,
                    tgt_vec,
                    memory,
                    org_vec,
                    on_origin,
                    tgt_cntr,
                    cmpl_cntr,
                };
                assert_eq!(session.putv(call).unwrap(), Sent::Now);
                let (memory, org_vec) = (landing.region(LEN), &every(1, 9));
                let next = Next::Counter(counter);
                let call = Getv { target, remote, tgt_vec, memory, org_vec, next, tgt_cntr };
                session.getv(call).unwrap();
                assert_eq!(session.getcntr(counter).unwrap(), 1);
                let (all, _) = landing.contents(LEN);
                for i in 0..1000 {
                    assert_eq!(all[1 + 9 * i..][..4], pattern(3, 4000)[4 * i..][..4]);
                }
                drop(session);
                gate.wait();
                gate.wait();
            },
        );
    }
}

/// All four tasks add to one variable of each size, each task by itself; the owner waits for it by loads alone.
#[test]
fn read_modify_writes_are_atomic() {
    const TASKS: usize = 4;
    const EACH: i64 = 1000;
    for kind in WITH_AREAS {
        let board = Board::new(TASKS);
        run(
            kind,
            TASKS,
            |_| (),
            move |context| {
                let memory = alloc(context, &board, 64);
                let prev = Arc::new(AtomicI64::new(0));
                let rmw = |offset, operation: Operation| {
                    let call = Rmw::new(0, board.of(0), offset, operation);
                    let call = Rmw { prev: Some(Arc::clone(&prev)), ..call };
                    context.session().unwrap().rmw(call).unwrap();
                    prev.load(Ordering::Relaxed)
                };
                let mut last = [-1; 2];
                for _ in 0..EACH {
                    let now = [
                        rmw(8, RmwOp::FetchAndAdd(1_i64).into()),
                        rmw(4, RmwOp::FetchAndAdd(1_i32).into()),
                    ];
                    assert!(now[0] > last[0] && now[1] > last[1], "{kind:?}: {now:?}");
                    last = now;
                }
                let all = EACH * TASKS as i64;
                while context.task() == 0 && memory.load(8).unwrap() < all {
                    std::hint::spin_loop();
                }
                context.gfence().unwrap();
                if context.task() == 0 {
                    assert_eq!(memory.load(8).unwrap(), all);
                    assert_eq!(memory.load(0).unwrap() >> 32, all, "the upper half");
                    let swap = |expected| RmwOp::CompareAndSwap { expected, new: 5_i64 }.into();
                    assert_eq!([rmw(8, swap(0)), rmw(8, swap(all)), rmw(8, swap(all))], [0, 1, 0]);
                    assert_eq!(rmw(8, RmwOp::FetchAndOr(8_i64).into()), 5);
                    assert_eq!(rmw(8, RmwOp::Swap(0_i64).into()), 13);
                }
                context.gfence().unwrap();
            },
        );
    }
}

/// Short puts without counters and read-modify-writes without an action are carried out inside the call: every length,
/// and the first and the last places.
#[test]
fn short_operations_are_done_when_the_call_returns() {
    const ALL: usize = 2048;
    for kind in WITH_AREAS {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let memory = alloc(context, &board, ALL);
                context.gfence().unwrap();
                let (me, other) = (context.task(), 1 - context.task());
                let landing = Landing::new(ALL);
                // Task 0 writes to both, one after the other.
                for target in [me, other].into_iter().filter(|_| me == 0) {
                    let remote = board.of(target);
                    for len in (0..150).chain([1023, 1024, 1025, ALL]) {
                        for offset in [0, 3, ALL - len].into_iter().filter(|at| at + len <= ALL) {
                            let bytes = pattern(len as u64, len);
                            let call = Put::new(target, remote, offset as u64, source(bytes));
                            let mut session = context.session().unwrap();
                            assert_eq!(session.put(call).unwrap(), Sent::Now);
                            let into = landing.region(len);
                            session
                                .get(target, remote, offset as u64, into, Next::Nothing)
                                .unwrap();
                            assert!(landing.holds(bytes), "{kind:?}: {len} bytes at {offset}");
                            landing.wipe();
                        }
                    }
                    let rmw = |offset, operation: Operation| {
                        let call = Rmw::new(target, remote, offset, operation);
                        context.session().unwrap().rmw(call).unwrap().expect("it is done")
                    };
                    let last = ALL as u64 - 8;
                    rmw(last, RmwOp::Swap(-7_i64).into());
                    assert_eq!(rmw(last, RmwOp::FetchAndAdd(2_i64).into()), -7);
                    assert_eq!(rmw(last, RmwOp::FetchAndOr(8_i32).into()), -5);
                    let [expected, new] = [-5, 1_i64];
                    assert_eq!(rmw(last, RmwOp::CompareAndSwap { expected, new }.into()), 1);
                    let mut session = context.session().unwrap();
                    for (offset, size) in [(last + 4, 8), (last + 1, 4)] {
                        let operation: Operation = match size {
                            8 => RmwOp::Swap(0_i64).into(),
                            _ => RmwOp::Swap(0_i32).into(),
                        };
                        session.rmw(Rmw::new(target, remote, offset, operation)).unwrap_err();
                    }
                    let bytes = source(pattern(9, 9));
                    session.put(Put::new(target, remote, last, bytes)).unwrap_err();
                }
                context.gfence().unwrap();
                assert_eq!(memory.load(ALL - 8).unwrap(), 1, "{kind:?}");
            },
        );
    }
}

/// A put with a counter of the target wakes it, and its bytes are there.
#[test]
fn counters_of_the_target_follow_the_data() {
    for kind in WITH_AREAS {
        let board = Board::new(2);
        run(
            kind,
            2,
            |_| (),
            move |context| {
                let memory = alloc(context, &board, LEN);
                let counter = context.session().unwrap().counter();
                context.gfence().unwrap();
                for round in 0..50 {
                    let bytes = pattern(round, 777);
                    if context.task() == 0 {
                        let call = Put::new(1, board.of(1), 9, source(bytes));
                        let call = Put { tgt_cntr: Some(counter), ..call };
                        let _ = context.session().unwrap().xfer(Xfer::Put(call)).unwrap();
                    } else {
                        context.waitcntr(counter, 1).unwrap();
                        let mut found = [0; 777];
                        memory.read(9, &mut found).unwrap();
                        assert!(found == bytes, "{kind:?}: round {round}");
                    }
                    context.gfence().unwrap();
                }
            },
        );
    }
}

#[test]
fn allocations_end_and_are_refused_when_there_is_no_room() {
    run(
        Kind::Shm,
        1,
        |_| (),
        |context| {
            let alloc = |len| context.session().unwrap().alloc_shared(len);
            let LapiError::AreaExhausted { len: usize::MAX, longest } =
                alloc(usize::MAX).unwrap_err()
            else {
                panic!("no area is that long");
            };
            let all = alloc(longest).unwrap();
            let refusal = alloc(1).unwrap_err();
            assert!(
                matches!(refusal, LapiError::AreaExhausted { len: 1, longest: 0 }),
                "{refusal}"
            );
            drop(all);
            let [first, second] = [alloc(1).unwrap(), alloc(0).unwrap()];
            assert!(second.is_empty() && first.region().key != second.region().key);
            drop((first, second));
            assert_eq!(alloc(longest).unwrap().len(), longest);
        },
    );
}

#[test]
fn wrong_arguments_are_refused_and_nothing_is_stored() {
    run(
        Kind::Shm,
        2,
        |_| (),
        |context| {
            let memory = context.session().unwrap().alloc_shared(100).unwrap();
            let (remote, me) = (memory.region(), context.task());
            let bytes = || source(pattern(1, 8));
            let mut session = context.session().unwrap();
            for offset in [93, 101, u64::MAX] {
                let refusal = session.put(Put::new(me, remote, offset, bytes())).unwrap_err();
                assert!(matches!(refusal, LapiError::DataLen { len: 8, .. }), "{refusal}");
            }
            let refusal = session.put(Put::new(2, remote, 0, bytes())).unwrap_err();
            assert!(matches!(refusal, LapiError::Tgt { target: 2, .. }), "{refusal}");
            let refusal = session.put(Put::new(me, remote, 0, null_source(8))).unwrap_err();
            assert!(matches!(refusal, LapiError::OrgAddrNull { len: 8 }), "{refusal}");
            let swap = |offset| Rmw::new(me, remote, offset, RmwOp::Swap(1_i64));
            let refusal = session.rmw(swap(4)).unwrap_err();
            assert!(matches!(refusal, LapiError::Unaligned { offset: 4, size: 8 }), "{refusal}");
            let refusal = session.rmw(swap(96)).unwrap_err();
            assert!(matches!(refusal, LapiError::DataLen { .. }), "{refusal}");
            // A description that another task has damaged: behind the end of the area.
            for key in [u64::MAX, remote.key | 1 << 40] {
                let remote = RemoteRegion { key, len: u64::MAX, ..remote };
                let refusal = session.put(Put::new(me, remote, 0, bytes())).unwrap_err();
                assert!(matches!(refusal, LapiError::DataLen { .. }), "{refusal}");
                let into = Landing::new(8).region(8);
                let refusal = session.get(me, remote, 0, into, Next::Nothing).unwrap_err();
                assert!(matches!(refusal, LapiError::DataLen { .. }), "{refusal}");
                let refusal = session.rmw(Rmw::new(me, remote, 0, RmwOp::Swap(1_i64))).unwrap_err();
                assert!(matches!(refusal, LapiError::DataLen { .. }), "{refusal}");
            }
            drop(session);
            assert!(contents(&memory).iter().all(|&byte| byte == 0));
            assert!(matches!(memory.load(93), Err(LapiError::DataLen { .. })));
            assert!(matches!(memory.load(4), Err(LapiError::Unaligned { .. })));
            assert!(matches!(memory.store(4, 1), Err(LapiError::Unaligned { .. })));
            assert!(matches!(memory.read(99, &mut [0; 2]), Err(LapiError::DataLen { .. })));
            assert!(matches!(memory.write(usize::MAX, &[0; 2]), Err(LapiError::DataLen { .. })));
        },
    );
}

/// A task alone in a job of threads stores, loads and modifies as one that the launcher started.
#[test]
fn a_task_alone_has_an_area() {
    run(
        Kind::Threads,
        1,
        |_| (),
        |context| {
            let memory = context.session().unwrap().alloc_shared(LEN).unwrap();
            assert!(contents(&memory).iter().all(|&byte| byte == 0), "fresh memory is zero");
            let (remote, landing) = (memory.region(), Landing::new(LEN));
            let mut session = context.session().unwrap();
            for (at, len) in [(0, LEN), (3, 5000), (8, 0)] {
                let bytes = pattern(len as u64, len);
                assert_eq!(session.put(Put::new(0, remote, at, source(bytes))).unwrap(), Sent::Now);
                session.get(0, remote, at, landing.region(len), Next::Nothing).unwrap();
                assert!(landing.holds(bytes), "{len} bytes at {at}");
                landing.wipe();
            }
            let mut rmw = |operation: RmwOp<i64>| {
                session.rmw(Rmw::new(0, remote, 80_000, operation)).unwrap().expect("it is done")
            };
            rmw(RmwOp::Swap(7));
            assert_eq!([rmw(RmwOp::FetchAndAdd(2)), rmw(RmwOp::FetchAndOr(16))], [7, 9]);
            assert_eq!(memory.load(80_000).unwrap(), 25);
        },
    );
}

#[test]
fn several_threads_have_no_areas() {
    run(
        Kind::Threads,
        2,
        |_| (),
        |context| {
            let refusal = context.session().unwrap().alloc_shared(1).unwrap_err();
            assert!(matches!(refusal, LapiError::NoSharedArea), "{refusal}");
        },
    );
}

/// A read-modify-write that ends at once wakes a thread of the origin that sleeps until its counter changes.
#[test]
fn a_read_modify_write_wakes_who_waits_for_its_counter() {
    run(
        Kind::Shm,
        1,
        |_| (),
        |context| {
            context.senv(Query::InterruptSet, 1).unwrap();
            let memory = context.session().unwrap().alloc_shared(64).unwrap();
            let counter = context.session().unwrap().counter();
            std::thread::scope(|scope| {
                let waiter = scope.spawn(|| context.nopoll_wait(counter, 1).unwrap());
                std::thread::sleep(std::time::Duration::from_millis(20));
                let call = Rmw::new(0, memory.region(), 0, RmwOp::FetchAndAdd(1_i64));
                let call = Rmw { next: Next::Counter(counter), ..call };
                context.session().unwrap().rmw(call).unwrap();
                assert_eq!(waiter.join().unwrap(), 0);
            });
            context.term().unwrap();
        },
    );
}

/// Blocks without bytes take no time, however many they are.
#[test]
fn empty_blocks_are_not_walked() {
    run(
        Kind::Shm,
        1,
        |_| (),
        |context| {
            let memory = context.session().unwrap().alloc_shared(64).unwrap();
            let none = &Vector::Strided { base: 0, block: 0, stride: 0, count: u64::MAX };
            let (target, remote, tgt_vec, org_vec) = (0, memory.region(), none, none);
            let (tgt_cntr, cmpl_cntr, on_origin) = (None, None, Next::Nothing);
            let memory = source(pattern(1, 8));
            let call =
                Putv { target, remote, tgt_vec, memory, org_vec, on_origin, tgt_cntr, cmpl_cntr };
            assert_eq!(context.session().unwrap().putv(call).unwrap(), Sent::Now);
        },
    );
}

/// Runs `body` in a fork of this process, and returns the fork's exit code, or `None` if a signal ended it.
#[expect(unsafe_code, reason = "forks")]
fn in_a_fork(body: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: the child only compares values and exits; it takes no lock that another thread may have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = body();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
}

/// A fork does not have the memory, and gets an error.
#[test]
fn a_fork_does_not_access_the_memory() {
    let mut adapters = Kind::Shm.adapters(1);
    let context = Context::init(adapters.remove(0), (), Default::default());
    let memory = context.session().unwrap().alloc_shared(64).unwrap();
    let is_refused =
        |outcome: Result<(), LapiError>| matches!(outcome, Err(LapiError::Forked { task: 0 }));
    let code = in_a_fork(|| {
        let all = [
            is_refused(memory.load(0).map(drop)),
            is_refused(memory.store(0, 1)),
            is_refused(memory.read(0, &mut [0; 8])),
            is_refused(memory.write(0, &[0; 8])),
        ];
        i32::from(all != [true; 4])
    });
    assert_eq!(code, Some(0));
    assert_eq!(memory.load(0).unwrap(), 0);
}
