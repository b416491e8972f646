//! Collectives: every type by every algorithm on every adapter, the choice of algorithms, and what is measured of them.

mod support;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;

use pami::{
    Algorithm, Collective, CollectiveCall, ElementKind, Error, Finished, Geometry, Guard, Members,
    Predefined, Property, Protocol, Reduction, TypeBuilder, Unfit, Xfer,
};
use support::collectives::{carry_out, create, destroy, each, oracle, post};
use support::{Kind, Log, run, run_with, until};
use transport_lapi::Ranges;

/// Carries out each collective by each algorithm that fits.
fn try_all(guard: &mut Guard<'_>, geometry: &Geometry, len: usize) {
    let (rank, members) = (geometry.rank(guard.endpoint()).unwrap(), geometry.members().len());
    for collective in each(rank, members, len) {
        let (input, expected) = oracle(&collective, len, rank, members);
        let algorithms = geometry.algorithms(collective.xfer()).concat();
        let fit = algorithms.into_iter().filter(|one| geometry.check(*one, &collective).is_ok());
        for algorithm in fit.map(Some).chain([None]) {
            let call = CollectiveCall::new(geometry, collective.clone(), input.clone());
            let Finished { output, algorithm: used } =
                carry_out(guard, CollectiveCall { algorithm, ..call }).unwrap();
            assert!(output == expected, "{used}, rank {rank} of {members}, {len}");
            assert!(algorithm.is_none_or(|algorithm| algorithm == used), "{used} instead");
        }
    }
}

#[test]
fn each_collective_by_each_algorithm() {
    for kind in Kind::ALL {
        for (tasks, lens) in [(1, &[7][..]), (2, &[0, 300]), (3, &[5]), (4, &[17_000])] {
            run(kind, tasks, move |task| {
                let mut guard = task.lock();
                for len in lens {
                    try_all(&mut guard, task.client.world(), *len);
                }
            });
        }
    }
}

#[test]
fn predefined_operations_and_typed_data() {
    run(Kind::Threads, 3, |task| {
        let mut guard = task.lock();
        let (world, own) = (task.client.world(), task.id() as i32);
        let numbers =
            |numbers: &[i32]| numbers.iter().flat_map(|n| n.to_ne_bytes()).collect::<Vec<_>>();
        let sum = Reduction::of(Predefined::Sum, ElementKind::I32).unwrap();
        let collective = Collective::Allreduce { len: 8, op: sum.clone() };
        let call = CollectiveCall::new(world, collective, numbers(&[own, i32::MAX]));
        let found = carry_out(&mut guard, call).unwrap();
        assert_eq!(found.output, numbers(&[3, i32::MAX.wrapping_mul(3)]));
        let error = Reduction::of(Predefined::Band, ElementKind::F64).unwrap_err();
        assert_eq!(error.code(), pami::Code::Inval);

        // The operands are every other number, and so are the results.
        let memory = guard.memregion_create(32).unwrap();
        memory.write(0, &numbers(&[own, 9, 10 + own, 9, 9, 9, 9, 9]));
        let form = TypeBuilder::new().add_simple(4, 0, 2, 8).unwrap().complete(4).unwrap();
        let collective = Collective::Scan { len: 8, op: sum, exclusive: true };
        let call = CollectiveCall::new(world, collective, memory.typed_source(0, &form));
        let output = Some(memory.typed_sink(16, &form));
        carry_out(&mut guard, CollectiveCall { output, ..call }).unwrap();
        let mut after = vec![0; 32];
        memory.read(0, &mut after);
        let [first, second] = [[9, 9], [0, 10], [1, 21]][own as usize];
        assert_eq!(after, numbers(&[own, 9, 10 + own, 9, first, 9, second, 9]));

        // Bytes between blocks stay.
        let blocks = vec![0..1, 6..8, 3..5];
        memory.write(0, &[7; 8]);
        let input = vec![own as u8; blocks[own as usize].len()];
        let call = CollectiveCall::new(world, Collective::Allgatherv { blocks }, input);
        let output = Some(memory.sink(0, 8));
        carry_out(&mut guard, CollectiveCall { output, ..call }).unwrap();
        memory.read(0, &mut after[..8]);
        assert_eq!(after[..8], [0, 7, 7, 2, 2, 7, 1, 1]);
    });
}

#[test]
fn algorithms_have_lists_names_metadata_and_checks() {
    run(Kind::Hosts, 3, |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        let [always, checked] = world.algorithms(Xfer::Allgather);
        let name = |algorithm: &Algorithm| algorithm.metadata().name;
        assert_eq!(always.iter().map(name).collect::<Vec<_>>(), ["ring"]);
        assert_eq!(checked.iter().map(name).collect::<Vec<_>>(), ["hosts", "doubling"]);
        for algorithm in always.iter().chain(&checked) {
            let metadata = algorithm.metadata();
            let is_checked = metadata.properties.contains(&Property::CheckRequired);
            assert_eq!(is_checked, checked.contains(algorithm), "{algorithm}");
            assert!(metadata.properties.contains(&Property::GlobalOrder));
            assert_eq!((metadata.version, metadata.min_align), (1, 1));
            assert!(metadata.range.contains(&0) && metadata.range_perf.contains(&10));
            let is_for_long = metadata.range_perf.contains(&(1 << 20));
            assert_eq!(is_for_long, metadata.name != "hosts");
        }
        let scatter = world.algorithms(Xfer::Scatter)[0][0].metadata();
        assert_eq!(scatter.properties, [Property::Asyncflowctl]);

        let gather = Collective::Allgather { block: 4 };
        let doubling = Algorithm::named(Xfer::Allgather, "doubling").unwrap();
        assert_eq!(world.check(doubling, &gather), Err(Unfit::Members(3)));
        let halving = Algorithm::named(Xfer::Allreduce, "halving").unwrap();
        assert_eq!(world.check(halving, &gather), Err(Unfit::Type(Xfer::Allreduce)));
        let op = Reduction::of(Predefined::Sum, ElementKind::I32).unwrap();
        let short = Collective::Allreduce { len: 8, op };
        let range = Unfit::Range { elements: 2, members: 3 };
        assert_eq!(world.check(halving, &short), Err(range));
        let call = CollectiveCall::new(world, short, vec![0; 8]);
        let error =
            guard.collective(CollectiveCall { algorithm: Some(halving), ..call }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Allreduce by halving cannot be used: 2 elements cannot be divided among 3 members; choose another algorithm, or none"
        );
        let hosts = Algorithm::named(Xfer::Barrier, "hosts").unwrap();
        assert_eq!(world.check(hosts, &Collective::Barrier), Ok(()));
        let used = |guard: &mut Guard<'_>| {
            let call = CollectiveCall::new(world, Collective::Barrier, vec![]);
            carry_out(guard, call).unwrap().algorithm.metadata().name
        };
        // The attribute says whether such algorithms are chosen.
        assert!(world.is_optimized());
        assert_eq!(used(&mut guard), "hosts");
        world.set_optimized(false);
        assert_eq!(used(&mut guard), "signals");
    });
}

/// Posts a broadcast of so many bytes, and returns the name of the algorithm that carries it out.
fn algorithm_of(guard: &mut Guard<'_>, geometry: &Geometry, len: usize) -> &'static str {
    let input = if geometry.rank(guard.endpoint()) == Some(0) { vec![1; len] } else { vec![] };
    let call = CollectiveCall::new(geometry, Collective::Broadcast { root: 0, len }, input);
    carry_out(guard, call).unwrap().algorithm.metadata().name
}

#[test]
fn associations_choose_the_algorithm_when_an_advance_takes_the_call() {
    let table = |bounds: [(u64, &str); 2]| {
        let row = |(bound, name)| (bound, Algorithm::named(Xfer::Broadcast, name).unwrap());
        Ranges::new(bounds.map(row)).unwrap()
    };
    run(Kind::Threads, 3, move |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        assert_eq!(algorithm_of(&mut guard, world, 64 << 10), "binomial");
        assert_eq!(algorithm_of(&mut guard, world, (64 << 10) + 1), "scatter_allgather");
        // That of the context holds, until the geometry has one.
        let of_context = table([(100, "scatter_allgather"), (u64::MAX, "binomial")]);
        guard.associate_collective(of_context.clone()).unwrap();
        for (len, name) in [(100, "scatter_allgather"), (101, "binomial")] {
            assert_eq!(algorithm_of(&mut guard, world, len), name);
        }
        assert_eq!(world.association(Xfer::Broadcast), None);
        let of_geometry = table([(10, "binomial"), (20, "scatter_allgather")]);
        world.associate(of_geometry.clone()).unwrap();
        assert_eq!(world.association(Xfer::Broadcast), Some(of_geometry));
        for (len, name) in [
            (0, "binomial"),
            (10, "binomial"),
            (11, "scatter_allgather"),
            (20, "scatter_allgather"),
        ] {
            assert_eq!(algorithm_of(&mut guard, world, len), name, "{len}");
        }
        // Three members cannot share two bytes.
        world.associate(table([(1, "binomial"), (20, "scatter_allgather")])).unwrap();
        assert_eq!(algorithm_of(&mut guard, world, 2), "binomial");
        // Above the last range there is no algorithm, which the callback is told.
        let input = if task.id() == 0 { vec![1; 21] } else { vec![] };
        let call = CollectiveCall::new(world, Collective::Broadcast { root: 0, len: 21 }, input);
        match carry_out(&mut guard, call) {
            Err(Error::NoRange { len: 21, last: 20 }) => {}
            other => panic!("{other:?}"),
        }
        // Posted before the association, and taken after it.
        let ends = Log::new();
        let input = if task.id() == 0 { vec![1; 50] } else { vec![] };
        let call = CollectiveCall::new(world, Collective::Broadcast { root: 0, len: 50 }, input);
        post(&mut guard, call, &ends);
        world.associate(of_context).unwrap();
        until(&mut guard, || ends.len() == 1);
        assert_eq!(ends.take()[0].as_ref().unwrap().algorithm.metadata().name, "scatter_allgather");

        let mixed = [(1, (Xfer::Scan, "doubling")), (2, (Xfer::Barrier, "signals"))];
        let row = |(bound, (xfer, name))| (bound, Algorithm::named(xfer, name).unwrap());
        let error = guard.associate_collective(Ranges::new(mixed.map(row)).unwrap()).unwrap_err();
        let text = "an association with algorithms of Scan and of Barrier; make one for each type";
        assert_eq!(error.to_string(), text);
    });
}

#[test]
fn the_association_of_a_programs_messages_is_none_of_collectives() {
    run(Kind::Threads, 2, |task| {
        let mut guard = task.lock();
        let short = Ranges::new(vec![(4096, Protocol::Eager)]).unwrap();
        guard.send_association().set(short);
        assert_eq!(algorithm_of(&mut guard, task.client.world(), 8192), "binomial");
    });
}

#[test]
fn algorithms_are_tuned_by_what_was_recorded() {
    run(Kind::Threads, 2, |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        let tuned = |guard: &mut Guard<'_>| {
            let found = Log::new();
            let to = found.clone();
            guard.tune(world, Xfer::Broadcast, move |_, result| to.push(result.unwrap())).unwrap();
            until(guard, || found.len() == 1);
            found.take().remove(0)
        };
        assert_eq!(tuned(&mut guard), None, "nothing was recorded");
        for name in ["binomial", "scatter_allgather"] {
            let algorithm = Some(Algorithm::named(Xfer::Broadcast, name).unwrap());
            for len in [100, 100, 5_000] {
                let input = if task.id() == 0 { vec![1; len] } else { vec![] };
                let call =
                    CollectiveCall::new(world, Collective::Broadcast { root: 0, len }, input);
                carry_out(&mut guard, CollectiveCall { algorithm, ..call }).unwrap();
            }
        }
        let records = world.records(Xfer::Broadcast);
        let times: Vec<_> = records.iter().map(|one| (one.up_to, one.times)).collect();
        assert_eq!(times, [(128, 2), (8192, 1), (128, 2), (8192, 1)]);
        let chosen: u64 = guard.chosen().iter().map(|(_, times)| times).sum();
        assert_eq!(chosen, 6, "the reduction of the records is none of the program's");
        assert_eq!(world.records(Xfer::Allreduce), []);
        // What is found is the same on both members, and is used.
        let found = tuned(&mut guard).unwrap();
        assert_eq!(world.association(Xfer::Broadcast), Some(found.clone()));
        for len in [100, 5_000] {
            let expected = found.choose(len as u64).unwrap().metadata().name;
            assert_eq!(algorithm_of(&mut guard, world, len), expected);
        }
        let bytes = |found: &Ranges<Algorithm>| format!("{found:?}").into_bytes();
        let mut told = bytes(&found);
        told.resize(200, 0);
        let all = CollectiveCall::new(world, Collective::Allgather { block: 200 }, told.clone());
        assert_eq!(carry_out(&mut guard, all).unwrap().output, [&told[..], &told].concat());
    });
}

#[test]
fn wrong_arguments_are_refused_with_what_to_change() {
    run(Kind::Threads, 2, |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        let mut refused = |collective, len: usize| {
            let call = CollectiveCall::new(world, collective, vec![0; len]);
            let error = guard.collective(call).unwrap_err();
            assert_eq!(error.code(), pami::Code::Inval);
            error.to_string()
        };
        let op = || Reduction::function(4, true, |_, _| {});
        let texts = [
            (
                refused(Collective::Broadcast { root: 2, len: 1 }, 0),
                "root 2 is out of range: the group of the root has 2 ranks, counted from 0",
            ),
            (
                refused(Collective::Allgather { block: 3 }, 2),
                "2 bytes of input for a collective with 3; give as many, or other arguments",
            ),
            (
                refused(Collective::Allgatherv { blocks: vec![0..1; 3] }, 1),
                "3 entries for 2 ranks; give one for each",
            ),
            (
                refused(Collective::Alltoallv { send: vec![0..1; 2], receive: vec![] }, 1),
                "0 entries for 2 ranks; give one for each",
            ),
            (
                refused(Collective::Allgatherv { blocks: vec![0..2, 1..3] }, 2),
                "the blocks of rank 0 and rank 1 overlap, so what one sends would replace what the other does; give blocks without common elements",
            ),
            (
                refused(
                    Collective::Allgatherv { blocks: vec![0..2, Range { start: 8, end: 3 }] },
                    2,
                ),
                "a block from 8 to 3 ends before it starts; give its end behind its start",
            ),
            (
                refused(Collective::Allreduce { len: 6, op: op() }, 6),
                "6 bytes are no whole number of elements of 4 bytes",
            ),
            (
                refused(Collective::ReduceScatter { lens: vec![8, 6], op: op() }, 14),
                "6 bytes are no whole number of elements of 4 bytes",
            ),
            (
                refused(Collective::Allgather { block: usize::MAX }, 0),
                "2 times 18446744073709551615 elements are more than 9223372036854775807; give fewer",
            ),
        ];
        for (text, expected) in texts {
            assert_eq!(text, expected);
        }
        let error = Algorithm::named(Xfer::Gather, "magic").unwrap_err();
        let text = "there is no algorithm \"magic\" of Gather; use one of: direct, binomial, hosts";
        assert_eq!(Error::from(error).to_string(), text);
        let output = Some(guard.memregion_create(9).unwrap().sink(0, 9));
        let call = CollectiveCall::new(world, Collective::Allgather { block: 4 }, vec![0; 4]);
        let error = guard.collective(CollectiveCall { output, ..call }).unwrap_err();
        assert_eq!(
            error.to_string(),
            "9 bytes of output for a collective with 8; give as many, or other arguments"
        );
    });
}

#[test]
fn members_that_disagree_are_told() {
    run(Kind::Threads, 2, |task| {
        let mut guard = task.lock();
        let world = task.client.world();
        let own = task.id() as usize;
        let names = ["halving", "doubling"];
        let collective =
            Collective::Allreduce { len: 2, op: Reduction::function(1, true, |_, _| {}) };
        let call = CollectiveCall::new(world, collective, vec![0; 2]);
        let algorithm = Some(Algorithm::named(Xfer::Allreduce, names[own]).unwrap());
        let error = carry_out(&mut guard, CollectiveCall { algorithm, ..call }).unwrap_err();
        let text = format!(
            "in geometry 0, endpoint ({}, 0) has Allreduce by {} where this member has Allreduce by {}; ",
            1 - own,
            names[1 - own],
            names[own]
        );
        assert!(error.to_string().starts_with(&text), "{error}");
        // The next one works.
        let block = 3 + own;
        let call = CollectiveCall::new(world, Collective::Allgather { block }, vec![0; block]);
        let error = carry_out(&mut guard, call).unwrap_err();
        assert!(error.to_string().contains(" bytes where this member has "), "{error}");
        assert_eq!(error.code(), pami::Code::Error);
        try_all(&mut guard, world, 10);
    });
}

#[test]
fn a_lost_task_ends_collectives() {
    for kind in [Kind::Threads, Kind::Channels] {
        let (all, survivors) = (Barrier::new(3), Barrier::new(2));
        run_with(kind, 3, 1, move |task| {
            let mut guard = task.lock();
            let world = task.client.world();
            carry_out(&mut guard, CollectiveCall::new(world, Collective::Barrier, vec![])).unwrap();
            all.wait();
            if task.id() == 2 {
                task.losses.declare();
                return false;
            }
            // One that has begun, and one that begins later. An advance tells of the loss, too, once.
            let mut is_told = false;
            for _ in 0..2 {
                let ends = Log::new();
                post(&mut guard, CollectiveCall::new(world, Collective::Barrier, vec![]), &ends);
                while ends.len() == 0 || !is_told {
                    match guard.advance(1) {
                        Ok(_) => std::thread::yield_now(),
                        Err(Error::Lost { task: 2 }) => is_told = true,
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(matches!(ends.take()[0], Err(Error::Lost { task: 2 })));
            }
            // With it there are no new geometries, and without it there are.
            drop(guard);
            let made = create(task, 1, Members::Tasks(vec![0, 1], Some(0)), Some(world));
            assert!(matches!(made, Err(Error::Lost { task: 2 })));
            let members = Members::Tasks(vec![1, 0], Some(0));
            let two = create(task, 1, members, None).unwrap().unwrap();
            try_all(&mut task.lock(), &two, 10);
            // Whoever leaves first is lost for the other one.
            survivors.wait();
            false
        });
    }
}

#[test]
fn an_operation_that_panics_ends_its_collective_alone() {
    run(Kind::Threads, 2, |task| {
        let own = task.id();
        let members = Members::Tasks(vec![0, 1], Some(0));
        let geometry = create(task, 1, members, None).unwrap().unwrap();
        let mut guard = task.lock();
        let op = Reduction::function(1, true, move |_, _| assert_ne!(own, 0, "on purpose"));
        let call = CollectiveCall::new(&geometry, Collective::Allreduce { len: 1, op }, vec![0]);
        let ends = Log::new();
        post(&mut guard, call, &ends);
        if own == 0 {
            let panics = catch_unwind(AssertUnwindSafe(|| until(&mut guard, || ends.len() == 1)));
            assert!(panics.is_err());
        } else {
            until(&mut guard, || ends.len() == 1);
        }
        try_all(&mut guard, &geometry, 10);
        assert_eq!(ends.len(), own as usize);
        drop(guard);
        destroy(task, &geometry);
    });
}
