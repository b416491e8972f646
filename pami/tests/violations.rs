//! What a peer that breaks the protocol can cause: an error that names it, and nothing else. The peer is a context of the
//! transport that sends packets by hand.

mod support;

use std::thread;

use mpj_harness::watch;
use pami::{
    Client, Collective, CollectiveCall, Error, Geometry, Guard, Hint, Hints, MAX_HEADER, Members,
    Outcome, Section, Setting, Violation,
};
use support::Kind;
use transport_lapi::{Amsend, Context, Options, Source};

/// Handler of the packets.
const PACKETS: u8 = 1;

/// The word of a message for a dispatch with these hints: see `packet.rs`.
fn word(dispatch: u64, hints: u64, header_len: u64) -> u64 {
    dispatch << 7 | hints << 15 | header_len << 37
}

/// Enables the hint about the shape, the fifth one.
const ALWAYS_IMMEDIATE: u64 = 1 << 8;

/// A peer that sends by hand.
struct Peer(Context<()>);

impl Peer {
    fn send(&self, uhdr: &[u8], body: Vec<u8>) {
        let mut session = self.0.session().unwrap();
        let _ = session.amsend(Amsend::new(0, PACKETS, uhdr, Source::from(body))).unwrap();
    }
}

/// Advances until there is an error, and checks that it is this one.
fn expect(guard: &mut Guard<'_>, peer: &Peer, expected: Violation) {
    let error = loop {
        let _ = peer.0.session().unwrap().progress();
        match guard.advance(1) {
            Ok(Outcome::Done) => {}
            Ok(Outcome::Again) => thread::yield_now(),
            Err(error) => break error,
        }
    };
    match error {
        Error::Peer { origin: 1, violation } => assert_eq!(violation, expected),
        other => panic!("{other} instead of {expected}"),
    }
}

/// Messages of collectives that are none: short ones, ones with unknown algorithms, of an endpoint that is no member, and an
/// answer to nothing; those of active-message collectives, which say more; and those about geometries that come and go.
fn collectives(guard: &mut Guard<'_>, world: &Geometry, peer: &Peer) {
    let on_done = Box::new(|_: &mut Section<'_>, _| {});
    guard.geometry_create(5, Members::Tasks(vec![0], Some(0)), None, on_done).unwrap();
    while guard.advance(1).unwrap() == Outcome::Done {}
    guard.amcollective_dispatch_set(4, |_, _| vec![], Hints::default()).unwrap();
    // Algorithm and whether it is an answer, geometry, number, generation or root: see `geometry/engine.rs`. Of the longer ones:
    // whether it is an answer, geometry, generation, attempt, greatest generation: see `geometry/agreement.rs`.
    let (scan, direct) = (24 << 8, 26 << 8 | 1);
    let cases: [(u64, &[u32]); 11] = [
        (255, &[scan, 0, 0]),
        (255, &[1 << 16, 0, 0, 0]),
        (255, &[31 << 8, 0, 0, 0]),
        (255, &[scan, 5, 0, 1]),
        (255, &[scan | 1, 0, 9, 0]),
        (255, &[1, 5, 1 << 31, 2, 7]),
        (255, &[0, 5, 2, 1, 1]),
        (4, &[scan | 1, 0, 0, 1]),
        (4, &[direct, 6, 0, 1]),
        (4, &[direct, 0, 0, 2]),
        (4, &[direct, 0, 0, 0]),
    ];
    // One that has failed: answers to it come too late, and are nobody's fault.
    let gather = Collective::Amgather { dispatch: 4, headers: vec![vec![]; 2], block: 4 };
    let (ends, world) = (support::Log::new(), world.clone());
    support::collectives::post(guard, CollectiveCall::new(&world, gather, vec![]), &ends);
    support::until(guard, || ends.len() == 1);
    assert!(matches!(ends.take()[0], Err(Error::Disagree { .. })));
    // So is what was said of a geometry that is gone, and an answer to an attempt that has ended.
    for late in [&[scan | 1, 0, 1, 0][..], &[0, 6, 1, 1, 1], &[1, 5, 1 << 31, 1, 7]] {
        let bytes: Vec<_> = late.iter().flat_map(|word| u32::to_le_bytes(*word)).collect();
        peer.send(&word(255, 0, bytes.len() as u64).to_le_bytes(), bytes);
    }
    for (dispatch, words) in cases {
        let bytes: Vec<_> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let len = bytes.len();
        peer.send(&word(dispatch, 0, len as u64).to_le_bytes(), bytes);
        expect(guard, peer, Violation::Collective { len });
    }
}

#[test]
fn every_violation_is_found_and_the_next_message_comes() {
    for kind in Kind::ALL {
        watch(move || {
            let mut tasks = kind.adapters(2, 1);
            let adapter = tasks.pop().unwrap().pop().unwrap();
            let peer = Peer(Context::init(adapter, (), Options::default()));
            let adapters = tasks.pop().unwrap();
            let mut client = Client::init("victim", adapters, &Options::default()).unwrap();
            let context = client.create_contexts(1).unwrap().remove(0);
            let mut guard = context.lock().unwrap();
            let come = support::Log::new();
            let to = come.clone();
            let take = move |_: &mut pami::Section<'_>, message: pami::Message<'_>| {
                to.push(message.header.to_vec());
            };
            guard.dispatch_set(1, take, Hints::default()).unwrap();
            let always = Hints::default().with(Hint::RecvImmediate, Setting::Enable);
            guard.dispatch_set(2, |_, _| {}, always).unwrap();

            let no_word = word(1, 0, MAX_HEADER as u64 + 1);
            peer.send(&no_word.to_le_bytes(), vec![]);
            expect(&mut guard, &peer, Violation::Packet { word: no_word });
            peer.send(&[], vec![1, 2]);
            expect(&mut guard, &peer, Violation::Length { len: 0 });
            peer.send(&word(1, 0, 4).to_le_bytes(), vec![1, 2]);
            expect(&mut guard, &peer, Violation::Length { len: 2 });
            // Padding of the user header is no header.
            peer.send(&[word(1, 0, 20), 5].map(u64::to_le_bytes).concat(), vec![1]);
            expect(&mut guard, &peer, Violation::Length { len: 9 });
            peer.send(&word(1, 0, 0).to_le_bytes(), vec![0; 1 << 20]);
            expect(&mut guard, &peer, Violation::Parts { len: 1 << 20 });
            peer.send(&word(1, 1, 0).to_le_bytes(), vec![]);
            expect(&mut guard, &peer, Violation::Hints { id: 1 });
            peer.send(&word(2, ALWAYS_IMMEDIATE, 0).to_le_bytes(), vec![0; 1025]);
            expect(&mut guard, &peer, Violation::TooLong { id: 2, len: 1025 });
            let number = 7_u64 << 32;
            peer.send(&(1 | number << 4).to_le_bytes(), vec![]);
            expect(&mut guard, &peer, Violation::StrayAnswer { number });
            collectives(&mut guard, client.world(), &peer);
            for id in 0..=4096_u32 {
                // A creation of geometries of which this task knows nothing.
                let words = [0, 100 + id, 1 << 31, 1, 0];
                peer.send(&word(255, 0, 20).to_le_bytes(), words.map(u32::to_le_bytes).concat());
                let _ = peer.0.session().unwrap().progress();
            }
            expect(&mut guard, &peer, Violation::EarlyCollective { geometry: 4196 });
            for _ in 0..=4096 {
                peer.send(&word(3, 0, 0).to_le_bytes(), vec![]);
                let _ = peer.0.session().unwrap().progress();
            }
            expect(&mut guard, &peer, Violation::Early { id: 3 });

            peer.send(&word(1, 0, 4).to_le_bytes(), b"good".to_vec());
            while come.len() == 0 {
                let _ = peer.0.session().unwrap().progress();
                let _ = guard.advance(1).unwrap();
            }
            assert_eq!(come.get(), [b"good"], "{kind:?}");
        });
    }
}
