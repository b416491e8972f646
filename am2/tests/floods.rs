//! Floods: every task sends to every task as fast as it can, in every shape and with few credits, and nothing blocks.

mod support;

use std::sync::Arc;

use am2::{Error, Status};
use support::{Log, Node, pattern, run, until};

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const SILENT: u8 = 3;

/// Longest payload of a flood.
const LONGEST: usize = 50_000;

/// Each task has room for one payload of each task and kind.
fn room(sender: usize, round: usize) -> usize {
    (sender * 8 + round % 8) * LONGEST
}

/// Checks a message against its arguments: sender, round, length.
fn check(message: &am2::Message<'_>) {
    let [sender, round, len] = message.args else { panic!("three arguments") };
    let expected = pattern(*sender as usize + *round as usize, *len as usize);
    assert!(message.payload.bytes() == expected, "{sender} {round} {len}");
}

/// A node whose request handler checks the message and sends it back.
fn node(am: &am2::Am, depth: usize) -> (Node, Log<()>, Log<()>) {
    let (requests, replies) = (Log::new(), Log::new());
    let (to_requests, to_silent, to_replies) =
        (requests.clone(), requests.clone(), replies.clone());
    let segment = room(4, 0);
    let node = Node::connect(am, depth, segment, |bundle, endpoint| {
        bundle
            .set_handler(endpoint, REQUEST, move |token, message| {
                check(&message);
                to_requests.push(());
                let bytes = message.payload.bytes();
                token.reply_medium(REPLY, bytes, message.args).unwrap();
            })
            .unwrap();
        bundle
            .set_handler(endpoint, REPLY, move |_, message| {
                check(&message);
                to_replies.push(());
            })
            .unwrap();
        bundle
            .set_handler(endpoint, SILENT, move |_, message| {
                check(&message);
                to_silent.push(());
            })
            .unwrap();
    });
    (node, requests, replies)
}

/// Every task sends `rounds` requests to every task. Only with one credit may long messages use a place again.
fn flood(num_tasks: usize, depth: usize, rounds: usize, lens: &'static [usize]) {
    run(num_tasks, move |am| {
        let (mut node, requests, replies) = node(am, depth);
        let own = am.task() as usize;
        for round in 0..rounds {
            for peer in 0..num_tasks {
                let len = lens[(round + peer) % lens.len()];
                let args = [own as u32, round as u32, len as u32];
                let payload = pattern(own + round, len);
                let sent = match round % 3 {
                    0 if len == 0 => node.short(peer, REQUEST, &args),
                    1 if depth == 1 => node.long(peer, SILENT, room(own, round), &payload, &args),
                    _ => node.medium(peer, REQUEST, &payload, &args),
                };
                sent.unwrap();
            }
        }
        node.bundle.leave().unwrap();
        assert_eq!(requests.len(), rounds * num_tasks, "exactly once");
        let silent =
            if depth == 1 { (0..rounds).filter(|round| round % 3 == 1).count() } else { 0 };
        assert_eq!(replies.len(), (rounds - silent) * num_tasks);
        assert!(node.returned.take().is_empty());
    });
}

#[test]
fn two_tasks_with_one_credit() {
    flood(2, 1, 600, &[0, 10, 1_000, 20_000]);
}

#[test]
fn four_tasks_with_one_credit() {
    flood(4, 1, 200, &[0, 8, 300, LONGEST]);
}

#[test]
fn three_tasks_with_few_credits() {
    flood(3, 4, 300, &[0, 100, 17_000]);
}

#[test]
fn four_tasks_with_many_credits() {
    flood(4, 1024, 600, &[0, 0, 64, 0, 4_000]);
}

/// Short requests only, many more than there are cells in a ring.
#[test]
fn short_requests_in_both_directions() {
    flood(2, 256, 6_000, &[0]);
}

/// A task that waits for credits answers the requests of others, although it calls nothing but requests.
#[test]
fn whoever_waits_for_credits_answers() {
    run(2, |am| {
        let (mut node, requests, _) = node(am, 1);
        let peer = 1 - am.task() as usize;
        for round in 0..500 {
            node.medium(peer, REQUEST, &pattern(round, 100), &[0, round as u32, 100]).unwrap();
        }
        until(&mut node.bundle, || requests.len() == 500);
        node.bundle.leave().unwrap();
    });
}

/// Requests that are refused give their credits back as answered ones do.
#[test]
fn refused_requests_in_both_directions() {
    run(3, |am| {
        let (mut node, ..) = node(am, 2);
        for round in 0..300 {
            for peer in 0..3 {
                match round % 2 {
                    0 => node.short(peer, 99, &[]).unwrap(),
                    _ => node.medium(peer, 99, &pattern(0, 30_000), &[]).unwrap(),
                }
            }
        }
        node.bundle.leave().unwrap();
        let returned = node.returned.take();
        assert_eq!(returned.len(), 900);
        assert!(returned.iter().all(|(message, _)| message.status == Status::BadHandler));
    });
}

#[test]
fn asynchronous_requests_in_both_directions() {
    run(2, |am| {
        let (mut node, requests, _) = node(am, 1);
        let own = am.task() as usize;
        let mut refused = 0;
        for round in 0..200 {
            let payload = Arc::new(pattern(own + round, LONGEST));
            let args = [own as u32, round as u32, LONGEST as u32];
            let offset = room(own, round);
            loop {
                let (ep, bundle) = (node.endpoint, &mut node.bundle);
                match bundle.request_long_async(ep, 1 - own, SILENT, offset, &payload, &args) {
                    Ok(()) => break,
                    Err(Error::WouldWait { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
                std::thread::yield_now();
            }
        }
        node.bundle.leave().unwrap();
        assert_eq!(requests.len(), 200, "{refused} attempts were refused");
    });
}
