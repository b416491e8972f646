//! Active messages: both shapes of dispatches, callbacks, hints, order.

mod support;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use pami::{
    Arriving, Code, Error, Guard, Hint, Hints, MAX_HEADER, Message, Outcome, Protocol,
    RECV_IMMEDIATE_MAX, SEND_IMMEDIATE_MAX, Section, SendCall, Setting, TypeBuilder, Violation,
    data_sink, data_source,
};
use support::{Kind, Log, Meeting, Task, pattern, run, run_with, until};
use transport_lapi::{Ranges, Source};

/// What a dispatch function got: the task, whether the data were there, header, data.
type Seen = (u32, bool, Vec<u8>, Vec<u8>);

/// Sets dispatch `id` to log what arrives.
fn log_into(guard: &mut Guard<'_>, id: usize, hints: Hints) -> Log<Seen> {
    let log = Log::new();
    let to = log.clone();
    let function = move |_: &mut Section<'_>, message: Message<'_>| {
        let (from, header) = (message.origin.task(), message.header.to_vec());
        match message.data {
            Arriving::Immediate(data) => to.push((from, true, header, data.to_vec())),
            Arriving::Asynchronous(data) => {
                let to = to.clone();
                data.receive_vec(move |_, data| to.push((from, false, header, data.unwrap())));
            }
        }
    };
    guard.dispatch_set(id, function, hints).unwrap();
    log
}

const LENGTHS: [usize; 12] = [0, 1, 8, 100, 120, 121, 1024, 4000, 16_384, 16_385, 100_000, 1 << 20];

/// Every length of header and data, to another task and to itself, with both callbacks.
#[test]
fn messages_of_every_length_arrive_once_and_tell_both_ends() {
    for kind in Kind::ALL {
        run(kind, 2, |task| {
            let mut guard = task.lock();
            let seen = log_into(&mut guard, 3, Hints::default());
            let (local, remote) = (Log::new(), Log::new());
            let mut expected = Vec::new();
            for dest in 0..2 {
                for (round, len) in LENGTHS.into_iter().enumerate() {
                    let header = pattern(round, [0, 5, 120, 121, MAX_HEADER][round % 5]);
                    let (to_local, to_remote) = (local.clone(), remote.clone());
                    let call = SendCall {
                        header: &header,
                        data: Source::from(pattern(round + 7, len)),
                        on_local: Some(Box::new(move |_, result| to_local.push(result.is_ok()))),
                        on_remote: Some(Box::new(move |_, result| to_remote.push(result.is_ok()))),
                        ..SendCall::new(task.endpoint(dest), 3)
                    };
                    guard.send(call).unwrap();
                    expected.push((header.clone(), pattern(round + 7, len)));
                }
            }
            let sent = 2 * LENGTHS.len();
            until(&mut guard, || local.len() == sent && remote.len() == sent && seen.len() == sent);
            assert!(local.get().iter().chain(&remote.get()).all(|is_good| *is_good));
            expected.truncate(LENGTHS.len());
            for from in 0..2 {
                let of = |(task, _, header, data): Seen| (task == from).then_some((header, data));
                let mut came: Vec<_> = seen.get().into_iter().filter_map(of).collect();
                // Long ones end later.
                came.sort();
                let mut expected = expected.clone();
                expected.sort();
                assert!(came == expected, "{}: from {from}", task.id());
            }
        });
    }
}

#[test]
fn immediate_messages_need_no_callbacks_and_keep_their_order() {
    for kind in Kind::ALL {
        run(kind, 2, |task| {
            let mut guard = task.lock();
            let consistent = Hints::default().with(Hint::Consistency, Setting::Enable);
            let seen = log_into(&mut guard, 0, consistent);
            let dest = task.endpoint(1 - task.id());
            for number in 0..200_usize {
                let header = pattern(number, number % 9);
                let data = pattern(number, (number * 7) % (SEND_IMMEDIATE_MAX - 8));
                let sent = guard.send_immediate(dest, 0, &header, &data).unwrap();
                assert_eq!(sent, Outcome::Done);
            }
            let seen = seen.wait_in(&mut guard, 200);
            for (number, (from, at_once, header, data)) in seen.into_iter().enumerate() {
                assert_eq!((from, at_once), (1 - task.id(), true));
                assert_eq!(header, pattern(number, number % 9));
                assert_eq!(data, pattern(number, (number * 7) % (SEND_IMMEDIATE_MAX - 8)));
            }
            let long = [0; SEND_IMMEDIATE_MAX];
            let error = guard.send_immediate(dest, 0, &[0], &long).unwrap_err();
            assert!(matches!(error, Error::ImmediateLen { len: 513 }), "{error}");
        });
    }
}

/// Fills the ring of a task that makes no progress.
#[test]
fn without_a_queue_a_full_adapter_is_an_answer() {
    let turn = Arc::new(Barrier::new(2));
    run(Kind::Threads, 2, move |task| {
        let mut guard = task.lock();
        let seen =
            log_into(&mut guard, 0, Hints::default().with(Hint::QueueImmediate, Setting::Disable));
        if task.id() == 0 {
            let mut sent = 0_u64;
            while guard.send_immediate(task.endpoint(1), 0, &[], &[1; 400]).unwrap()
                == Outcome::Done
            {
                sent += 1;
                assert!(sent < 10_000_000, "the ring has an end");
            }
            turn.wait();
            while guard.send_immediate(task.endpoint(1), 0, &sent.to_le_bytes(), &[]).unwrap()
                == Outcome::Again
            {
                let _ = guard.advance(1).unwrap();
            }
        } else {
            turn.wait();
            let is_last = |seen: &Seen| !seen.2.is_empty();
            until(&mut guard, || seen.get().last().is_some_and(is_last));
            let seen = seen.get();
            let told = u64::from_le_bytes(seen.last().unwrap().2[..].try_into().unwrap());
            assert_eq!(told, seen.len() as u64 - 1, "what was refused was not sent");
        }
    });
}

/// The three values of the hint for the shape, with and without data.
#[test]
fn a_hint_decides_whether_data_come_at_once() {
    for kind in Kind::ALL {
        run(kind, 2, |task| {
            let mut guard = task.lock();
            let hints = |setting| Hints::default().with(Hint::RecvImmediate, setting);
            let always = log_into(&mut guard, 1, hints(Setting::Enable));
            let never = log_into(&mut guard, 2, hints(Setting::Disable));
            let either = log_into(&mut guard, 3, Hints::default());
            let dest = task.endpoint(1 - task.id());
            for id in 1..=3 {
                for len in [0, 8, RECV_IMMEDIATE_MAX] {
                    let data = Source::from(pattern(len, len));
                    guard.send(SendCall { data, ..SendCall::new(dest, id) }).unwrap();
                }
            }
            let data = Source::from(pattern(1, 1 << 17));
            guard.send(SendCall { data, ..SendCall::new(dest, 3) }).unwrap();
            until(&mut guard, || always.len() == 3 && never.len() == 3 && either.len() == 4);
            assert!(always.get().iter().all(|seen| seen.1));
            assert!(never.get().iter().all(|seen| !seen.1), "not even without data");
            assert_eq!(either.get().iter().filter(|seen| seen.1).count(), 3);

            let data = Source::from(vec![0; RECV_IMMEDIATE_MAX]);
            let call = SendCall { header: &[0], data, ..SendCall::new(dest, 1) };
            let error = guard.send(call).unwrap_err();
            assert!(matches!(error, Error::Hinted { hint: Hint::RecvImmediate, .. }), "{error}");
        });
    }
}

#[test]
fn hints_that_cannot_be_honoured_are_refused() {
    run_with(Kind::Threads, 1, 2, |task| {
        let mut guard = task.lock();
        let set = |guard: &mut Guard<'_>, id, hint, setting| {
            guard.dispatch_set(id, |_, _| {}, Hints::default().with(hint, setting))
        };
        for (hint, setting) in [
            (Hint::RemoteAsyncProgress, Setting::Enable),
            (Hint::UseRdma, Setting::Enable),
            (Hint::UseRdma, Setting::Disable),
        ] {
            let error = set(&mut guard, 0, hint, setting).unwrap_err();
            assert!(matches!(error, Error::Unsupported { .. }) && error.code() == Code::Unimpl);
        }
        set(&mut guard, 0, Hint::Multicontext, Setting::Disable).unwrap();
        set(&mut guard, 1, Hint::LongHeader, Setting::Disable).unwrap();
        set(&mut guard, 2, Hint::UseShmem, Setting::Disable).unwrap();
        set(&mut guard, 3, Hint::UseShmem, Setting::Enable).unwrap();
        let (own, other) = (guard.endpoint(), task.client.endpoint(0, 1).unwrap());
        let long = [0; RECV_IMMEDIATE_MAX + 1];
        for (dest, id, header, expected) in [
            (other, 0, &[][..], Some(Hint::Multicontext)),
            (own, 0, &[], None),
            (own, 1, &long, Some(Hint::LongHeader)),
            (own, 1, &long[1..], None),
            (own, 2, &[], Some(Hint::UseShmem)),
            (own, 3, &[], None),
        ] {
            let sent = guard.send(SendCall { header, ..SendCall::new(dest, id) });
            let refused = match sent {
                Ok(()) => None,
                Err(Error::Hinted { hint, .. }) => Some(hint),
                Err(other) => panic!("{other}"),
            };
            assert_eq!(refused, expected, "dispatch {id}");
        }
        true
    });
}

/// The hints about shared memory, between hosts.
#[test]
fn messages_that_must_share_memory_stay_on_their_host() {
    run(Kind::Hosts, 2, |task| {
        let mut guard = task.lock();
        let set = |guard: &mut Guard<'_>, id, setting| {
            log_into(guard, id, Hints::default().with(Hint::UseShmem, setting))
        };
        set(&mut guard, 1, Setting::Enable);
        let seen = set(&mut guard, 2, Setting::Disable);
        let peer = task.endpoint(1 - task.id());
        assert_eq!(task.client.local_tasks().collect::<Vec<_>>(), [task.id()]);
        let error = guard.send_immediate(peer, 1, &[], &[]).unwrap_err();
        let text = format!(
            "a message to {peer} breaks the hint UseShmem of its dispatch, which is enabled: it is on another host"
        );
        assert_eq!(error.to_string(), text);
        let _ = guard.send_immediate(peer, 2, &[], &[]).unwrap();
        seen.wait_in(&mut guard, 1);
    });
}

#[test]
fn wrong_arguments_are_refused_with_what_to_change() {
    run(Kind::Threads, 1, |task| {
        let mut guard = task.lock();
        let own = guard.endpoint();
        let nowhere = pami::Endpoint::from_bits(own.to_bits() + 1);
        assert!(matches!(
            guard.dispatch_set(256, |_, _| {}, Hints::default()),
            Err(Error::DispatchRange { id: 256 })
        ));
        guard.dispatch_set(254, |_, _| {}, Hints::default()).unwrap();
        let refused = |guard: &mut Guard<'_>, dest, id, header| {
            let error = guard.send(SendCall { header, ..SendCall::new(dest, id) }).unwrap_err();
            assert_eq!(error.code(), Code::Inval);
            error.to_string()
        };
        assert_eq!(
            refused(&mut guard, nowhere, 254, &[]),
            "there is no endpoint (1, 0): the job has tasks 0 to 0, of 1 contexts each"
        );
        assert_eq!(
            refused(&mut guard, own, 7, &[]),
            "dispatch 7 is not set in context 0 of task 0; set it on all tasks before the first message"
        );
        assert_eq!(
            refused(&mut guard, own, 300, &[]),
            "dispatch 300 is out of range, the last one is 254"
        );
        let text = refused(&mut guard, own, 254, &[0; MAX_HEADER + 1]);
        assert_eq!(
            text,
            "a header of 2049 bytes, at most 2048 are possible; send the rest as data"
        );
    });
}

/// Messages wait for a dispatch that is set late, and come in order.
#[test]
fn messages_for_a_dispatch_that_is_not_set_yet_are_kept() {
    let turn = Arc::new(Barrier::new(2));
    run(Kind::Threads, 2, move |task| {
        let mut guard = task.lock();
        if task.id() == 0 {
            log_into(&mut guard, 5, Hints::default());
            log_into(&mut guard, 6, Hints::default());
            for number in 0..10 {
                let id = 5 + number % 2;
                let _ = guard.send_immediate(task.endpoint(1), id, &[number as u8], &[]).unwrap();
            }
            turn.wait();
        } else {
            turn.wait();
            while guard.advance(1).unwrap() == Outcome::Done {}
            for id in [6, 5] {
                let seen = log_into(&mut guard, id, Hints::default()).wait_in(&mut guard, 5);
                let numbers: Vec<_> = seen.iter().map(|seen| usize::from(seen.2[0])).collect();
                assert_eq!(numbers, [0, 2, 4, 6, 8].map(|number| number + id - 5));
            }
        }
    });
}

#[test]
fn hints_that_differ_between_tasks_are_found_at_the_first_message() {
    run(Kind::Threads, 2, |task| {
        let mut guard = task.lock();
        let setting = [Setting::Default, Setting::Enable][task.id() as usize];
        log_into(&mut guard, 9, Hints::default().with(Hint::Consistency, setting));
        if task.id() == 0 {
            let told = Log::new();
            let to = told.clone();
            let on_remote: pami::Callback =
                Box::new(move |_, result| to.push(result.unwrap_err().to_string()));
            let call = SendCall::new(task.endpoint(1), 9);
            guard.send(SendCall { on_remote: Some(on_remote), ..call }).unwrap();
            assert_eq!(told.wait_in(&mut guard, 1).len(), 1, "the sender is told, too");
        } else {
            let error = loop {
                match guard.advance(1) {
                    Ok(_) => std::thread::yield_now(),
                    Err(error) => break error,
                }
            };
            let violation = Violation::Hints { id: 9 };
            assert!(
                matches!(error, Error::Peer { origin: 0, violation: found } if found == violation)
            );
        }
    });
}

/// A dispatch function answers on the context that it owns, and the answer comes from there.
#[test]
fn dispatch_functions_send() {
    for kind in Kind::ALL {
        run(kind, 2, |task| {
            let mut guard = task.lock();
            let answers = log_into(&mut guard, 2, Hints::default());
            let double = |section: &mut Section<'_>, message: Message<'_>| {
                let data = [message.header, message.header].concat();
                let dest = message.origin;
                section
                    .send(SendCall { data: Source::from(data), ..SendCall::new(dest, 2) })
                    .unwrap();
            };
            guard.dispatch_set(1, double, Hints::default()).unwrap();
            let dest = task.endpoint(1 - task.id());
            let _ = guard.send_immediate(dest, 1, b"twice", &[]).unwrap();
            assert_eq!(answers.wait_in(&mut guard, 1)[0].3, b"twicetwice");
        });
    }
}

/// A dispatch function that panics, one that replaces itself, and one that discards its data.
#[test]
fn dispatch_functions_may_panic_replace_themselves_and_discard() {
    run(Kind::Threads, 1, |task| {
        let mut guard = task.lock();
        let own = guard.endpoint();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let fail_first = move |_: &mut Section<'_>, _: Message<'_>| {
            assert!(count.fetch_add(1, Ordering::Relaxed) > 0, "the first call fails");
        };
        guard.dispatch_set(0, fail_first, Hints::default()).unwrap();
        for _ in 0..2 {
            let _ = guard.send_immediate(own, 0, &[], &[]).unwrap();
        }
        let advance = || {
            while calls.load(Ordering::Relaxed) == 0 {
                let _ = guard.advance(1);
            }
        };
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(advance)).is_err());
        until(&mut guard, || calls.load(Ordering::Relaxed) == 2);

        let seen = Log::new();
        let (first, second) = (seen.clone(), seen.clone());
        let replace = move |section: &mut Section<'_>, _: Message<'_>| {
            first.push(1);
            let second = second.clone();
            section.dispatch_set(1, move |_, _| second.push(2), Hints::default()).unwrap();
        };
        guard.dispatch_set(1, replace, Hints::default()).unwrap();
        for _ in 0..2 {
            let _ = guard.send_immediate(own, 1, &[], &[]).unwrap();
        }
        assert_eq!(seen.wait_in(&mut guard, 2), [1, 2]);

        guard.dispatch_set(2, |_, _| {}, Hints::default()).unwrap();
        let (done, data) = (Log::new(), Source::from(vec![7; 1 << 20]));
        let to = done.clone();
        let on_remote: pami::Callback = Box::new(move |_, result| to.push(result.is_ok()));
        guard.send(SendCall { data, on_remote: Some(on_remote), ..SendCall::new(own, 2) }).unwrap();
        assert_eq!(done.wait_in(&mut guard, 1), [true], "data that nobody wants are received, too");
    });
}

/// Types on both sides, and data functions on both sides.
#[test]
fn typed_data_and_data_functions() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let meeting = Meeting::of(task, &mut guard);
            for len in [960, 96_000_usize] {
                let count = len / 16;
                let strided =
                    TypeBuilder::new().add_simple(16, 8, count, 32).unwrap().complete(8).unwrap();
                let memory = guard.memregion_create(strided.extent() + 8).unwrap();
                let landing = guard.memregion_create(strided.extent() + 8).unwrap();
                memory.write(0, &pattern(1, memory.len()));
                landing.write(0, &vec![0; landing.len()]);
                let done = Log::new();
                let (to, into) = (done.clone(), Arc::new(landing));
                let (form, landing) = (strided.clone(), Arc::clone(&into));
                let take = move |_: &mut Section<'_>, message: Message<'_>| {
                    let Arriving::Asynchronous(data) = message.data else {
                        panic!("hints forbid it")
                    };
                    let to = to.clone();
                    let on_end: pami::Callback = Box::new(move |_, result| to.push(result.is_ok()));
                    data.receive(into.typed_sink(0, &form), Some(on_end));
                };
                let never = Hints::default().with(Hint::RecvImmediate, Setting::Disable);
                guard.dispatch_set(1, take, never).unwrap();
                let sum = Arc::new(AtomicUsize::new(0));
                let (total, to) = (Arc::clone(&sum), done.clone());
                let add = move |_: &mut Section<'_>, message: Message<'_>| {
                    let Arriving::Asynchronous(data) = message.data else {
                        panic!("hints forbid it")
                    };
                    let (total, to) = (Arc::clone(&total), to.clone());
                    let add = move |offset: usize, piece: &[u8]| {
                        let wrong =
                            piece.iter().zip(offset..).filter(|(byte, at)| **byte != *at as u8);
                        total.fetch_add(piece.len() + (wrong.count() << 32), Ordering::Relaxed);
                    };
                    let on_end: pami::Callback = Box::new(move |_, result| to.push(result.is_ok()));
                    let into = data_sink(data.len(), add);
                    data.receive(into, Some(on_end));
                };
                guard.dispatch_set(2, add, never).unwrap();
                // The dispatches of both tasks are those of this round.
                meeting.meet(&mut guard);
                let dest = task.endpoint(1 - task.id());
                let data = memory.typed_source(0, &strided);
                guard.send(SendCall { data, ..SendCall::new(dest, 1) }).unwrap();
                let count = |offset: usize, piece: &mut [u8]| {
                    piece.iter_mut().zip(offset..).for_each(|(byte, at)| *byte = at as u8);
                };
                guard
                    .send(SendCall { data: data_source(len, count), ..SendCall::new(dest, 2) })
                    .unwrap();
                assert_eq!(done.wait_in(&mut guard, 2), [true; 2]);
                assert_eq!(sum.load(Ordering::Relaxed), len);
                let mut came = vec![0; landing.len()];
                landing.read(0, &mut came);
                let expected = pattern(1, came.len());
                for (at, byte) in came.iter().enumerate() {
                    let is_in = (8..strided.extent()).contains(&at) && (at - 8) % 32 < 16;
                    assert_eq!(*byte, if is_in { expected[at] } else { 0 }, "byte {at}");
                }
            }
        });
    }
}

/// The association decides how messages go; what does not fit into a packet is fetched in any case.
#[test]
fn an_association_chooses_the_protocol() {
    for kind in Kind::ALL {
        run(kind, 2, move |task| {
            let mut guard = task.lock();
            let seen = log_into(&mut guard, 0, Hints::default());
            let dest = task.endpoint(1 - task.id());
            let ranges =
                Ranges::new([(100, Protocol::Eager), (1000, Protocol::Rendezvous)]).unwrap();
            guard.send_association().set(ranges);
            for len in [100, 101, 1000] {
                let data = Source::from(pattern(len, len));
                guard.send(SendCall { data, ..SendCall::new(dest, 0) }).unwrap();
            }
            let data = Source::from(vec![0; 1001]);
            let error = guard.send(SendCall { data, ..SendCall::new(dest, 0) }).unwrap_err();
            assert!(matches!(error, Error::NoRange { len: 1001, last: 1000 }), "{error}");
            // A hint is stronger.
            guard.send_association().set(Ranges::new([(u64::MAX, Protocol::Rendezvous)]).unwrap());
            let at_once = Hints::default().with(Hint::RecvImmediate, Setting::Enable);
            let always = log_into(&mut guard, 1, at_once);
            let data = Source::from(pattern(1, 8));
            guard.send(SendCall { data, ..SendCall::new(dest, 1) }).unwrap();
            always.wait_in(&mut guard, 1);
            assert_eq!(guard.send_association().ranges().rows().len(), 1);
            guard.send_association().set(Ranges::new([(u64::MAX, Protocol::Eager)]).unwrap());
            let data = Source::from(pattern(1, 1 << 20));
            guard.send(SendCall { data, ..SendCall::new(dest, 0) }).unwrap();
            let seen = seen.wait_in(&mut guard, 4);
            let came = |len: usize| seen.iter().find(|seen| seen.3.len() == len).unwrap().1;
            assert_eq!([100, 101, 1000, 1 << 20].map(came), [true, false, false, false]);
            let sent = [Protocol::Eager, Protocol::Rendezvous]
                .map(|way| guard.send_association().taken(way));
            assert_eq!(sent, [2, 3], "{kind:?}");
        });
    }
}

/// A task is lost: sends fail, and operations that wait for it end.
#[test]
fn a_lost_task_ends_what_waits_for_it() {
    let turn = Arc::new(Barrier::new(2));
    run_with(Kind::Threads, 2, 1, move |task: &Task| {
        let mut guard = task.lock();
        log_into(&mut guard, 0, Hints::default());
        if task.id() == 1 {
            turn.wait();
            task.losses.declare();
            return false;
        }
        let ends = Log::new();
        for len in [8, 1 << 20] {
            let (local, remote) = (ends.clone(), ends.clone());
            let call = SendCall {
                data: Source::from(vec![1; len]),
                on_local: Some(Box::new(move |_, result| local.push(result.is_ok()))),
                on_remote: Some(Box::new(move |_, result| {
                    assert!(matches!(result, Err(Error::Lost { task: 1 })));
                    remote.push(false);
                })),
                ..SendCall::new(task.endpoint(1), 0)
            };
            guard.send(call).unwrap();
        }
        turn.wait();
        let mut losses = 0;
        while ends.len() < 4 {
            losses += usize::from(matches!(guard.advance(1), Err(Error::Lost { task: 1 })));
        }
        assert_eq!(losses, 1, "the loss itself is reported, too");
        let long =
            SendCall { data: Source::from(vec![1; 1 << 20]), ..SendCall::new(task.endpoint(1), 0) };
        assert!(matches!(guard.send(long), Err(Error::Lost { task: 1 })), "nobody else is told");
        let error = guard.send_immediate(task.endpoint(1), 0, &[], &[]).unwrap_err();
        assert!(matches!(error, Error::Lost { task: 1 }) && error.code() == Code::Shutdown);
        false
    });
}
