//! Messages that their receiver refuses: each status that the calls can provoke, and what handler 0 gets. The others
//! are provoked by hand-made packets, beside the header handler.

mod support;

use am2::{BundleKind, MAX_MEDIUM, Opcode, Status, Tag};
use support::{Log, Node, pattern, run, run_with_bells};

/// Connects two tasks, of which task 0 sends. Handler 1 is set, handler 2 is not.
fn pair(am: &am2::Am, segment: usize) -> Node {
    Node::connect(am, 4, segment, |bundle, endpoint| {
        bundle.set_handler(endpoint, 1, |_, _| {}).unwrap();
    })
}

/// Task 0 sends with `send`; its requests come back with these statuses and opcodes. Task 1 first does `prepare`.
fn refused(
    segment: usize,
    prepare: impl Fn(&mut Node) + Send + Sync + 'static,
    send: impl Fn(&mut Node) + Send + Sync + 'static,
    expected: &'static [(Status, Opcode, u8)],
) {
    run(2, move |am| {
        let mut node = pair(am, segment);
        if am.task() == 1 {
            prepare(&mut node);
        }
        node.bundle.barrier().unwrap();
        if am.task() == 0 {
            send(&mut node);
            let returned = node.returned.await_in(&mut node.bundle, expected.len());
            let came: Vec<_> =
                returned.iter().map(|(m, _)| (m.status, m.opcode, m.handler)).collect();
            assert_eq!(came, expected);
            assert!(returned.iter().all(|(_, source)| *source == node.names[1]));
        }
        node.bundle.leave().unwrap();
        let untouched =
            node.bundle.with_segment(node.endpoint, |bytes| bytes.iter().all(|b| *b == 0));
        assert!(untouched.unwrap(), "nothing is written for a message that is refused");
    });
}

/// Sends a request of each shape to a handler.
fn each_shape(node: &mut Node, handler: u8) {
    node.short(1, handler, &[]).unwrap();
    node.medium(1, handler, &[1; 40_000], &[]).unwrap();
    node.long(1, handler, 0, &[1; 100], &[]).unwrap();
}

const fn every_shape(status: Status, handler: u8) -> [(Status, Opcode, u8); 3] {
    [
        (status, Opcode::RequestShort, handler),
        (status, Opcode::RequestMedium, handler),
        (status, Opcode::RequestLong, handler),
    ]
}

#[test]
fn a_handler_that_is_not_set() {
    const EXPECTED: &[(Status, Opcode, u8)] = &every_shape(Status::BadHandler, 2);
    refused(1 << 16, |_| {}, |node| each_shape(node, 2), EXPECTED);
}

#[test]
fn a_tag_that_differs_or_is_none() {
    const EXPECTED: &[(Status, Opcode, u8)] = &every_shape(Status::BadTag, 1);
    for tag in [Tag(78), Tag::NONE] {
        let prepare = move |node: &mut Node| node.bundle.set_tag(node.endpoint, tag).unwrap();
        refused(1 << 16, prepare, |node| each_shape(node, 1), EXPECTED);
    }
    // Even a message whose tag is NONE.
    let send = |node: &mut Node| {
        node.bundle.set_translation_tag(node.endpoint, 1, Tag::NONE).unwrap();
        each_shape(node, 1);
    };
    let prepare = |node: &mut Node| node.bundle.set_tag(node.endpoint, Tag::NONE).unwrap();
    refused(1 << 16, prepare, send, EXPECTED);
}

#[test]
fn an_endpoint_without_segment() {
    let expected = &[(Status::BadSegmentOffset, Opcode::RequestLong, 1)];
    for len in [0, 10, 100_000] {
        refused(0, |_| {}, move |node| node.long(1, 1, 0, &vec![1; len], &[]).unwrap(), expected);
    }
}

/// Also where the offset is so large that the end would wrap around.
#[test]
fn a_long_message_that_ends_behind_the_segment() {
    let expected = &[(Status::BadLength, Opcode::RequestLong, 1)];
    let cases = [(0, 101), (100, 1), (101, 0), (99, 2), (usize::MAX, 1), (usize::MAX - 4, 10)];
    for (offset, len) in cases {
        refused(
            100,
            |_| {},
            move |node| node.long(1, 1, offset, &vec![1; len], &[]).unwrap(),
            expected,
        );
    }
    refused(100_000, |_| {}, |node| node.long(1, 1, 1, &[1; 100_000], &[]).unwrap(), expected);
}

/// Messages that just fit are accepted.
#[test]
fn a_long_message_that_ends_with_the_segment() {
    run(2, |am| {
        let mut node = pair(am, 100);
        if am.task() == 0 {
            for (offset, len) in [(0, 100), (100, 0), (99, 1)] {
                node.long(1, 1, offset, &vec![1; len], &[]).unwrap();
            }
        }
        node.bundle.leave().unwrap();
        assert!(node.returned.take().is_empty());
    });
}

/// Task 0 does not map task 1, which maps task 0.
#[test]
fn a_sender_that_is_not_mapped() {
    run(2, |am| {
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        let endpoint = bundle.allocate_endpoint().unwrap();
        let names = bundle.exchange_names(endpoint).unwrap();
        bundle.set_tag(endpoint, Tag::ALL).unwrap();
        bundle.set_handler(endpoint, 1, |_, _| panic!("accepted")).unwrap();
        let log = Log::new();
        let to = log.clone();
        bundle.set_return_handler(endpoint, move |_, message| to.push(message.status)).unwrap();
        if am.task() == 1 {
            bundle.map(endpoint, 0, names[0], Tag::ALL).unwrap();
        }
        bundle.set_expected_resources(endpoint, 1).unwrap();
        bundle.barrier().unwrap();
        if am.task() == 1 {
            bundle.request_short(endpoint, 0, 1, &[]).unwrap();
            bundle.request_medium(endpoint, 0, 1, &pattern(0, MAX_MEDIUM), &[]).unwrap();
            assert_eq!(log.await_in(&mut bundle, 2), [Status::BadEndpoint; 2]);
        }
        bundle.leave().unwrap();
    });
}

#[test]
fn an_endpoint_that_was_freed() {
    const EXPECTED: &[(Status, Opcode, u8)] = &every_shape(Status::Unreachable, 1);
    run(2, |am| {
        let mut node = pair(am, 1 << 16);
        if am.task() == 0 {
            // One request waits at the endpoint when it is freed.
            node.short(1, 1, &[]).unwrap();
        }
        node.quiet.barrier().unwrap();
        if am.task() == 1 {
            node.bundle.free_endpoint(node.endpoint).unwrap();
        }
        node.quiet.barrier().unwrap();
        if am.task() == 0 {
            each_shape(&mut node, 1);
            let returned = node.returned.await_in(&mut node.bundle, 4);
            let mut came: Vec<_> =
                returned.iter().map(|(m, _)| (m.status, m.opcode, m.handler)).collect();
            assert_eq!(came.remove(0), EXPECTED[0]);
            assert_eq!(came, EXPECTED);
        }
        node.bundle.leave().unwrap();
    });
}

/// The replier learns of it, and the requester gets its credit back: with one credit the second request would wait.
#[test]
fn a_reply_that_is_refused() {
    run(2, |am| {
        let mut node = Node::connect(am, 1, 50, |bundle, endpoint| {
            bundle.set_handler(endpoint, 3, |token, _| token.reply_short(9, &[]).unwrap()).unwrap();
            bundle
                .set_handler(endpoint, 4, |token, _| {
                    token.reply_medium(9, &[1; 60_000], &[]).unwrap();
                })
                .unwrap();
            bundle
                .set_handler(endpoint, 5, |token, _| token.reply_long(1, 45, &[1; 6], &[]).unwrap())
                .unwrap();
            bundle.set_handler(endpoint, 1, |_, _| panic!("accepted")).unwrap();
        });
        if am.task() == 0 {
            for handler in [3, 4, 5] {
                node.short(1, handler, &[]).unwrap();
            }
        }
        node.bundle.leave().unwrap();
        let came: Vec<_> = node
            .returned
            .take()
            .iter()
            .map(|(m, from)| (m.status, m.opcode, m.handler, *from))
            .collect();
        if am.task() == 0 {
            assert!(came.is_empty());
            node.bundle.with_segment(node.endpoint, |bytes| assert_eq!(*bytes, [0; 50])).unwrap();
        } else {
            let from = node.names[0];
            let expected = [
                (Status::ReplyRejected, Opcode::ReplyShort, 9, from),
                (Status::ReplyRejected, Opcode::ReplyMedium, 9, from),
                (Status::ReplyRejected, Opcode::ReplyLong, 1, from),
            ];
            assert_eq!(came, expected);
        }
    });
}

/// A returned message has no reply.
#[test]
fn handler_zero_cannot_reply() {
    run(1, |am| {
        let log = Log::new();
        let to = log.clone();
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle
                .set_return_handler(endpoint, move |token, _| {
                    to.push(token.reply_short(1, &[]).unwrap_err().code());
                })
                .unwrap();
        });
        // `connect` sets a handler 0 first, which `prepare` has replaced.
        node.short(0, 8, &[]).unwrap();
        assert_eq!(log.take(), [am2::Code::Resource]);
    });
}

#[test]
fn the_default_handler_zero_panics_and_says_why() {
    let am = am2::Am::in_process(1).unwrap().remove(0);
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let endpoint = bundle.allocate_endpoint().unwrap();
    let own = bundle.name(endpoint).unwrap();
    bundle.map(endpoint, 0, own, Tag::ALL).unwrap();
    bundle.set_expected_resources(endpoint, 1).unwrap();
    let request = || bundle.request_short(endpoint, 0, 7, &[]);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(request)).unwrap_err();
    let text = transport_lapi::panic_text(&*panic).to_owned();
    for part in ["endpoint 0 of task 0", "REQUEST_M", "handler 7", "EBADTAG", "set_tag"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

/// Requests to a task that is lost come back, and later ones fail at once.
#[test]
fn a_task_that_is_lost() {
    run_with_bells(2, |am, bell| {
        let mut node = pair(am, 0);
        if am.task() == 1 {
            node.quiet.barrier().unwrap();
            bell.declare();
            // Dropping it would send the requests back.
            std::mem::forget(node);
            return;
        }
        node.short(1, 1, &[]).unwrap();
        node.medium(1, 1, &[0; 100], &[]).unwrap();
        node.quiet.barrier().unwrap();
        let returned = node.returned.await_in(&mut node.bundle, 2);
        assert!(returned.iter().all(|(message, _)| message.status == Status::Unreachable));
        assert_eq!(returned[1].0.opcode, Opcode::RequestMedium);
        let late = node.short(1, 1, &[]).unwrap_err();
        assert_eq!(late.code(), am2::Code::NotSent);
        assert!(node.returned.take().is_empty(), "the error says it");
    });
}
