//! From records to the viewer's file: what belongs together, and that no record makes it fail.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;
use transport_lapi::bootstrap::trace::{
    Kind as Recording, Received, Record, Recorded, ThreadRecords,
};

use super::clocks::{HostClock, RoundTrip};
use super::collect::{OfRank, Times, collect};
use super::proto::tests::{Value, fields};
use super::{Call, CallAt, Collected, Kind, Levels, perfetto};

const TIMES: Times = Times { began: 0, ended: 1000, nanos: 1000, elsewhere: None };

/// A record that has nothing but a name, a kind and times.
fn record(number: u64, kind: Recording, start: u64, end: u64) -> Record {
    Record {
        number,
        start,
        end: Some(end),
        name: format!("{kind:?}").into(),
        place: None,
        kind,
        communicator: Some(0),
        peer: None,
        tag: None,
        bytes: 0,
        request: 0,
        sequence: None,
        is_cancelled: false,
        received: None,
        by_rendezvous: None,
    }
}

fn send(number: u64, start: u64, dest: u32, tag: i32) -> Record {
    let (peer, tag) = (Some(dest), Some(tag));
    Record { peer, tag, bytes: 8, ..record(number, Recording::Send, start, start + 1) }
}

fn receive(number: u64, start: u64, source: Option<u32>, tag: Option<i32>) -> Record {
    Record { peer: source, tag, ..record(number, Recording::Receive, start, start + 5) }
}

fn rank(records: Vec<Record>) -> Recorded {
    Recorded {
        threads: vec![ThreadRecords { records, ..Default::default() }],
        ..Default::default()
    }
}

/// A rank whose first records were overwritten, of which the last began then.
fn newest(until: u64, records: Vec<Record>) -> Recorded {
    let (overwritten, overwritten_until) = (1, until);
    let thread = ThreadRecords { records, overwritten, overwritten_until, ..Default::default() };
    Recorded { threads: vec![thread], ..Recorded::default() }
}

/// When the calls began that the messages of a job connect.
fn flows(collected: &mut Collected) -> Vec<(u64, u64)> {
    let flows = collected.flows.clone();
    let mut start = |at| collected.call(at).start;
    flows.iter().map(|flow| (start(flow.from), start(flow.to))).collect()
}

#[test]
fn the_newest_messages_are_found_from_the_end() {
    let sends = (3..21).map(|number| send(number, 10 * number, 1, 0)).collect();
    let receives = (5..20).map(|number| receive(number, 10 * number + 2, Some(0), Some(0)));
    // It was posted when the job ended.
    let open = Record { end: None, ..receive(20, 202, Some(0), Some(0)) };
    let receives: Vec<_> = receives.chain([open]).collect();
    let mut collected = collected(vec![newest(20, sends), newest(42, receives)]);
    let expected: Vec<_> = (5..20).map(|number| (10 * number, 10 * number + 2)).collect();
    assert_eq!(flows(&mut collected), expected);
}

#[test]
fn times_of_two_hosts_that_disagree_leave_no_message_out() {
    // By the clocks of both, a receive ends 4 before its message is sent.
    let sends: Vec<_> = (1..4).map(|number| send(number, 10 * number, 1, 0)).collect();
    let receives: Vec<_> =
        (1..4).map(|number| receive(number, 10 * number - 9, Some(0), Some(0))).collect();
    let expected: Vec<_> = (1..4).map(|number| (10 * number, 10 * number - 9)).collect();
    let ranks = [newest(9, sends), newest(0, receives)];
    let of_rank = |(task, recorded)| OfRank { task, host: "host", times: TIMES, recorded };
    let found = |error| flows(&mut collect((0..).zip(ranks.clone()).map(of_rank), error));
    assert_eq!(found(Some(4)), expected);
    assert_ne!(found(Some(3)), expected, "times of one host agree");
}

proptest! {
    /// Whatever was overwritten: if all messages were received in the end, those that are found are those of the job.
    #[test]
    fn no_message_is_wrong_where_the_first_are_missing(
        gaps in prop::collection::vec((0_u64..5, 0_u64..30), 1..30),
        kept in [0_usize..31, 0..31],
    ) {
        let (mut at, mut received) = (1, 0);
        let mut messages = Vec::new();
        for (number, (gap, late)) in (0..).zip(gaps) {
            at += 1 + gap;
            received = (at + late).max(received + 1);
            let mut receive = receive(number, received, Some(0), Some(0));
            receive.end = Some(received + 40);
            messages.push((send(number, at, 1, 0), receive));
        }
        let truth: Vec<_> = messages.iter().map(|(send, receive)| (send.start, receive.start)).collect();
        let of = |side: fn(&(Record, Record)) -> &Record, count: usize| {
            let all = messages.iter().map(|both| side(both).clone());
            let first = messages.len().saturating_sub(count);
            let until = all.clone().take(first).next_back().map_or(0, |last| last.start);
            newest(until, all.skip(first).collect())
        };
        let ranks = vec![of(|both| &both.0, kept[0]), of(|both| &both.1, kept[1])];
        let found = flows(&mut collected(ranks));
        let count = kept[0].min(kept[1]).min(truth.len());
        prop_assert_eq!(&found[..], &truth[truth.len() - count..]);
    }
}

fn collected_in(times: Times, ranks: Vec<Recorded>) -> Collected {
    let of_rank = |(task, recorded)| OfRank { task, host: "host", times, recorded };
    collect((0..).zip(ranks).map(of_rank), None)
}

fn collected(ranks: Vec<Recorded>) -> Collected {
    collected_in(TIMES, ranks)
}

fn calls(collected: &Collected, rank: usize) -> &[Call] {
    &collected.trace.ranks[rank].threads[0].calls
}

/// The numbers of messages of the calls of a rank.
fn messages(collected: &Collected, rank: usize) -> Vec<Option<u64>> {
    calls(collected, rank).iter().map(|call| call.message).collect()
}

#[test]
fn sends_and_receives_pair_in_order() {
    let sender = rank(vec![send(1, 10, 1, 5), send(2, 20, 1, 6), send(3, 30, 1, 5)]);
    let receiver = rank(vec![
        receive(1, 0, Some(0), Some(5)),
        receive(2, 40, Some(0), Some(5)),
        receive(3, 50, Some(0), Some(6)),
        receive(4, 60, Some(0), Some(6)),
    ]);
    let all = collected(vec![sender, receiver]);
    let (sent, received) = (messages(&all, 0), messages(&all, 1));
    assert_eq!([received[0], received[1], received[2]], [sent[0], sent[2], sent[1]]);
    assert!(sent.iter().all(Option::is_some) && received[3].is_none());
    let at = |rank, call| CallAt { rank, thread: 0, call };
    let flow = all.flows.iter().find(|flow| flow.from == at(0, 1)).expect("it was received");
    assert_eq!(flow.to, at(1, 2));
}

#[test]
fn a_receive_from_any_rank_is_known_by_its_end() {
    let request = 77;
    let begun = Record { request, ..receive(1, 0, None, None) };
    let wait = record(2, Recording::Wait, 10, 20);
    let ended = Record {
        request,
        peer: Some(0),
        tag: Some(9),
        bytes: 16,
        sequence: Some(2),
        ..record(3, Recording::Ended, 19, 19)
    };
    let again = Record { request, ..receive(4, 30, Some(0), Some(9)) };
    let cancelled = Record { is_cancelled: true, sequence: Some(5), ..ended.clone() };
    let cancelled = Record { number: 6, start: 41, ..cancelled };
    let late = record(5, Recording::Wait, 40, 42);
    let receiver = rank(vec![begun, wait, ended, again, late, cancelled]);
    let all = collected(vec![rank(vec![send(1, 0, 1, 9), send(2, 1, 1, 9)]), receiver]);
    let [begun, wait, again, late] = calls(&all, 1) else { panic!("four calls") };
    assert_eq!((begun.peer, begun.tag, begun.bytes), (Some(0), Some(9), 16));
    assert_eq!(begun.message, calls(&all, 0)[0].message);
    assert_eq!(wait.message, begun.message, "it has ended this one receive");
    assert_eq!((again.message, late.message, all.flows.len()), (None, None, 1));
}

#[test]
fn persistent_requests_are_of_their_starts() {
    let request = 5;
    let made = Record { request, kind: Recording::SendInit, ..send(1, 0, 1, 3) };
    let start = Record { request, ..record(2, Recording::Start, 10, 11) };
    let all_started = record(3, Recording::Other, 20, 21);
    let started = Record { request, sequence: Some(3), ..record(4, Recording::Started, 20, 20) };
    let receiver = rank(vec![receive(1, 0, Some(0), Some(3)), receive(2, 6, Some(0), Some(3))]);
    let all = collected(vec![rank(vec![made, start, all_started, started]), receiver]);
    let sent = messages(&all, 0);
    assert_eq!((sent[0], sent[1], sent[2]), (None, messages(&all, 1)[0], messages(&all, 1)[1]));
}

#[test]
fn an_exchange_sends_and_receives() {
    let exchange = |other: u32| {
        let call = Record { kind: Recording::Exchange, ..send(1, 10, other, 4) };
        let received = Some(Received { source: other, tag: 4, bytes: 8 });
        rank(vec![Record { end: Some(20), received, ..call }])
    };
    let all = collected(vec![exchange(1), exchange(0)]);
    assert_eq!(all.flows.len(), 2);
    assert!(messages(&all, 0)[0].is_some() && messages(&all, 0) != messages(&all, 1));
}

/// A wait for one operation has no further record, one for several has a record for each further one.
#[test]
fn operations_end_in_their_waits() {
    let sender = rank(vec![send(1, 0, 1, 5), send(2, 1, 1, 6), send(3, 2, 1, 7)]);
    let receives = [5, 6, 7]
        .map(|tag| Record { request: tag as u64, ..receive(tag as u64, tag as u64, None, None) });
    let ended = |call: Record, tag: i32| Record {
        request: tag as u64,
        peer: Some(0),
        tag: Some(tag),
        bytes: 8,
        ..call
    };
    let one = ended(record(10, Recording::Wait, 20, 30), 6);
    let two = ended(record(11, Recording::Wait, 40, 50), 5);
    let further = ended(record(12, Recording::Ended, 40, 40), 7);
    let further = Record { sequence: Some(11), ..further };
    let receiver = receives.into_iter().chain([one, two, further]).collect();
    let all = collected(vec![sender, rank(receiver)]);
    let (sent, received) = (messages(&all, 0), messages(&all, 1));
    assert_eq!(received[..3], sent);
    assert_eq!(received[3..], [sent[1], None], "the second one has ended two");
    let wait = &calls(&all, 1)[3];
    assert_eq!((wait.peer, wait.tag, wait.bytes), (None, None, 0), "its receive tells");
    let at = |call| CallAt { rank: 1, thread: 0, call };
    let ends: Vec<_> = all.flows.iter().map(|flow| flow.to).collect();
    assert_eq!(ends, [at(4), at(3), at(4)]);
}

#[test]
fn parts_of_a_call_that_overlap_follow_each_other() {
    let part = |number, start, end| record(number, Recording::Part, start, end);
    let wait = record(1, Recording::Wait, 10, 90);
    let parts = [part(2, 10, 40), part(3, 20, 30), part(4, 25, 60), part(5, 70, 80)];
    let all = collected(vec![rank([wait].into_iter().chain(parts).collect())]);
    let times = calls(&all, 0).iter().map(|call| (call.start, call.end.unwrap_or(0)));
    let expected = [(10, 90), (10, 40), (20, 30), (40, 60), (70, 80)];
    assert_eq!(times.collect::<Vec<_>>(), expected);
}

proptest! {
    /// However parts overlap, those that are shown lie inside of each other or apart.
    #[test]
    fn parts_are_nested_or_apart(parts in prop::collection::vec((0_u64..40, 1_u64..40), 0..8)) {
        let part = |(number, (start, len)): (u64, &(u64, u64))| {
            record(number, Recording::Part, *start, start + len)
        };
        let all = collected(vec![rank((1..).zip(&parts).map(part).collect())]);
        let shown: Vec<_> = calls(&all, 0).iter().map(|call| (call.start, call.end)).collect();
        let mut ends: Vec<_> = shown.iter().map(|(_, end)| end.expect("they have ended")).collect();
        let mut meant: Vec<_> = parts.iter().map(|(start, len)| start + len).collect();
        ends.sort_unstable();
        meant.sort_unstable();
        prop_assert_eq!(ends, meant);
        for (start, end) in &shown {
            prop_assert!(end.is_some_and(|end| end > *start));
            for (other, until) in &shown {
                let crosses = other < start && Some(*start) < *until && until < end;
                prop_assert!(!crosses, "{:?}", shown);
            }
        }
    }
}

/// A rank that was killed in an exchange may have received its message.
#[test]
fn an_exchange_without_an_end_has_received_nothing() {
    let received = Some(Received { source: 0, tag: 1, bytes: 0 });
    let (communicator, peer, tag) = (Some(0), Some(0), Some(1));
    let exchange = Record { end: None, ..record(1, Recording::Exchange, 1, 1) };
    let exchange = Record { communicator, peer, tag, received, ..exchange };
    let all = collected(vec![rank(vec![exchange])]);
    assert_eq!(all.flows.len(), 0);
}

/// Its wait cannot tell which rank of the world the status means.
#[test]
fn a_receive_of_an_unknown_communicator_has_no_rank() {
    let peer_with = |communicator| {
        let begun = Record { communicator, request: 5, ..record(1, Recording::Receive, 1, 2) };
        let (peer, tag) = (Some(7), Some(1));
        let wait = Record { request: 5, peer, tag, ..record(2, Recording::Wait, 3, 4) };
        calls(&collected(vec![rank(vec![begun, wait])]), 0)[0].peer
    };
    assert_eq!((peer_with(None), peer_with(Some(0))), (None, Some(7)));
}

#[test]
fn lengths_of_queues_are_counters() {
    let about = |number, start, posted, unexpected, bytes| Record {
        peer: Some(posted),
        tag: Some(unexpected),
        bytes,
        sequence: Some(1),
        ..record(number, Recording::Levels, start, start)
    };
    let levels = vec![about(2, 30, 7, 0, 64), about(3, 10, 7, 2, 0), send(1, 5, 1, 0)];
    let mut second = rank(levels);
    second.footprint = vec![(20, 1 << 20), (40, 4096)];
    let all = collected(vec![rank(vec![]), second]);
    let at = |levels: &Levels| (levels.at, levels.posted, levels.unexpected, levels.bytes);
    let levels: Vec<_> = all.trace.ranks[1].levels.iter().map(at).collect();
    assert_eq!(levels, [(10, 7, 2, 0), (30, 7, 0, 64)]);
    let file = written(&all);
    let counts = events(&file).into_iter().filter(|(kind, ..)| *kind == 4);
    let times: Vec<u64> = counts.map(|(_, at, ..)| at).collect();
    assert_eq!(times, [10, 10, 10, 30, 30, 20, 40], "what has not changed is not written again");
    let names =
        ["posted receives", "unexpected messages", "bytes of unexpected messages", "memory"];
    assert_eq!(tracks(&file)[3..], names);
}

#[test]
fn each_context_has_counters_of_its_own() {
    let about = |number, start, request, posted| Record {
        peer: Some(posted),
        request,
        sequence: Some(1),
        ..record(number, Recording::Levels, start, start)
    };
    let levels = [(1, 10, 2, 7), (2, 20, 1, 7), (3, 30, 2, 7), (4, 40, 2, 8)];
    let levels = levels.map(|(number, start, device, posted)| about(number, start, device, posted));
    let file = written(&collected(vec![rank(levels.into())]));
    let names = tracks(&file);
    let posted = |context: u32| format!("posted receives of context {context}");
    assert_eq!((names.len(), &names[2], &names[5]), (8, &posted(0), &posted(1)));
    let counts = events(&file).into_iter().filter(|(kind, ..)| *kind == 4);
    let times: Vec<u64> = counts.map(|(_, at, ..)| at).collect();
    assert_eq!(times, [10, 10, 10, 20, 20, 20, 40]);
}

/// The receive of an exchange that was started counts where it was started: later ones get later messages.
#[test]
fn an_exchange_that_was_started_receives_in_its_turn() {
    let request = 9;
    let sender = rank(vec![send(1, 0, 1, 4), send(2, 1, 1, 4)]);
    let exchange = Record { kind: Recording::Exchange, request, bytes: 3, ..send(1, 5, 0, 8) };
    let receive = Record { end: Some(31), ..receive(2, 10, Some(0), Some(4)) };
    let wait = record(3, Recording::Wait, 40, 60);
    let (peer, tag) = (Some(0), Some(4));
    let came = record(4, Recording::Ended, 59, 59);
    let came = Record { request, peer, tag, bytes: 16, sequence: Some(3), ..came };
    let all = collected(vec![sender, rank(vec![exchange, receive, wait, came])]);
    let (sent, [exchange, receive, wait]) = (messages(&all, 0), calls(&all, 1)) else {
        panic!("three calls")
    };
    assert_eq!([exchange.message, receive.message, wait.message], [sent[0], sent[1], sent[0]]);
    assert!(sent.iter().all(Option::is_some) && sent[0] != sent[1]);
    assert_eq!((exchange.tag, exchange.bytes), (Some(8), 3), "it tells of what it sends");
}

/// The clock of the second host shows 1,000 more, and runs at half the rate.
#[test]
fn times_of_another_host_are_those_of_this_one() {
    let trip = |left, there| RoundTrip { left, there, came: left };
    let elsewhere = HostClock::of(trip(0, 1000), trip(1000, 1500));
    let of_rank = |task, host, elsewhere, record| {
        let times = Times { elsewhere, ..TIMES };
        OfRank { task, host, times, recorded: rank(vec![record]) }
    };
    let ranks = [
        of_rank(0, "here", None, send(1, 100, 1, 5)),
        of_rank(1, "there", elsewhere, receive(1, 1045, Some(0), Some(5))),
    ];
    let mut all = collect(ranks, None);
    let received = &calls(&all, 1)[0];
    assert_eq!((received.start, received.end, all.flows.len()), (90, Some(100), 1));
    assert_eq!(tracks(&written(&all)), ["job of 2 ranks", "rank 0", "rank 1"]);
    all.error_between_hosts = Some(1999);
    assert_eq!(
        tracks(&written(&all)),
        [
            "job of 2 ranks, times of different hosts agree to within 2 µs",
            "rank 0 on here",
            "rank 1 on there"
        ]
    );
}

/// The names of the tracks of a trace file.
fn tracks(file: &[u8]) -> Vec<String> {
    let inner = |list: Vec<(u32, Value)>, field| {
        list.into_iter().find_map(|(number, value)| match value {
            Value::Bytes(bytes) if number == field => Some(bytes),
            _ => None,
        })
    };
    let name = |packet: Vec<u8>| inner(fields(&inner(fields(&packet), 60)?), 2);
    let packets = fields(file).into_iter().filter_map(|(_, value)| match value {
        Value::Bytes(packet) => name(packet),
        _ => None,
    });
    packets.map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
}

/// The events of a trace file: type, time, sequence, and flows that begin or end.
fn events(file: &[u8]) -> Vec<(u64, u64, u64, Vec<u64>)> {
    let number = |list: &[(u32, Value)], field| {
        list.iter().find_map(|(number, value)| match value {
            Value::Number(value) if *number == field => Some(*value),
            _ => None,
        })
    };
    let packets = fields(file).into_iter().map(|(field, value)| match (field, value) {
        (1, Value::Bytes(packet)) => fields(&packet),
        other => panic!("no packet: {other:?}"),
    });
    packets
        .filter_map(|packet| {
            let event = packet.iter().find_map(|(field, value)| match (field, value) {
                (11, Value::Bytes(event)) => Some(fields(event)),
                _ => None,
            })?;
            let flows = event.iter().filter_map(|(field, value)| match (field, value) {
                (47 | 48, Value::Fixed(flow)) => Some(*flow),
                _ => None,
            });
            let (at, sequence) = (number(&packet, 8)?, number(&packet, 10)?);
            Some((number(&event, 9)?, at, sequence, flows.collect()))
        })
        .collect()
}

fn written(collected: &Collected) -> Vec<u8> {
    let mut file = Vec::new();
    perfetto::write(collected, &mut file).expect("memory takes all");
    file
}

#[test]
fn the_file_has_calls_and_messages() {
    let receiver = rank(vec![receive(1, 0, Some(0), Some(5))]);
    let all = collected(vec![rank(vec![send(1, 3, 1, 5)]), receiver]);
    let number = messages(&all, 0)[0].expect("it was received");
    let (begin, end, instant, none) = (1, 2, 3, Vec::new());
    assert_eq!(
        events(&written(&all)),
        [
            (begin, 3, 1, none.clone()),
            (instant, 3, 1, vec![number]),
            (end, 4, 1, none.clone()),
            (begin, 0, 2, none.clone()),
            (instant, 5, 2, vec![number]),
            (end, 5, 2, none),
        ]
    );
}

#[test]
fn calls_nest_and_may_have_no_end() {
    let open = Record { end: None, ..record(1, Recording::Span, 0, 0) };
    let inner = record(2, Recording::Wait, 10, 500);
    let mark = record(3, Recording::Mark, 20, 30);
    let all = collected(vec![rank(vec![open, inner, mark])]);
    let kinds: Vec<u64> = events(&written(&all)).iter().map(|event| event.0).collect();
    assert_eq!(kinds, [1, 1, 3, 2], "the first one never ends");
    assert_eq!(
        calls(&all, 0).iter().map(|call| call.kind).collect::<Vec<_>>(),
        [Kind::Span, Kind::Wait, Kind::Span]
    );
}

fn any_record() -> impl Strategy<Value = Record> {
    let kinds = [
        Recording::Other,
        Recording::Send,
        Recording::Receive,
        Recording::Exchange,
        Recording::Wait,
        Recording::Collective,
        Recording::Span,
        Recording::SendInit,
        Recording::ReceiveInit,
        Recording::Start,
        Recording::Ended,
        Recording::Started,
        Recording::Mark,
        Recording::Part,
        Recording::Levels,
    ];
    let times = (prop_oneof![0_u64..50, any::<u64>()], prop::option::of(0_u64..60));
    let who = (prop::option::of(0_u32..3), prop::option::of(-1_i32..2), prop::option::of(0_u32..2));
    let received = (0_u32..3, -1_i32..2, any::<u64>());
    let received = received.prop_map(|(source, tag, bytes)| Received { source, tag, bytes });
    let sequence = prop::option::of(0_u64..20);
    let what = (0_u64..3, sequence, any::<bool>(), prop::option::of(received));
    (prop::sample::select(kinds.to_vec()), times, who, what).prop_map(
        |(kind, (start, len), (peer, tag, communicator), what)| {
            let (request, sequence, is_cancelled, received) = what;
            Record {
                peer,
                tag,
                communicator: communicator.map(|number| number << 31 | number),
                request,
                sequence,
                is_cancelled,
                received,
                end: len.map(|len| start.saturating_add(len)),
                ..record(0, kind, start, start)
            }
        },
    )
}

proptest! {
    /// Whatever ranks claim, each call begins once, in order, and ends at most once; and flows lead from one event to one.
    #[test]
    fn any_records_make_a_file(ranks in prop::collection::vec(
        prop::collection::vec(prop::collection::vec(any_record(), 0..12), 0..3), 0..4),
    ) {
        let threads = |threads: Vec<Vec<Record>>| Recorded {
            threads: threads
                .into_iter()
                .map(|mut records| {
                    (0..).zip(&mut records).for_each(|(at, record)| record.number = at);
                    ThreadRecords { system_id: 1, records, ..Default::default() }
                })
                .collect(),
            lost: 1,
            footprint: vec![(u64::MAX, u64::MAX), (1, 0)],
        };
        let all = collected(ranks.into_iter().map(threads).collect());
        let mut depth = BTreeMap::<u64, i64>::new();
        let mut last = BTreeMap::<u64, u64>::new();
        let mut flows = BTreeMap::<u64, usize>::new();
        for (kind, at, sequence, of_event) in events(&written(&all)) {
            prop_assert!(at >= *last.entry(sequence).or_default());
            last.insert(sequence, at);
            let depth = depth.entry(sequence).or_default();
            *depth += match kind { 1 => 1, 2 => -1, _ => 0 };
            prop_assert!(*depth >= 0 && at <= TIMES.nanos);
            of_event.into_iter().for_each(|flow| *flows.entry(flow).or_default() += 1);
        }
        prop_assert!(flows.values().all(|ends| *ends == 2));
        prop_assert_eq!(flows.len(), all.flows.len());
    }
}

/// Four ranks of 250,000 calls each, in a second on a usual machine.
#[test]
#[ignore = "measures; run it with --release -- --ignored --nocapture"]
#[expect(clippy::print_stderr, reason = "it measures")]
fn a_million_records_are_merged() {
    let ranks: Vec<Recorded> = (0..4_u32)
        .map(|own| {
            let other = own ^ 1;
            rank(
                (0..250_000_u64)
                    .map(|number| match (number + u64::from(own)) % 2 {
                        0 => send(number, number * 2, other, 0),
                        _ => receive(number, number * 2, Some(other), Some(0)),
                    })
                    .collect(),
            )
        })
        .collect();
    let began = Instant::now();
    let all = collected_in(Times { ended: 1 << 20, nanos: 1 << 20, ..TIMES }, ranks);
    let merged = began.elapsed();
    assert!(all.flows.len() > 400_000);
    let file = written(&all);
    let (total, bytes) = (began.elapsed(), file.len());
    eprintln!("merged in {merged:?}, {bytes} bytes written in {:?}", total - merged);
    assert!(merged.as_secs() < 1);
    let _: Arc<str> = all.trace.ranks[0].threads[0].calls[0].name.clone();
}
