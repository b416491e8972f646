//! Puts, gets, read-modify-writes, memory, fences, purges.

mod support;

use std::sync::{Arc, Barrier};

use pami::{
    Association, Callback, Code, Endpoint, Error, GetCall, Guard, Hints, Memregion, Modify,
    PutCall, RemoteMemory, RmwCall, SendCall, TypeBuilder, Value, ValueCallback,
};
use support::{Kind, Log, Meeting, Task, pattern, run, run_with, until};
use transport_lapi::{Ranges, Source};

const REGION: usize = 1 << 20;

/// Makes memory of this task, zeroed, and learns that of the other one.
fn exchange(task: &Task, guard: &mut Guard<'_>) -> (Memregion, Endpoint, RemoteMemory, Meeting) {
    let own = guard.memregion_create(REGION).unwrap();
    own.write(0, &vec![0; REGION]);
    let come = Log::new();
    let to = come.clone();
    let take = move |_: &mut pami::Section<'_>, message: pami::Message<'_>| {
        to.push(RemoteMemory::from_bytes(message.header.try_into().unwrap()));
    };
    guard.dispatch_set(0, take, Hints::default()).unwrap();
    let peer = task.endpoint(1 - task.id());
    let header = own.remote().to_bytes();
    let _ = guard.send_immediate(peer, 0, &header, &[]).unwrap();
    let theirs = come.wait_in(guard, 1)[0];
    assert_eq!(theirs.len, REGION as u64);
    (own, peer, theirs, Meeting::of(task, guard))
}

/// A callback that logs whether the operation has succeeded.
fn tell(log: &Log<bool>) -> Option<Callback> {
    let log = log.clone();
    Some(Box::new(move |_, result| log.push(result.is_ok())))
}

#[test]
fn puts_and_gets_of_every_length() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            for (round, len) in [1, 7, 8, 100, 4096, 16_385, 600_001].into_iter().enumerate() {
                let (offset, bytes) = ([0, 3, 64][round % 3], pattern(round, len));
                let (done, remote) = (Log::new(), Log::new());
                let from = Source::from(bytes.clone());
                let put = PutCall {
                    on_done: tell(&done),
                    on_remote: tell(&remote),
                    ..PutCall::new(peer, theirs, offset, from)
                };
                guard.put(put).unwrap();
                until(&mut guard, || done.len() == 1 && remote.len() == 1);
                let mirror = guard.memregion_create(len).unwrap();
                let get = GetCall::new(peer, theirs, offset, mirror.sink(0, len));
                let get = GetCall { on_done: tell(&done), on_remote: tell(&remote), ..get };
                guard.get(get).unwrap();
                assert_eq!(done.wait_in(&mut guard, 2), [true; 2]);
                assert_eq!(remote.wait_in(&mut guard, 2), [true; 2]);
                let mut came = vec![0; len];
                mirror.read(0, &mut came);
                assert!(came == bytes, "{kind:?}: {len} bytes at {offset}");
                meeting.meet(&mut guard);
                own.read(offset as usize, &mut came);
                assert!(came == bytes, "{kind:?}: here lie those of the other task");
                // A registered source.
                let put = PutCall::new(peer, theirs, offset, mirror.source(0, len));
                guard.put(PutCall { on_remote: tell(&remote), ..put }).unwrap();
                remote.wait_in(&mut guard, 3);
                guard.memregion_destroy(mirror);
                meeting.meet(&mut guard);
            }
        });
    }
}

#[test]
fn typed_puts_and_gets() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            let pairs = TypeBuilder::new().add_simple(2, 1, 50, 5).unwrap().complete(1).unwrap();
            let nested = TypeBuilder::new().add_typed(&pairs, 7, 3, 400).unwrap();
            let nested = nested.add_simple(10, 0, 1, 10).unwrap().complete(2).unwrap();
            assert_eq!((nested.size(), nested.extent(), nested.atom_size()), (310, 1217, 2));
            let here = guard.memregion_create(2000).unwrap();
            here.write(0, &pattern(9, 2000));
            let done = Log::new();
            let local =
                TypeBuilder::new().add_simple(31, 0, 10, 200).unwrap().complete(31).unwrap();
            let put = PutCall {
                remote_type: Some(nested.clone()),
                on_remote: tell(&done),
                ..PutCall::new(peer, theirs, 5, here.typed_source(0, &local))
            };
            guard.put(put).unwrap();
            done.wait_in(&mut guard, 1);
            meeting.meet(&mut guard);
            let packed: Vec<_> =
                (0..10).flat_map(|nth| pattern(9, 2000)[200 * nth..][..31].to_vec()).collect();
            let mut expected = vec![0; 1300];
            let places =
                (0..3).flat_map(|part| (0..50).map(move |nth| 7 + 400 * part + 1 + 5 * nth));
            for (nth, at) in places.enumerate() {
                expected[5 + at..][..2].copy_from_slice(&packed[2 * nth..][..2]);
            }
            expected[5 + 1207..][..10].copy_from_slice(&packed[300..]);
            let mut came = vec![0; 1300];
            own.read(0, &mut came);
            assert!(came == expected, "{kind:?}");
            let back = guard.memregion_create(2000).unwrap();
            back.write(0, &[0; 2000]);
            let get = GetCall {
                remote_type: Some(nested.clone()),
                on_done: tell(&done),
                ..GetCall::new(peer, theirs, 5, back.typed_sink(0, &local))
            };
            guard.get(get).unwrap();
            done.wait_in(&mut guard, 2);
            let mut came = vec![0; 31];
            for nth in 0..10 {
                back.read(200 * nth, &mut came);
                assert!(came == packed[31 * nth..][..31], "{kind:?}: block {nth}");
            }
            let put = PutCall::new(peer, theirs, 0, Source::from(vec![0; 309]));
            let error = guard.put(PutCall { remote_type: Some(nested), ..put }).unwrap_err();
            assert!(matches!(error, Error::Sizes { local: 309, remote: 310, .. }), "{error}");
            meeting.meet(&mut guard);
        });
    }
}

#[test]
fn all_read_modify_writes_of_all_types() {
    let types = [
        (Value::I32 as fn(i32) -> Value)(-5),
        Value::U32(u32::MAX - 3),
        Value::I64(i64::MIN + 7),
        Value::U64(u64::MAX - 9),
    ];
    let number = |value: Value| match value {
        Value::I32(value) => i128::from(value),
        Value::U32(value) => i128::from(value),
        Value::I64(value) => i128::from(value),
        Value::U64(value) => i128::from(value),
    };
    let of = |like: Value, number: i128| match like {
        Value::I32(_) => Value::I32(number as i32),
        Value::U32(_) => Value::U32(number as u32),
        Value::I64(_) => Value::I64(number as i64),
        Value::U64(_) => Value::U64(number as u64),
    };
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (_own, peer, theirs, meeting) = exchange(task, &mut guard);
            let step = |guard: &mut Guard<'_>, call: RmwCall| {
                let result = Log::new();
                let to = result.clone();
                let on_done: ValueCallback = Box::new(move |_, value| to.push(value.unwrap()));
                guard.rmw(RmwCall { on_done: Some(on_done), ..call }).unwrap();
                result.wait_in(guard, 1)[0]
            };
            for (nth, start) in types.into_iter().enumerate() {
                let offset = 64 * nth as u64;
                let call = |modify, value| RmwCall::new(peer, theirs, offset, modify, value);
                let mut now = of(start, 0);
                for (modify, operand) in [
                    (Modify::Set, number(start)),
                    (Modify::Add, 1234),
                    (Modify::Or, 0b1_0101),
                    (Modify::And, 0x7FFF_FFF3),
                    (Modify::Xor, 0b1110),
                ] {
                    let after = match modify {
                        Modify::Set => operand,
                        Modify::Add => number(now).wrapping_add(operand),
                        Modify::Or => number(now) | operand,
                        Modify::And => number(now) & operand,
                        Modify::Xor => number(now) ^ operand,
                    };
                    let operand = of(start, operand);
                    let wrong = Some(of(start, number(now) ^ 1));
                    let failed = RmwCall { test: wrong, ..call(modify, operand) };
                    assert_eq!(step(&mut guard, failed), now, "{kind:?}: {modify:?} with a test");
                    assert_eq!(
                        step(&mut guard, call(modify, operand)),
                        now,
                        "{kind:?}: {modify:?}"
                    );
                    now = of(start, after);
                    let right = RmwCall { test: Some(now), ..call(Modify::Xor, of(start, 3)) };
                    assert_eq!(step(&mut guard, right), now, "{kind:?}: after {modify:?}");
                    now = of(start, number(now) ^ 3);
                }
                assert_eq!(step(&mut guard, call(Modify::Or, of(start, 0))), now, "{kind:?}");
            }
            meeting.meet(&mut guard);
        });
    }
}

/// Many additions by both tasks, without callbacks, and a fence.
#[test]
fn additions_are_atomic_and_fences_wait_for_them() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            for number in 0..200 {
                let dest =
                    if number % 2 == 0 { (peer, theirs) } else { (guard.endpoint(), own.remote()) };
                let call = RmwCall::new(dest.0, dest.1, 8, Modify::Add, Value::U64(number));
                guard.rmw(call).unwrap();
            }
            let done = Log::new();
            guard.fence_begin().unwrap();
            guard.fence_all(tell(&done).unwrap()).unwrap();
            guard.fence_end().unwrap();
            done.wait_in(&mut guard, 1);
            meeting.meet(&mut guard);
            let mut sum = [0; 8];
            own.read(8, &mut sum);
            assert_eq!(u64::from_ne_bytes(sum), (0..200).sum(), "{kind:?}");
        });
    }
}

#[test]
fn fences_have_regions_and_wait_for_puts_gets_and_messages() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            let done = Log::new();
            let outside = guard.fence_all(tell(&done).unwrap()).unwrap_err();
            assert!(matches!(outside, Error::FenceRegion { is_open: false, .. }), "{outside}");
            assert!(matches!(guard.fence_end(), Err(Error::FenceRegion { is_open: false, .. })));
            guard.fence_begin().unwrap();
            assert!(matches!(guard.fence_begin(), Err(Error::FenceRegion { is_open: true, .. })));
            let arrived = Log::new();
            let to = arrived.clone();
            let take = move |_: &mut pami::Section<'_>, message: pami::Message<'_>| {
                if let pami::Arriving::Asynchronous(data) = message.data {
                    let to = to.clone();
                    data.receive_vec(move |_, data| to.push(data.unwrap().len()));
                }
            };
            guard.dispatch_set(2, take, Hints::default()).unwrap();
            let bytes = pattern(3, REGION);
            guard.put(PutCall::new(peer, theirs, 0, Source::from(bytes.clone()))).unwrap();
            let data = Source::from(bytes.clone());
            guard.send(SendCall { data, ..SendCall::new(peer, 2) }).unwrap();
            guard.fence_endpoint(peer, tell(&done).unwrap()).unwrap();
            done.wait_in(&mut guard, 1);
            meeting.meet(&mut guard);
            assert_eq!(arrived.get(), [REGION], "{kind:?}: the message was received");
            let mut came = vec![0; REGION];
            own.read(0, &mut came);
            assert!(came == bytes, "{kind:?}: the put is in place");
            guard.fence_end().unwrap();
        });
    }
}

#[test]
fn wrong_transfers_are_refused() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            let put = |len, offset| PutCall::new(peer, theirs, offset, Source::from(vec![1; len]));
            assert!(matches!(guard.put(put(0, 0)), Err(Error::NoBytes { .. })));
            let into = own.sink(0, 0);
            assert!(matches!(
                guard.get(GetCall::new(peer, theirs, 0, into)),
                Err(Error::NoBytes { .. })
            ));
            for offset in [REGION as u64, u64::MAX] {
                let error = guard.put(put(8, offset)).unwrap_err();
                assert_eq!(error.code(), Code::Inval, "{kind:?}: {error}");
                let get = GetCall::new(peer, theirs, offset, own.sink(0, 8));
                assert_eq!(guard.get(get).unwrap_err().code(), Code::Inval);
                let rmw = RmwCall::new(peer, theirs, offset, Modify::Add, Value::I32(1));
                assert_eq!(guard.rmw(rmw).unwrap_err().code(), Code::Inval);
            }
            for (offset, value) in [(2, Value::I32(1)), (4, Value::I64(1))] {
                let rmw = RmwCall::new(peer, theirs, offset, Modify::Add, value);
                assert!(matches!(guard.rmw(rmw), Err(Error::Unaligned { .. })), "{kind:?}");
            }
            let error = TypeBuilder::new().add_simple(6, 0, 2, 6).unwrap().complete(4).unwrap_err();
            assert_eq!(
                error.to_string(),
                "atoms of 4 bytes; the length of each block of a type is a multiple of that of its atoms"
            );
            assert!(TypeBuilder::new().add_simple(1, 0, usize::MAX, 1).is_err());
            assert!(TypeBuilder::new().add_simple(1, usize::MAX, 1, 1).is_err());
            let outside = std::panic::AssertUnwindSafe(|| own.sink(REGION, 1));
            assert!(std::panic::catch_unwind(outside).is_err());
            let twice = TypeBuilder::new().add_simple(4, 0, 2, 2).unwrap().complete(1).unwrap();
            assert_eq!(own.typed_source(0, &twice).len(), 8);
            let into = std::panic::AssertUnwindSafe(|| own.typed_sink(0, &twice));
            assert!(std::panic::catch_unwind(into).is_err());
            meeting.meet(&mut guard);
        });
    }
}

/// A get of memory that was destroyed: the callback is told. Only registered memory notices.
#[test]
fn destroyed_memory_is_not_accessed() {
    for kind in [Kind::Channels, Kind::Cards] {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            meeting.meet(&mut guard);
            guard.memregion_destroy(own);
            meeting.come(&mut guard);
            while !meeting.is_met() {
                // The owner reports what its peer has done.
                let _ = guard.advance(1);
            }
            if task.id() == 0 {
                let (done, mirror) = (Log::new(), guard.memregion_create(8).unwrap());
                let get = GetCall::new(peer, theirs, 0, mirror.sink(0, 8));
                guard.get(GetCall { on_done: tell(&done), ..get }).unwrap();
                while done.len() == 0 {
                    let _ = guard.advance(1);
                }
                assert_eq!(done.get(), [false], "{kind:?}");
            }
            meeting.come(&mut guard);
            while !meeting.is_met() {
                let _ = guard.advance(1);
            }
        });
    }
}

#[test]
fn a_purged_task_ends_operations_and_is_resumed() {
    let turn = Arc::new(Barrier::new(2));
    run_with(Kind::Threads, 2, 2, move |task| {
        let mut guard = task.lock();
        let peer = task.endpoint(1 - task.id());
        let own = guard.endpoint();
        for wrong in [own, task.client.endpoint(1 - task.id(), 1).unwrap()] {
            assert!(matches!(guard.purge(&[wrong]), Err(Error::Purge { .. })));
            assert!(matches!(guard.resume(&[wrong]), Err(Error::Purge { .. })));
        }
        guard.dispatch_set(0, |_, _| {}, Hints::default()).unwrap();
        let done = Log::new();
        let data = Source::from(vec![0; 1 << 20]);
        guard.send(SendCall { data, on_remote: tell(&done), ..SendCall::new(peer, 0) }).unwrap();
        turn.wait();
        guard.purge(&[peer]).unwrap();
        while done.len() == 0 {
            let _ = guard.advance(1);
        }
        assert_eq!(done.get(), [false]);
        assert!(matches!(guard.send_immediate(peer, 0, &[], &[]), Err(Error::Lost { .. })));
        turn.wait();
        guard.resume(&[peer]).unwrap();
        let come = Log::new();
        let to = come.clone();
        guard.dispatch_set(1, move |_, _| to.push(()), Hints::default()).unwrap();
        while guard.send_immediate(peer, 1, &[], &[]).is_err() {
            let _ = guard.advance(1);
        }
        come.wait_in(&mut guard, 1);
        true
    });
}

#[test]
fn associations_choose_how_memory_is_accessed() {
    use pami::Access::{Direct, Messages};
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let (own, peer, theirs, meeting) = exchange(task, &mut guard);
            let ranges = || Ranges::new([(100, Messages), (1000, Direct)]).unwrap();
            guard.put_association().set(ranges());
            guard.get_association().set(ranges());
            assert_eq!(guard.put_association().ranges(), &ranges());
            let mirror = guard.memregion_create(1000).unwrap();
            for len in [1, 100, 101, 1000] {
                let (bytes, done) = (pattern(len, len), Log::new());
                let put = PutCall::new(peer, theirs, 0, Source::from(bytes.clone()));
                guard.put(PutCall { on_remote: tell(&done), ..put }).unwrap();
                done.wait_in(&mut guard, 1);
                let get = GetCall::new(peer, theirs, 0, mirror.sink(0, len));
                guard.get(GetCall { on_done: tell(&done), ..get }).unwrap();
                assert_eq!(done.wait_in(&mut guard, 2), [true; 2]);
                let mut came = vec![0; len];
                mirror.read(0, &mut came);
                assert_eq!(came, bytes, "{kind:?}, {len} bytes");
            }
            // Memory in a shared area is mapped, and this network's cards write and read.
            let direct = match kind {
                Kind::Shm => 4,
                Kind::Cards => 2,
                Kind::Threads | Kind::Channels | Kind::Hosts => 0,
            };
            let taken = |association: &Association<pami::Access>| {
                [Direct, Messages].map(|access| association.taken(access))
            };
            assert_eq!(taken(guard.put_association()), [direct, 4 - direct], "{kind:?}");
            assert_eq!(taken(guard.get_association()), [direct, 4 - direct], "{kind:?}");
            let outcome = guard.put(PutCall::new(peer, theirs, 0, Source::from(vec![0; 1001])));
            match direct {
                4 => outcome.unwrap(),
                _ => assert!(matches!(outcome, Err(Error::NoRange { len: 1001, last: 1000 }))),
            }
            meeting.meet(&mut guard);
            drop(own);
        });
    }
}
