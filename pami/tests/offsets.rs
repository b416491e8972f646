//! Communication between contexts of different offsets, by way of the context of this task with the other offset.

mod support;

use std::thread;

use pami::{
    Arriving, Callback, Client, Context, Endpoint, Error, GetCall, Hints, Memregion, Message,
    Modify, Outcome, PutCall, RmwCall, Section, SendCall, Value,
};
use support::{Kind, Log, Task, pattern, run_with};
use transport_lapi::Source;

const CONTEXTS: usize = 3;

/// Advances all contexts until `condition` holds.
fn until(task: &Task, condition: impl Fn() -> bool) {
    while !condition() {
        if Context::trylock_advancev(&task.contexts, 1).unwrap() == Outcome::Again {
            thread::yield_now();
        }
    }
}

/// The offsets of all pairs of contexts.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..CONTEXTS).flat_map(|from| (0..CONTEXTS).map(move |to| (from, to)))
}

/// A callback that logs the end of an operation of the context with offset `home`.
fn tell(ended: &Log<bool>, home: usize) -> Option<Callback> {
    let ended = ended.clone();
    Some(Box::new(move |section, result| {
        assert_eq!(section.endpoint().offset(), home, "callbacks run at home");
        ended.push(result.is_ok());
    }))
}

/// What a dispatch function got: offset of its context, sender, data.
type Seen = ((usize, Endpoint), Vec<u8>);

/// Sets a dispatch in each context that logs what arrives.
fn log_all(task: &Task) -> Log<Seen> {
    let seen = Log::new();
    for context in &task.contexts {
        let (to, offset) = (seen.clone(), context.endpoint().offset());
        let take = move |_: &mut Section<'_>, message: Message<'_>| {
            let (to, note) = (to.clone(), (offset, message.origin));
            match message.data {
                Arriving::Immediate(data) => to.push((note, data.to_vec())),
                Arriving::Asynchronous(data) => {
                    data.receive_vec(move |_, data| to.push((note, data.unwrap())));
                }
            }
        };
        context.lock().unwrap().dispatch_set(1, take, Hints::default()).unwrap();
    }
    seen
}

#[test]
fn messages_reach_every_context() {
    for kind in Kind::ALL {
        run_with(kind, 2, CONTEXTS, move |task| {
            let (seen, ended, peer) = (log_all(task), Log::new(), 1 - task.id());
            for (from, to) in pairs() {
                let mut guard = task.contexts[from].lock().unwrap();
                let dest = task.client.endpoint(peer, to).unwrap();
                let _ = guard.send_immediate(dest, 1, b"now", &pattern(from + to, 9)).unwrap();
                for len in [5, 1 << 18] {
                    let call = SendCall {
                        header: b"later",
                        data: Source::from(pattern(from + to, len)),
                        on_local: tell(&ended, from),
                        on_remote: tell(&ended, from),
                        ..SendCall::new(dest, 1)
                    };
                    guard.send(call).unwrap();
                }
            }
            let count = CONTEXTS * CONTEXTS;
            until(task, || seen.len() == 3 * count && ended.len() == 4 * count);
            assert!(ended.get().iter().all(|is_good| *is_good));
            for (from, to) in pairs() {
                let origin = task.client.endpoint(peer, from).unwrap();
                let of = seen.get().into_iter().filter(|(note, _)| *note == (to, origin));
                let mut came: Vec<_> = of.map(|(_, data)| data).collect();
                came.sort_by_key(Vec::len);
                let expected = [5, 9, 1 << 18].map(|len| pattern(from + to, len));
                assert!(came == expected, "{kind:?}: {from} to {to}");
            }
            true
        });
    }
}

#[test]
fn one_sided_operations_reach_every_context() {
    for kind in Kind::ALL {
        run_with(kind, 1, CONTEXTS, move |task| {
            let create = |context: &Context| {
                let region = context.lock().unwrap().memregion_create(64).unwrap();
                region.write(0, &[0; 64]);
                region
            };
            let regions: Vec<Memregion> = task.contexts.iter().map(create).collect();
            let (ended, sums) = (Log::new(), Log::new());
            for (from, to) in pairs() {
                let mut guard = task.contexts[from].lock().unwrap();
                let (dest, region) = (task.contexts[to].endpoint(), regions[to].remote());
                let bytes = Source::from(vec![from as u8 + 1; 8]);
                let put = PutCall {
                    on_done: tell(&ended, from),
                    on_remote: tell(&ended, from),
                    ..PutCall::new(dest, region, 8 * from as u64, bytes)
                };
                guard.put(put).unwrap();
                let sums = sums.clone();
                let rmw = RmwCall {
                    on_done: Some(Box::new(move |section, value| {
                        assert_eq!(section.endpoint().offset(), from, "callbacks run at home");
                        sums.push((to, value.unwrap()));
                    })),
                    ..RmwCall::new(dest, region, 56, Modify::Add, Value::U64(1))
                };
                guard.rmw(rmw).unwrap();
            }
            let count = CONTEXTS * CONTEXTS;
            until(task, || ended.len() == 2 * count && sums.len() == count);
            let mut sums = sums.get();
            sums.sort_by_key(|(to, value)| (*to, format!("{value:?}")));
            let numbers = (0..CONTEXTS).flat_map(|to| (0..3).map(move |sum| (to, Value::U64(sum))));
            assert!(numbers.eq(sums), "{kind:?}");
            for (from, to) in pairs() {
                let get = GetCall {
                    on_done: tell(&ended, from),
                    ..GetCall::new(
                        task.contexts[to].endpoint(),
                        regions[to].remote(),
                        0,
                        regions[from].sink(32, 24),
                    )
                };
                task.contexts[from].lock().unwrap().get(get).unwrap();
                until(task, || ended.len() == 2 * count + 1 + CONTEXTS * from + to);
                let mut came = [0; 24];
                regions[from].read(32, &mut came);
                assert_eq!(came[..], [[1; 8], [2; 8], [3; 8]].concat(), "{kind:?}");
                regions[from].write(32, &[0; 24]);
            }
            assert!(ended.get().iter().all(|is_good| *is_good));
            true
        });
    }
}

/// Nobody would carry out what is posted to a context that this task has not created.
#[test]
fn an_offset_without_a_context_here_is_refused() {
    let mut client = Client::in_process("few", 1, 2).unwrap().remove(0);
    let context = client.create_contexts(1).unwrap().remove(0);
    let mut guard = context.lock().unwrap();
    guard.dispatch_set(0, |_, _| {}, Hints::default()).unwrap();
    let dest = client.endpoint(0, 1).unwrap();
    let error = guard.send(SendCall::new(dest, 0)).unwrap_err();
    assert!(matches!(error, Error::NoContext { task: 0, offset: 1 }), "{error}");
}
