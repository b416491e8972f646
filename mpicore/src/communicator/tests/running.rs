//! How plans run: blocking, started, persistent; with functions of users, errors and lost ranks.

use mpjdev::Call;

use super::*;
use crate::Elements;
use crate::datatype::Datatype;

/// Makes a reduction of words by a function of the user.
fn by_user(
    commutes: bool,
    function: impl Fn(u64, u64) -> u64 + Send + Sync + 'static,
) -> Reduction {
    let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
    let apply = move |left: &[u8], right: &mut [u8], _: usize, _: &dyn Any| {
        for (left, right) in left.chunks_exact(8).zip(right.chunks_exact_mut(8)) {
            let result = function(word(left), word(right));
            right.copy_from_slice(&result.to_ne_bytes());
        }
    };
    let operand = Operand::Kind(ElementKind::U64);
    Reduction { op: UserOp::new(commutes, apply).into(), operand }
}

/// Joins the digits of two numbers.
fn joined(left: u64, right: u64) -> u64 {
    let digits = right.checked_ilog10().map_or(1, |log| log + 1);
    left * 10_u64.pow(digits) + right
}

/// Plans a call that joins the words of all ranks, each as a digit, in the order of ranks.
fn digits(over: &Communicator) -> Plan<'_> {
    let reduction = by_user(false, joined);
    let own = Output::keeping(vec![u64::from(over.rank()) + 1]);
    over.allreduce(None, own, 1, reduction).unwrap()
}

#[test]
fn operands_are_combined_in_the_order_of_ranks() {
    for ranks in 1..=6 {
        run(ranks, move |world| {
            let expected = (1..=ranks as u64).fold(0, |all, digit| 10 * all + digit);
            assert_eq!(digits(world).run_and_keep().unwrap(), [expected]);
        });
    }
}

#[test]
fn collectives_that_were_started_go_on_while_their_rank_waits_for_something_else() {
    run(4, |world| {
        let other = world.dup().unwrap();
        let started = digits(world).start().unwrap();
        let passed = Arc::new(AtomicUsize::new(0));
        let note = passed.clone();
        sum_plan(world, vec![1]).persistent().unwrap().start_then(move |outcome| {
            assert_eq!(outcome.unwrap(), [4]);
            note.fetch_add(1, Ordering::Relaxed);
        });
        // Rank 0 waits for no collective before all other ranks have completed both.
        if world.rank() > 0 {
            world.device().iwait(started).unwrap();
            while passed.load(Ordering::Relaxed) == 0 {
                world.device().progress().unwrap();
            }
            other.barrier().unwrap().run().unwrap();
        } else {
            other.barrier().unwrap().run().unwrap();
            world.device().iwait(started).unwrap();
        }
    });
}

/// Calls are counted modulo 2^30; here the one 2^30 calls after the persistent one is started beside it.
#[test]
fn a_persistent_collective_keeps_its_messages_when_the_numbers_of_calls_begin_again() {
    run(2, |world| {
        let word = u64::from(world.rank()) + 1;
        let number = world.0.calls.load(Ordering::Relaxed);
        let kept = sum_plan(world, vec![word]).persistent().unwrap();
        world.0.calls.store(number + CALL_NUMBERS, Ordering::Relaxed);
        let later = sum_plan(world, vec![1000 * word]).once().unwrap();
        let (mut plans, mut results) = ([kept, later], [3, 3000]);
        if world.rank() == 1 {
            plans.reverse();
            results.reverse();
        }
        let sums: Arc<Mutex<Vec<(u64, u64)>>> = Arc::default();
        for (plan, expected) in plans.into_iter().zip(results) {
            let sums = sums.clone();
            plan.start_then(move |sum| sums.lock().unwrap().push((sum.unwrap()[0], expected)));
        }
        while sums.lock().unwrap().len() < 2 {
            world.device().progress().unwrap();
        }
        assert!(sums.lock().unwrap().iter().all(|(sum, expected)| sum == expected), "{sums:?}");
    });
}

#[test]
fn a_communicator_runs_out_of_persistent_collectives() {
    run(2, |world| {
        world.0.persistent.store((1 << 29) - 1, Ordering::Relaxed);
        let mut last = world.barrier().unwrap().persistent().unwrap();
        let request = last.start().unwrap();
        assert_eq!(sum(world, 1), 2, "blocking calls run beside it");
        world.device().iwait(request).unwrap();
        let refused = world.barrier().unwrap().persistent().map(drop).unwrap_err();
        assert!(matches!(refused, Error::PersistentTags), "{refused}");
        let started = world.barrier().unwrap().start().unwrap();
        world.device().iwait(started).unwrap();
        let request = last.start().unwrap();
        world.device().iwait(request).unwrap();
    });
}

#[test]
fn a_kept_plan_runs_as_often_as_it_is_started() {
    run(3, |world| {
        let mut plan = world.barrier().unwrap().persistent().unwrap();
        for _ in 0..20 {
            let request = plan.start().unwrap();
            assert_eq!(sum(world, 1), 3, "others run beside it");
            world.device().iwait(request).unwrap();
        }
        let first = plan.start().unwrap();
        if let Err(refused) = plan.start() {
            assert_eq!(refused.class(), ErrorClass::Request);
            world.device().iwait(first).unwrap();
        } else {
            // The first run would have to end before the second start, on every rank.
            unreachable!("a barrier of three does not end in the call that starts it");
        }
    });
}

#[test]
fn a_function_of_the_user_may_call_mpi() {
    run(3, |world| {
        let (inner, process) = (world.dup().unwrap(), world.process().clone());
        let reduction = by_user(true, move |left, right| {
            // Make progress, and an operation that ends by it.
            let device = process.device();
            let (request, ending) = device.begin(Call::Other, inner.context(), 0).unwrap();
            device.end(ending, Ok(Status::new(0, 0, 0)));
            device.iwait(request).unwrap();
            left + right
        });
        for _ in 0..5 {
            let plan = |reduction| world.allreduce(None, Output::keeping(vec![2]), 1, reduction);
            assert_eq!(plan(reduction.clone()).unwrap().run_and_keep().unwrap(), [6]);
            let request = plan(reduction.clone()).unwrap().start().unwrap();
            world.device().iwait(request).unwrap();
        }
    });
}

#[test]
fn a_panic_of_a_started_reduction_is_its_outcome() {
    run(2, |world| {
        let reduction = by_user(true, |_, _| panic!("no such sum"));
        let plan = world.allreduce(None, Output::keeping(vec![2]), 1, reduction).unwrap();
        let request = plan.start().unwrap();
        let outcome = world.device().iwait(request).map_err(Error::from).unwrap_err();
        assert!(outcome.to_string().contains("no such sum"), "{outcome}");
        assert_eq!(sum(world, 1), 2);
    });
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_do_not_count() {
    run(2, |world| {
        let plan = |count, op: Predefined, kind| {
            let reduction = Reduction { op: op.into(), operand: Operand::Kind(kind) };
            world.allreduce(None, Output::keeping(vec![1, 2]), count, reduction).and_then(Plan::run)
        };
        let class = |outcome: Result<(), Error>| outcome.unwrap_err().class();
        // These calls fail on one rank only: if they counted, the sum below would not match.
        if world.rank() == 0 {
            let (sum, f64) = (Predefined::Sum, ElementKind::F64);
            assert_eq!(class(plan(3, sum, f64)), ErrorClass::Buffer);
            assert_eq!(class(plan(u64::MAX, sum, f64)), ErrorClass::Count);
            assert_eq!(class(plan(2, Predefined::Band, f64)), ErrorClass::Op);
            assert_eq!(class(plan(2, Predefined::NoOp, f64)), ErrorClass::Op);
            let root = world.bcast(Output::none(), 0, 2).and_then(Plan::run);
            assert_eq!(class(root), ErrorClass::Root);
        }
        assert_eq!(sum(world, 1), 2);
    });
}

#[test]
fn a_message_that_is_too_long_fails_where_it_comes_and_nowhere_else() {
    run(3, |world| {
        let len = if world.rank() == 2 { 1 } else { 2 };
        let buffer = || Output::keeping(vec![0; len as usize]);
        let blocking = world.bcast(buffer(), len, 0).unwrap().run();
        let request = world.bcast(buffer(), len, 0).unwrap().start().unwrap();
        let started = world.device().iwait(request).map(drop).map_err(Error::from);
        for outcome in [blocking, started] {
            let class = outcome.as_ref().map_err(Error::class);
            assert_eq!(class, if len == 1 { Err(ErrorClass::Truncate) } else { Ok(&()) });
            if let Err(error) = outcome {
                let told = "in this bcast, 16 bytes came from job rank 0, more than the 8 that are expected: the ranks give different \
                            numbers of elements";
                assert!(error.to_string().starts_with(told), "{error}");
            }
        }
        assert_eq!(sum(world, 1), 3);
    });
}

#[test]
fn an_idup_between_groups_goes_on_beside_other_calls() {
    run(4, |world| {
        let side = world.rank() % 2;
        let own = world.split(SplitKey { color: Some(side), key: 0 }).unwrap().unwrap();
        let other = RemoteLeader { peers: world, leader: 1 - side, tag: 3 };
        let between = own.create_inter(0, Some(other)).unwrap();
        for _ in 0..20 {
            // Each rank is at a different place when the second half of the agreement begins.
            let creating = between.idup().unwrap();
            let barriers = [(); 3].map(|()| between.inter_barrier().unwrap().start().unwrap());
            let made = creating.wait().unwrap();
            for barrier in barriers {
                world.device().iwait(barrier).unwrap();
            }
            made.inter_barrier().unwrap().run().unwrap();
        }
    });
}

#[test]
fn a_function_of_the_user_gets_elements_as_they_lie_from_their_first_byte_on() {
    run(5, |world| {
        // Two words with one between them, three words after the address of the element.
        let word = Datatype::predefined(ElementKind::U64);
        let element = Datatype::indexed(&[1, 1], &[3, 5], &word).unwrap().resized(0, 32).unwrap();
        let apply = |left: &[u8], right: &mut [u8], count: usize, _: &dyn Any| {
            assert_eq!(count, 2);
            for at in [0, 16, 32, 48] {
                let word = |bytes: &[u8]| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
                let joined = joined(word(left), word(right));
                right[at..at + 8].copy_from_slice(&joined.to_ne_bytes());
            }
        };
        let rank = u64::from(world.rank());
        let own = [0, 0, 0, 1, 0, rank + 1, 0, rank + 2, 0, 3];
        let input = Input::keeping(own.to_vec()).with(Elements::Typed(element.clone()));
        let output = Output::keeping(vec![7; 10]).with(Elements::Typed(element));
        let operand = Operand::Described(Arc::new(()));
        let reduction = Reduction { op: UserOp::new(false, apply).into(), operand };
        let results = world.allreduce(Some(input), output, 2, reduction).unwrap().run_and_keep();
        assert_eq!(results.unwrap(), [7, 7, 7, 11111, 7, 12345, 7, 23456, 7, 33333]);
    });
}
