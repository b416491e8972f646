//! Messages of every shape, arity and length, requests and replies.

mod support;

use std::sync::{Arc, Barrier};

use am2::{Counts, Error, MAX_LONG, MAX_MEDIUM, MAX_SHORT, Message, Payload, Stats, Tag, Token};
use support::{Log, Node, pattern, run, until};

/// Handlers of requests, which answer in the shape that their first argument names, and of replies.
const ECHO: u8 = 5;
const TAKE: u8 = 255;

const SEGMENT: usize = 1 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Short,
    Medium,
    Long,
}

const SHAPES: [Shape; 3] = [Shape::Short, Shape::Medium, Shape::Long];

/// What a handler got: shape, offset, bytes, arguments.
type Seen = (Shape, usize, Vec<u8>, Vec<u32>);

fn seen(message: &Message<'_>) -> Seen {
    let (shape, offset) = match &message.payload {
        Payload::Short => (Shape::Short, 0),
        Payload::Medium(bytes) => {
            assert_eq!(bytes.as_ptr().addr() % 8, 0, "medium payloads are aligned to 8 bytes");
            (Shape::Medium, 0)
        }
        Payload::Long { offset, .. } => (Shape::Long, *offset),
    };
    (shape, offset, message.payload.bytes().to_vec(), message.args.to_vec())
}

fn args(count: usize) -> Vec<u32> {
    (0..count as u32).map(|arg| arg.wrapping_mul(0x9E37_79B9) ^ 0xFF00_00FF).collect()
}

/// Answers with what came, in the same shape; a long one goes 64 bytes further.
fn echo(token: &mut Token<'_>, message: Message<'_>) {
    let (shape, offset, bytes, args) = seen(&message);
    let sent = match shape {
        Shape::Short => token.reply_short(TAKE, &args),
        Shape::Medium => token.reply_medium(TAKE, &bytes, &args),
        Shape::Long => token.reply_long(TAKE, offset + 64, &bytes, &args),
    };
    sent.unwrap();
}

/// A node that echoes, and logs replies. The log contains requests too, if `both`.
fn node(am: &am2::Am, depth: usize) -> (Node, Log<Seen>, Log<Seen>) {
    let (requests, replies) = (Log::new(), Log::new());
    let (to_requests, to_replies) = (requests.clone(), replies.clone());
    let node = Node::connect(am, depth, SEGMENT, |bundle, endpoint| {
        bundle
            .set_handler(endpoint, ECHO, move |token, message| {
                to_requests.push(seen(&message));
                echo(token, message);
            })
            .unwrap();
        bundle
            .set_handler(endpoint, TAKE, move |_, message| to_replies.push(seen(&message)))
            .unwrap();
    });
    (node, requests, replies)
}

/// Sends each case to task 1, and checks what arrives there and what comes back.
fn both_ways(cases: Vec<(Shape, usize, usize, usize)>, num_tasks: usize) {
    run(num_tasks, move |am| {
        let (mut node, requests, replies) = node(am, 4);
        let peer = num_tasks - 1;
        let mut expected = Vec::new();
        for (case, &(shape, offset, len, count)) in cases.iter().enumerate() {
            let (bytes, args) = (pattern(case, len), args(count));
            expected.push((shape, offset, bytes.clone(), args.clone()));
            if am.task() != 0 {
                continue;
            }
            match shape {
                Shape::Short => node.short(peer, ECHO, &args),
                Shape::Medium => node.medium(peer, ECHO, &bytes, &args),
                Shape::Long => node.long(peer, ECHO, offset, &bytes, &args),
            }
            .unwrap();
            let back = replies.await_in(&mut node.bundle, 1);
            let moved = if shape == Shape::Long { offset + 64 } else { 0 };
            assert_eq!(back, [(shape, moved, bytes.clone(), args)], "case {case}");
            let at = node.bundle.with_segment(node.endpoint, |segment| {
                shape != Shape::Long || segment[moved..moved + len] == bytes
            });
            assert!(at.unwrap(), "case {case}: the reply stays in the segment");
        }
        node.bundle.leave().unwrap();
        if am.task() as usize == peer {
            let requests = requests.take();
            assert_eq!(requests.len(), expected.len());
            for (case, (came, expected)) in requests.iter().zip(&expected).enumerate() {
                assert!(came == expected, "case {case}");
            }
        }
        assert!(node.returned.take().is_empty());
    });
}

#[test]
fn every_arity_in_every_shape_as_request_and_reply() {
    for num_tasks in [1, 2] {
        let arities = (0..=MAX_SHORT)
            .flat_map(|count| {
                SHAPES.map(|shape| (shape, 8, if shape == Shape::Short { 0 } else { 24 }, count))
            })
            .map(|(shape, offset, len, count)| match shape {
                Shape::Long => (shape, offset, len, count),
                _ => (shape, 0, len, count),
            });
        both_ways(arities.collect(), num_tasks);
    }
}

#[test]
fn every_length_of_payloads() {
    let mut cases = Vec::new();
    for len in [0, 1, 7, 8, 9, 63, 64, 65, 863, 864, 865, 4096, 16383, 16384, 16385, 40_000] {
        cases.push((Shape::Medium, 0, len, 2));
        cases.push((Shape::Long, len / 3, len, 3));
    }
    cases.push((Shape::Medium, 0, MAX_MEDIUM, 16));
    cases.push((Shape::Medium, 0, MAX_MEDIUM - 1, 0));
    cases.push((Shape::Long, 0, SEGMENT - 64, 16));
    cases.push((Shape::Long, SEGMENT - 64 - 5, 5, 1));
    for num_tasks in [1, 2] {
        both_ways(cases.clone(), num_tasks);
    }
}

#[test]
fn a_long_message_of_the_greatest_length() {
    run(2, |am| {
        let log = Log::new();
        let to = log.clone();
        let mut node = Node::connect(am, 1, MAX_LONG, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |_, message| to.push(message.payload.bytes().len()))
                .unwrap();
        });
        if am.task() == 0 {
            node.long(1, 1, 0, &pattern(3, MAX_LONG), &[]).unwrap();
        }
        node.bundle.leave().unwrap();
        if am.task() == 1 {
            assert_eq!(log.take(), [MAX_LONG]);
            let arrived =
                node.bundle.with_segment(node.endpoint, |bytes| *bytes == pattern(3, MAX_LONG));
            assert!(arrived.unwrap());
        }
    });
}

#[test]
fn calls_with_bad_arguments_send_nothing() {
    run(1, |am| {
        let (mut node, requests, _) = node(am, 2);
        let (ep, many) = (node.endpoint, vec![0; MAX_SHORT + 1]);
        assert!(matches!(node.short(0, ECHO, &many), Err(Error::TooManyArgs { count: 17, .. })));
        assert!(matches!(node.short(0, 0, &[]), Err(Error::HandlerZero { .. })));
        assert!(matches!(node.short(256, ECHO, &[]), Err(Error::IndexRange { index: 256, .. })));
        let unmapped = node.short(9, ECHO, &[]).unwrap_err();
        assert!(matches!(unmapped, Error::Unmapped { index: 9, .. }));
        assert_eq!(unmapped.code(), am2::Code::BadArg);
        let medium = node.medium(0, ECHO, &vec![0; MAX_MEDIUM + 1], &[]);
        assert!(matches!(medium, Err(Error::PayloadLen { max: MAX_MEDIUM, .. })));
        let long = node.long(0, ECHO, 0, &vec![0; MAX_LONG + 1], &[]);
        assert!(matches!(long, Err(Error::PayloadLen { max: MAX_LONG, .. })));
        let shared = Arc::new(vec![0; MAX_LONG + 1]);
        let long = node.bundle.request_long_async(ep, 0, ECHO, 0, &shared, &[]);
        assert!(matches!(long, Err(Error::PayloadLen { max: MAX_LONG, .. })));
        assert!(requests.take().is_empty());
    });
}

/// The caller may overwrite a payload as soon as the call returns, whether or not it has left.
#[test]
fn payloads_are_reusable_when_the_call_returns() {
    run(2, |am| {
        let (mut node, requests, _) = node(am, 64);
        if am.task() == 0 {
            let mut buffer = vec![0; 20_000];
            for round in 0..100_u8 {
                buffer.fill(round);
                if round % 2 == 0 {
                    node.medium(1, ECHO, &buffer, &[]).unwrap();
                } else {
                    node.long(1, ECHO, usize::from(round / 2) * 20_000, &buffer, &[]).unwrap();
                }
                buffer.fill(255);
            }
        }
        node.bundle.leave().unwrap();
        let mut came: Vec<u8> = requests.take().iter().map(|(.., bytes, _)| bytes[0]).collect();
        came.sort_unstable();
        let expected: Vec<u8> = if am.task() == 1 { (0..100).collect() } else { Vec::new() };
        assert_eq!(came, expected);
    });
}

#[test]
fn an_asynchronous_request_does_not_wait() {
    let gate = Barrier::new(2);
    run(2, move |am| {
        let (mut node, requests, replies) = node(am, 2);
        let payload = Arc::new(pattern(1, 100_000));
        if am.task() == 0 {
            let mut refused = None;
            // Task 1 does not poll before the gate, so only two can be outstanding.
            for attempt in 0..3 {
                let call = node.bundle.request_long_async(node.endpoint, 1, ECHO, 0, &payload, &[]);
                match call {
                    Ok(()) => assert!(attempt < 2),
                    Err(error) => refused = Some((attempt, error)),
                }
            }
            let (attempt, error) = refused.expect("there are two credits");
            assert!(attempt == 2 && matches!(error, Error::WouldWait { index: 1, .. }));
            assert_eq!(error.code(), am2::Code::InUse);
        }
        gate.wait();
        node.bundle.barrier().unwrap();
        if am.task() == 0 {
            until(&mut node.bundle, || replies.len() == 2);
            assert_eq!(Arc::strong_count(&payload), 1, "what was answered has been sent");
            node.bundle.request_long_async(node.endpoint, 1, ECHO, 8, &payload, &[]).unwrap();
        }
        node.bundle.leave().unwrap();
        assert_eq!(requests.len(), if am.task() == 1 { 3 } else { 0 });
        assert_eq!(replies.len(), if am.task() == 0 { 3 } else { 0 });
    });
}

#[test]
fn a_request_has_at_most_one_reply_and_a_reply_has_none() {
    run(2, |am| {
        let errors = Log::new();
        let (in_request, in_reply) = (errors.clone(), errors.clone());
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |token, _| {
                    assert!(matches!(token.reply_short(0, &[]), Err(Error::HandlerZero { .. })));
                    assert!(matches!(
                        token.reply_short(2, &[0; 17]),
                        Err(Error::TooManyArgs { .. })
                    ));
                    let long = token.reply_medium(2, &vec![0; MAX_MEDIUM + 1], &[]);
                    assert!(matches!(long, Err(Error::PayloadLen { .. })));
                    let long = token.reply_long(2, 0, &vec![0; MAX_LONG + 1], &[]);
                    assert!(matches!(long, Err(Error::PayloadLen { .. })));
                    token.reply_short(2, &[1]).unwrap();
                    let second = token.reply_short(2, &[2]).unwrap_err();
                    in_request.push((second.code(), second.to_string()));
                })
                .unwrap();
            bundle
                .set_handler(endpoint, 2, move |token, message| {
                    assert_eq!(message.args, [1]);
                    let reply = token.reply_medium(2, &[], &[]).unwrap_err();
                    in_reply.push((reply.code(), reply.to_string()));
                })
                .unwrap();
        });
        node.short(1 - am.task() as usize, 1, &[]).unwrap();
        node.bundle.leave().unwrap();
        let errors = errors.take();
        assert_eq!(errors.len(), 2);
        for (code, text) in errors {
            assert_eq!(code, am2::Code::Resource);
            assert!(text.contains("at most once") || text.contains("no request"), "{text}");
        }
    });
}

/// Requests to a handler that does not reply get their credits back: with depth 1 the second one would wait for ever.
#[test]
fn a_silent_handler_answers_all_the_same() {
    run(2, |am| {
        let log = Log::new();
        let to = log.clone();
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle.set_handler(endpoint, 1, move |_, message| to.push(message.args[0])).unwrap();
        });
        for number in 0..200 {
            node.short(1 - am.task() as usize, 1, &[number]).unwrap();
        }
        node.bundle.leave().unwrap();
        assert_eq!(log.take(), (0..200).collect::<Vec<_>>());
    });
}

/// A panic leaves the call that ran the handler; the request is answered, and the bundle works on.
#[test]
fn a_handler_that_panics_answers_all_the_same() {
    run(2, |am| {
        let begun = Log::new();
        let to = begun.clone();
        let mut node = Node::connect(am, 1, 0, |bundle, endpoint| {
            bundle.set_handler(endpoint, 1, |_, _| panic!("as the test wants")).unwrap();
            bundle.set_handler(endpoint, 2, |_, _| {}).unwrap();
            bundle.set_handler(endpoint, 3, move |_, _| to.push(())).unwrap();
        });
        if am.task() == 0 {
            begun.await_in(&mut node.bundle, 1);
            node.short(1, 1, &[]).unwrap();
            node.short(1, 2, &[]).unwrap();
        } else {
            let poll = || {
                node.short(0, 3, &[]).unwrap();
                until(&mut node.bundle, || false);
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll));
            let text = transport_lapi::panic_text(&*outcome.unwrap_err()).to_owned();
            assert_eq!(text, "as the test wants");
        }
        node.bundle.leave().unwrap();
    });
}

#[test]
fn tokens_name_source_destination_and_tag() {
    run(2, |am| {
        let log = Log::new();
        let (to_requests, to_replies) = (log.clone(), log.clone());
        let mut node = Node::connect(am, 2, 0, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |token, _| {
                    to_requests.push((token.source(), token.dest(), token.tag()));
                    token.reply_short(2, &[]).unwrap();
                })
                .unwrap();
            bundle
                .set_handler(endpoint, 2, move |token, _| {
                    to_replies.push((token.source(), token.dest(), token.tag()));
                })
                .unwrap();
            bundle.set_tag(endpoint, Tag::ALL).unwrap();
            let tag = Tag(1000 + u64::from(am.task()));
            bundle.set_translation_tag(endpoint, 1 - am.task() as usize, tag).unwrap();
        });
        let peer = 1 - am.task() as usize;
        node.short(peer, 1, &[]).unwrap();
        node.bundle.leave().unwrap();
        let expected = (node.names[peer], node.endpoint, Tag(1000 + peer as u64));
        assert_eq!(log.take(), [expected; 2], "a request and a reply");
    });
}

/// The handlers of request and reply have run when the call returns.
#[test]
fn a_request_to_oneself_runs_its_handlers_at_once() {
    run(1, |am| {
        let (mut node, requests, replies) = node(am, 1);
        for round in 0..3 {
            node.long(0, ECHO, 100, &pattern(round, 1000), &[7]).unwrap();
            assert_eq!((requests.len(), replies.len()), (round + 1, round + 1));
        }
        node.short(0, 77, &[]).unwrap();
        let returned = node.returned.take();
        assert_eq!(returned.len(), 1, "a refusal comes back at once too");
        assert_eq!(returned[0].0.status, am2::Status::BadHandler);
    });
}

#[test]
fn endpoints_count_their_messages() {
    run(2, |am| {
        let (mut node, ..) = node(am, 1);
        if am.task() == 0 {
            node.short(1, ECHO, &[]).unwrap();
            node.medium(1, ECHO, &[1; 10], &[]).unwrap();
            node.long(1, ECHO, 0, &[1; 40_000], &[]).unwrap();
            node.medium(1, 99, &[1; 10], &[]).unwrap();
        }
        node.bundle.leave().unwrap();
        let stats = node.bundle.stats(node.endpoint).unwrap();
        let each = Counts { short: 1, medium: 1, long: 1 };
        let expected = if am.task() == 0 {
            Stats {
                requests_sent: Counts { medium: 2, ..each },
                replies_received: each,
                bytes_sent: 40_020,
                bytes_received: 40_010,
                returned: 1,
                ..Stats::default()
            }
        } else {
            Stats {
                requests_received: each,
                replies_sent: each,
                bytes_sent: 40_010,
                bytes_received: 40_010,
                refused: 1,
                ..Stats::default()
            }
        };
        assert_eq!(stats, expected);
    });
}
