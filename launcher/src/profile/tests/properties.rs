//! What holds for every trace, and numbers beside those of plain loops over all pairs of calls.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

const KINDS: [Kind; 11] = [
    Kind::Send,
    Kind::Receive,
    Kind::Exchange,
    Kind::Wait,
    Kind::Probe,
    Kind::Collective,
    Kind::OneSided,
    Kind::File,
    Kind::Span,
    Kind::Part,
    Kind::Other,
];
const NAMES: [&str; 5] = ["send", "MPI_Irecv", "istart", "", "<b>&\u{1b}[2J\u{e9}"];

/// Any call: few different numbers, so that they often fit, and now and then the largest ones.
fn any_call() -> impl Strategy<Value = Call> {
    let time = || prop_oneof![9 => 0..40_u64, 1 => Just(u64::MAX), 1 => any::<u64>()];
    let few = || prop_oneof![9 => 0..4_u32, 1 => any::<u32>()];
    let number = || prop_oneof![9 => 0..8_u64, 1 => Just(u64::MAX)];
    let times = (time(), option::of(time()), prop_oneof![0..99_u64, Just(u64::MAX)]);
    let pairs = (option::of(few()), option::of(few()), option::of(number()), option::of(number()));
    let names = (0..NAMES.len(), 0..KINDS.len(), option::of(0..NAMES.len()));
    (times, pairs, names).prop_map(|(times, pairs, names)| {
        let ((start, end, bytes), (communicator, peer, message, sequence)) = (times, pairs);
        Call {
            name: NAMES[names.0].into(),
            kind: KINDS[names.1],
            place: names.2.map(|place| NAMES[place].into()),
            start,
            end,
            communicator,
            peer,
            tag: None,
            bytes,
            message,
            sequence,
            by_rendezvous: None,
        }
    })
}

/// Any trace, with messages between any calls, which may not be there.
fn any_trace() -> impl Strategy<Value = Collected> {
    let lost = || prop_oneof![9 => Just(0), 1 => Just(u64::MAX)];
    let thread = (vec(any_call(), 0..12), lost());
    let thread = thread.prop_map(|(calls, lost)| ThreadTrace { calls, lost, overwritten: 0 });
    let rank = (prop_oneof![9 => 0..4_u32, 1 => any::<u32>()], vec(thread, 0..3));
    let rank = rank.prop_map(|(rank, threads)| RankTrace {
        rank,
        host: "<i>".to_owned(),
        threads,
        ..RankTrace::default()
    });
    let place = || prop_oneof![30 => 0..4_usize, 1 => Just(usize::MAX)];
    let at = || {
        (place(), place(), place()).prop_map(|(rank, thread, call)| CallAt { rank, thread, call })
    };
    let flow = (0..8_u64, at(), at()).prop_map(|(number, from, to)| Flow { number, from, to });
    (vec(rank, 0..5), vec(flow, 0..8), any::<bool>()).prop_map(|(ranks, flows, is_joined)| {
        let trace = Trace { ranks };
        if is_joined { joined(trace) } else { Collected { trace, flows, ..Collected::default() } }
    })
}

/// Traces as jobs leave them: blocking calls behind each other, times in nanoseconds.
fn regular_trace() -> impl Strategy<Value = Collected> {
    let call = (0..3_u8, 0..5_u64, 0..5_u64, 0..6_u64, 0..3_u64);
    let rank = vec(call, 0..10).prop_map(|calls| {
        let mut now = 0;
        let step = |(kind, pause, lasts, number, bytes): (u8, u64, u64, u64, u64)| {
            let (start, end) = (now + pause, now + pause + lasts);
            now = end;
            let call = match kind {
                0 => send(0, 0, number as u32 % 4, number),
                1 => recv(0, 0, number as u32 % 4, number),
                _ => collective(0, 0, number),
            };
            Call { start, end: Some(end), bytes, ..call }
        };
        calls.into_iter().map(step).collect()
    });
    vec(rank, 1..5).prop_map(trace)
}

/// All calls with the places of their ranks.
fn calls(trace: &Trace) -> Vec<(usize, &Call)> {
    let ranks = trace.ranks.iter().enumerate();
    ranks.flat_map(|(rank, it)| it.threads[0].calls.iter().map(move |call| (rank, call))).collect()
}

/// How many calls with the number of this one its rank has made before.
fn earlier(calls: &[(usize, &Call)], (rank, call): (usize, &Call)) -> usize {
    let own = calls.iter().filter(|(other, _)| *other == rank).map(|(_, other)| *other);
    let before = own.take_while(|other| !std::ptr::eq(*other, call));
    before.filter(|other| other.sequence == call.sequence).count()
}

/// How long a call waited, found by looking at all others.
fn waited(calls: &[(usize, &Call)], (rank, call): (usize, &Call)) -> u64 {
    let end = |kind, number| {
        let mut all =
            calls.iter().filter(|(_, other)| other.kind == kind && other.message == number);
        // Of several calls with one number only these are a message.
        if kind == Kind::Send { all.min_by_key(|(rank, _)| *rank) } else { all.next_back() }
    };
    let is_within = |other: &&(usize, &Call)| {
        let (rank_of_other, other) = *other;
        *rank_of_other != rank && call.start < other.start && Some(other.start) <= call.end
    };
    let latest = match call.kind {
        Kind::Collective => {
            let others = calls.iter().filter(|(_, other)| other.sequence == call.sequence);
            let nth = earlier(calls, (rank, call));
            let others = others.filter(|other| earlier(calls, **other) == nth);
            others.filter(is_within).map(|(_, other)| other.start).max()
        }
        kind => {
            let other = if kind == Kind::Send { Kind::Receive } else { Kind::Send };
            let is_end = end(kind, call.message).is_some_and(|(_, one)| std::ptr::eq(*one, call));
            let other = end(other, call.message).filter(|_| is_end);
            // A send that ends when its receive begins has not waited for it.
            let lasts =
                |(_, other): &&(usize, &Call)| kind != Kind::Send || Some(other.start) < call.end;
            other.filter(is_within).filter(lasts).map(|(_, other)| other.start)
        }
    };
    latest.map_or(0, |until| until - call.start)
}

proptest! {
    /// PF1 to PF3 hold, and both forms are made, of a size that does not depend on the program.
    #[test]
    fn any_trace_has_a_profile(collected in any_trace()) {
        let profile = Profile::of(&collected);
        for share in &profile.ranks {
            prop_assert!(share.waited <= share.in_calls, "PF2: {:?}", share);
            prop_assert!(share.in_calls <= share.whole, "{:?}", share);
        }
        let sum = |charges: &[Charge]| charges.iter().map(|charge| u128::from(charge.nanos)).sum::<u128>();
        prop_assert_eq!(sum(&profile.causes), sum(&profile.direct), "PF3");
        let lines: Vec<String> = profile.text().lines().map(str::to_owned).collect();
        prop_assert!(lines.len() <= 24, "{}", lines.len());
        let is_tame = lines.iter().all(|line| !line.contains('\u{1b}'));
        prop_assert!(is_tame);
        let page = profile.page("<program>");
        prop_assert!(!page.contains("<b>") && !page.contains("<program>") && !page.contains("<i>"));
    }

    /// Waits and traffic are those that plain loops find.
    #[test]
    fn numbers_are_those_of_plain_loops(collected in regular_trace()) {
        let profile = Profile::of(&collected);
        let calls = calls(&collected.trace);
        for (rank, share) in profile.ranks.iter().enumerate() {
            let own = calls.iter().filter(|(of, _)| *of == rank);
            let (mut whole, mut in_calls, mut waits) = (0, 0, 0);
            for (rank, call) in own {
                whole = whole.max(call.end.expect("calls have ended"));
                in_calls += call.end.expect("calls have ended") - call.start;
                waits += waited(&calls, (*rank, call));
            }
            prop_assert_eq!((share.whole, share.in_calls, share.waited), (whole, in_calls, waits));
        }
        let caused = |rank: usize| profile.causes.iter().filter(move |charge| charge.cause == rank);
        for (rank, share) in profile.ranks.iter().enumerate() {
            prop_assert_eq!(share.caused, caused(rank).map(|charge| charge.nanos).sum::<u64>());
        }
        for sender in 0..profile.ranks.len() {
            for receiver in 0..profile.ranks.len() {
                let sent = calls.iter().filter(|(rank, call)| {
                    *rank == sender && call.kind == Kind::Send && call.peer == Some(receiver as u32)
                });
                let bytes: u64 = sent.map(|(_, call)| call.bytes).sum();
                let amount = profile.traffic.pairs.get(&(sender, receiver));
                prop_assert_eq!(amount.map_or(0, |amount| amount.bytes), bytes);
            }
        }
    }
}
