//! AM-2 over a network that delays and refuses frames, and beside peers that do not keep the protocol.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use am2::{Am, BundleKind, Code, EndpointName, Error, PacketError, Status, Tag, Violation};
use mpj_doubles::fault::{FaultAdapter, FaultPlan};
use support::{Log, Node, pattern, run_over};
use transport_lapi::AnyAdapter;
use transport_lapi::wireup::{self};
use transport_lapi::{Amsend, Arrival, Context, HeaderAction, Options, Source};

fn adapters(num_tasks: usize) -> Vec<AnyAdapter> {
    wireup::in_process(num_tasks, 1).unwrap().into_iter().flatten().collect()
}

/// Every request is answered once, in both directions, although frames are held back and refused at random.
#[test]
fn delays_and_full_rings_lose_and_repeat_nothing() {
    const TASKS: usize = 3;
    const ROUNDS: u32 = 60;
    for seed in [1, 2, 3, 4] {
        let plan = FaultPlan { full: 200, delay: 200, ..FaultPlan::default() };
        let wrap = |(task, adapter)| {
            let AnyAdapter::Local(adapter) = adapter else { panic!("threads share a segment") };
            FaultAdapter::new(adapter, seed * 100 + task as u64, plan)
        };
        let adapters = adapters(TASKS).into_iter().enumerate().map(wrap).map(Into::into).collect();
        let gone = Arc::new(AtomicUsize::new(0));
        run_over(adapters, move |am, _| {
            let (requests, replies) = (Log::new(), Log::new());
            let (to_requests, to_replies) = (requests.clone(), replies.clone());
            let mut node = Node::connect(am, 3, 60_000, |bundle, endpoint| {
                bundle
                    .set_handler(endpoint, 1, move |token, message| {
                        let seed = message.args[0] as usize;
                        let len = message.payload.bytes().len();
                        assert!(message.payload.bytes() == pattern(seed, len));
                        to_requests.push((token.source(), message.args[0]));
                        token.reply_medium(2, message.payload.bytes(), message.args).unwrap();
                    })
                    .unwrap();
                bundle
                    .set_handler(endpoint, 2, move |token, message| {
                        to_replies.push((token.source(), message.args[0]));
                    })
                    .unwrap();
            });
            for round in 0..ROUNDS {
                for peer in 0..TASKS {
                    let len = [0, 100, 20_000][(round as usize + peer) % 3];
                    node.medium(peer, 1, &pattern(round as usize, len), &[round]).unwrap();
                }
            }
            node.bundle.leave().unwrap();
            let all = |log: &Log<(EndpointName, u32)>| {
                let mut came = log.take();
                came.sort_unstable();
                came
            };
            let expected: Vec<_> = node
                .names
                .iter()
                .flat_map(|name| (0..ROUNDS).map(|round| (*name, round)))
                .collect();
            assert_eq!(all(&requests), expected);
            assert_eq!(all(&replies), expected);
            // A frame that is held back leaves only if its task polls.
            gone.fetch_add(1, Ordering::SeqCst);
            while gone.load(Ordering::SeqCst) < TASKS {
                node.quiet.poll().unwrap();
                std::thread::yield_now();
            }
        });
    }
}

/// What a peer without AM-2 has received: packets, none of which has a payload here.
type Inbox = Vec<Vec<u8>>;

fn keep(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let mut rest = vec![0; message.len as usize];
    message.data.expect("it is short").copy_to(&mut rest);
    inbox.push([message.uhdr, &rest].concat());
    HeaderAction::Consumed
}

/// A task with AM-2, which maps endpoint 0 of task 1, and a task that writes its packets by hand.
fn beside_a_stranger() -> (Am, am2::Bundle, am2::Endpoint, Context<Inbox>, Log<u32>) {
    let mut adapters = adapters(2);
    let stranger = Context::init(adapters.remove(1), Inbox::new(), Options::default());
    stranger.session().unwrap().addr_set(1, keep).unwrap();
    let am = Am::init(adapters.remove(0), Options::default()).unwrap();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let endpoint = bundle.allocate_endpoint().unwrap();
    let peer = EndpointName::from_bits(1 << 16).unwrap();
    bundle.map(endpoint, 0, peer, Tag::ALL).unwrap();
    bundle.set_tag(endpoint, Tag(7)).unwrap();
    bundle.set_expected_resources(endpoint, 4).unwrap();
    let log = Log::new();
    let to = log.clone();
    bundle.set_handler(endpoint, 1, move |_, message| to.push(message.args.len() as u32)).unwrap();
    (am, bundle, endpoint, stranger, log)
}

/// A packet without arguments from endpoint 0 to endpoint 0, with tag 7 and these first bytes.
fn packet(kind: u8, handler: u8, status: u8, opcode: u8) -> Vec<u8> {
    let mut bytes = vec![0; 24];
    bytes[..4].copy_from_slice(&[kind, handler, 0, status | opcode << 4]);
    bytes[16] = 7;
    bytes
}

fn send(stranger: &Context<Inbox>, packet: &[u8], payload: Vec<u8>) {
    let _ = stranger.session().unwrap().amsend(Amsend::new(0, 1, packet, Source::from(payload)));
}

/// Damage is reported once, by the call that finds it, and the next packet is handled.
#[test]
fn violations_are_reported_and_do_not_stop_the_others() {
    mpj_harness::watch(|| {
        let (_am, mut bundle, _, stranger, log) = beside_a_stranger();
        let cases = [
            (packet(99, 0, 0, 0), Violation::Packet(PacketError::UnknownKind(99))),
            (packet(4, 1, 0, 0), Violation::StrayAnswer { number: 0 }),
            (packet(7, 0, 0, 0), Violation::StrayAnswer { number: 0 }),
            (packet(8, 1, 3, 1), Violation::StrayAnswer { number: 0 }),
            (packet(8, 1, 10, 4), Violation::StrayReturn { number: 0 }),
        ];
        for (bytes, expected) in cases {
            send(&stranger, &bytes, Vec::new());
            send(&stranger, &packet(1, 1, 0, 0), Vec::new());
            let error = bundle.poll().unwrap_err();
            assert_eq!(error.code(), Code::Resource);
            match error {
                Error::Peer { origin: 1, violation } => assert_eq!(violation, expected),
                other => panic!("{other}"),
            }
            assert_eq!(bundle.poll().unwrap(), 1);
        }
        assert_eq!(log.len(), 5);
    });
}

/// An exchange that reports a violation is continued by the next call.
#[test]
fn an_exchange_goes_on_after_an_error() {
    mpj_harness::watch(|| {
        let (_am, mut bundle, _, stranger, _) = beside_a_stranger();
        send(&stranger, &packet(99, 0, 0, 0), Vec::new());
        send(&stranger, &packet(9, 0, 0, 0), Vec::new());
        assert!(matches!(bundle.exchange(3), Err(Error::Peer { origin: 1, .. })));
        assert_eq!(bundle.exchange(3).unwrap(), [3, 7]);
        let mut session = stranger.session().unwrap();
        session.progress().unwrap();
        assert_eq!(session.state.len(), 1, "one word was sent");
    });
}

/// The bytes of a message that is refused are not stored, also if they come in many packets.
#[test]
fn refused_messages_come_back_to_strangers_too() {
    mpj_harness::watch(|| {
        let (_am, mut bundle, endpoint, stranger, log) = beside_a_stranger();
        bundle.set_segment(endpoint, vec![0; 100_000]).unwrap();
        let long = |offset: u64| [packet(3, 1, 0, 0), offset.to_le_bytes().to_vec()].concat();
        let mut args = packet(1, 1, 0, 0);
        args[2] = 16;
        let cases = [
            (args, 0, Status::BadArgs),
            (long(1), 100_000, Status::BadLength),
            (long(u64::MAX), 100_000, Status::BadLength),
        ];
        for (bytes, len, status) in cases {
            send(&stranger, &bytes, vec![1; len]);
            let back = loop {
                bundle.poll().unwrap();
                let mut session = stranger.session().unwrap();
                session.progress().unwrap();
                if let Some(back) = session.state.pop() {
                    break back;
                }
            };
            assert_eq!(back[..4], [8, 1, 0, status as u8 | bytes[0] << 4]);
        }
        assert_eq!(log.len(), 0);
        bundle.with_segment(endpoint, |bytes| assert!(bytes.iter().all(|b| *b == 0))).unwrap();
    });
}

/// Every status and opcode arrives at handler 0, also those that only other implementations send.
#[test]
fn strangers_may_return_requests_with_every_status() {
    mpj_harness::watch(|| {
        let (_am, mut bundle, endpoint, stranger, _) = beside_a_stranger();
        let log = Log::new();
        let to = log.clone();
        bundle
            .set_return_handler(endpoint, move |_, back| to.push((back.status, back.handler)))
            .unwrap();
        for status in Status::ALL {
            bundle.request_short(endpoint, 0, 44, &[]).unwrap();
            let request = loop {
                let mut session = stranger.session().unwrap();
                session.progress().unwrap();
                if let Some(request) = session.state.pop() {
                    break request;
                }
            };
            let mut back = packet(8, 44, status as u8, 1);
            back[8..16].copy_from_slice(&request[8..16]);
            send(&stranger, &back, Vec::new());
            assert_eq!(log.await_in(&mut bundle, 1), [(status, 44)]);
        }
    });
}
