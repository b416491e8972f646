//! Times by call and by rank, and the traffic.

use super::*;

#[test]
fn calls_are_added_up_by_name_and_place() {
    let elsewhere = Call { place: Some("src/main.rs:50".into()), ..collective(9, 10, 2) };
    let ranks = vec![
        vec![collective(1, 3, 0), collective(4, 5, 1), elsewhere],
        vec![collective(1, 3, 0), send(3, 7, 0, 1)],
    ];
    let profile = Profile::of(&trace(ranks));
    let told: Vec<_> = profile
        .sites
        .iter()
        .map(|site| {
            let place = site.key.place.as_deref().unwrap_or("");
            (&*site.key.name, place, site.calls, site.total / S, site.longest / S, site.bytes)
        })
        .collect();
    let expected = [
        ("all_reduce", "src/main.rs:40", 3, 5, 2, 24),
        ("send", "", 1, 4, 4, 8),
        ("all_reduce", "src/main.rs:50", 1, 1, 1, 8),
    ];
    assert_eq!(told, expected);
    assert_eq!(profile.sites[0].mean(), 5 * S / 3);
}

#[test]
fn spans_are_no_calls() {
    let span = |start, end| call("assemble", Kind::Span, start, end);
    let ranks = vec![vec![span(0, 10), send(1, 2, 0, 1), span(11, 13)]];
    let profile = Profile::of(&trace(ranks));
    assert_eq!((profile.sites.len(), profile.spans.len()), (1, 1));
    assert_eq!((profile.spans[0].calls, profile.spans[0].total), (2, 12 * S));
    assert_eq!((profile.ranks[0].in_calls, profile.ranks[0].computing), (S, S));
}

#[test]
fn a_call_inside_another_one_is_a_part_of_it() {
    let ranks = vec![vec![call("outer", Kind::File, 1, 5), send(2, 3, 0, 1), send(5, 6, 0, 2)]];
    let profile = Profile::of(&trace(ranks));
    let share = &profile.ranks[0];
    assert_eq!((share.in_calls, share.computing, share.whole), (5 * S, S, 6 * S));
    let calls: Vec<_> = profile.sites.iter().map(|site| (&*site.key.name, site.calls)).collect();
    assert_eq!(calls, [("outer", 1), ("send", 1)]);
}

#[test]
fn a_ranks_threads_are_added_up() {
    let mut collected = trace(vec![vec![send(2, 4, 0, 1)]]);
    collected.trace.ranks[0].threads.push(ThreadTrace {
        calls: vec![send(5, 6, 0, 2), send(9, 10, 0, 3)],
        lost: 3,
        overwritten: 0,
    });
    let profile = Profile::of(&collected);
    let share = &profile.ranks[0];
    assert_eq!((share.whole, share.in_calls, share.computing), (9 * S, 4 * S, 5 * S));
    assert_eq!(share.lost, 3);
}

#[test]
fn parts_of_the_time_show_what_a_rank_does_when() {
    let profile = Profile::of(&trace(vec![
        vec![recv(15, 30, 1, 1)],
        vec![send(20, 20, 0, 1), call("write", Kind::File, 59, 60)],
    ]));
    assert_eq!(profile.end, shares::PARTS as u64 * S, "a second is a part");
    let parts = &profile.ranks[0].parts;
    let seconds = |of: fn(&shares::Part) -> u64| {
        let busy = parts.iter().enumerate().filter(|(_, part)| of(part) > 0);
        busy.map(|(place, part)| (place, of(part) / S)).collect::<Vec<_>>()
    };
    assert_eq!(seconds(|part| part.in_calls), (15..30).map(|at| (at, 1)).collect::<Vec<_>>());
    assert_eq!(seconds(|part| part.waited), (15..20).map(|at| (at, 1)).collect::<Vec<_>>());
}

#[test]
fn messages_are_counted_by_pair_and_size() {
    let sized = |bytes: u64, peer: u32| Call { bytes, ..send(0, 0, peer, 1) };
    let ranks =
        vec![vec![sized(0, 1), sized(1, 1), sized(7, 1), sized(8, 1), sized(u64::MAX, 0)], vec![]];
    let traffic = Profile::of(&trace(ranks)).traffic;
    let amount = |messages, bytes| traffic::Amount { messages, bytes };
    let pairs: Vec<_> = traffic.pairs.iter().map(|(pair, amount)| (*pair, *amount)).collect();
    assert_eq!(pairs, [((0, 0), amount(1, u64::MAX)), ((0, 1), amount(4, 16))]);
    let sizes: Vec<_> =
        traffic.sizes.iter().map(|(digits, amount)| (*digits, amount.messages)).collect();
    assert_eq!(sizes, [(0, 1), (1, 1), (3, 1), (4, 1), (64, 1)]);
    assert_eq!(traffic.all(), amount(5, u64::MAX));
}

#[test]
fn numbers_of_ranks_need_not_be_their_places() {
    let mut collected = trace(vec![vec![recv(1, 4, 7, 1)], vec![send(3, 4, 5, 1)]]);
    (collected.trace.ranks[0].rank, collected.trace.ranks[1].rank) = (5, 7);
    let profile = Profile::of(&collected);
    assert_eq!(charges(&profile.causes), [(0, 1, 2)]);
    assert!(profile.text().contains("rank 5 waited 2.00 s because of rank 7, in recv"));
}
