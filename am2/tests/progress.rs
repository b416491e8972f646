//! Polling, waiting, and what handlers may not do.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use am2::{Am, BundleKind, Code, Error, EventMask, Message, POLL_LIMIT, Token};
use support::{Log, Node, pattern, run, until};

/// A node whose handler 1 logs its first argument.
fn node(am: &Am, depth: usize) -> (Node, Log<u32>) {
    let log = Log::new();
    let to = log.clone();
    let node = Node::connect(am, depth, 1 << 20, |bundle, endpoint| {
        bundle.set_handler(endpoint, 1, move |_, message| to.push(message.args[0])).unwrap();
    });
    (node, log)
}

#[test]
fn a_poll_handles_so_many_messages_and_no_more() {
    run(2, |am| {
        let (mut node, log) = node(am, 64);
        if am.task() == 0 {
            for number in 0..25 {
                node.short(1, 1, &[number]).unwrap();
            }
        }
        node.quiet.barrier().unwrap();
        if am.task() == 1 {
            assert_eq!(node.bundle.poll().unwrap(), POLL_LIMIT);
            assert_eq!(log.len(), POLL_LIMIT);
            assert_eq!(node.bundle.poll().unwrap(), POLL_LIMIT);
            assert_eq!(node.bundle.poll().unwrap(), 25 - 2 * POLL_LIMIT);
            assert_eq!(node.bundle.poll().unwrap(), 0, "a poll never blocks");
            assert_eq!(log.take(), (0..25).collect::<Vec<_>>());
        }
        node.bundle.leave().unwrap();
    });
}

/// A poll looks at every endpoint of the bundle in turn, so none waits for another one's flood.
#[test]
fn endpoints_of_a_bundle_take_turns() {
    run(1, |am| {
        let log = Log::new();
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let endpoints: Vec<_> = (0..3)
            .map(|number| {
                let endpoint = bundle.allocate_endpoint().unwrap();
                bundle.set_tag(endpoint, am2::Tag::ALL).unwrap();
                let to = log.clone();
                bundle.set_handler(endpoint, 1, move |_, _| to.push(number)).unwrap();
                endpoint
            })
            .collect();
        // The sender is in a bundle of its own, which handles nothing of the others.
        let mut sender = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let from = sender.allocate_endpoint().unwrap();
        let own = sender.name(from).unwrap();
        for endpoint in &endpoints {
            bundle.map(*endpoint, 0, own, am2::Tag::ALL).unwrap();
            sender.map_any(from, bundle.name(*endpoint).unwrap(), am2::Tag::ALL).unwrap();
        }
        sender.set_expected_resources(from, 64).unwrap();
        for index in [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2] {
            sender.request_short(from, index, 1, &[]).unwrap();
        }
        sender.poll().unwrap();
        assert_eq!(bundle.poll().unwrap(), POLL_LIMIT);
        assert_eq!(log.take()[..4], [0, 1, 2, 0]);
        assert_eq!(bundle.poll().unwrap(), 2);
    });
}

/// The reply to a message that is not long is handled by its receiver while the handler that sent it still runs.
#[test]
fn a_reply_is_sent_in_the_call() {
    let has_come = Arc::new(AtomicBool::new(false));
    run(2, move |am| {
        let (seen, come) = (Arc::clone(&has_come), Arc::clone(&has_come));
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |token, message| {
                    token.reply_medium(2, message.payload.bytes(), &[]).unwrap();
                    while !seen.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                })
                .unwrap();
            let note = move |_: &mut Token<'_>, _: Message<'_>| come.store(true, Ordering::SeqCst);
            bundle.set_handler(endpoint, 2, note).unwrap();
        });
        if am.task() == 0 {
            node.medium(1, 1, &pattern(1, 100), &[]).unwrap();
        }
        node.bundle.leave().unwrap();
    });
}

/// A handler gets hold of another bundle; every call that takes part in communication is refused, and none hangs.
#[test]
fn handlers_cannot_communicate_through_another_bundle() {
    run(1, |am| {
        let errors = Log::new();
        let (am, to) = (am.clone(), errors.clone());
        let mut other = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let endpoint = other.allocate_endpoint().unwrap();
        let other = Mutex::new(Some(other));
        let mut node = Node::connect(&am.clone(), 1, 100, |bundle, ep| {
            bundle
                .set_handler(ep, 1, move |_, _| {
                    let mut other = other.lock().unwrap();
                    let bundle = other.as_mut().expect("the handler runs once");
                    bundle.set_event_mask(EventMask::NotEmpty);
                    let calls = [
                        bundle.poll().map(drop),
                        bundle.request_short(endpoint, 0, 1, &[]),
                        bundle.wait_sema(),
                        bundle.barrier(),
                        bundle.set_tag(endpoint, am2::Tag::ALL),
                        am.allocate_bundle(BundleKind::Sequential).map(drop),
                    ];
                    calls.into_iter().for_each(|call| to.push(call.unwrap_err().code()));
                    drop(other.take());
                })
                .unwrap();
        });
        node.long(0, 1, 0, &[1; 100], &[]).unwrap();
        assert_eq!(errors.take(), [Code::Resource; 6]);
        // The flag is cleared after the handler, also after one that panics.
        node.bundle.poll().unwrap();
    });
}

#[test]
fn access_to_a_segment_cannot_communicate() {
    run(1, |am| {
        let (mut node, _) = node(am, 1);
        let mut other = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let inside = node.bundle.with_segment(node.endpoint, |_| other.poll()).unwrap();
        assert!(matches!(inside, Err(Error::InHandler { task: 0 })));
        other.poll().unwrap();
    });
}

#[test]
fn a_wait_without_an_event_is_refused() {
    run(1, |am| {
        let (mut node, _) = node(am, 1);
        assert_eq!(node.bundle.event_mask(), EventMask::NoEvents);
        let endless = node.bundle.wait_sema().unwrap_err();
        assert!(matches!(endless, Error::NoEvent { task: 0 }));
        assert_eq!(endless.code(), Code::Resource);
        node.bundle.set_event_mask(EventMask::NotEmpty);
        assert_eq!(node.bundle.event_mask(), EventMask::NotEmpty);
    });
}

/// The idiom of AM-2 for a server that sleeps until something arrives.
#[test]
fn a_wait_ends_when_a_message_is_there() {
    run(2, |am| {
        let (mut node, log) = node(am, 4);
        if am.task() == 0 {
            let payload = pattern(0, 200_000);
            for number in 0..100 {
                node.long(1, 1, 0, &payload, &[number]).unwrap();
            }
        } else {
            node.bundle.set_event_mask(EventMask::NotEmpty);
            while log.len() < 100 {
                node.bundle.wait_sema().unwrap();
                assert!(node.bundle.poll().unwrap() > 0, "the message waits until it is polled");
            }
        }
        node.bundle.leave().unwrap();
    });
}

/// Another thread of the task may receive the message that a wait is for.
#[test]
fn a_wait_ends_although_another_thread_receives_the_message() {
    run(2, |am| {
        let (mut node, log) = node(am, 1);
        if am.task() == 0 {
            for number in 0..50 {
                node.short(1, 1, &[number]).unwrap();
            }
        } else {
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let quiet = &mut node.quiet;
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        quiet.poll().unwrap();
                        thread::yield_now();
                    }
                });
                node.bundle.set_event_mask(EventMask::NotEmpty);
                while log.len() < 50 {
                    node.bundle.wait_sema().unwrap();
                    node.bundle.poll().unwrap();
                }
                done.store(true, Ordering::Relaxed);
            });
        }
        node.bundle.leave().unwrap();
    });
}

/// A task whose peers break off while it waits gets an error.
#[test]
fn a_wait_ends_when_a_task_is_lost() {
    support::run_with_bells(2, |am, bell| {
        let (mut node, _) = node(am, 1);
        if am.task() == 1 {
            bell.declare();
            return;
        }
        node.bundle.set_event_mask(EventMask::NotEmpty);
        let error = node.bundle.wait_sema().unwrap_err();
        assert!(matches!(error, Error::Transport { task: 0, .. }), "{error}");
    });
}

/// Bundles of one task work in threads of their own: each pair of bundles talks, whoever receives the frames.
#[test]
fn bundles_work_in_threads_of_their_own() {
    const ROUNDS: u32 = 300;
    run(2, |am| {
        let (mut first, mut second) = (Pair::connect(am), Pair::connect(am));
        thread::scope(|scope| {
            scope.spawn(|| first.talk(ROUNDS));
            second.talk(ROUNDS);
        });
        first.node.bundle.leave().unwrap();
    });
}

/// A node, and how many replies it has got.
struct Pair {
    node: Node,
    replies: Log<u32>,
    requests: Log<u32>,
}

impl Pair {
    fn connect(am: &Am) -> Self {
        let (replies, requests) = (Log::new(), Log::new());
        let (to_replies, to_requests) = (replies.clone(), requests.clone());
        let node = Node::connect(am, 2, 0, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |token, message| {
                    to_requests.push(0);
                    token.reply_medium(2, message.payload.bytes(), message.args).unwrap();
                })
                .unwrap();
            bundle
                .set_handler(endpoint, 2, move |_, message| {
                    assert_eq!(message.payload.bytes(), pattern(message.args[0] as usize, 20_000));
                    to_replies.push(message.args[0]);
                })
                .unwrap();
        });
        Self { node, replies, requests }
    }

    fn talk(&mut self, rounds: u32) {
        let peer = usize::from(self.node.names[0] == self.own());
        for round in 0..rounds {
            self.node.medium(peer, 1, &pattern(round as usize, 20_000), &[round]).unwrap();
        }
        let all = rounds as usize;
        let (replies, requests) = (self.replies.clone(), self.requests.clone());
        until(&mut self.node.bundle, || replies.len() == all && requests.len() == all);
    }

    fn own(&self) -> am2::EndpointName {
        self.node.bundle.name(self.node.endpoint).unwrap()
    }
}

#[test]
fn exchanges_give_everybody_the_words_of_all() {
    run(4, |am| {
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        for round in 0..200 {
            let word = |task: u64| task << 32 | round;
            let words = bundle.exchange(word(am.task().into())).unwrap();
            assert_eq!(words, (0..4).map(word).collect::<Vec<_>>());
        }
    });
}

/// The panic leaves the barrier; the next call of the task continues the same barrier.
#[test]
fn a_barrier_goes_on_after_a_handler_has_panicked() {
    run(2, |am| {
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle.set_handler(endpoint, 1, |_, _| panic!("as the test wants")).unwrap();
        });
        if am.task() == 0 {
            node.short(1, 1, &[]).unwrap();
        } else {
            // The request arrives before task 0's word.
            let barrier = || node.bundle.barrier();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(barrier));
            assert!(outcome.is_err());
        }
        node.bundle.barrier().unwrap();
        let words = node.bundle.exchange(5 + u64::from(am.task())).unwrap();
        assert_eq!(words, [5, 6], "the barrier's words are not taken for these");
        if am.task() == 0 {
            node.short(1, 1, &[]).unwrap();
        } else {
            let leave = || node.bundle.leave();
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(leave)).is_err());
        }
        node.bundle.leave().unwrap();
    });
}
