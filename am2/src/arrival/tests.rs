//! The header handler on packets made by hand: the order of the checks, every status, every violation, and damage.

use proptest::collection::vec;
use proptest::prelude::*;
use transport_lapi::{ForeignBytes, TaskId, Tasks};

use super::*;
use crate::memory::Segment;
use crate::name::Tag;
use crate::packet::Ticket;
use crate::state::Replied;

const SEGMENT: usize = 100;

/// Task 0 with endpoint 0, which maps endpoint 5 of task 1 at index 3; endpoint 1 was freed.
fn state() -> State {
    let mut state = State::new(0, &Tasks::all_near(2));
    state.add_port().unwrap();
    state.add_port().unwrap();
    state.free_port(1);
    let port = state.port(0).unwrap();
    port.tag = Tag(7);
    port.registered[9] = true;
    port.segment = Some(Segment::new(vec![0; SEGMENT]));
    port.table.map(3, EndpointName { task: 1, number: 5 }, Tag(7)).unwrap();
    port.table.freeze(4).unwrap();
    state
}

/// A short request that is accepted.
fn request() -> Header {
    Header {
        kind: Kind::Message(Opcode::RequestShort),
        handler: 9,
        source: 5,
        dest: 0,
        ticket: Ticket { index: 40, instance: 2, sequence: 8 },
        len: 0,
        tag: Tag(7),
        offset: 0,
    }
}

fn arrive_bytes(state: &mut State, origin: TaskId, uhdr: &[u8], payload: &[u8], whole: bool) {
    let data = whole.then(|| ForeignBytes::from_slice(payload));
    let len = payload.len() as u64;
    let (mut into, next) = match arrive(state, Arrival { origin, uhdr, len, data }) {
        HeaderAction::Deliver { into, next } => (Some(into), next),
        HeaderAction::Then(next) => (None, next),
        HeaderAction::Consumed | HeaderAction::Drop => return,
    };
    if let Some(into) = &mut into {
        assert_eq!(into.len(), payload.len());
        into.store(0, ForeignBytes::from_slice(payload));
    }
    assert!(matches!(next, Next::Inline(..) | Next::Outcome(..)));
}

/// Lets a packet of task 1 arrive with its payload in place, or piece by piece.
fn come(state: &mut State, header: &Header, payload: &[u8], whole: bool) {
    arrive_bytes(state, 1, header.encode(&[]).bytes(), payload, whole);
}

/// The status with which the request is refused; `None` if it is accepted. Checks that nothing is stored if it is
/// refused.
fn judged(state: &mut State, header: &Header, payload: &[u8], whole: bool) -> Option<Status> {
    come(state, header, payload, whole);
    let Some((to, back, _)) = state.outgoing.pop_front() else {
        assert!(state.port(0).unwrap().queue.take_last().is_some());
        return None;
    };
    assert_eq!((to, back.source, back.dest), (1, header.dest, header.source));
    assert_eq!((back.ticket, back.handler), (header.ticket, header.handler));
    let Kind::Returned { opcode, status } = back.kind else { panic!("not returned: {back:?}") };
    assert_eq!(Kind::Message(opcode), header.kind);
    assert_eq!(state.port(0).unwrap().queue.len(), 0);
    state.port(0).unwrap().segment.as_ref().unwrap().with(|bytes| assert_eq!(*bytes, [0; SEGMENT]));
    Some(status)
}

#[test]
fn the_first_check_that_fails_decides() {
    let mut state = state();
    let mut header = Header {
        kind: Kind::Message(Opcode::RequestLong),
        dest: 1,
        source: 4,
        tag: Tag(8),
        handler: 10,
        ticket: Ticket { instance: 1024, ..Ticket::default() },
        offset: u64::MAX,
        len: 1,
    };
    let mut next = |header: &Header| judged(&mut state, header, &[1], false).unwrap();
    assert_eq!(next(&header), Status::Unreachable);
    header.dest = 0;
    assert_eq!(next(&header), Status::BadEndpoint);
    header.source = 5;
    assert_eq!(next(&header), Status::BadTag);
    header.tag = Tag(7);
    assert_eq!(next(&header), Status::Unreachable, "no endpoint has so many requests outstanding");
    header.ticket.instance = 1023;
    assert_eq!(next(&header), Status::BadHandler);
    header.handler = 0;
    assert_eq!(next(&header), Status::BadHandler, "handler 0 gets returned messages only");
    header.handler = 9;
    assert_eq!(next(&header), Status::BadLength);
    header.offset = SEGMENT as u64 - 1;
    assert_eq!(judged(&mut state, &header, &[1], false), None);
}

#[test]
fn lengths_and_offsets_are_checked() {
    let long = vec![1; MAX_MEDIUM + 1];
    let (short, medium, large) = (Opcode::RequestShort, Opcode::RequestMedium, Opcode::RequestLong);
    let bad = Some(Status::BadLength);
    let cases = [
        (short, 0, 0, None),
        (short, 1, 0, bad),
        (medium, MAX_MEDIUM, 0, None),
        (medium, MAX_MEDIUM + 1, 0, bad),
        (large, 100, 0, None),
        (large, 0, 100, None),
        (large, 101, 0, bad),
        (large, 1, 100, bad),
        (large, 1, u64::MAX, bad),
    ];
    for (opcode, len, offset, expected) in cases {
        for whole in [true, false] {
            let header = Header { kind: Kind::Message(opcode), offset, ..request() };
            let status = judged(&mut state(), &header, &long[..len], whole);
            assert_eq!(status, expected, "{opcode:?}: {len} {offset}");
        }
    }
}

/// A payload cannot be as long as that in a test, so only the announcement is.
#[test]
fn a_long_message_that_is_longer_than_the_limit() {
    let mut state = state();
    let port = state.port(0).unwrap();
    port.segment = Some(Segment::new(vec![0; MAX_LONG + 2]));
    let kind = Kind::Message(Opcode::RequestLong);
    let mut judge = |len: usize| {
        let header = Header { kind, len: len as u32, ..request() };
        state.port(0).unwrap().judge(
            EndpointName { task: 1, number: 5 },
            &header,
            Opcode::RequestLong,
            len as u64,
        )
    };
    assert_eq!(judge(MAX_LONG), Ok(()));
    assert_eq!(judge(MAX_LONG + 1), Err(Status::BadLength));
}

#[test]
fn a_segment_without_bytes_is_none() {
    let mut state = state();
    let header = Header { kind: Kind::Message(Opcode::RequestLong), ..request() };
    for segment in [None, Some(Segment::new(Vec::new()))] {
        state.port(0).unwrap().segment = segment;
        come(&mut state, &header, &[], true);
        let (_, back, _) = state.outgoing.pop_front().unwrap();
        assert!(matches!(back.kind, Kind::Returned { status: Status::BadSegmentOffset, .. }));
    }
}

#[test]
fn requests_with_damaged_arguments_come_back() {
    let mut state = state();
    let mut packet = request().encode(&[]).bytes().to_vec();
    packet[2] = 3;
    arrive_bytes(&mut state, 1, &packet, &[], true);
    let (_, back, args) = state.outgoing.pop_front().unwrap();
    assert!(matches!(back.kind, Kind::Returned { status: Status::BadArgs, .. }));
    assert!(args.words().is_empty());
    assert_eq!(state.port(0).unwrap().queue.len(), 0);
}

/// A peer that disregards its credits cannot fill the memory, and is served again when its requests were handled.
#[test]
fn requests_beyond_the_limit_come_back() {
    let mut state = state();
    for _ in 0..MAX_OUTSTANDING {
        come(&mut state, &request(), &[], true);
    }
    assert!(state.outgoing.is_empty());
    come(&mut state, &request(), &[], true);
    let (_, back, _) = state.outgoing.pop_front().unwrap();
    assert!(matches!(back.kind, Kind::Returned { status: Status::Congestion, .. }));
    let entry = state.port(0).unwrap().queue.take_ready().unwrap();
    let (answer, _) = state.settle(entry, Replied::No).unwrap();
    assert_eq!((answer.kind, answer.ticket), (Kind::Acknowledge, request().ticket));
    assert_eq!(judged_only(&mut state), None);
    assert_eq!(judged_only(&mut state), Some(Status::Congestion));
}

/// The status of one more request.
fn judged_only(state: &mut State) -> Option<Status> {
    come(state, &request(), &[], true);
    match state.outgoing.pop_front()?.1.kind {
        Kind::Returned { status, .. } => Some(status),
        _ => None,
    }
}

/// Every status and opcode that a peer may return reaches handler 0, also those that this library never sends.
#[test]
fn every_status_and_opcode_of_a_returned_message_is_queued() {
    for opcode in Opcode::ALL {
        for status in Status::ALL {
            let mut state = state();
            let port = state.port(0).unwrap();
            let mut ticket = Ticket::default();
            if opcode.is_request() {
                ticket = port.table.begin(3, opcode, 9).unwrap();
            } else {
                port.table.peer(EndpointName { task: 1, number: 5 }).unwrap().owed = 1;
            }
            let kind = Kind::Returned { opcode, status };
            let back = Header { kind, ticket, tag: Tag::NONE, ..request() };
            come(&mut state, &back, &[], true);
            assert_eq!(state.first_error, None);
            let entry = state.port(0).unwrap().queue.take_ready().unwrap();
            assert_eq!(entry.header, back);
            come(&mut state, &back, &[], true);
            assert!(state.first_error.is_some(), "it comes back once");
        }
    }
}

/// Lets a packet arrive that breaks the protocol, and returns in which way.
fn violation(change: impl FnOnce(&mut Header), args: Option<u8>, payload: &[u8]) -> Violation {
    let mut state = state();
    let ticket = state.port(0).unwrap().table.begin(3, Opcode::RequestShort, 9).unwrap();
    let mut header = Header { kind: Kind::Message(Opcode::ReplyShort), ticket, ..request() };
    header.len = payload.len() as u32;
    change(&mut header);
    let mut packet = header.encode(&[]).bytes().to_vec();
    packet[2] = args.unwrap_or(0);
    arrive_bytes(&mut state, 1, &packet, payload, true);
    assert_eq!(state.port(0).unwrap().queue.len(), 0);
    assert!(state.outgoing.is_empty(), "only requests are returned");
    state.first_error.expect("the packet breaks the protocol").1
}

#[test]
fn answers_that_nobody_waits_for() {
    let stray = Violation::StrayAnswer { number: 5 };
    let returned = |opcode| Kind::Returned { opcode, status: Status::BadTag };
    for kind in [
        Kind::Message(Opcode::ReplyShort),
        Kind::Message(Opcode::ReplyMedium),
        Kind::Message(Opcode::ReplyLong),
        Kind::Acknowledge,
        returned(Opcode::RequestShort),
    ] {
        let wrong = |header: &mut Header| (header.kind, header.ticket.sequence) = (kind, 9);
        assert_eq!(violation(wrong, None, &[]), stray);
        let foreign = |header: &mut Header| (header.kind, header.source) = (kind, 4);
        assert_eq!(violation(foreign, None, &[]), Violation::StrayAnswer { number: 4 });
        let nowhere = |header: &mut Header| (header.kind, header.dest) = (kind, 2);
        assert_eq!(violation(nowhere, None, &[]), Violation::NeverMade { number: 2 });
    }
    let other = |header: &mut Header| header.kind = returned(Opcode::RequestLong);
    assert_eq!(violation(other, None, &[]), stray, "that was another request");
    let reply = |header: &mut Header| header.kind = returned(Opcode::ReplyShort);
    assert_eq!(violation(reply, None, &[]), Violation::StrayReturn { number: 5 });
}

#[test]
fn packets_that_cannot_be_right() {
    let unknown = Violation::Packet(PacketError::UnknownKind(77));
    let mut state = state();
    arrive_bytes(&mut state, 1, &[77; 40], &[], true);
    assert_eq!(state.first_error, Some((1, unknown)));
    assert_eq!(violation(|_| {}, Some(3), &[]), Violation::ReplyArgs);
    for kind in [Kind::Acknowledge, Kind::Exchange] {
        let change = |header: &mut Header| header.kind = kind;
        assert_eq!(violation(change, None, &[1; 8]), Violation::Payload { len: 8 });
    }
}

#[test]
fn a_task_cannot_be_two_exchanges_ahead() {
    let mut state = state();
    for _ in 0..2 {
        come(&mut state, &Header { kind: Kind::Exchange, ..request() }, &[], true);
        assert_eq!(state.first_error, None);
    }
    come(&mut state, &Header { kind: Kind::Exchange, ..request() }, &[], true);
    assert_eq!(state.first_error, Some((1, Violation::EarlyExchange)));
}

/// A reply that is refused ends its request, and tells the replier.
#[test]
fn a_refused_reply_gives_its_credit_back() {
    let mut state = state();
    let begin = |state: &mut State| state.port(0).unwrap().table.begin(3, Opcode::RequestShort, 9);
    for _ in 0..4 {
        begin(&mut state).unwrap();
    }
    assert_eq!(begin(&mut state), None);
    let ticket = Ticket { index: 3, instance: 2, sequence: 1 };
    let kind = Kind::Message(Opcode::ReplyMedium);
    let header = Header { kind, ticket, handler: 10, len: 3, ..request() };
    come(&mut state, &header, &[1, 2, 3], false);
    let (_, back, _) = state.outgoing.pop_front().unwrap();
    let expected = Kind::Returned { opcode: Opcode::ReplyMedium, status: Status::ReplyRejected };
    assert_eq!(back.kind, expected);
    assert_eq!(begin(&mut state).unwrap().instance, 2);
}

/// An answer to an endpoint that was freed is no violation, since the peer could not know.
#[test]
fn answers_to_a_freed_endpoint_are_dropped() {
    let mut state = state();
    let returned = Kind::Returned { opcode: Opcode::ReplyLong, status: Status::BadTag };
    for kind in [Kind::Message(Opcode::ReplyLong), Kind::Acknowledge, returned] {
        come(&mut state, &Header { kind, dest: 1, ..request() }, &[], true);
    }
    assert_eq!(state.first_error, None);
    assert!(state.outgoing.is_empty());
}

/// The number of the last entry in the queue of endpoint 0, for messages that arrive piece by piece.
fn last_id(arrived: u64) -> u64 {
    arrived - 1
}

#[test]
fn a_message_that_is_still_arriving_holds_up_nothing() {
    let mut state = state();
    let long = Header { kind: Kind::Message(Opcode::RequestLong), len: 50, ..request() };
    come(&mut state, &long, &[1; 50], false);
    come(&mut state, &request(), &[], true);
    assert!(state.has_ready(&[0]));
    let first = state.port(0).unwrap().queue.take_ready().unwrap();
    assert_eq!(first.header, request());
    assert!(!state.has_ready(&[0]) && !state.is_drained(&[0]));
    state.finish(0, last_id(1), true);
    assert_eq!(state.port(0).unwrap().queue.take_ready().unwrap().header, long);
    assert!(state.is_drained(&[0]));
}

/// A request that breaks off is forgotten; it no longer counts as one that waits.
#[test]
fn a_request_that_breaks_off() {
    for is_lost in [false, true] {
        let mut state = state();
        let long = Header { kind: Kind::Message(Opcode::RequestLong), len: 50, ..request() };
        come(&mut state, &long, &[1; 50], false);
        let peer = EndpointName { task: 1, number: 5 };
        assert_eq!(state.port(0).unwrap().table.peer(peer).unwrap().waiting, 1);
        if is_lost {
            state.lose(1)
        } else {
            state.finish(0, last_id(1), false)
        }
        assert_eq!(state.port(0).unwrap().table.peer(peer).unwrap().waiting, 0);
        assert!(state.is_drained(&[0]));
    }
}

#[test]
fn outstanding_requests_to_a_lost_task_come_back() {
    let mut state = state();
    let ticket = state.port(0).unwrap().table.begin(3, Opcode::RequestLong, 33).unwrap();
    state.lose(1);
    let entry = state.port(0).unwrap().queue.take_ready().unwrap();
    let opcode = Opcode::RequestLong;
    assert_eq!(entry.header.kind, Kind::Returned { opcode, status: Status::Unreachable });
    assert_eq!((entry.header.handler, entry.header.ticket), (33, ticket));
    assert!(state.is_drained(&[0]));
}

/// A reply that breaks off makes its request come back.
#[test]
fn a_reply_that_breaks_off() {
    for is_lost in [false, true] {
        let mut state = state();
        let ticket = state.port(0).unwrap().table.begin(3, Opcode::RequestShort, 33).unwrap();
        let kind = Kind::Message(Opcode::ReplyMedium);
        let reply = Header { kind, ticket, len: 50, ..request() };
        come(&mut state, &reply, &[1; 50], false);
        if is_lost {
            state.lose(1)
        } else {
            state.finish(0, last_id(1), false)
        }
        let entry = state.port(0).unwrap().queue.take_ready().unwrap();
        let opcode = Opcode::RequestShort;
        assert_eq!(entry.header.kind, Kind::Returned { opcode, status: Status::Unreachable });
        assert_eq!((entry.header.handler, entry.header.ticket), (33, ticket));
        assert!(state.is_drained(&[0]), "it comes back once");
        state.settle(entry, Replied::No);
        let next = state.port(0).unwrap().table.begin(3, opcode, 9).unwrap();
        assert_eq!(next.instance, ticket.instance, "and gives its credit back");
    }
}

proptest! {
    /// Whatever arrives, nothing panics, and nothing outside the segment is needed.
    #[test]
    fn damaged_packets_do_no_harm(
        packets in vec((any::<[u8; 40]>(), vec(any::<u8>(), 0..72), 0_usize..12, 0_u8..255, 0_usize..200, any::<bool>()), 1..20),
    ) {
        let mut state = state();
        let ticket = state.port(0).unwrap().table.begin(3, Opcode::RequestLong, 9).unwrap();
        for (noise, rest, changes, mask, len, whole) in packets {
            // A sound packet in which some bytes are replaced by noise.
            let kind = Kind::Message(Opcode::ALL[usize::from(mask) % 6]);
            let header = Header { kind, ticket, len: len as u32, ..request() };
            let mut packet = header.encode(&[]).bytes().to_vec();
            for at in noise.iter().take(changes) {
                let at = usize::from(*at) % packet.len();
                packet[at] = noise[at];
            }
            if mask % 3 == 0 {
                packet.extend(rest);
            }
            arrive_bytes(&mut state, 1, &packet, &vec![mask; len], whole);
        }
    }
}
