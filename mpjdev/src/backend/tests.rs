//! With a peer that the test plays: what a sender without credit does, which envelopes and answers are refused, how
//! withdrawals end; and how much of the memory that credit stands for unexpected messages take.

use transport_lapi::AnyAdapter;
use transport_lapi::wireup::{self};
use transport_lapi::{Amsend, Context, ForeignBytes, RecvRegion, RemoteRegion, SendRegion, Sent};

use super::Backend;
use super::eager::Eager;
use crate::device::{Device, Mode, Options};
use crate::envelope::Failure;
use crate::envelope::{
    self, CREDIT, DONE, EAGER, FAILED, Offer, PeerError, RENDEZVOUS, WITHDRAW, WITHDRAWN,
};
use crate::error::Error;
use crate::matching::Pattern;
use crate::matching::tests::steps_of;
use crate::request::Request;
use crate::state::State;
use crate::state::unexpected::UnexpectedBody;

/// Returns the adapters of a job of two threads.
fn two_adapters() -> [AnyAdapter; 2] {
    let mut adapters = wireup::in_process(2, 1).expect("a job of threads").into_iter().flatten();
    [(); 2].map(|()| adapters.next().expect("two tasks"))
}

/// Returns a device that has spent all its credit for rank 1.
fn device_without_credit(adapter: AnyAdapter) -> Device {
    let device = Device::new(adapter, Options::default()).expect("a new device");
    let mut session = device.session().expect("it is usable");
    while session.state.credits.spend(1, 0) {}
    drop(session);
    device
}

/// The device of rank 0, and the transport of rank 1.
struct Pair {
    device: Device,
    peer: Context<()>,
}

impl Pair {
    /// Makes a pair in which rank 0 has spent all its credit.
    fn without_credit() -> Self {
        let [zero, one] = two_adapters();
        let device = device_without_credit(zero);
        let peer = Context::init(one, (), transport_lapi::Options::default());
        Self { device, peer }
    }

    /// Rank 1 sends a message without data.
    fn say(&self, handler: u8, word: u64) {
        self.say_with(handler, &word.to_le_bytes(), Vec::new());
    }

    /// Rank 1 sends any message.
    fn say_with(&self, handler: u8, uhdr: &[u8], data: Vec<u8>) {
        let mut session = self.peer.session().expect("it is usable");
        let sent = session.amsend(Amsend::new(0, handler, uhdr, data));
        assert_eq!(sent.expect("there is a rank 0"), Sent::Now, "there is room");
    }

    /// Rank 1 offers a message with tag 7 of `len` bytes by rendezvous, as its request 1.
    fn offer(&self, len: u64) {
        self.offer_as(1, len);
    }

    /// Rank 1 offers a message with tag 7 of `len` bytes by rendezvous, as this request.
    fn offer_as(&self, request: u64, len: u64) {
        let offer = Offer { request, data: RemoteRegion::over_frames(1, len, 0) };
        let word = envelope::eager(0, 7).to_le_bytes();
        self.say_with(RENDEZVOUS, &word, offer.pack().to_vec());
    }

    /// Returns the violation that rank 0 finds in what rank 1 has sent.
    fn complaint(&self) -> PeerError {
        match self.device.progress() {
            Err(Error::Peer { rank: 1, violation }) => violation,
            other => panic!("instead of a violation by rank 1: {other:?}"),
        }
    }

    /// Rank 0 sends a message without data.
    fn send(&self) -> Request {
        let sent = self.device.isend(SendRegion::EMPTY, 1, 7, 0, Mode::Standard);
        sent.expect("it goes, in whatever way")
    }

    /// Returns the key of the operation of rank 0 that is under way.
    fn open(&self) -> u64 {
        let session = self.device.session().expect("it is usable");
        let open = session.state.requests.iter().map(|(key, _)| key).next();
        open.expect("the rendezvous waits for its answer")
    }

    /// Returns how many messages went eagerly, how many by rendezvous, and how many of these for lack of credit.
    fn counts(&self) -> (u64, u64, u64) {
        let stats = self.device.stats().expect("it is usable");
        (stats.eager.messages, stats.rendezvous.messages, stats.credit_fallbacks)
    }
}

#[test]
fn credit_that_has_come_is_used_before_a_message_goes_by_rendezvous() {
    let pair = Pair::without_credit();
    pair.say(CREDIT, 1_000);
    let _sent = pair.send();
    assert_eq!(pair.counts(), (1, 0, 0));
}

#[test]
fn without_credit_a_message_goes_by_rendezvous() {
    let pair = Pair::without_credit();
    let _sent = pair.send();
    assert_eq!(pair.counts(), (0, 1, 1));
}

/// Returns the bytes of memory that the unexpected messages of a rank take.
fn taken(state: &State) -> usize {
    let data = state.unexpected.iter().map(|(_, unexpected)| match &unexpected.body {
        // The allocator of glibc adds a word and rounds up to pairs of words, at least two.
        UnexpectedBody::Eager { buffer, .. } => {
            (buffer.bytes().len() + 8).next_multiple_of(16).max(32)
        }
        UnexpectedBody::Rendezvous { .. } | UnexpectedBody::Failure(_) => 0,
    });
    data.sum::<usize>() + state.unexpected.bytes() + state.matcher.unexpected_bytes()
}

/// Each message has a tag of its own, so that it takes as much memory as it can.
#[test]
fn unexpected_messages_take_no_more_memory_than_their_limit() {
    let [(EAGER, arrived)] = Eager::SHORT else { panic!("EAGER is the only short message") };
    for limit in [100_000, 1 << 20, 2_345_678, 5 << 20] {
        let mut state = State::new(0, &transport_lapi::Tasks::all_near(2), limit);
        // Probes with wildcards, so that the queues for those are also in use.
        for pattern in [(None, Some(0)), (Some(1), None), (None, None)] {
            let pattern = Pattern { context: 0, source: pattern.0, tag: pattern.1 };
            assert!(state.matcher.peek_unexpected(&pattern).is_none());
        }
        for tag in 0.. {
            arrived(&mut state, 1, envelope::eager(0, tag), ForeignBytes::from_slice(&[1; 8]));
            if state.first_error.is_some() {
                break;
            }
        }
        let (messages, taken) = (state.stats.eager.unexpected, taken(&state));
        assert!(taken <= limit, "{messages} messages take {taken} bytes, {limit} were agreed");
        // The maps of the queues are between 7 and 14 sixteenths full; the price assumes the emptiest.
        assert!(taken > limit * 2 / 3, "{messages} messages take {taken} bytes of {limit}");
    }
}

/// A peer makes up answers and credit: each is refused for its own reason, which names the rank.
#[test]
fn answers_and_credits_that_are_none_are_refused() {
    for handler in [DONE, CREDIT, WITHDRAW, WITHDRAWN] {
        let pair = Pair::without_credit();
        pair.say_with(handler, &[0; 8], vec![1; 3]);
        assert_eq!(pair.complaint(), PeerError::Data { len: 3 });

        let pair = Pair::without_credit();
        pair.say_with(handler, &[0; 16], Vec::new());
        let told = pair.device.progress().expect_err("it is not short").to_string();
        assert!(told.starts_with("rank 1 broke the protocol: "), "{told}");
    }
    for request in [0, 1, 1 << 32, u64::MAX] {
        let pair = Pair::without_credit();
        pair.say(DONE, request);
        assert_eq!(pair.complaint(), PeerError::StrayDone);
        let pair = Pair::without_credit();
        pair.say(WITHDRAWN, request);
        assert_eq!(pair.complaint(), PeerError::StrayWithdrawn);
    }
    let pair = Pair::without_credit();
    pair.say(CREDIT, u64::MAX);
    assert_eq!(pair.complaint(), PeerError::CreditReturn { bytes: u64::MAX });
}

/// An answer ends a send only once.
#[test]
fn a_second_answer_is_refused() {
    let pair = Pair::without_credit();
    let _sent = pair.send();
    let key = pair.open();
    pair.say(DONE, key);
    pair.device.progress().expect("this is the answer");
    pair.say(DONE, key);
    assert_eq!(pair.complaint(), PeerError::StrayDone);
}

/// A peer can declare a send withdrawn only if its rank asked for that, only once, and not after taking it.
#[test]
fn only_a_send_that_was_withdrawn_is_told_to_be() {
    let pair = Pair::without_credit();
    let _sent = pair.send();
    pair.say(WITHDRAWN, pair.open());
    assert_eq!(pair.complaint(), PeerError::StrayWithdrawn);

    for answers in [[WITHDRAWN, WITHDRAWN], [DONE, WITHDRAWN], [WITHDRAWN, DONE]] {
        let pair = Pair::without_credit();
        let sent = pair.send();
        let key = pair.open();
        pair.device.withdraw(&sent, Error::Finished).expect("it is usable");
        pair.say(answers[0], key);
        let outcome = pair.device.istatus(&sent).expect("this is the answer");
        assert_eq!(outcome.is_some_and(|outcome| outcome.is_ok()), answers[0] == DONE);
        pair.say(answers[1], key);
        let stray =
            if answers[1] == DONE { PeerError::StrayDone } else { PeerError::StrayWithdrawn };
        assert_eq!(pair.complaint(), stray);
    }
}

/// Nothing happens to messages that are withdrawn twice, under another number, or that do not exist.
#[test]
fn what_cannot_be_withdrawn_is_left_alone() {
    let pair = Pair::without_credit();
    pair.offer(8);
    for request in [0, 2, 1, 1] {
        pair.say(WITHDRAW, request);
        pair.device.progress().expect("it is no violation");
    }
    assert_eq!(pair.device.iprobe(None, None, 0).expect("it is usable"), None);
    assert!(pair.device.is_idle(0).expect("it is usable"));
}

/// The receiver's work for each withdrawal does not grow with the number of unexpected messages, in whatever order
/// these are withdrawn, and no matter how many have been received.
#[test]
fn many_withdrawals_cost_the_receiver_as_much_as_few_each() {
    let orders: [fn(u64, u64) -> u64; 3] =
        [|nth, _| nth, |nth, many| many - 1 - nth, |nth, many| nth * 7919 % many];
    for order in orders {
        let work = [100, 1_000].map(|many| {
            let pair = Pair::without_credit();
            let progress = || pair.device.progress().expect("it is no violation");
            let ((), steps) = steps_of(|| {
                for round in 0..3 {
                    for nth in 0..many {
                        pair.offer_as(round * many + nth, 8);
                        progress();
                    }
                    for nth in 0..many {
                        pair.say(WITHDRAW, round * many + order(nth, many));
                        progress();
                        let session = pair.peer.session();
                        session.expect("it is usable").progress().expect_err("no such handler");
                    }
                    assert_eq!(pair.device.iprobe(None, None, 0).expect("it is usable"), None);
                }
            });
            steps
        });
        assert!(work[1] <= 11 * work[0], "{work:?} entries looked at");
    }
}

/// Envelopes that are too short or too long, or claim a length that no memory has, are refused.
#[test]
fn envelopes_that_claim_too_much_are_refused() {
    let pair = Pair::without_credit();
    pair.offer(u64::MAX);
    assert_eq!(pair.complaint(), PeerError::Length { len: u64::MAX });

    let (least, most) = (Offer::LEAST, Offer::MOST);
    for (len, needed) in [(0, least), (least - 1, least), (most + 1, most)] {
        let pair = Pair::without_credit();
        pair.say_with(RENDEZVOUS, &[0; 8], vec![0; len]);
        assert_eq!(pair.complaint(), PeerError::Envelope { len, needed });
    }
    let pair = Pair::without_credit();
    pair.say_with(RENDEZVOUS, &[0; 16], vec![0; 32]);
    let told = pair.device.progress().expect_err("it is not short").to_string();
    assert!(told.starts_with("rank 1 broke the protocol: "), "{told}");
    let pair = Pair::without_credit();
    pair.say_with(EAGER, &[0; 24], Vec::new());
    assert_eq!(pair.complaint(), PeerError::Envelope { len: 24, needed: 8 });
}

/// The next call that makes progress reports a violation that the look for credit found.
#[test]
fn a_violation_that_is_met_while_looking_for_credit_is_told() {
    let pair = Pair::without_credit();
    pair.say(CREDIT, u64::MAX);
    let _sent = pair.send();
    let told = pair.device.progress().expect_err("the peer has broken the protocol");
    assert!(matches!(told, Error::Peer { rank: 1, .. }), "{told}");

    let pair = Pair::without_credit();
    pair.say(77, 0);
    let _sent = pair.send();
    let told = pair.device.progress().expect_err("there is no such handler");
    assert!(matches!(told, Error::Transport(_)), "{told}");
}

/// Sends that wait for room, and those that wait for their answer, fail with their target, and nothing stays behind.
#[test]
fn envelopes_that_wait_for_room_fail_with_their_target() {
    let [zero, one] = two_adapters();
    let device = device_without_credit(zero);
    let send =
        || device.isend(SendRegion::EMPTY, 1, 7, 0, Mode::Standard).expect("it waits somewhere");
    let waits = |phase| device.dump().expect("it is usable").matches(phase).count();
    let sends: Vec<_> = (0..1_000).map(|_| send()).collect();
    assert_eq!(waits("waiting to be fetched"), sends.len(), "a ring has room for fewer");
    one.parts().losses.declare();
    for (number, sent) in sends.iter().enumerate() {
        let outcome = device.istatus(sent).expect("the device lives on");
        let error = outcome.expect("it has ended").expect_err("nobody has fetched it");
        assert_eq!(error.lost_rank(), Some(1), "send {number}: {error}");
    }
    assert_eq!(waits("open requests: 0"), 1);
}

/// An envelope that can neither go nor be queued makes the call fail, and nothing of it stays behind.
#[test]
fn an_envelope_that_cannot_be_queued_is_taken_back() {
    let [zero, one] = two_adapters();
    let device = device_without_credit(zero);
    {
        let mut session = device.session().expect("it is usable");
        while session.try_amsend(1, 77, 0, SendRegion::EMPTY) {}
    }
    one.parts().losses.declare();
    let sent = device.isend(SendRegion::EMPTY, 1, 7, 0, Mode::Standard);
    let error = sent.expect_err("its target is lost");
    assert_eq!(error.lost_rank(), Some(1), "{error}");
    let session = device.session().expect("it is usable");
    assert_eq!(session.state.requests.iter().count(), 0);
    assert_eq!(session.state.stats.rendezvous.messages, 0);
}

/// A failure ends the receive that the message in its place would have ended, whichever came first.
#[test]
fn a_failure_takes_the_place_of_a_message() {
    let [zero, one] = two_adapters();
    let [device, peer] = [zero, one].map(|one| Device::new(one, Options::default()).unwrap());
    let failure = |lost| Failure { rank: 1, lost, class: 5, text: "no data".to_owned() };
    let say = |lost| peer.send_failure(&failure(lost), 0, 7, 3).expect("rank 0 is there");
    let receive = || device.irecv(RecvRegion::EMPTY, Some(1), Some(7), 3).expect("it is usable");
    let mut outcomes = Vec::new();
    for is_unexpected in [false, true] {
        let posted = (!is_unexpected).then(receive);
        say(None);
        say(Some(0));
        peer.send(SendRegion::EMPTY, 0, 7, 3, Mode::Standard).expect("rank 0 is there");
        device.progress().expect("it is no violation");
        outcomes.push(device.iwait(posted.unwrap_or_else(receive)));
        outcomes.extend([(); 2].map(|()| device.iwait(receive())));
    }
    for outcomes in outcomes.chunks(3) {
        let [Err(Error::Failed(told)), Err(lost), Ok(_)] = outcomes else {
            panic!("instead of a failure, a loss and a message: {outcomes:?}");
        };
        assert_eq!((&**told, lost.lost_rank()), (&failure(None), Some(0)));
    }
    assert_eq!(
        device.session().unwrap().state.losses.first_loss,
        Some(0),
        "it explains what follows"
    );
    assert!(device.session().unwrap().state.is_clear(), "nothing is left");
}

#[test]
fn a_failure_of_an_unknown_rank_is_refused() {
    let pair = Pair::without_credit();
    pair.say_with(
        FAILED,
        &envelope::eager(0, 7).to_le_bytes(),
        [2_u32; 3].map(u32::to_le_bytes).concat(),
    );
    assert_eq!(pair.complaint(), PeerError::FailedRank { rank: 2 });
    let pair = Pair::without_credit();
    pair.say(FAILED, envelope::eager(0, 7));
    assert_eq!(pair.complaint(), PeerError::Envelope { len: 0, needed: 12 });
}
