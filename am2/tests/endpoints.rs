//! The calls that are local: bundles, endpoints, handlers, translations, tags, segments, and their errors.

mod support;

use am2::{
    Am, Bundle, BundleKind, Code, Endpoint, EndpointName, Error, MAX_BUNDLES, MAX_OUTSTANDING,
    MAX_TRANSLATIONS, Tag,
};
use support::{Log, Node, run, until};

fn alone() -> Am {
    Am::in_process(1).unwrap().remove(0)
}

#[test]
fn a_clone_is_one_more_init_and_the_last_end_terminates() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let endpoint = bundle.allocate_endpoint().unwrap();
    let second = am.clone();
    assert!(!am.terminate());
    assert!(bundle.poll().is_ok());
    assert!(second.terminate());
    let polled = bundle.poll().unwrap_err();
    assert!(matches!(polled, Error::Terminated { task: 0 }));
    assert_eq!(polled.code(), Code::NotInit);
    let errors = [
        bundle.allocate_endpoint().map(drop),
        bundle.set_tag(endpoint, Tag::ALL),
        bundle.request_short(endpoint, 0, 1, &[]),
        bundle.free_endpoint(endpoint),
        bundle.barrier(),
    ];
    for error in errors {
        assert_eq!(error.unwrap_err().code(), Code::NotInit);
    }
}

/// Two tasks in this thread, each with a bundle and an endpoint that maps the other one at index 0.
fn two() -> [(Am, Bundle, Endpoint); 2] {
    let ams = Am::in_process(2).unwrap();
    let tasks: Vec<_> = ams
        .into_iter()
        .map(|am| {
            let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
            let endpoint = bundle.allocate_endpoint().unwrap();
            let peer = EndpointName::from_bits(u64::from(1 - am.task()) << 16).unwrap();
            bundle.map(endpoint, 0, peer, Tag::ALL).unwrap();
            bundle.set_tag(endpoint, Tag::ALL).unwrap();
            bundle.set_handler(endpoint, 1, |_, _| {}).unwrap();
            bundle.set_expected_resources(endpoint, 4).unwrap();
            (am, bundle, endpoint)
        })
        .collect();
    tasks.try_into().ok().unwrap()
}

/// A request that waits at an endpoint comes back when the endpoint is freed, in whatever way.
#[test]
fn freeing_sends_back_what_waits() {
    let ways: [fn(Am, Bundle, Endpoint); 3] = [
        |_, mut bundle, endpoint| bundle.free_endpoint(endpoint).unwrap(),
        |_, bundle, _| drop(bundle),
        |am, _bundle, _| assert!(am.terminate()),
    ];
    for free in ways {
        let [(_am, mut sender, from), (am, bundle, to)] = two();
        let log = Log::new();
        let returned = log.clone();
        sender.set_return_handler(from, move |_, message| returned.push(message.status)).unwrap();
        sender.request_short(from, 0, 1, &[]).unwrap();
        am.allocate_bundle(BundleKind::Sequential).unwrap().poll().unwrap();
        free(am, bundle, to);
        assert_eq!(log.await_in(&mut sender, 1), [am2::Status::Unreachable]);
    }
}

#[test]
fn a_termination_ends_waits_of_other_threads() {
    mpj_harness::watch(|| {
        let am = alone();
        let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
        bundle.set_event_mask(am2::EventMask::NotEmpty);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(move || bundle.wait_sema().unwrap_err().code());
            assert!(am.terminate());
            assert_eq!(waiter.join().unwrap(), Code::NotInit);
        });
    });
}

#[test]
fn bundles_are_sequential_and_limited() {
    let am = alone();
    let parallel = am.allocate_bundle(BundleKind::Parallel).map(drop).unwrap_err();
    assert!(matches!(parallel, Error::Parallel { task: 0 }));
    assert_eq!(parallel.code(), Code::Resource);
    let bundle = || am.allocate_bundle(BundleKind::Sequential);
    let mut bundles: Vec<_> = (0..MAX_BUNDLES).map(|_| bundle().unwrap()).collect();
    assert!(matches!(bundle().map(drop), Err(Error::TooManyBundles { task: 0 })));
    bundles.pop();
    assert!(bundle().is_ok(), "a freed bundle makes room");
}

#[test]
fn handles_name_endpoints_of_their_bundle_only() {
    let (am, other) = (alone(), alone());
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let mut foreign = other.allocate_bundle(BundleKind::Sequential).unwrap();
    let endpoint = bundle.allocate_endpoint().unwrap();
    let foreigner = foreign.allocate_endpoint().unwrap();
    assert!(matches!(bundle.tag(foreigner), Err(Error::UnknownEndpoint { .. })));
    let moved = bundle.move_endpoint(endpoint, &mut foreign).unwrap_err();
    assert!(matches!(moved, Error::ForeignBundle { .. }));
    let name = bundle.name(endpoint).unwrap();
    bundle.free_endpoint(endpoint).unwrap();
    let freed = bundle.free_endpoint(endpoint).unwrap_err();
    assert!(matches!(freed, Error::UnknownEndpoint { .. }));
    let next = bundle.allocate_endpoint().unwrap();
    assert_ne!(bundle.name(next).unwrap(), name, "names are never used again");
}

#[test]
fn the_numbers_of_endpoints_are_limited() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    for _ in 0..am2::MAX_ENDPOINTS {
        let endpoint = bundle.allocate_endpoint().unwrap();
        bundle.free_endpoint(endpoint).unwrap();
    }
    assert!(matches!(bundle.allocate_endpoint(), Err(Error::TooManyEndpoints { task: 0 })));
}

/// An endpoint takes its handlers along, and the messages that wait there; the old bundle does not know it any more.
#[test]
fn an_endpoint_moves_to_another_bundle() {
    run(2, |am| {
        let log = Log::new();
        let to = log.clone();
        let mut node = Node::connect(am, 8, 0, |bundle, endpoint| {
            bundle.set_handler(endpoint, 1, move |_, message| to.push(message.args[0])).unwrap();
        });
        let mut second = am.allocate_bundle(BundleKind::Sequential).unwrap();
        node.bundle.move_endpoint(node.endpoint, &mut second).unwrap();
        let gone = node.bundle.move_endpoint(node.endpoint, &mut second).unwrap_err();
        assert_eq!(gone.code(), Code::BadArg);
        if am.task() == 0 {
            second.request_short(node.endpoint, 1, 1, &[1]).unwrap();
        }
        node.bundle.barrier().unwrap();
        assert!(log.take().is_empty(), "no endpoint of the first bundle has a message");
        if am.task() == 1 {
            // The request is here since the barrier. Messages wait through a move.
            second.move_endpoint(node.endpoint, &mut node.bundle).unwrap();
            assert_eq!(log.await_in(&mut node.bundle, 1), [1]);
            node.bundle.move_endpoint(node.endpoint, &mut second).unwrap();
        }
        second.leave().unwrap();
    });
}

#[test]
fn a_fresh_endpoint_refuses_everything() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let endpoint = bundle.allocate_endpoint().unwrap();
    assert_eq!(bundle.tag(endpoint).unwrap(), Tag::NONE);
    assert_eq!(bundle.segment_len(endpoint).unwrap(), 0);
    assert_eq!(bundle.num_translations(endpoint).unwrap(), 256);
    assert!((0..256).all(|index| !bundle.is_mapped(endpoint, index).unwrap()));
    bundle.set_tag(endpoint, Tag(5)).unwrap();
    assert_eq!(bundle.tag(endpoint).unwrap(), Tag(5));
}

#[test]
fn translations_are_mapped_and_unmapped() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let ep = bundle.allocate_endpoint().unwrap();
    let name = bundle.name(ep).unwrap();
    bundle.map(ep, 1, name, Tag(9)).unwrap();
    assert!(matches!(bundle.map(ep, 1, name, Tag(9)), Err(Error::Mapped { index: 1, .. })));
    assert!(matches!(bundle.map(ep, 256, name, Tag(9)), Err(Error::IndexRange { .. })));
    let unknown = EndpointName::from_bits(1 << 16).unwrap();
    assert!(matches!(bundle.map(ep, 2, unknown, Tag(9)), Err(Error::UnknownName { .. })));
    assert!(matches!(bundle.map_any(ep, unknown, Tag(9)), Err(Error::UnknownName { .. })));
    assert_eq!(bundle.map_any(ep, name, Tag(10)).unwrap(), 0);
    assert_eq!(bundle.map_any(ep, name, Tag(11)).unwrap(), 2, "the lowest that is free");
    assert_eq!(bundle.translation_name(ep, 2).unwrap(), name);
    assert_eq!(bundle.translation_tag(ep, 2).unwrap(), Tag(11));
    bundle.set_translation_tag(ep, 2, Tag(12)).unwrap();
    assert_eq!(bundle.translation_tag(ep, 2).unwrap(), Tag(12));
    bundle.unmap(ep, 1).unwrap();
    let unmapped = bundle.unmap(ep, 1).unwrap_err();
    assert!(matches!(unmapped, Error::Unmapped { index: 1, .. }));
    assert_eq!(unmapped.code(), Code::Resource);
    assert!(matches!(bundle.translation_name(ep, 1), Err(Error::Unmapped { .. })));
    assert!(matches!(bundle.translation_tag(ep, 1), Err(Error::Unmapped { .. })));
    assert!(matches!(bundle.set_translation_tag(ep, 1, Tag(1)), Err(Error::Unmapped { .. })));
    assert!(matches!(bundle.is_mapped(ep, 256), Err(Error::IndexRange { .. })));
    assert_eq!(bundle.map_any(ep, name, Tag(11)).unwrap(), 1);
}

#[test]
fn the_table_changes_its_length_without_cutting_entries() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let ep = bundle.allocate_endpoint().unwrap();
    let name = bundle.name(ep).unwrap();
    bundle.map(ep, 3, name, Tag::ALL).unwrap();
    let too_long = bundle.set_num_translations(ep, MAX_TRANSLATIONS + 1).unwrap_err();
    assert!(matches!(too_long, Error::TableLen { .. }));
    assert!(matches!(
        bundle.set_num_translations(ep, 3),
        Err(Error::TableLen { last_used: Some(3), .. })
    ));
    bundle.set_num_translations(ep, 4).unwrap();
    for _ in 0..3 {
        bundle.map_any(ep, name, Tag::ALL).unwrap();
    }
    let full = bundle.map_any(ep, name, Tag::ALL).unwrap_err();
    assert!(matches!(full, Error::TableFull { len: 4, .. }));
    bundle.set_num_translations(ep, 1000).unwrap();
    bundle.map(ep, 999, name, Tag::ALL).unwrap();
    assert_eq!(bundle.num_translations(ep).unwrap(), 1000);
}

#[test]
fn resources_are_set_once_and_freeze_the_table() {
    let am = alone();
    let mut bundle = am.allocate_bundle(BundleKind::Sequential).unwrap();
    let ep = bundle.allocate_endpoint().unwrap();
    let name = bundle.name(ep).unwrap();
    bundle.map(ep, 0, name, Tag::ALL).unwrap();
    let early = bundle.request_short(ep, 0, 1, &[]).unwrap_err();
    assert!(matches!(early, Error::NoResources { .. }));
    assert_eq!(early.code(), Code::NotInit);
    for depth in [0, MAX_OUTSTANDING + 1] {
        let refused = bundle.set_expected_resources(ep, depth).unwrap_err();
        assert!(matches!(refused, Error::Depth { .. }));
        assert_eq!(refused.code(), Code::BadArg);
    }
    bundle.set_expected_resources(ep, MAX_OUTSTANDING).unwrap();
    let frozen = [
        bundle.set_expected_resources(ep, 1),
        bundle.map(ep, 1, name, Tag::ALL),
        bundle.map_any(ep, name, Tag::ALL).map(drop),
        bundle.unmap(ep, 0),
        bundle.set_num_translations(ep, 512),
    ];
    for call in frozen {
        let error = call.unwrap_err();
        assert!(matches!(error, Error::Frozen { .. }));
        assert_eq!(error.code(), Code::Resource);
    }
    bundle.set_translation_tag(ep, 0, Tag(3)).unwrap();
}

#[test]
fn handlers_are_set_by_number_or_at_the_first_free_place() {
    run(1, |am| {
        let log = Log::new();
        let mut node = Node::connect(am, 1, 0, |bundle, ep| {
            assert_eq!(bundle.num_handlers(ep).unwrap(), 256);
            assert!(bundle.set_num_handlers(ep, 256).is_ok());
            let other = bundle.set_num_handlers(ep, 255);
            assert!(matches!(other, Err(Error::HandlerCount { count: 255, .. })));
            assert!(matches!(bundle.set_handler(ep, 0, |_, _| {}), Err(Error::HandlerZero { .. })));
            bundle.set_handler(ep, 2, |_, _| {}).unwrap();
            for expected in (1..=255).filter(|handler| *handler != 2) {
                let to = log.clone();
                let any = bundle.set_handler_any(ep, move |_, _| to.push(expected)).unwrap();
                assert_eq!(any, expected);
            }
            let full = bundle.set_handler_any(ep, |_, _| {});
            assert!(matches!(full, Err(Error::HandlersFull { .. })));
            let to = log.clone();
            bundle.set_handler(ep, 9, move |_, _| to.push(0)).unwrap();
        });
        for handler in [255, 9, 1] {
            node.short(0, handler, &[]).unwrap();
        }
        assert_eq!(log.take(), [255, 0, 1], "a handler can be replaced");
    });
}

#[test]
fn a_segment_is_lent_and_taken_back() {
    run(2, |am| {
        let mut node = Node::connect(am, 1, 100, |bundle, endpoint| {
            bundle.set_handler(endpoint, 1, |_, _| {}).unwrap();
        });
        let ep = node.endpoint;
        assert_eq!(node.bundle.segment_len(ep).unwrap(), 100);
        if am.task() == 0 {
            node.long(1, 1, 10, &[7; 20], &[]).unwrap();
        }
        // Task 1 has accepted the request but need not have handled it.
        node.bundle.barrier().unwrap();
        node.bundle.barrier().unwrap();
        if am.task() == 1 {
            until(&mut node.bundle, || true);
            node.bundle.poll().unwrap();
            let bytes = node.bundle.take_segment(ep).unwrap().unwrap();
            assert_eq!(bytes[..10], [0; 10]);
            assert_eq!(bytes[10..30], [7; 20]);
            assert_eq!(bytes[30..], [0; 70]);
            assert_eq!(node.bundle.take_segment(ep).unwrap(), None);
            assert_eq!(node.bundle.segment_len(ep).unwrap(), 0);
            node.bundle.with_segment(ep, |bytes| assert!(bytes.is_empty())).unwrap();
        }
        node.bundle.leave().unwrap();
    });
}

/// A message that was accepted goes to the segment that the endpoint had then.
#[test]
fn an_accepted_message_keeps_its_segment() {
    run(2, |am| {
        let log = Log::new();
        let to = log.clone();
        let mut node = Node::connect(am, 4, 100, |bundle, endpoint| {
            bundle
                .set_handler(endpoint, 1, move |_, message| {
                    to.push(message.payload.bytes().to_vec());
                })
                .unwrap();
        });
        if am.task() == 0 {
            node.long(1, 1, 90, &[7; 10], &[]).unwrap();
        }
        node.quiet.barrier().unwrap();
        if am.task() == 1 {
            let busy = node.bundle.take_segment(node.endpoint).unwrap_err();
            assert!(matches!(busy, Error::SegmentInUse { .. }));
            assert_eq!(busy.code(), Code::InUse);
            node.bundle.set_segment(node.endpoint, vec![1; 5]).unwrap();
            assert_eq!(log.await_in(&mut node.bundle, 1), [vec![7; 10]]);
            let segment = node.bundle.take_segment(node.endpoint).unwrap();
            assert_eq!(segment, Some(vec![1; 5]));
        }
        node.bundle.leave().unwrap();
    });
}
