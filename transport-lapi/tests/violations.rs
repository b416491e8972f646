//! Every way in which a peer can break the protocol, provoked by hand: the peer is a bare adapter that puts crafted
//! packets into the ring. Each violation causes its own error and costs only the message concerned; later messages
//! arrive.

mod support;

#[path = "violations/placed.rs"]
mod placed;
#[path = "violations/requests.rs"]
mod requests;

use mpj_harness::watch;
use transport_lapi::AnyAdapter;
use transport_lapi::{
    Amsend, Arrival, Context, CounterId, ForeignBytes, HeaderAction, InlineHandler, LapiError,
    Next, Options, Outbox, RecvRegion, RemoteRegion, Violation, WireError,
};

use support::buffers::{Landing, pattern, source};
use support::frames::{
    ADDRESS, BARRIER, BODY, COMPLETE, COPIED, COUNTERS, FENCE, FENCE_ACK, FIRST, GET_DATA,
    GET_REFUSED, GET_REQUEST, GET_SHARE, Head, PLACED, RESUME, SINGLE, number, received,
};
use support::job::Kind;

/// Index of the handler that is set.
const STORE: u8 = 1;
/// Length of the correct long message.
const LONG: usize = 20_000;

/// The messages that the attacked task has received in full.
struct Inbox {
    landing: Landing,
    complete: Vec<u64>,
}

fn store(inbox: &mut Inbox, message: Arrival<'_>) -> HeaderAction<Inbox> {
    let into = inbox.landing.region(message.len.min(LONG as u64) as usize);
    HeaderAction::Deliver { into: into.into(), next: Next::Inline(complete, message.len) }
}

fn complete(inbox: &mut Inbox, _: &mut Outbox<Inbox>, len: u64) {
    inbox.complete.push(len);
}

/// A task under attack, and its attacker.
struct Scene {
    context: Context<Inbox>,
    peer: AnyAdapter,
}

impl Scene {
    /// Task 0 of three, which reads other tasks' memory by active messages. The peer is task 1.
    fn new() -> Self {
        Self::over(Kind::ShmAm)
    }

    /// The same over any adapter.
    fn over(kind: Kind) -> Self {
        let mut adapters = kind.adapters(3);
        let peer = adapters.remove(1);
        let inbox = Inbox { landing: Landing::new(LONG), complete: Vec::new() };
        let context = Context::init(adapters.remove(0), inbox, Options::default());
        context.session().unwrap().addr_set(STORE.into(), store).unwrap();
        Self { context, peer }
    }

    /// The peer sends a packet.
    fn packet(&mut self, head: &Head, body: &[u8]) {
        head.send(&mut self.peer, 0, body);
    }

    /// Makes progress without errors.
    fn progress(&self) {
        self.context.session().unwrap().progress().expect("nothing is wrong");
    }

    /// Makes progress and returns the violation that it finds.
    fn violation(&self) -> Violation {
        match self.context.session().unwrap().progress() {
            Err(LapiError::Peer { origin: 1, violation }) => violation,
            other => panic!("instead of a violation by task 1: {other:?}"),
        }
    }

    /// Sends a packet of the peer, and expects this violation.
    fn expect(&mut self, head: &Head, body: &[u8], expected: impl Into<Violation>) {
        self.packet(head, body);
        assert_eq!(self.violation(), expected.into(), "of {head:?}");
    }

    /// Checks that correct messages of one packet and of several arrive.
    fn expect_service(&mut self) {
        let before = self.context.session().unwrap().state.complete.len();
        self.packet(&Head::new(SINGLE, STORE, 0).uhdr(&[1; 16]), pattern(1, 50));
        self.progress();
        let first = Head::new(FIRST, STORE, 900).field(LONG as u64).uhdr(&[2; 8]);
        self.packet(&first, &pattern(2, LONG)[..8000]);
        self.packet(&Head::new(BODY, 0, 900).field(8000), &pattern(2, LONG)[8000..]);
        self.progress();
        let session = self.context.session().unwrap();
        assert_eq!(session.state.complete[before..], [50, LONG as u64]);
        assert!(session.state.landing.holds(pattern(2, LONG)));
    }
}

/// Expects that the decoder refuses the packet and that the task continues.
fn refused(head: &Head, body: &[u8], expected: WireError) {
    let mut scene = Scene::new();
    scene.expect(head, body, expected);
    assert!(scene.context.session().unwrap().state.complete.is_empty());
    scene.expect_service();
}

#[test]
fn truncated_heads() {
    let truncated = |head: Head, needed| {
        let len = head.0.len();
        refused(&head, &[], WireError::Truncated { len, needed });
    };
    for len in [0, 1, 7] {
        truncated(Head::new(FENCE, 0, 0).cut(len), 8);
    }
    truncated(Head::new(SINGLE, STORE, 0).counters(0, 0).cut(11), 12);
    truncated(Head::new(SINGLE, STORE, 0).counters(0, 0).cut(15), 16);
    truncated(Head::new(FIRST, STORE, 1).field(9).cut(15), 16);
    truncated(Head::new(FIRST, STORE, 1).counters(0, 0).field(9).cut(20), 24);
    truncated(Head::new(PLACED, STORE, 1).field(9), 24);
    truncated(Head::new(PLACED, STORE, 1).counters(0, 0).field(9).cut(31), 32);
    truncated(Head::new(BODY, 0, 1), 16);
    truncated(Head::new(GET_DATA, 0, 1).field(0).cut(12), 16);
    truncated(Head::new(GET_REQUEST, 0, 1), 16);
    truncated(Head::new(GET_REQUEST, 0, 1).field(0), 24);
    truncated(Head::new(GET_SHARE, 0, 1).field(0).field(0), 32);
    truncated(Head::new(GET_REQUEST, 0, 1).field(0).field(0).field(0).cut(31), 32);
}

#[test]
fn unknown_kinds() {
    for kind in [0, 14, 42, 0x7F, COUNTERS, COUNTERS | 0x7F] {
        refused(&Head::new(kind, 0, 0), &[], WireError::UnknownKind(kind));
    }
    let with_fields = |kind| Head::new(kind, 0, 0).field(0).field(0).field(0);
    for kind in BODY..=GET_SHARE {
        let kind = kind | COUNTERS;
        refused(&with_fields(kind), &[], WireError::UnknownKind(kind));
    }
}

#[test]
fn user_headers_of_a_wrong_length() {
    let wrong = |head: Head, claimed, carried| {
        refused(&head, &[], WireError::UhdrLength { claimed, carried });
    };
    let single = || Head::new(SINGLE, STORE, 0);
    wrong(single().claims_uhdr(8), 8, 0);
    wrong(single().uhdr(&[0; 16]).claims_uhdr(8), 8, 16);
    wrong(single().uhdr(&[0; 12]), 12, 12);
    wrong(single().uhdr(&[0; 136]), 136, 136);
    wrong(single().claims_uhdr(u16::MAX), 65_535, 0);
    wrong(single().counters(0, 0).uhdr(&[0; 8]).claims_uhdr(16), 16, 8);
    wrong(Head::new(FIRST, STORE, 0).field(100).claims_uhdr(8), 8, 0);
    wrong(Head::new(PLACED, STORE, 0).field(0).field(8).claims_uhdr(8), 8, 0);
    for kind in [COMPLETE, GET_REFUSED, FENCE, FENCE_ACK, BARRIER] {
        wrong(Head::new(kind, 0, 0).field(0), 0, 8);
        wrong(Head::new(kind, 0, 0).claims_uhdr(8), 8, 0);
    }
    wrong(Head::new(BODY, 0, 0).field(0).field(0), 0, 8);
}

#[test]
fn bodies_where_there_are_none() {
    for kind in [COPIED, COMPLETE, GET_REFUSED, FENCE, FENCE_ACK, BARRIER] {
        refused(&Head::new(kind, 0, 0), &[1, 2, 3], WireError::UnexpectedBody { kind, len: 3 });
    }
    let request = Head::new(GET_REQUEST, 0, 0).field(0).field(0).field(8);
    let expected = WireError::UnexpectedBody { kind: GET_REQUEST, len: 500 };
    refused(&request, pattern(1, 500), expected);
    let placed = Head::new(PLACED, STORE, 0).field(0).field(3);
    refused(&placed, &[1, 2, 3], WireError::UnexpectedBody { kind: PLACED, len: 3 });
}

#[test]
fn first_packets_longer_than_their_message() {
    for (total, carried) in [(0, 1), (99, 100), (10, 5000)] {
        let head = Head::new(FIRST, STORE, 0).field(total);
        refused(&head, pattern(1, carried), WireError::Overlong { carried, total });
    }
}

/// The first packet of another message while one is open.
#[test]
fn interleaved_messages() {
    let mut scene = Scene::new();
    let first = |msg| Head::new(FIRST, STORE, msg).field(LONG as u64);
    scene.packet(&first(7), &pattern(1, LONG)[..1000]);
    scene.progress();
    scene.expect(&first(8), pattern(2, 10), Violation::Interleaved { open: 7, next: 8 });
}

/// A message whose rest never arrives is abandoned when the next one begins: one violation does not cost the messages
/// behind it.
#[test]
fn a_message_that_broke_off_does_not_block_the_next() {
    let mut scene = Scene::new();
    let first = Head::new(FIRST, STORE, 7).field(LONG as u64);
    scene.packet(&first, &pattern(1, LONG)[..1000]);
    scene.progress();
    let next = Head::new(FIRST, STORE, 8).field(LONG as u64);
    scene.packet(&next, &pattern(2, LONG)[..1000]);
    assert_eq!(scene.violation(), Violation::Interleaved { open: 7, next: 8 });
    scene.packet(&Head::new(BODY, 0, 8).field(1000), &pattern(2, LONG)[1000..]);
    scene.progress();
    assert_eq!(scene.context.session().unwrap().state.complete, [LONG as u64]);
    scene.expect_service();
}

#[test]
fn stray_bodies() {
    let mut scene = Scene::new();
    let body = |msg| Head::new(BODY, 0, msg).field(0);
    scene.expect(&body(3), pattern(1, 10), Violation::StrayBody { msg: 3 });
    scene.expect_service();
    scene.packet(&Head::new(FIRST, STORE, 4).field(100), pattern(1, 100));
    scene.progress();
    scene.expect(&body(4), &[], Violation::StrayBody { msg: 4 });
    scene.packet(&Head::new(FIRST, STORE, 5).field(100), &pattern(1, 100)[..40]);
    scene.progress();
    scene.expect(&body(6), pattern(1, 60), Violation::StrayBody { msg: 6 });
    scene.packet(&Head::new(BODY, 0, 5).field(40), &pattern(1, 100)[40..]);
    scene.progress();
    scene.expect_service();
}

/// A body that leaves a gap, repeats, or goes past the end; the correct one is accepted afterwards.
#[test]
fn bodies_at_a_wrong_offset() {
    let mut scene = Scene::new();
    scene.packet(&Head::new(FIRST, STORE, 1).field(100), &pattern(1, 100)[..40]);
    scene.progress();
    let wrong = |offset| Violation::BodyOffset { offset, expected: 40 };
    for (offset, len) in [(0, 40), (39, 10), (41, 10), (u64::MAX, 1), (40, 61), (100, 0)] {
        let body = pattern(2, len);
        scene.expect(&Head::new(BODY, 0, 1).field(offset), body, wrong(offset));
    }
    scene.packet(&Head::new(BODY, 0, 1).field(40), &pattern(1, 100)[40..]);
    scene.progress();
    let session = scene.context.session().unwrap();
    assert_eq!(session.state.complete, [100]);
    assert!(session.state.landing.holds(pattern(1, 100)), "wrong bodies are not stored");
    drop(session);
    scene.expect_service();
}

/// A message that claims more bytes than any memory has is harmless until they arrive.
#[test]
fn a_message_of_an_absurd_length() {
    let mut scene = Scene::new();
    scene.packet(&Head::new(FIRST, STORE, 1).field(u64::MAX), pattern(1, LONG / 2));
    scene.packet(&Head::new(BODY, 0, 1).field(LONG as u64 / 2), pattern(2, LONG));
    scene.progress();
    let wrong = Violation::BodyOffset { offset: u64::MAX, expected: 30_000 };
    scene.expect(&Head::new(BODY, 0, 1).field(u64::MAX), &[1], wrong);
    assert!(scene.context.session().unwrap().state.complete.is_empty());
}

/// Counters that do not exist here: as target counter, and in a completion packet.
#[test]
fn unknown_counters() {
    let mut scene = Scene::new();
    let counter = scene.context.session().unwrap().counter();
    assert_eq!(counter, CounterId(0));
    let unknown = |index| Violation::UnknownCounter { index };
    let single = Head::new(SINGLE, STORE, 0).counters(2, 0);
    scene.expect(&single, &[], unknown(1));
    let many = Head::new(FIRST, STORE, 0).counters(u32::MAX, 0).field(8);
    scene.expect(&many, &[0; 8], unknown(u32::MAX - 1));
    scene.expect(&Head::new(COMPLETE, 0, 2), &[], unknown(1));
    scene.expect(&Head::new(COMPLETE, 0, 0), &[], unknown(u32::MAX));
    scene.packet(&Head::new(COMPLETE, 0, 1), &[]);
    scene.packet(&Head::new(SINGLE, STORE, 0).counters(1, 0), &[]);
    scene.progress();
    assert_eq!(scene.context.session().unwrap().getcntr(counter).unwrap(), 2);
    scene.expect_service();
}

/// Starts a get from `target`; returns the ticket in the packet.
fn start_get(scene: &mut Scene, target: u32, into: RecvRegion) -> u32 {
    let remote = RemoteRegion::over_frames(4096, 10_000, 77);
    let mut session = scene.context.session().unwrap();
    let len = into.len();
    session.get(target, remote, 5, into, Next::Inline(complete, 4444)).unwrap();
    session.progress().unwrap();
    drop(session);
    if target != 1 {
        return 0;
    }
    let frames = received(&mut *scene.peer);
    let [(head, body)] = &frames[..] else { panic!("one request instead of {frames:?}") };
    assert!(body.is_empty());
    let fields = [77_u64, 5, len as u64].map(u64::to_le_bytes).concat();
    assert_eq!((head[0], &head[8..]), (GET_REQUEST, &fields[..]));
    number(head)
}

#[test]
fn stray_answers_to_gets() {
    let mut scene = Scene::new();
    for ticket in [0, 1, u32::MAX] {
        let stray = Violation::StrayGet { ticket };
        scene.expect(&Head::new(GET_DATA, 0, ticket).field(0), &[1; 8], stray);
        scene.expect(&Head::new(GET_REFUSED, 0, ticket), &[], stray);
    }
    let ticket = start_get(&mut scene, 2, Landing::new(8).region(8));
    let stray = Violation::StrayGet { ticket };
    scene.expect(&Head::new(GET_DATA, 0, ticket).field(0), &[1; 8], stray);
    scene.expect(&Head::new(GET_REFUSED, 0, ticket), &[], stray);
    scene.expect_service();
}

/// Data of a get out of order, too long, or empty; the correct data is accepted afterwards.
#[test]
fn data_of_gets_at_a_wrong_offset() {
    let mut scene = Scene::new();
    let landing = Landing::new(100);
    let ticket = start_get(&mut scene, 1, landing.region(100));
    let data = |offset| Head::new(GET_DATA, 0, ticket).field(offset);
    scene.packet(&data(0), &pattern(1, 100)[..30]);
    scene.progress();
    let wrong = |offset| Violation::BodyOffset { offset, expected: 30 };
    for (offset, len) in [(0, 30), (31, 10), (30, 71), (30, 0), (u64::MAX, 1)] {
        scene.expect(&data(offset), pattern(2, len), wrong(offset));
    }
    scene.packet(&data(30), &pattern(1, 100)[30..]);
    scene.progress();
    assert!(landing.holds(pattern(1, 100)), "wrong data is not stored");
    assert_eq!(scene.context.session().unwrap().state.complete, [4444]);
    let stray = Violation::StrayGet { ticket };
    scene.expect(&data(100), &[1], stray);
    scene.expect_service();
}

#[test]
fn refused_gets() {
    let mut scene = Scene::new();
    let landing = Landing::new(100);
    let ticket = start_get(&mut scene, 1, landing.region(100));
    let refusal = Head::new(GET_REFUSED, 0, ticket);
    scene.expect(&refusal, &[], Violation::GetRefused { ticket });
    scene.expect(&refusal, &[], Violation::StrayGet { ticket });
    assert!(landing.holds(&[]), "nothing was stored");
    assert!(scene.context.session().unwrap().state.complete.is_empty(), "nor told as complete");
    scene.expect_service();
}

/// Gets of memory that is not registered: the peer gets a refusal, and no byte is sent.
#[test]
fn gets_of_unregistered_memory() {
    let mut scene = Scene::new();
    let bytes = source(pattern(1, 100));
    let region = scene.context.session().unwrap().register(bytes).unwrap();
    let ended = scene.context.session().unwrap().register(bytes).unwrap();
    scene.context.session().unwrap().deregister(ended, Next::Nothing);
    let wrong = [
        (region.key, 0, 101),
        (region.key, 99, 2),
        (region.key, 100, 1),
        (region.key, 0, 0),
        (region.key, u64::MAX, 2),
        (region.key, 1, u64::MAX),
        (region.key + 1, 0, 1),
        (region.key | 1 << 32, 0, 1),
        (ended.key, 0, 1),
        (u64::MAX, 0, 1),
    ];
    for (key, offset, len) in wrong {
        let request = Head::new(GET_REQUEST, 0, 31).field(key).field(offset).field(len);
        scene.expect(&request, &[], Violation::UnregisteredGet { offset, len });
        scene.progress();
        let answers = received(&mut *scene.peer);
        assert_eq!(answers, [(Head::new(GET_REFUSED, 0, 31).0, Vec::new())], "key {key:#x}");
    }
    let request = Head::new(GET_REQUEST, 0, 32).field(region.key).field(40).field(60);
    scene.packet(&request, &[]);
    scene.progress();
    let data = pattern(1, 100)[40..].to_vec();
    assert_eq!(received(&mut *scene.peer), [(Head::new(GET_DATA, 0, 32).field(0).0, data)]);
    scene.expect_service();
}

/// Requests for help with memory that is not registered, or with gets that do not exist.
#[test]
fn offers_of_gets_that_are_none() {
    for kind in Kind::SEGMENTS {
        let mut scene = Scene::over(kind);
        let bytes = source(pattern(1, 100));
        let region = scene.context.session().unwrap().register(bytes).unwrap();
        for (key, offset, len) in
            [(region.key, 0, 101), (region.key, 0, 0), (region.key, u64::MAX, 2), (77, 0, 1)]
        {
            let offer = Head::new(GET_SHARE, 0, 1).field(key).field(offset).field(len);
            scene.expect(&offer, &[], Violation::UnregisteredGet { offset, len });
        }
        for number in [0, 1, u32::MAX] {
            let offer = Head::new(GET_SHARE, 0, number).field(region.key).field(0).field(100);
            scene.packet(&offer, &[]);
            scene.packet(&offer, &[]);
            scene.progress();
            let idle = scene.context.session().unwrap().progress();
            assert_eq!(idle.expect("nothing is wrong"), 0, "{kind:?}: the offer is forgotten");
        }
        scene.expect_service();
    }
}

/// The registration ends while the answer is being sent: the rest is refused, not read.
#[test]
fn a_registration_that_ends_during_a_get() {
    watch(|| {
        let mut scene = Scene::new();
        let bytes = source(pattern(1, 5 << 20));
        let region = scene.context.session().unwrap().register(bytes).unwrap();
        let request = Head::new(GET_REQUEST, 0, 9).field(region.key).field(0).field(region.len);
        scene.packet(&request, &[]);
        scene.progress();
        scene.context.session().unwrap().deregister(region, Next::Nothing);
        let mut got = Vec::new();
        loop {
            let frames = received(&mut *scene.peer);
            scene.progress();
            let Some((last, _)) = frames.last() else { panic!("the get was never refused") };
            let refused = last[0] == GET_REFUSED;
            got.extend(frames.into_iter().flat_map(|(_, body)| body));
            if refused {
                break;
            }
        }
        assert!(got.len() < 5 << 20, "the get was under way");
        assert_eq!(got, &pattern(1, 5 << 20)[..got.len()]);
        scene.expect_service();
    });
}

/// An answer to a fence that was not started, or a second answer.
#[test]
fn stray_fence_answers() {
    watch(|| {
        let mut scene = Scene::new();
        scene.expect(&Head::new(FENCE_ACK, 0, 0), &[], Violation::StrayFence);
        scene.expect_service();
        let call = Amsend::new(1, STORE, &[], source(pattern(1, 8)));
        let _ = scene.context.session().unwrap().amsend(call).unwrap();
        std::thread::scope(|scope| {
            let fence = scope.spawn(|| scene.context.fence());
            let mut seen = Vec::new();
            while seen.last() != Some(&FENCE) {
                seen.extend(received(&mut *scene.peer).iter().map(|(head, _)| head[0]));
            }
            Head::new(FENCE_ACK, 0, 0).send(&mut scene.peer, 0, &[]);
            fence.join().expect("fencing does not panic").unwrap();
        });
        scene.expect(&Head::new(FENCE_ACK, 0, 0), &[], Violation::StrayFence);
        scene.expect_service();
    });
}

#[test]
fn barrier_rounds_that_do_not_exist() {
    let mut scene = Scene::new();
    for round in [20, 21, 255] {
        scene.expect(&Head::new(BARRIER, round, 0), &[], Violation::BarrierRound { round });
    }
    scene.expect_service();
}

/// A task may be one collective call ahead of another one, not two. The values of later calls take the place of those
/// that calls have taken.
#[test]
fn addresses_for_calls_that_cannot_have_begun() {
    let mut scene = Scene::new();
    let value = Head::new(ADDRESS, 0, 0).field(7);
    for _ in 0..2 {
        scene.packet(&value, &[]);
        scene.progress();
    }
    scene.expect(&value, &[], Violation::EarlyAddress);
    scene.expect(&value, &[1], WireError::UnexpectedBody { kind: ADDRESS, len: 1 });
    let cut = Head::new(ADDRESS, 0, 0);
    scene.expect(&cut, &[], WireError::Truncated { len: 8, needed: 16 });
    scene.expect_service();
}

/// Whoever resumes a task that was not purged, or does so repeatedly, has no effect.
#[test]
fn resumptions_that_nobody_needs() {
    let mut scene = Scene::new();
    for _ in 0..3 {
        scene.packet(&Head::new(RESUME, 0, 0), &[]);
        scene.progress();
    }
    scene.expect_service();
    scene.context.session().unwrap().purge_totask(1).unwrap();
    scene.packet(&Head::new(RESUME, 0, 0).field(1), &[]);
    scene.packet(&Head::new(99, 0, 0), &[]);
    scene.progress();
    scene.context.session().unwrap().resume_totask(1).unwrap();
    scene.expect_service();
}

/// A handler that is not set, for messages of one packet and of several.
#[test]
fn handlers_that_are_not_set() {
    let mut scene = Scene::new();
    for index in [2, 255] {
        for head in [Head::new(SINGLE, index, 0), Head::new(FIRST, index, 3).field(100)] {
            scene.packet(&head, pattern(1, 10));
            let error = scene.context.session().unwrap().progress().unwrap_err();
            assert!(
                matches!(error, LapiError::HdrHndlrNull { origin: 1, index: i } if i == index),
                "{error:?}"
            );
        }
        let rest = Head::new(BODY, 0, 3).field(10);
        scene.expect(&rest, pattern(1, 90), Violation::StrayBody { msg: 3 });
    }
    scene.expect_service();
}

/// Messages that are not short, for an index that has only a handler for short ones: with counters, with another user
/// header, or in several packets.
#[test]
fn messages_that_are_not_short() {
    fn note(
        inbox: &mut Inbox,
        _: u32,
        word: u64,
        _: ForeignBytes<'_>,
    ) -> Option<(InlineHandler<Inbox>, u64)> {
        inbox.complete.push(word);
        None
    }
    let mut scene = Scene::new();
    let index = 7;
    scene.context.session().unwrap().addr_set_short(index.into(), note).unwrap();
    let longer = [
        Head::new(SINGLE, index, 0),
        Head::new(SINGLE, index, 0).uhdr(&[0; 16]),
        Head::new(SINGLE | COUNTERS, index, 0).field(1).uhdr(&[0; 8]),
        Head::new(FIRST, index, 3).field(100).uhdr(&[0; 8]),
    ];
    for head in longer {
        scene.expect(&head, pattern(1, 10), Violation::NotShort { index });
    }
    assert!(scene.context.session().unwrap().state.complete.is_empty(), "the handler saw none");
    scene.packet(&Head::new(SINGLE, index, 0).uhdr(&5_u64.to_le_bytes()), &[]);
    scene.progress();
    assert_eq!(scene.context.session().unwrap().state.complete, [5]);
    scene.expect_service();
}

/// Many bad packets between good ones: progress reports the first error of each round, and delivers all good ones.
#[test]
fn good_packets_between_bad_ones_are_delivered() {
    let mut scene = Scene::new();
    for round in 0..50_u8 {
        scene.packet(&Head::new(SINGLE, STORE, 0), &[round; 8]);
        scene.packet(&Head::new(FENCE_ACK, 0, 0), &[]);
        scene.packet(&Head::new(99, 0, 0), &[]);
    }
    let mut trouble = 0;
    while scene.context.session().unwrap().state.complete.len() < 50 {
        trouble += usize::from(scene.context.session().unwrap().progress().is_err());
        assert!(trouble <= 100, "more errors than bad packets");
    }
    assert!(trouble > 0);
    scene.expect_service();
}
